//! Inference: the schema of a type, in the form that clients and models understand.

pub(crate) mod derived;
pub(crate) mod json_schema;
pub(crate) mod order;
pub(crate) mod portable;
pub(crate) mod references;
