//! Tool error: a failure that the model sees.

use std::{error::Error as StdError, fmt};

use oxmcp_protocol::{CallToolResult, ContentBlock};

use crate::{error::Error, session::handler::traits::with_causes};

/// The error of a tool, which the model sees.
///
/// Its text is sent to the model, as a result with `isError: true`, so that the model can correct the call: say what is wrong
/// and what is expected. `?` converts every [`std::error::Error`], with its causes in the text. An
/// [`oxmcp::Error`](crate::Error) stays a protocol error: it fails the request, and models do not see it. Exceptions are a
/// refusal by the user ([`Error::is_declined`]), and a legacy client that cannot be asked. For types that are not a
/// `std::error::Error` but can be boxed as one, such as a `Box<dyn Error>` or an `anyhow::Error`, use
/// [`or_tool_error`](OrToolError::or_tool_error).
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
    /// A result with `isError: true`.
    Result(CallToolResult),
    /// A protocol error.
    Protocol(Error),
}

impl ToolError {
    /// Creates an error with a message for the model.
    #[must_use]
    pub fn new(message: impl Into<String>) -> Self {
        Self::from_content([ContentBlock::text(message)])
    }

    /// Creates an error with content of any kind for the model.
    #[must_use]
    pub fn from_content(content: impl IntoIterator<Item = ContentBlock>) -> Self {
        let mut result = CallToolResult::default();
        result.content.extend(content);
        result.is_error = true;
        Self(Box::new(Kind::Result(result)))
    }

    /// Converts an error of any type, with its causes in the text. An [`oxmcp::Error`](crate::Error) among the causes stays a
    /// protocol error, as with `?`.
    #[must_use]
    #[expect(
        clippy::needless_pass_by_value,
        reason = "consumes the error, like `?`"
    )]
    pub fn from_boxed(error: Box<dyn StdError + Send + Sync>) -> Self {
        let mut inner: Option<&(dyn StdError + 'static)> = Some(&*error);
        while let Some(cause) = inner {
            if let Some(ours) = cause.downcast_ref::<Error>() {
                return Self::of_ours(ours.copy());
            }
            inner = cause.source();
        }
        Self::new(with_causes(&*error))
    }

    /// Converts an error of the SDK. The model sees only refusals by the user, and that the client cannot be asked.
    fn of_ours(error: Error) -> Self {
        if error.is_for_models() {
            return Self::new(error.message());
        }
        Self(Box::new(Kind::Protocol(error)))
    }

    pub(crate) fn into_result(self) -> Result<CallToolResult, Error> {
        match *self.0 {
            Kind::Result(result) => Ok(result),
            Kind::Protocol(error) => Err(error),
        }
    }
}

/// `ToolError` is not a `std::error::Error`, so that each such error can become a `ToolError`.
impl<E: StdError + Send + Sync + 'static> From<E> for ToolError {
    fn from(error: E) -> Self {
        let error: Box<dyn StdError + Send + Sync> = Box::new(error);
        match error.downcast::<Error>() {
            Ok(error) => Self::of_ours(*error),
            Err(error) => Self::new(with_causes(&*error)),
        }
    }
}

/// Converts boxed errors, such as `Box<dyn Error + Send + Sync>` or `anyhow::Error`, to a [`ToolError`].
///
/// It works for every type that is not a [`std::error::Error`] but can be boxed as one. The model sees the error and all of
/// its causes, so the conversion is explicit. If they contain details that the model must not see, create a
/// [`ToolError::new`] instead.
///
/// ```
/// use oxmcp::{OrToolError, ToolError};
///
/// fn shared_helper() -> Result<u32, Box<dyn std::error::Error + Send + Sync>> {
///     Ok("seven".parse()?)
/// }
///
/// async fn handler() -> Result<u32, ToolError> {
///     Ok(shared_helper().or_tool_error()?)
/// }
/// # let _ = oxmcp::Tool::new("t", "", handler);
/// ```
pub trait OrToolError<T> {
    /// Converts the error to a [`ToolError`], which the model sees.
    ///
    /// # Errors
    /// The converted error.
    fn or_tool_error(self) -> Result<T, ToolError>;
}

impl<T, E: Into<Box<dyn StdError + Send + Sync>>> OrToolError<T> for Result<T, E> {
    fn or_tool_error(self) -> Result<T, ToolError> {
        self.map_err(|error| ToolError::from_boxed(error.into()))
    }
}

/// An error type for tool handlers: a [`ToolError`], or any [`std::error::Error`].
#[diagnostic::on_unimplemented(
    message = "a tool cannot fail with `{Self}`",
    label = "neither a `ToolError` nor a `std::error::Error`",
    note = "return `Result<_, ToolError>`; `ToolError::new(text)` makes one of any text, and `?` of any `std::error::Error`"
)]
pub trait IntoToolError {
    /// Converts the error to a [`ToolError`].
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
    fn model_reads_the_error_causes() {
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
    fn protocol_error_is_kept_by_conversions() {
        let error = ToolError::from(Error::invalid_params("no"));
        assert!(error.into_result().unwrap_err().is_protocol());
        let boxed: Result<(), Box<dyn StdError + Send + Sync>> =
            Err(Box::new(Error::invalid_params("no")));
        let error = boxed.or_tool_error().unwrap_err().into_result();
        assert_eq!(error.unwrap_err().code(), crate::ErrorCode::INVALID_PARAMS);
    }

    #[test]
    fn boxed_error_is_reported_with_its_causes() {
        let cause = io::Error::other("the disk is on fire");
        let error: Box<dyn StdError + Send + Sync> =
            Box::new(io::Error::new(io::ErrorKind::NotFound, cause));
        let told = Err::<(), _>(error).or_tool_error().unwrap_err();
        assert_eq!(told.to_string(), "the disk is on fire");
        assert!(told.into_result().unwrap().is_error);
        let told = Err::<(), _>("a text").or_tool_error().unwrap_err();
        assert_eq!(told.to_string(), "a text");
    }
}
