//! The error of a schema that cannot be used.

use std::{error::Error, fmt};

/// Result of building a schema.
pub(crate) type Result<T, E = SchemaError> = std::result::Result<T, E>;

/// The reason why a schema cannot be used: it is invalid, or exceeds the limits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SchemaError {
    message: String,
    is_limit: bool,
}

impl SchemaError {
    pub(crate) fn invalid(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            is_limit: false,
        }
    }

    pub(crate) fn limit(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            is_limit: true,
        }
    }

    /// Returns the description of the error, with its position.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.message
    }

    /// Returns whether the schema exceeds the limits of this crate in depth or size; otherwise it is
    /// invalid.
    #[must_use]
    pub fn is_limit(&self) -> bool {
        self.is_limit
    }
}

impl fmt::Display for SchemaError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl Error for SchemaError {}
