//! Dialects of JSON Schema, and the differences between them.

use serde_json::{Value, json};

use crate::error::{Result, SchemaError};

/// A dialect; the oldest comes first, so that they can be compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Dialect {
    Draft04,
    Draft06,
    Draft07,
    Draft201909,
    Draft202012,
}

struct Facts {
    dialect: Dialect,
    /// The value of `$schema`.
    uri: &'static str,
}

/// The known dialects, the preferred one first.
const KNOWN: [Facts; 5] = [
    Facts {
        dialect: Dialect::Draft202012,
        uri: "https://json-schema.org/draft/2020-12/schema",
    },
    Facts {
        dialect: Dialect::Draft201909,
        uri: "https://json-schema.org/draft/2019-09/schema",
    },
    Facts {
        dialect: Dialect::Draft07,
        uri: "http://json-schema.org/draft-07/schema",
    },
    Facts {
        dialect: Dialect::Draft06,
        uri: "http://json-schema.org/draft-06/schema",
    },
    Facts {
        dialect: Dialect::Draft04,
        uri: "http://json-schema.org/draft-04/schema",
    },
];

impl Dialect {
    /// The dialect of schemas without `$schema`.
    pub(crate) const DEFAULT: Self = Self::Draft202012;

    /// The dialect that a schema names. `None` if it names none.
    ///
    /// # Errors
    /// If the named dialect is unknown.
    pub(crate) fn named(schema: &Value) -> Result<Option<Self>> {
        let Some(name) = schema.get("$schema") else {
            return Ok(None);
        };
        let uri = secure(name.as_str().unwrap_or_default().trim_end_matches('#'));
        match KNOWN.iter().find(|known| secure(known.uri) == uri) {
            Some(known) => Ok(Some(known.dialect)),
            None => Err(SchemaError::invalid(format!(
                "unknown dialect: \"$schema\" is {name}; expected one of {} (the first is the default)",
                KNOWN.each_ref().map(|known| known.uri).join(", ")
            ))),
        }
    }

    /// The dialect whose metaschema this URI names.
    pub(crate) fn of_metaschema(uri: &str) -> Option<Self> {
        let known = KNOWN.iter().find(|known| known.uri == uri);
        known.map(|known| known.dialect)
    }

    /// The URI of the dialect, which is also that of its metaschema.
    pub(crate) fn uri(self) -> &'static str {
        let known = KNOWN.iter().find(|known| known.dialect == self);
        known.expect("each dialect is in the table").uri
    }

    /// A short stand-in for the metaschema.
    pub(crate) fn metaschema(self) -> Value {
        if self.has_boolean_schemas() {
            json!({"type": ["object", "boolean"]})
        } else {
            json!({"type": "object"})
        }
    }

    /// The dynamic anchor of the metaschema, by which other metaschemas extend it.
    pub(crate) fn metaschema_anchor(self) -> Option<&'static str> {
        match self {
            Self::Draft202012 => Some("meta"),
            // The empty anchor, which stands for `$recursiveAnchor`.
            Self::Draft201909 => Some(""),
            _ => None,
        }
    }

    /// The keyword that sets the URI of a schema.
    pub(crate) fn id(self) -> &'static str {
        if self == Self::Draft04 { "id" } else { "$id" }
    }

    /// Whether keywords next to a `$ref` are ignored.
    pub(crate) fn ref_stands_alone(self) -> bool {
        self <= Self::Draft07
    }

    /// Whether `true` and `false` are schemas.
    pub(crate) fn has_boolean_schemas(self) -> bool {
        self > Self::Draft04
    }
}

/// Normalizes the scheme of a URI, since the URIs of the older dialects are written with both.
fn secure(uri: &str) -> String {
    uri.replacen("http://", "https://", 1)
}
