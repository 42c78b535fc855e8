//! What a call is answered with.

use crate::{
    json::Text,
    protocol::{Outline, ResultType, peek_result_type},
};

/// The result that a call was answered with, as it arrived.
#[derive(Debug)]
pub(crate) struct CallResult {
    pub(crate) json: Box<str>,
    /// Where its parts are, if it can be a tool's and that was seen on the way.
    pub(crate) outline: Option<Outline>,
}

impl CallResult {
    /// Of which type it is.
    pub(crate) fn result_type(&self) -> ResultType {
        match self.outline {
            // What has an outline is complete.
            Some(_) => ResultType::Complete,
            None => peek_result_type(Text::checked(&self.json)),
        }
    }
}

impl From<Box<str>> for CallResult {
    fn from(json: Box<str>) -> Self {
        Self {
            json,
            outline: None,
        }
    }
}
