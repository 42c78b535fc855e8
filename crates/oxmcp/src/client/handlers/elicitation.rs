//! Elicitation: the user's answers to forms, and visits of URLs.

use oxmcp_protocol::{ElicitAction, ElicitFormParams, ElicitResult, ElicitUrlParams};
use serde::Serialize;

use crate::{
    client::{
        client::Client,
        handlers::arguments::{AnswerArguments, ErasedHandler, erase},
    },
    error::{Error, Result},
    logged::Logged,
    session::{
        connection::RequestContext,
        handler::traits::{Handler, HandlerFuture, IntoError},
    },
};

/// The types that the handler of [`Client::on_elicit`] or [`Client::on_elicit_url`] may return.
///
/// - [`Accept<T>`]: the user filled in the form, with a value of any type that serializes to an object.
/// - An [`Answer<T>`]: the user filled in the form, declined, or cancelled.
/// - An [`ElicitAction`]: the user declined, or cancelled; or has agreed to visit the URL.
/// - An [`ElicitResult`] is the whole answer.
/// - `Option<T>` of any of these: `None` means that the user made no choice, which is to cancel.
/// - `Result<T, E>` of any of these, where `E` is an [`Error`] or any [`std::error::Error`]: the server is told that the
///   elicitation failed.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an answer to an elicitation",
    label = "an elicitation handler cannot return this",
    note = "return `Accept(value)` for the filled-in form, an `ElicitAction`, or an `ElicitResult`",
    note = "or an `Option` or a `Result` of these; the error can be any `std::error::Error`"
)]
pub trait IntoElicitResult {
    /// Converts the value to the result of the elicitation.
    ///
    /// # Errors
    /// The error that occurred while the user was asked.
    fn into_elicit_result(self) -> Result<ElicitResult>;
}

/// The content that a user filled in: a value of any type that serializes to an object with a member for each field.
///
/// Fields that are left out, also by `None`, are filled in with the default values of the form.
///
/// ```
/// use oxmcp::{Accept, Client, protocol::ElicitFormParams};
///
/// #[derive(serde::Serialize)]
/// struct Confirm { name: String }
///
/// let client = Client::new("my-app", "1.0.0").on_elicit(|form: ElicitFormParams| async move {
///     println!("{}", form.message);
///     Accept(Confirm { name: "teahouse".into() })
/// });
/// # let _ = client;
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(
    clippy::exhaustive_structs,
    reason = "it is a wrapper, and users construct it"
)]
pub struct Accept<T>(pub T);

impl<T: Serialize> IntoElicitResult for Accept<T> {
    fn into_elicit_result(self) -> Result<ElicitResult> {
        ElicitResult::accept(&self.0).map_err(|error| {
            Error::internal("could not serialize the content of the form").with_source(error)
        })
    }
}

/// The answer of a user to a form, for a handler that may accept, decline or cancel.
///
/// ```
/// use oxmcp::{Answer, Client, protocol::ElicitFormParams};
///
/// #[derive(serde::Serialize)]
/// struct Confirm { name: String }
///
/// let client = Client::new("my-app", "1.0.0").on_elicit(|form: ElicitFormParams| async move {
///     match form.message.as_str() {
///         "Your name?" => Answer::Accept(Confirm { name: "teahouse".into() }),
///         _ => Answer::Decline,
///     }
/// });
/// # let _ = client;
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(
    clippy::exhaustive_enums,
    reason = "the specification has these three, and a handler makes them"
)]
pub enum Answer<T> {
    /// The user filled in the form: a value of any type that serializes to an object, as with [`Accept`].
    Accept(T),
    /// The user declined.
    Decline,
    /// The user made no choice.
    Cancel,
}

impl<T: Serialize> IntoElicitResult for Answer<T> {
    fn into_elicit_result(self) -> Result<ElicitResult> {
        match self {
            Self::Accept(value) => Accept(value).into_elicit_result(),
            Self::Decline => ElicitAction::Decline.into_elicit_result(),
            Self::Cancel => ElicitAction::Cancel.into_elicit_result(),
        }
    }
}

impl IntoElicitResult for ElicitAction {
    fn into_elicit_result(self) -> Result<ElicitResult> {
        Ok(ElicitResult::new(self))
    }
}

impl IntoElicitResult for ElicitResult {
    fn into_elicit_result(self) -> Result<ElicitResult> {
        Ok(self)
    }
}

impl<T: IntoElicitResult> IntoElicitResult for Option<T> {
    fn into_elicit_result(self) -> Result<ElicitResult> {
        match self {
            Some(answer) => answer.into_elicit_result(),
            None => ElicitAction::Cancel.into_elicit_result(),
        }
    }
}

impl<T: IntoElicitResult, E: IntoError> IntoElicitResult for Result<T, E> {
    fn into_elicit_result(self) -> Result<ElicitResult> {
        self.map_err(IntoError::into_error)?.into_elicit_result()
    }
}

impl Client {
    /// Sets the handler that is called when a server asks the user to fill in a form (2025-06-18 and later). The capability is
    /// declared to servers on connecting, so set the handler before.
    ///
    /// The handler takes the form, and optionally a [`RequestContext`], which identifies the server
    /// ([`peer_info`](crate::RequestContext::peer_info)); show that to the user. While the user answers, the timeout of the
    /// call that the server is working on is paused. The handler's return types are listed at [`IntoElicitResult`]. An answer
    /// that does not match the form is not sent, and the elicitation fails.
    /// See [elicitation](https://modelcontextprotocol.io/specification/2026-07-28/client/elicitation).
    ///
    /// ```
    /// use oxmcp::{
    ///     Client, RequestContext,
    ///     protocol::{ElicitAction, ElicitFormParams},
    /// };
    ///
    /// let client = Client::new("my-app", "1.0.0").on_elicit(
    ///     |form: ElicitFormParams, cx: RequestContext| async move {
    ///         let server = cx.peer_info().map_or("a server", |info| &info.name);
    ///         println!("{server} asks: {}", form.message);
    ///         ElicitAction::Decline
    ///     },
    /// );
    /// # let _ = client;
    /// ```
    #[must_use]
    #[doc(alias = "elicitation/create")]
    pub fn on_elicit<Arguments, H>(self, handler: H) -> Self
    where
        Arguments: AnswerArguments<ElicitFormParams>,
        H: Handler<Arguments>,
        H::Returned: HandlerFuture<Output: IntoElicitResult> + Send + 'static,
    {
        let handler = erase(handler, IntoElicitResult::into_elicit_result);
        self.change(|features| features.on_elicit = Some(handler));
        self
    }

    /// Sets the handler that is called when a server asks the user to visit a URL (2025-11-25 and later), as
    /// [`on_elicit`](Self::on_elicit) does for forms.
    ///
    /// [`ElicitAction::Accept`] means that the user has agreed to visit the URL, and not that the user has visited it: this
    /// side does not see what happens there. The handler must show the user the whole URL and must not open it before the
    /// user has agreed. A URL with a scheme other than `https:` or `http:`, or with a part before its host that could be
    /// taken for the host, is refused before the handler is called.
    /// See [URL mode](https://modelcontextprotocol.io/specification/2026-07-28/client/elicitation#url-mode-elicitation-requests).
    ///
    /// ```
    /// use oxmcp::{
    ///     Client,
    ///     protocol::{ElicitAction, ElicitUrlParams},
    /// };
    ///
    /// let client = Client::new("my-app", "1.0.0").on_elicit_url(|asked: ElicitUrlParams| async move {
    ///     println!("{}\n  {}\nNo browser here.", asked.message, asked.url);
    ///     ElicitAction::Decline
    /// });
    /// # let _ = client;
    /// ```
    #[must_use]
    #[doc(alias = "elicitation/create")]
    pub fn on_elicit_url<Arguments, H>(self, handler: H) -> Self
    where
        Arguments: AnswerArguments<ElicitUrlParams>,
        H: Handler<Arguments>,
        H::Returned: HandlerFuture<Output: IntoElicitResult> + Send + 'static,
    {
        let handler = erase(handler, IntoElicitResult::into_elicit_result);
        self.change(|features| features.on_elicit_url = Some(handler));
        self
    }
}

/// Runs the handler of forms, and completes and checks the answer that it returns.
pub(crate) async fn fill_form(
    handler: ErasedHandler<ElicitFormParams, ElicitResult>,
    form: ElicitFormParams,
    cx: RequestContext,
) -> Result<ElicitResult> {
    let schema = form.requested_schema.clone();
    let mut answer = handler(form, cx).await?;
    let content = answer.content.take();
    if answer.action == ElicitAction::Accept {
        let content = schema.complete(content.as_deref()).map_err(|wrong| {
            tracing::warn!(wrong = %Logged(&wrong), "rejecting an answer that does not match its elicitation form");
            Error::internal(format!("the answer does not match the form: {wrong}"))
        })?;
        answer.content = Some(content);
    }
    Ok(answer)
}
