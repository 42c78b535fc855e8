//! Resource output: the types that a handler may return, and their conversion to results.

use std::borrow::Cow;

use bytes::Bytes;
use oxmcp_protocol::{Blob, ReadResourceResult, ResourceContents};

use crate::{
    error::{Error, Result},
    session::handler::traits::IntoError,
};

/// A return type for resource handlers.
///
/// - Strings become text; bytes (`Vec<u8>`, `Bytes`, [`Blob`]) become binary contents.
/// - [`ResourceContents`] become the contents: one, a `Vec`, or an array of them. `ResourceContents::from("text")` makes contents
///   without a URI.
/// - A [`ReadResourceResult`] is the whole result.
/// - `None` means that the resource does not exist: the client gets the error for it.
/// - A [`Reply`](crate::Reply) of any of these, for a resource that returns its questions to the client.
/// - `Result<T, E>` of any of these, where `E` is any [`std::error::Error`].
///
/// Contents without a URI or a MIME type get those of the resource.
#[diagnostic::on_unimplemented(
    message = "a resource cannot return `{Self}`",
    label = "not something a resource can hold",
    note = "return a String, bytes (`Vec<u8>`, `Bytes`, `Blob`), `ResourceContents` or several of them, or a `ReadResourceResult`",
    note = "or an `Option` or a `Result` of these; the error of the latter is any `std::error::Error`"
)]
pub trait IntoResourceResult {
    /// Whether the type can be a [`Reply`](crate::Reply), which asks for input instead of giving a result.
    #[doc(hidden)]
    const IS_REPLY: bool = false;

    /// Converts the value to the result of reading `uri`.
    ///
    /// # Errors
    /// The failure of the handler.
    fn into_resource_result(self, uri: &str) -> Result<ReadResourceResult>;
}

/// Implements [`IntoResourceResult`] for types that are the contents of one resource.
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
