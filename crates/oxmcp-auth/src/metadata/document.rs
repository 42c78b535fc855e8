//! Bounded parsing of JSON documents that a peer sends.

use serde::{Deserialize, Deserializer, de::DeserializeOwned};

use crate::error::{AuthError, Result};

/// The most bytes that a document may have.
pub(crate) const MAX_DOCUMENT: usize = 1 << 20;
/// The most entries that a list may have.
const MAX_LIST: usize = 256;

/// Parses a document; `what` names it in errors, and may include its URL.
pub(crate) fn read<T: DeserializeOwned>(body: &[u8], what: &str) -> Result<T> {
    if body.len() > MAX_DOCUMENT {
        return Err(AuthError::limit(format!(
            "the {what} is longer than {MAX_DOCUMENT} bytes"
        )));
    }
    // Only the position of serde's error is used: its message can hold values, and values can be secrets.
    serde_json::from_slice(body).map_err(|error| {
        let (line, column) = (error.line(), error.column());
        let reason = match error.classify() {
            serde_json::error::Category::Data => {
                "a member is missing or has another type than expected"
            }
            serde_json::error::Category::Eof => "it ends too early",
            _ => "it is not JSON",
        };
        AuthError::malformed(format!(
            "the {what} cannot be read: {reason} (line {line}, column {column})"
        ))
    })
}

/// A list of strings. Too many entries are an error, and entries that are not strings are left out.
pub(crate) fn list<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Vec<String>>, D::Error> {
    use serde::de::Error as _;
    let Some(list) = Option::<Vec<serde_json::Value>>::deserialize(from)? else {
        return Ok(None);
    };
    if list.len() > MAX_LIST {
        return Err(D::Error::custom("a list is too long"));
    }
    let strings = list.into_iter().filter_map(|it| match it {
        serde_json::Value::String(text) => Some(text),
        _ => None,
    });
    Ok(Some(strings.collect()))
}
