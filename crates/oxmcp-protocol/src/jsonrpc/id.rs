//! JSON-RPC request ids.

use std::fmt;

use oxmcp_json::{Text, write_string};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The id of a JSON-RPC request: a string or an integer, never null.
///
/// ```
/// use oxmcp_protocol::RequestId;
///
/// assert_eq!(RequestId::from(7).to_string(), "7");
/// assert_eq!(RequestId::from("a-7").to_string(), "a-7");
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(untagged)]
#[non_exhaustive]
pub enum RequestId {
    /// An integer.
    Number(i64),
    /// A string.
    String(Box<str>),
}

impl RequestId {
    /// Reads an id. `None` if the value is neither a string nor an integer.
    #[doc(hidden)]
    pub fn from_text(text: Text<'_>) -> Option<Self> {
        match text.as_str() {
            Some(string) => Some(Self::String(string.into())),
            None => text.get().parse().ok().map(Self::Number),
        }
    }

    /// Converts a value to an id. `None` if it is neither a string nor an integer.
    pub(crate) fn of(value: &Value) -> Option<Self> {
        match value {
            Value::String(text) => Some(Self::String(text.as_str().into())),
            other => other.as_i64().map(Self::Number),
        }
    }

    /// The number, if the id is one.
    #[must_use]
    pub fn as_number(&self) -> Option<i64> {
        match self {
            Self::Number(number) => Some(*number),
            Self::String(_) => None,
        }
    }

    /// The string, if the id is one.
    #[must_use]
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Self::Number(_) => None,
            Self::String(text) => Some(text),
        }
    }

    /// Appends the id as JSON.
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        match self {
            Self::Number(number) => {
                out.extend_from_slice(itoa::Buffer::new().format(*number).as_bytes());
            }
            Self::String(text) => write_string(out, text),
        }
    }
}

impl From<i64> for RequestId {
    fn from(number: i64) -> Self {
        Self::Number(number)
    }
}

impl From<&str> for RequestId {
    fn from(text: &str) -> Self {
        Self::String(text.into())
    }
}

impl From<String> for RequestId {
    fn from(text: String) -> Self {
        Self::String(text.into_boxed_str())
    }
}

impl fmt::Display for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => number.fmt(f),
            Self::String(text) => text.fmt(f),
        }
    }
}
