//! The errors of handlers.

use std::error::Error as StdError;

use crate::error::Error;

/// An error of a handler that is none of a tool: an [`Error`], which the peer gets as it is, or any other
/// [`std::error::Error`], whose text the peer gets with the code
/// [`INTERNAL_ERROR`](crate::ErrorCode::INTERNAL_ERROR).
#[diagnostic::on_unimplemented(
    message = "a handler cannot fail with `{Self}`",
    label = "not a `std::error::Error`",
    note = "return `oxmcp::Result<_>`, or a `Result` with another `std::error::Error`"
)]
pub trait IntoError {
    /// Makes the error that the peer gets.
    fn into_error(self) -> Error;
}

#[diagnostic::do_not_recommend]
impl<E: StdError + Send + Sync + 'static> IntoError for E {
    fn into_error(self) -> Error {
        let error: Box<dyn StdError + Send + Sync> = Box::new(self);
        match error.downcast::<Error>() {
            Ok(error) => *error,
            Err(error) => Error::internal(with_causes(&*error)).with_source(error),
        }
    }
}

pub(crate) fn with_causes(error: &dyn StdError) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let next = error.to_string();
        // Many errors repeat their cause in their own text.
        if !text.ends_with(&next) {
            text.push_str(": ");
            text.push_str(&next);
        }
        cause = error.source();
    }
    text
}
