//! Resource output: what a handler may return, and the result that it becomes.

use std::borrow::Cow;

use bytes::Bytes;
use oxmcp_protocol::{Blob, ReadResourceResult, ResourceContents};

use crate::{
    error::{Error, Result},
    session::handler::traits::IntoError,
};

/// What a resource's handler may return.
///
/// - Strings are text; bytes (`Vec<u8>`, `Bytes`, [`Blob`]) are bytes.
/// - [`ResourceContents`] are what they are: one, a `Vec`, or an array of them. Without a URI they are those of what is
///   read; `ResourceContents::from("text")` makes such.
/// - A [`ReadResourceResult`] is the whole result.
/// - `None` is no resource: the client gets the error that there is none.
/// - A [`Reply`](crate::Reply) of any of these, for a resource that asks by itself.
/// - `Result<T, E>` of any of these, where `E` is any [`std::error::Error`].
///
/// What is not said, URI and MIME type, is that of the resource.
#[diagnostic::on_unimplemented(
    message = "a resource cannot return `{Self}`",
    label = "not something a resource can hold",
    note = "return a String, bytes (`Vec<u8>`, `Bytes`, `Blob`), `ResourceContents` or several of them, or a `ReadResourceResult`",
    note = "or an `Option` or a `Result` of these; the error of the latter is any `std::error::Error`"
)]
pub trait IntoResourceResult {
    /// Whether it can be a [`Reply`](crate::Reply), which asks instead of giving a result.
    #[doc(hidden)]
    const IS_REPLY: bool = false;

    /// What was read from `uri`.
    ///
    /// # Errors
    /// What the handler failed with.
    fn into_resource_result(self, uri: &str) -> Result<ReadResourceResult>;
}

/// Types that are the contents of one resource.
macro_rules! contents {
    ($($type:ty)*) => {$(
        impl IntoResourceResult for $type {
            fn into_resource_result(self, _uri: &str) -> Result<ReadResourceResult> {
                Ok(ResourceContents::from(self).into())
            }
        }
    )*};
}

contents!(String &'static str Box<str> Cow<'static, str> Vec<u8> Bytes Blob ResourceContents);

impl IntoResourceResult for Vec<ResourceContents> {
    fn into_resource_result(self, _uri: &str) -> Result<ReadResourceResult> {
        Ok(ReadResourceResult::new(self))
    }
}

impl<const N: usize> IntoResourceResult for [ResourceContents; N] {
    fn into_resource_result(self, _uri: &str) -> Result<ReadResourceResult> {
        Ok(ReadResourceResult::new(self))
    }
}

impl IntoResourceResult for ReadResourceResult {
    fn into_resource_result(self, _uri: &str) -> Result<ReadResourceResult> {
        Ok(self)
    }
}

impl<T: IntoResourceResult> IntoResourceResult for Option<T> {
    const IS_REPLY: bool = T::IS_REPLY;

    fn into_resource_result(self, uri: &str) -> Result<ReadResourceResult> {
        let found = self.ok_or_else(|| Error::resource_not_found(uri))?;
        found.into_resource_result(uri)
    }
}

impl<T: IntoResourceResult, E: IntoError> IntoResourceResult for Result<T, E> {
    const IS_REPLY: bool = T::IS_REPLY;

    fn into_resource_result(self, uri: &str) -> Result<ReadResourceResult> {
        self.map_err(IntoError::into_error)?
            .into_resource_result(uri)
    }
}
