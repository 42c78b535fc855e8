//! [`IntoSchema`]: the types that can be converted to a schema.

use serde_json::{Map, Value, value::RawValue};

use crate::{
    error::{Result, SchemaError},
    schema::Schema,
};

/// A type that can be converted to a schema: a [`Schema`], a [`serde_json::Value`], or JSON text.
///
/// A `Schema` and text (a string or a [`RawValue`]) keep the order of their members. A `Value` is sorted by name:
/// `json!({"properties": {"b": {}, "a": {}}})` lists `a` first, and models read from the top.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a JSON Schema",
    label = "not a schema",
    note = "use a `Schema`, such as `Schema::of::<T>()` or `Schema::of_output::<T>()`, a `serde_json::Value`, or JSON text"
)]
pub trait IntoSchema {
    /// Converts the value to a schema.
    ///
    /// # Errors
    /// If it is not a valid schema: see [`Schema::from_json`].
    fn into_schema(self) -> Result<Schema, SchemaError>;
}

impl IntoSchema for Schema {
    fn into_schema(self) -> Result<Schema> {
        Ok(self)
    }
}

impl IntoSchema for &Schema {
    fn into_schema(self) -> Result<Schema> {
        Ok(self.clone())
    }
}

impl IntoSchema for Value {
    fn into_schema(self) -> Result<Schema> {
        Schema::from_json(self)
    }
}

impl IntoSchema for Map<String, Value> {
    fn into_schema(self) -> Result<Schema> {
        Schema::from_json(self)
    }
}

impl IntoSchema for &RawValue {
    fn into_schema(self) -> Result<Schema> {
        Schema::from_raw(self)
    }
}

impl IntoSchema for Box<RawValue> {
    fn into_schema(self) -> Result<Schema> {
        Schema::from_raw(&self)
    }
}

impl IntoSchema for &str {
    fn into_schema(self) -> Result<Schema> {
        let text: &RawValue = serde_json::from_str(self)
            .map_err(|error| SchemaError::invalid(format!("cannot parse the schema: {error}")))?;
        Schema::from_raw(text)
    }
}

impl IntoSchema for String {
    fn into_schema(self) -> Result<Schema> {
        self.as_str().into_schema()
    }
}
