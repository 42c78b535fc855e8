//! Fast path: checking values against simple schemas, and reading and writing them, in one pass.
//!
//! It only ever accepts values: otherwise the full validator decides.
//!
//! | | |
//! |---|---|
//! | `check` | the compiled form of a simple schema |
//! | `accept` | validation in one pass |
//! | `read` | the deserializer that validates what it reads |
//! | `write` | the serializer that validates what it writes |
//! | `values` | deserializers that behave like those of serde_json |

pub(crate) mod accept;
pub(crate) mod check;
pub(crate) mod read;
pub(crate) mod values;
pub(crate) mod write;
