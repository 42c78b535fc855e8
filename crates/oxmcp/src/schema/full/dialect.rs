//! The dialects of JSON Schema, and what differs between them.

use std::sync::OnceLock;

use serde_json::Value;

use super::{compile, validator::Validator};
use crate::error::{Error, Result};

/// The oldest first, so that they can be compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::schema) enum Dialect {
    Draft04,
    Draft06,
    Draft07,
    Draft201909,
    Draft202012,
}

struct Facts {
    dialect: Dialect,
    /// What `$schema` holds.
    uri: &'static str,
    /// The official schema of its schemas, with all that it refers to.
    metaschema: &'static str,
}

/// What is preferred comes first.
const KNOWN: [Facts; 5] = [
    Facts {
        dialect: Dialect::Draft202012,
        uri: "https://json-schema.org/draft/2020-12/schema",
        metaschema: include_str!("metaschemas/2020-12.json"),
    },
    Facts {
        dialect: Dialect::Draft201909,
        uri: "https://json-schema.org/draft/2019-09/schema",
        metaschema: include_str!("metaschemas/2019-09.json"),
    },
    Facts {
        dialect: Dialect::Draft07,
        uri: "http://json-schema.org/draft-07/schema",
        metaschema: include_str!("metaschemas/draft-07.json"),
    },
    Facts {
        dialect: Dialect::Draft06,
        uri: "http://json-schema.org/draft-06/schema",
        metaschema: include_str!("metaschemas/draft-06.json"),
    },
    Facts {
        dialect: Dialect::Draft04,
        uri: "http://json-schema.org/draft-04/schema",
        metaschema: include_str!("metaschemas/draft-04.json"),
    },
];

impl Dialect {
    /// What a schema is written in that does not say it.
    pub(in crate::schema) const DEFAULT: Self = Self::Draft202012;

    /// The dialect that a schema names. None where it names none.
    ///
    /// # Errors
    /// Where it names one that is not known.
    pub(in crate::schema) fn named(schema: &Value) -> Result<Option<Self>> {
        let Some(name) = schema.get("$schema") else {
            return Ok(None);
        };
        let uri = secure(name.as_str().unwrap_or_default().trim_end_matches('#'));
        match KNOWN.iter().find(|known| secure(known.uri) == uri) {
            Some(known) => Ok(Some(known.dialect)),
            None => Err(Error::misuse(format!(
                "the schema is written in an unknown dialect: \"$schema\" is {name}. Known are {}; without \"$schema\" it is the first",
                KNOWN.each_ref().map(|known| known.uri).join(", ")
            ))),
        }
    }

    /// The dialect whose metaschema, or part of one, this URI names.
    pub(super) fn of_metaschema(uri: &str) -> Option<Self> {
        let known = KNOWN.iter().find(|known| {
            let directory = known.uri.trim_end_matches("schema");
            uri.starts_with(directory)
        });
        known.map(|known| known.dialect)
    }

    /// The URI of the dialect.
    pub(super) fn uri(self) -> &'static str {
        self.facts().uri
    }

    pub(super) fn metaschema(self) -> Value {
        serde_json::from_str(self.facts().metaschema).expect("the official schemas are JSON")
    }

    /// What tells schemas from other values. Made when it is first needed.
    pub(in crate::schema) fn validator(self) -> &'static Validator {
        static VALIDATORS: [OnceLock<Validator>; KNOWN.len()] =
            [const { OnceLock::new() }; KNOWN.len()];
        let [draft04, draft06, draft07, draft201909, draft202012] = &VALIDATORS;
        let validator = match self {
            Self::Draft04 => draft04,
            Self::Draft06 => draft06,
            Self::Draft07 => draft07,
            Self::Draft201909 => draft201909,
            Self::Draft202012 => draft202012,
        };
        validator.get_or_init(|| {
            compile::compile(self.metaschema(), self).expect("the official schemas are valid")
        })
    }

    /// Compiles a schema that is known to be valid.
    ///
    /// # Errors
    /// Where it refers to what is not in it, or has a pattern that cannot be used.
    pub(in crate::schema) fn compile(self, schema: Value) -> Result<Validator> {
        compile::compile(schema, self)
    }

    /// The keyword that gives a schema its URI.
    pub(super) fn id(self) -> &'static str {
        if self == Self::Draft04 { "id" } else { "$id" }
    }

    /// Whether nothing beside a `$ref` counts.
    pub(super) fn ref_stands_alone(self) -> bool {
        self <= Self::Draft07
    }

    fn facts(self) -> &'static Facts {
        KNOWN
            .iter()
            .find(|known| known.dialect == self)
            .expect("each dialect is in the table")
    }
}

/// Both spellings of the older URIs are in use.
fn secure(uri: &str) -> String {
    uri.replacen("http://", "https://", 1)
}
