//! Functions that derived code calls.

use crate::infer::{json_schema::JsonSchema, order::declared};

/// As [`declared`], and the field's type must have a schema. The derive of schemars asks for the same, but what it says does not
/// say what to do.
pub fn declared_as<const INDEX: usize, T: JsonSchema + ?Sized>(schema: &mut schemars::Schema) {
    declared::<INDEX>(schema);
}
