//! Errors of writing messages and of URI templates.

use std::{error::Error, fmt};

/// Reason why params or a result cannot be written: they do not serialize to JSON, or not to a JSON object.
#[derive(Debug)]
pub struct EncodeError(serde_json::Error);

impl EncodeError {
    /// The error of the serializer.
    #[must_use]
    pub fn into_inner(self) -> serde_json::Error {
        self.0
    }
}

impl From<serde_json::Error> for EncodeError {
    fn from(error: serde_json::Error) -> Self {
        Self(error)
    }
}

impl fmt::Display for EncodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "what was to be sent cannot be JSON: {}", self.0)
    }
}

impl Error for EncodeError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&self.0)
    }
}

/// Reason why a URI template cannot be used: it is malformed, it cannot be matched in one way only, or the values are
/// no object.
#[derive(Debug)]
pub struct TemplateError {
    message: String,
    source: Option<serde_json::Error>,
}

impl TemplateError {
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            source: None,
        }
    }

    pub(crate) fn from_json(message: impl Into<String>, error: serde_json::Error) -> Self {
        Self {
            message: message.into(),
            source: Some(error),
        }
    }

    /// The error of the serializer, if the values do not serialize to JSON.
    #[must_use]
    pub fn into_inner(self) -> Option<serde_json::Error> {
        self.source
    }
}

impl fmt::Display for TemplateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl Error for TemplateError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        let source = self.source.as_ref();
        source.map(|source| source as &(dyn Error + 'static))
    }
}
