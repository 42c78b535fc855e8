//! Completion output: the types that a completion function may return.

use oxmcp_protocol::Completion;

use crate::{error::Result, session::handler::traits::IntoError};

/// A return type for completion functions.
///
/// - A `Vec` or an array of strings, the best first. They are not filtered; only the first 100 are sent.
/// - A [`Completion`], which also has the total number of values; [`CompletionInput::matching`](crate::CompletionInput::matching)
///   returns one.
/// - `Result<T, E>` of these, where `E` is any [`std::error::Error`].
#[diagnostic::on_unimplemented(
    message = "an argument cannot be completed with `{Self}`",
    label = "not a list of strings",
    note = "return a `Vec<String>`, an array of strings, a `Completion` (see `CompletionInput::matching`), or a `Result` of these"
)]
pub trait IntoCompletion {
    /// Converts the value to a completion.
    ///
    /// # Errors
    /// The error of the function.
    fn into_completion(self) -> Result<Completion>;
}

impl IntoCompletion for Completion {
    fn into_completion(self) -> Result<Completion> {
        Ok(self)
    }
}

impl<S: Into<String>> IntoCompletion for Vec<S> {
    fn into_completion(self) -> Result<Completion> {
        Ok(Completion::new(self))
    }
}

impl<S: Into<String>, const N: usize> IntoCompletion for [S; N] {
    fn into_completion(self) -> Result<Completion> {
        Ok(Completion::new(self))
    }
}

impl<T: IntoCompletion, E: IntoError> IntoCompletion for Result<T, E> {
    fn into_completion(self) -> Result<Completion> {
        self.map_err(IntoError::into_error)?.into_completion()
    }
}
