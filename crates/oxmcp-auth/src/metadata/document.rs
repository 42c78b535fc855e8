//! Reading of JSON documents that a peer sends, within bounds.

use serde::{Deserialize, Deserializer, de::DeserializeOwned};

use crate::error::{AuthError, Result};

/// Bytes of a document that are read.
pub(crate) const MAX_DOCUMENT: usize = 1 << 20;
/// Entries of a list that are kept.
const MAX_LIST: usize = 256;

/// Reads a document; `what` names it in errors, with the URL that it came from.
pub(crate) fn read<T: DeserializeOwned>(body: &[u8], what: &str) -> Result<T> {
    if body.len() > MAX_DOCUMENT {
        return Err(AuthError::limit(format!(
            "the {what} is longer than {MAX_DOCUMENT} bytes"
        )));
    }
    // Of what serde says, the place alone: its words can hold values, and values can be secrets.
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

/// A list of strings of which too many are refused, and what is no string left out.
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
