//! Token that ties progress notifications to the request that asked for them.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use crate::jsonrpc::id::{number, string_or_integer, whole_number};

/// The token that ties progress notifications to the request that asked for them: a string or an integer.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(untagged)]
#[non_exhaustive]
pub enum ProgressToken {
    /// An integer.
    Number(i64),
    /// A string.
    String(Box<str>),
}

impl ProgressToken {
    /// Converts a JSON value to a token. `None` if the value is neither a string nor an integer.
    pub(crate) fn of(value: &Value) -> Option<Self> {
        match value {
            Value::String(text) => Some(Self::String(text.as_str().into())),
            other => whole_number(other).map(Self::Number),
        }
    }

    /// Returns the number of one of our own tokens, all of which are numbers: the token itself, or the number that its text
    /// spells.
    #[doc(hidden)]
    #[must_use]
    pub fn own_number(&self) -> Option<i64> {
        match self {
            Self::Number(number) => Some(*number),
            Self::String(text) => number(text.trim()),
        }
    }

    /// Returns the number, if the token is one.
    #[must_use]
    pub fn as_number(&self) -> Option<i64> {
        match self {
            Self::Number(number) => Some(*number),
            Self::String(_) => None,
        }
    }
}

impl From<i64> for ProgressToken {
    fn from(number: i64) -> Self {
        Self::Number(number)
    }
}

impl From<&str> for ProgressToken {
    fn from(text: &str) -> Self {
        Self::String(text.into())
    }
}

impl From<String> for ProgressToken {
    fn from(text: String) -> Self {
        Self::String(text.into_boxed_str())
    }
}

impl fmt::Display for ProgressToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => number.fmt(f),
            Self::String(text) => text.fmt(f),
        }
    }
}

impl<'de> Deserialize<'de> for ProgressToken {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        string_or_integer("a progress token", deserializer)
    }
}
