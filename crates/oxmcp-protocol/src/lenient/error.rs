//! The error of a lenient reading, with its place in the message.

use std::fmt;

use serde::de;

/// A step from a value to one of its parts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    Member(Box<str>),
    Item(usize),
}

/// The reason why a value cannot be read.
#[derive(Debug)]
pub(crate) struct Error {
    message: String,
    /// The place of the value. `None` until the error has left the value.
    pub(crate) place: Option<Vec<Step>>,
    /// Whether the value is a tagged union, which can be read as an unknown variant.
    pub(crate) is_tagged: bool,
    /// Whether no repair is allowed.
    pub(crate) is_final: bool,
}

impl Error {
    pub(crate) fn new(message: impl fmt::Display) -> Self {
        Self {
            message: message.to_string(),
            place: None,
            is_tagged: false,
            is_final: false,
        }
    }

    /// The error for a duplicate name in an object. It is never tolerated, since two readers could use different values.
    pub(crate) fn twice(name: &str) -> Self {
        Self {
            is_final: true,
            ..Self::new(format_args!("duplicate key `{name}`"))
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Error {}

impl de::Error for Error {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Self::new(message)
    }

    fn duplicate_field(field: &'static str) -> Self {
        Self::twice(field)
    }
}

impl From<serde_json::Error> for Error {
    fn from(error: serde_json::Error) -> Self {
        let mut text = error.to_string();
        // The position refers to the part that was read.
        if let Some(end) = text.rfind(" at line ") {
            text.truncate(end);
        }
        Self::new(text)
    }
}

/// A place as a JSON pointer.
pub(crate) fn pointer(place: &[Step]) -> String {
    let mut pointer = String::new();
    for step in place {
        pointer.push('/');
        match step {
            Step::Member(name) => pointer.push_str(&oxmcp_json::pointer_token(name)),
            Step::Item(index) => pointer.push_str(&index.to_string()),
        }
    }
    pointer
}
