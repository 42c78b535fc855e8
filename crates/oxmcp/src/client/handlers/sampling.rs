//! Sampling: the answers of the client's model.

use oxmcp_protocol::{CreateMessageParams, CreateMessageResult, JsonObject};

use crate::{
    client::{
        client::Client,
        handlers::arguments::{AnswerArguments, erase},
    },
    error::Result,
    session::handler::traits::{Handler, HandlerFuture, IntoError},
};

/// The types that the handler of [`Client::on_sample`] may return: a [`CreateMessageResult`], or a `Result` of one, whose
/// error is an [`Error`](crate::Error) or any [`std::error::Error`].
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an answer to a sampling request",
    label = "not a `CreateMessageResult`",
    note = "return `CreateMessageResult::new(\"the model's name\", \"its reply\")`",
    note = "or a `Result` of it; the error can be any `std::error::Error`"
)]
pub trait IntoCreateMessageResult {
    /// Converts the value to the result of the request.
    ///
    /// # Errors
    /// The error that occurred while the model was asked.
    fn into_create_message_result(self) -> Result<CreateMessageResult>;
}

impl IntoCreateMessageResult for CreateMessageResult {
    fn into_create_message_result(self) -> Result<CreateMessageResult> {
        Ok(self)
    }
}

impl<T: IntoCreateMessageResult, E: IntoError> IntoCreateMessageResult for Result<T, E> {
    fn into_create_message_result(self) -> Result<CreateMessageResult> {
        self.map_err(IntoError::into_error)?
            .into_create_message_result()
    }
}

impl Client {
    /// Sets the handler that is called when a server requests a message from the client's model. The capability is declared to
    /// servers on connecting, so set the handler before.
    ///
    /// The handler takes the params of the request, and optionally a [`RequestContext`](crate::RequestContext), which
    /// identifies the server. A user should be able to refuse the request: a refusal is the error
    /// `Error::protocol(-1, "User rejected sampling request")`, in the words of the specification. The response must have no
    /// more tokens than [`max_tokens`](CreateMessageParams::max_tokens).
    /// See [sampling](https://modelcontextprotocol.io/specification/2026-07-28/client/sampling).
    ///
    /// ```
    /// use oxmcp::{
    ///     Client, Error,
    ///     protocol::{CreateMessageParams, CreateMessageResult},
    /// };
    ///
    /// # async fn ask_model(_: CreateMessageParams) -> std::io::Result<String> { Ok(String::new()) }
    /// let client = Client::new("my-app", "1.0.0").on_sample(|asked: CreateMessageParams| async move {
    ///     let said = ask_model(asked).await?;
    ///     Ok::<_, Error>(CreateMessageResult::new("our-model", said))
    /// });
    /// # let _ = client;
    /// ```
    #[must_use]
    #[doc(alias("sampling/createMessage", "create_message"))]
    pub fn on_sample<Arguments, H>(self, handler: H) -> Self
    where
        Arguments: AnswerArguments<CreateMessageParams>,
        H: Handler<Arguments>,
        H::Returned: HandlerFuture<Output: IntoCreateMessageResult> + Send + 'static,
    {
        let handler = erase(handler, IntoCreateMessageResult::into_create_message_result);
        self.change(|features| features.on_sample = Some(handler));
        self
    }

    /// Declares to servers that the handler of [`on_sample`](Self::on_sample) passes the
    /// [`tools`](CreateMessageParams::tools) of a request to the model (2025-11-25 and later). Without it, a server that
    /// sends tools is refused.
    /// See [sampling with tools](https://modelcontextprotocol.io/specification/2026-07-28/client/sampling#tools-in-sampling).
    #[must_use]
    pub fn sampling_tools(self) -> Self {
        self.change(|features| features.sampling.tools = Some(JsonObject::new()));
        self
    }

    /// Declares to servers that the handler of [`on_sample`](Self::on_sample) honors
    /// [`include_context`](CreateMessageParams::include_context) (2025-11-25 and later).
    #[must_use]
    pub fn sampling_context(self) -> Self {
        self.change(|features| features.sampling.context = Some(JsonObject::new()));
        self
    }
}
