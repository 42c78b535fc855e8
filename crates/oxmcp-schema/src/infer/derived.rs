//! Functions that derived code calls.

use crate::infer::json_schema::JsonSchema;

/// Wants a schema of a field's type.
pub const fn has_schema<T: JsonSchema + ?Sized>() {}
