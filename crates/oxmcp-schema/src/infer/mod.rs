//! Inference: the schema of a type, in the form that clients and models understand.
//!
//! | | |
//! |---|---|
//! | `json_schema` | the trait [`JsonSchema`](json_schema::JsonSchema), and the schema of a type for input or output |
//! | `derived` | the functions that derived code calls |
//! | `order` | the order in which a type declares its properties, and the marks that carry it |
//! | `references` | references within a schema, and changing a root that they lead to |
//! | `portable` | the simplification of the schemas that schemars generates |

pub(crate) mod derived;
pub(crate) mod json_schema;
pub(crate) mod order;
pub(crate) mod portable;
pub(crate) mod references;
