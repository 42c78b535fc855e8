//! Copies of an error, for several callers or with another message.

use std::borrow::Cow;

use super::{Error, Inner};

impl Error {
    /// Copies the error for another caller, without its source.
    pub(crate) fn copy(&self) -> Self {
        Self(Box::new(Inner {
            kind: self.0.kind,
            message: self.0.message.clone(),
            data: self.0.data.clone(),
            http_status: self.0.http_status,
            www_authenticate: self.0.www_authenticate.clone(),
            is_refused_unserved: self.0.is_refused_unserved,
            retry_after: self.0.retry_after,
            is_for_models: self.0.is_for_models,
            source: None,
        }))
    }

    /// Copies the error with a more detailed message. The original is the source of the copy.
    pub(crate) fn saying(self, message: impl Into<Cow<'static, str>>) -> Self {
        let mut other = self.copy();
        other.0.message = message.into();
        other.with_source(self)
    }
}
