//! Errors of writing messages and of URI templates.

use std::{error::Error, fmt};

/// An error: params or a result do not serialize to a JSON object.
#[derive(Debug)]
pub struct EncodeError(serde_json::Error);

impl EncodeError {
    /// Returns the error of the serializer.
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
        write!(f, "could not serialize the message to JSON: {}", self.0)
    }
}

impl Error for EncodeError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&self.0)
    }
}

/// An error in a URI template: it is malformed or ambiguous, or the values are not an object.
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

    /// Returns the error of the serializer, if the values do not serialize to JSON.
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
