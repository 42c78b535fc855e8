//! JSON Schemas, which are objects.

use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, Visitor};

use super::SCHEMA;
use crate::values::json::RawJson;

/// Reads a JSON Schema, for `deserialize_with`.
pub(crate) fn schema<'de, D: Deserializer<'de>>(deserializer: D) -> Result<RawJson, D::Error> {
    Schema::deserialize(deserializer).map(|Schema(raw)| raw)
}

/// Reads a JSON Schema that may be null, like [`schema`].
pub(crate) fn optional_schema<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<RawJson>, D::Error> {
    let schema = Option::<Schema>::deserialize(deserializer)?;
    Ok(schema.map(|Schema(raw)| raw))
}

struct Schema(RawJson);

impl<'de> Deserialize<'de> for Schema {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct SchemaVisitor;

        impl<'de> Visitor<'de> for SchemaVisitor {
            type Value = Schema;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a schema")
            }

            fn visit_newtype_struct<D: Deserializer<'de>>(
                self,
                deserializer: D,
            ) -> Result<Schema, D::Error> {
                let raw = RawJson::deserialize(deserializer)?;
                if raw.get().starts_with('{') {
                    Ok(Schema(raw))
                } else {
                    Err(D::Error::custom("a schema must be an object"))
                }
            }
        }

        deserializer.deserialize_newtype_struct(SCHEMA, SchemaVisitor)
    }
}
