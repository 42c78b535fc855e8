//! The full validator: every keyword of every dialect, on a parsed value. It has the last word.

use std::error::Error as StdError;

use jsonschema::{
    Draft, PatternOptions, Retrieve, Uri, ValidationError, Validator, error::ValidationErrorKind,
};
use serde_json::Value;

use crate::error::{Error, Result};

/// How far a pattern may go back. Patterns come from peers as well.
const MAX_BACKTRACKING: usize = 100_000;
/// How big a compiled pattern may be, in bytes.
const MAX_PATTERN_BYTES: usize = 1 << 20;

/// The dialects that are known, by the URI that `$schema` holds.
const DIALECTS: [(&str, Draft); 5] = [
    (
        "https://json-schema.org/draft/2020-12/schema",
        Draft::Draft202012,
    ),
    (
        "https://json-schema.org/draft/2019-09/schema",
        Draft::Draft201909,
    ),
    ("http://json-schema.org/draft-07/schema", Draft::Draft7),
    ("http://json-schema.org/draft-06/schema", Draft::Draft6),
    ("http://json-schema.org/draft-04/schema", Draft::Draft4),
];

pub(super) fn compile(schema: &Value) -> Result<Validator> {
    let patterns = PatternOptions::fancy_regex()
        .backtrack_limit(MAX_BACKTRACKING)
        .size_limit(MAX_PATTERN_BYTES);
    jsonschema::options()
        .with_draft(dialect(schema)?)
        .with_retriever(Nowhere)
        .with_pattern_options(patterns)
        .should_validate_formats(false)
        .build(schema)
        .map_err(|error| explain(&error))
}

/// The dialect of a schema; 2020-12 where it names none.
fn dialect(schema: &Value) -> Result<Draft> {
    let Some(name) = schema.get("$schema") else {
        return Ok(Draft::Draft202012);
    };
    let uri = name.as_str().unwrap_or_default().trim_end_matches('#');
    let secure = uri.replacen("http://", "https://", 1);
    DIALECTS
        .iter()
        .find(|(known, _)| *known == uri || known.replacen("http://", "https://", 1) == secure)
        .map(|(_, draft)| *draft)
        .ok_or_else(|| {
            let known: Vec<&str> = DIALECTS.iter().map(|(uri, _)| *uri).collect();
            Error::misuse(format!(
                "the schema is written in an unknown dialect: \"$schema\" is {name}. Known are {}; without \"$schema\" it is the first",
                known.join(", ")
            ))
        })
}

/// Nothing is ever fetched, whatever the features of the validator's crate are.
struct Nowhere;

impl Retrieve for Nowhere {
    fn retrieve(&self, uri: &Uri<String>) -> Result<Value, Box<dyn StdError + Send + Sync>> {
        Err(format!("{uri} is not part of the schema").into())
    }
}

fn explain(error: &ValidationError<'_>) -> Error {
    if let ValidationErrorKind::Referencing(cause) = error.kind() {
        return Error::misuse(format!(
            "the schema refers to something that is not in it ({cause}); references are never fetched: put the schema that is meant under \"$defs\""
        ));
    }
    let place = match error.instance_path().as_str() {
        "" => "/",
        pointer => pointer,
    };
    Error::misuse(format!("this is no valid JSON Schema: {place}: {error}"))
}
