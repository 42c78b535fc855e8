//! One error for several who wait for the same.

use super::{Error, Inner};

impl Error {
    /// The same error for one more who has to know, without what caused it.
    pub(crate) fn copy(&self) -> Self {
        Self(Box::new(Inner {
            kind: self.0.kind,
            message: self.0.message.clone(),
            data: self.0.data.clone(),
            http_status: self.0.http_status,
            source: None,
        }))
    }
}
