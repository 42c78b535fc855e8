//! Functions that derived code calls.

use crate::infer::json_schema::JsonSchema;

/// Requires at compile time that the type of a field has a schema.
pub const fn has_schema<T: JsonSchema + ?Sized>() {}
