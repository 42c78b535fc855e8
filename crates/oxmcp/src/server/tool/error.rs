//! Tool error: a failure that the model reads.

use std::{error::Error as StdError, fmt};

use oxmcp_protocol::{CallToolResult, ContentBlock};

use crate::{error::Error, session::handler::traits::with_causes};

/// What a tool fails with.
///
/// Its text goes to the model, as a result with `isError: true`, so that the model can do better next time: say what
/// was wrong and what would be right. Every [`std::error::Error`] becomes one through `?`, with its causes in the text;
/// an [`oxmcp::Error`](crate::Error) stays what it is and fails the request as a protocol error, which models do not see,
/// unless it says what the user said ([`Error::is_declined`]). What is no `std::error::Error` is made one of by hand: an
/// `anyhow::Error`, say, by `.map_err(|error| ToolError::new(format!("{error:#}")))`.
/// See [error handling](https://modelcontextprotocol.io/specification/2026-07-28/server/tools#error-handling).
///
/// ```
/// use oxmcp::ToolError;
///
/// fn read(path: &str) -> Result<String, ToolError> {
///     if path.contains("..") {
///         return Err(ToolError::new("\"path\" must not contain \"..\""));
///     }
///     Ok(std::fs::read_to_string(path)?)
/// }
///
/// let error = read("/no/such/file").unwrap_err();
/// assert!(error.to_string().contains("No such file"));
/// ```
pub struct ToolError(Box<Kind>);

enum Kind {
    /// A result that says that the tool failed.
    Result(CallToolResult),
    /// A protocol error.
    Protocol(Error),
}

impl ToolError {
    /// A failure that the model is told of in these words.
    #[must_use]
    pub fn new(message: impl Into<String>) -> Self {
        Self::from_content([ContentBlock::text(message)])
    }

    /// A failure that the model is told of with content of any kind.
    #[must_use]
    pub fn from_content(content: impl IntoIterator<Item = ContentBlock>) -> Self {
        let mut result = CallToolResult::default();
        result.content.extend(content);
        result.is_error = true;
        Self(Box::new(Kind::Result(result)))
    }

    pub(super) fn into_result(self) -> Result<CallToolResult, Error> {
        match *self.0 {
            Kind::Result(result) => Ok(result),
            Kind::Protocol(error) => Err(error),
        }
    }
}

/// Not a `std::error::Error` itself, so that every one can become a `ToolError`.
impl<E: StdError + Send + Sync + 'static> From<E> for ToolError {
    fn from(error: E) -> Self {
        let error: Box<dyn StdError + Send + Sync> = Box::new(error);
        match error.downcast::<Error>() {
            // The model is to know what the user said.
            Ok(error) if error.is_declined() => Self::new(error.message()),
            Ok(error) => Self(Box::new(Kind::Protocol(*error))),
            Err(error) => Self::new(with_causes(&*error)),
        }
    }
}

/// What a tool's handler may fail with: a [`ToolError`], or any [`std::error::Error`].
#[diagnostic::on_unimplemented(
    message = "a tool cannot fail with `{Self}`",
    label = "neither a `ToolError` nor a `std::error::Error`",
    note = "return `Result<_, ToolError>`; `ToolError::new(text)` makes one of any text, and `?` of any `std::error::Error`"
)]
pub trait IntoToolError {
    /// The error as the model is told of it.
    fn into_tool_error(self) -> ToolError;
}

#[diagnostic::do_not_recommend]
impl<E: Into<ToolError>> IntoToolError for E {
    fn into_tool_error(self) -> ToolError {
        self.into()
    }
}

impl fmt::Display for ToolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &*self.0 {
            Kind::Protocol(error) => error.fmt(f),
            Kind::Result(result) => {
                let texts = result.content.iter().filter_map(ContentBlock::as_text);
                for (index, text) in texts.enumerate() {
                    let separator = if index == 0 { "" } else { "\n" };
                    write!(f, "{separator}{text}")?;
                }
                Ok(())
            }
        }
    }
}

impl fmt::Debug for ToolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ToolError").field(&self.to_string()).finish()
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;

    #[test]
    fn k3_the_model_reads_the_causes_too() {
        let cause = io::Error::other("the disk is on fire");
        let error = Error::internal("cannot read the settings").with_source(cause);
        let error = ToolError::new(with_causes(&error));
        assert_eq!(
            error.to_string(),
            "cannot read the settings (code -32603): the disk is on fire"
        );
        assert!(error.into_result().unwrap().is_error);
    }

    #[test]
    fn k3_a_protocol_error_stays_one() {
        let error = ToolError::from(Error::invalid_params("no"));
        assert!(error.into_result().unwrap_err().is_protocol());
    }
}
