//! Prompt output: the types that a handler may return, and their conversion to results.

use std::borrow::Cow;

use oxmcp_protocol::{ContentBlock, GetPromptResult, PromptMessage};

use crate::{error::Result, session::handler::traits::IntoError};

/// A return type for prompt handlers.
///
/// - A string is one user message; so is a [`ContentBlock`] of any kind.
/// - [`PromptMessage`]s are returned unchanged: one, a `Vec`, or an array of them.
/// - A [`GetPromptResult`] is the whole result.
/// - A [`Reply`](crate::Reply) of any of these, for a prompt that returns its questions to the client.
/// - `Result<T, E>` of any of these, where `E` is any [`std::error::Error`].
///
/// A result without a description gets the description of the prompt.
#[diagnostic::on_unimplemented(
    message = "a prompt cannot return `{Self}`",
    label = "not something that messages are made of",
    note = "return a String, a `PromptMessage` or several of them (`Vec` or array), a `ContentBlock` or a `GetPromptResult`",
    note = "or a `Result` of these whose error is any `std::error::Error`"
)]
pub trait IntoPromptResult {
    /// Whether the type can be a [`Reply`](crate::Reply), which holds questions instead of a result.
    #[doc(hidden)]
    const IS_REPLY: bool = false;

    /// Converts the value to the result of the prompt.
    ///
    /// # Errors
    /// The error of the handler.
    fn into_prompt_result(self) -> Result<GetPromptResult>;
}

/// Implements the trait for types that are one user message.
macro_rules! texts {
    ($($text:ty)*) => {$(
        impl IntoPromptResult for $text {
            fn into_prompt_result(self) -> Result<GetPromptResult> {
                ContentBlock::text(self).into_prompt_result()
            }
        }
    )*};
}

texts!(String &'static str Box<str> Cow<'static, str>);

impl IntoPromptResult for ContentBlock {
    fn into_prompt_result(self) -> Result<GetPromptResult> {
        PromptMessage::user(self).into_prompt_result()
    }
}

impl IntoPromptResult for PromptMessage {
    fn into_prompt_result(self) -> Result<GetPromptResult> {
        Ok(GetPromptResult::new([self]))
    }
}

impl IntoPromptResult for Vec<PromptMessage> {
    fn into_prompt_result(self) -> Result<GetPromptResult> {
        Ok(GetPromptResult::new(self))
    }
}

impl<const N: usize> IntoPromptResult for [PromptMessage; N] {
    fn into_prompt_result(self) -> Result<GetPromptResult> {
        Ok(GetPromptResult::new(self))
    }
}

impl IntoPromptResult for GetPromptResult {
    fn into_prompt_result(self) -> Result<GetPromptResult> {
        Ok(self)
    }
}

impl<T: IntoPromptResult, E: IntoError> IntoPromptResult for Result<T, E> {
    const IS_REPLY: bool = T::IS_REPLY;

    fn into_prompt_result(self) -> Result<GetPromptResult> {
        self.map_err(IntoError::into_error)?.into_prompt_result()
    }
}
