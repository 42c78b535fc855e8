//! The form of a schema that hosts accept, and the parts of a schema that some of them refuse.
//!
//! A host passes the schemas of tools to the API of its model. Most APIs support only a part of JSON Schema, and many refuse
//! all tools of a request because of one keyword in one of them.

pub(crate) mod listed;
pub(crate) mod merge;
pub(crate) mod rules;
