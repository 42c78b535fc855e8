use serde::de::DeserializeOwned;

use crate::{
    Result,
    protocol::Payload,
    session::{HandlerContext, IntoError, RequestContext},
};

/// The arguments of a [`Handler`](crate::Handler) of an extension's method or notification: `()`, `(RequestContext,)`,
/// `(Params,)` or `(RequestContext, Params)`.
#[diagnostic::on_unimplemented(
    message = "the handler of a method with the params `{Params}` cannot take `{Self}`",
    label = "not `(Params)` or `(RequestContext, Params)`",
    note = "`Params` are those of the method or the notification"
)]
pub trait ExtensionArguments<Params>: Sized + Send + 'static {
    /// Reads the params.
    #[doc(hidden)]
    fn read(context: RequestContext, params: &str) -> serde_json::Result<Self>;
}

impl<Params> ExtensionArguments<Params> for () {
    fn read(_context: RequestContext, _params: &str) -> serde_json::Result<Self> {
        Ok(())
    }
}

impl<Params> ExtensionArguments<Params> for (RequestContext,) {
    fn read(context: RequestContext, _params: &str) -> serde_json::Result<Self> {
        Ok((context,))
    }
}

impl<Params: Payload + DeserializeOwned + 'static> ExtensionArguments<Params> for (Params,) {
    fn read(_context: RequestContext, params: &str) -> serde_json::Result<Self> {
        serde_json::from_str(params).map(|params| (params,))
    }
}

impl<Context, Params> ExtensionArguments<Params> for (Context, Params)
where
    Context: HandlerContext + Send,
    Params: Payload + DeserializeOwned + 'static,
{
    fn read(context: RequestContext, params: &str) -> serde_json::Result<Self> {
        serde_json::from_str(params).map(|params| (Context::of(context), params))
    }
}

/// What the handler of an extension's method may return: the method's result, or a `Result` of it with an
/// [`Error`](crate::Error) or any other [`std::error::Error`].
#[diagnostic::on_unimplemented(
    message = "the handler of a method whose result is `{Answer}` cannot return `{Self}`",
    label = "neither `{Answer}` nor a `Result` of it",
    note = "return `{Answer}`, or a `Result<{Answer}, _>` with an error that is a `std::error::Error`"
)]
pub trait IntoAnswer<Answer> {
    /// Makes the answer.
    #[doc(hidden)]
    fn into_answer(self) -> Result<Answer>;
}

impl<Answer> IntoAnswer<Answer> for Answer {
    fn into_answer(self) -> Result<Answer> {
        Ok(self)
    }
}

impl<Answer, E: IntoError> IntoAnswer<Answer> for Result<Answer, E> {
    fn into_answer(self) -> Result<Answer> {
        self.map_err(IntoError::into_error)
    }
}
