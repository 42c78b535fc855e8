//! The error type of the crate. `error/` has copies of errors, the texts for undecodable JSON, and the errors of HTTP.

mod copy;
mod decode;
mod http;

use std::{borrow::Cow, error::Error as StdError, fmt, io, time::Duration};

use oxmcp_protocol::{
    ElicitUrlParams, EncodeError, ErrorCode, ErrorObject, TemplateError,
    UrlElicitationRequiredData, internal::negotiation::ProbeFailure,
};
use oxmcp_schema::SchemaError;
use serde::Serialize;
use serde_json::{
    json,
    value::{RawValue, to_raw_value},
};

pub(crate) use self::decode::plain_decode_error;

/// The result of an operation of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The error type of all operations.
///
/// It is opaque, with methods to examine it: [`code`](Self::code), [`is_timeout`](Self::is_timeout),
/// [`is_cancelled`](Self::is_cancelled), [`is_closed`](Self::is_closed), [`is_protocol`](Self::is_protocol). Errors cross the
/// wire unchanged in both directions: if a handler returns an `Error`, the caller's future fails with the same code, message
/// and data.
///
/// ```
/// use oxmcp::{Error, ErrorCode};
///
/// let error = Error::invalid_params("there is no project \"x\"");
/// assert_eq!(error.code(), ErrorCode::INVALID_PARAMS);
/// assert!(!error.is_timeout());
/// ```
pub struct Error(Box<Inner>);

#[derive(Debug)]
struct Inner {
    kind: Kind,
    message: Cow<'static, str>,
    data: Option<Box<RawValue>>,
    /// The status of the HTTP response that reported the error.
    http_status: Option<u16>,
    /// The challenges of that response.
    www_authenticate: Option<Box<str>>,
    /// Whether that response shows that the request was not processed.
    is_refused_unserved: bool,
    /// The time after which the refused request may be repeated.
    retry_after: Option<Duration>,
    /// Whether the model sees the error if a tool fails with it.
    is_for_models: bool,
    source: Option<Box<dyn StdError + Send + Sync>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// A JSON-RPC error, from a peer or for a peer.
    Protocol(ErrorCode),
    Timeout,
    Cancelled,
    Closed,
    /// An HTTP response that is not a JSON-RPC message.
    Http,
    /// A message could not be sent, or its response was not received.
    Network {
        sent: bool,
    },
    Io,
    /// The peer's response does not have the type of the method's result.
    Decode,
    /// The peer, or the negotiated revision, does not support the operation.
    Unsupported,
    /// The caller asked for something that can never work.
    Misuse,
    /// A limit of this side was reached.
    Limit,
    /// A tool reported that it failed.
    Tool,
    /// The user declined a question, or, if `dismissed`, closed it without an answer.
    Declined {
        dismissed: bool,
    },
    /// A login did not result in a token.
    #[cfg(feature = "auth")]
    Authorization {
        interaction_required: bool,
    },
    /// The client must answer first; then the handler runs again.
    Suspended,
}

impl Error {
    /// Creates an error with a JSON-RPC code, to send to the peer.
    #[must_use]
    pub fn protocol(code: impl Into<ErrorCode>, message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(Kind::Protocol(code.into()), message)
    }

    /// Creates an [`ErrorCode::INVALID_PARAMS`] error: the parameters are wrong, or name something that does not exist.
    #[must_use]
    pub fn invalid_params(message: impl Into<Cow<'static, str>>) -> Self {
        Self::protocol(ErrorCode::INVALID_PARAMS, message)
    }

    /// Creates an [`ErrorCode::RESOURCE_NOT_FOUND`] error: no resource exists at the URI, which is also in the data. Clients
    /// that speak 2026-07-28 receive it as [`ErrorCode::INVALID_PARAMS`].
    /// See [error handling](https://modelcontextprotocol.io/specification/2026-07-28/server/resources#error-handling).
    #[must_use]
    pub fn resource_not_found(uri: &str) -> Self {
        let mut shown: Cow<'_, str> = uri.into();
        if let Some((end, _)) = uri.char_indices().nth(256) {
            shown = format!("{}…", uri.get(..end).unwrap_or_default()).into();
        }
        Self::protocol(
            ErrorCode::RESOURCE_NOT_FOUND,
            format!("Resource not found: {shown}"),
        )
        .with_data(json!({"uri": uri}))
    }

    /// Creates an [`ErrorCode::URL_ELICITATION_REQUIRED`] error: the user must visit these URLs before the request can be made
    /// (2025-11-25 only). Each URL must have an ID. [`RequestContext::ask_url`](crate::RequestContext::ask_url) works in newer
    /// revisions, too.
    /// See [URL elicitation required](https://modelcontextprotocol.io/specification/2025-11-25/client/elicitation#url-elicitation-required-error).
    ///
    /// ```
    /// use oxmcp::{Error, protocol::ElicitUrlParams};
    ///
    /// let login = ElicitUrlParams::new("Log in first", "https://example.com/login").with_elicitation_id("7");
    /// assert_eq!(Error::url_elicitation_required([login]).code().value(), -32042);
    /// ```
    #[must_use]
    pub fn url_elicitation_required(
        elicitations: impl IntoIterator<Item = ElicitUrlParams>,
    ) -> Self {
        let elicitations: Vec<_> = elicitations.into_iter().collect();
        Self::protocol(
            ErrorCode::URL_ELICITATION_REQUIRED,
            "the user must visit a URL first",
        )
        .with_data(UrlElicitationRequiredData::new(elicitations))
    }

    /// Creates an [`ErrorCode::INVALID_REQUEST`] error: the request is not valid in the current state.
    #[must_use]
    pub fn invalid_request(message: impl Into<Cow<'static, str>>) -> Self {
        Self::protocol(ErrorCode::INVALID_REQUEST, message)
    }

    /// Creates an [`ErrorCode::METHOD_NOT_FOUND`] error.
    #[must_use]
    pub fn method_not_found(method: &str) -> Self {
        Self::protocol(
            ErrorCode::METHOD_NOT_FOUND,
            format!("Method not found: {method}"),
        )
    }

    /// Creates an [`ErrorCode::INTERNAL_ERROR`] error: this side failed, through no fault of the peer.
    #[must_use]
    pub fn internal(message: impl Into<Cow<'static, str>>) -> Self {
        Self::protocol(ErrorCode::INTERNAL_ERROR, message)
    }

    /// Creates an error for work that took too long: [`is_timeout`](Self::is_timeout). It is for crates built on the SDK that wait
    /// on behalf of a call.
    #[must_use]
    pub fn timeout(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(Kind::Timeout, message)
    }

    /// Creates an error for work that its caller cancelled: [`is_cancelled`](Self::is_cancelled). It is for extensions that
    /// have their own ways to cancel a call. A peer receives [`ErrorCode::INTERNAL_ERROR`].
    #[must_use]
    pub fn cancelled(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(Kind::Cancelled, message)
    }

    /// Creates an error for a closed connection, for custom transports. `message` is the reason, written for the user.
    #[must_use]
    pub fn closed(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(Kind::Closed, message)
    }

    pub(crate) fn decode(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(Kind::Decode, message)
    }

    pub(crate) fn unsupported(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(Kind::Unsupported, message)
    }

    /// Creates an error for a mistake of the calling program or its configuration, for crates built on the SDK. The message
    /// should say what to do. A peer receives it with [`ErrorCode::INTERNAL_ERROR`].
    #[must_use]
    pub fn misuse(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(Kind::Misuse, message)
    }

    pub(crate) fn tool(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(Kind::Tool, message)
    }

    /// Creates an error for a limit of this side that was reached, such as that of a store: [`is_limit`](Self::is_limit). The
    /// message should say what to do. A peer receives it with [`ErrorCode::INTERNAL_ERROR`].
    #[must_use]
    pub fn limit(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(Kind::Limit, message)
    }

    pub(crate) fn declined(message: impl Into<Cow<'static, str>>, dismissed: bool) -> Self {
        Self::new(Kind::Declined { dismissed }, message)
    }

    pub(crate) fn suspended() -> Self {
        Self::new(Kind::Suspended, "the client must answer first")
    }

    fn new(kind: Kind, message: impl Into<Cow<'static, str>>) -> Self {
        Self(Box::new(Inner {
            kind,
            message: message.into(),
            data: None,
            http_status: None,
            www_authenticate: None,
            is_refused_unserved: false,
            retry_after: None,
            is_for_models: false,
            source: None,
        }))
    }

    /// Adds `data` to the error, for the peer's program.
    ///
    /// Data that cannot be serialized is omitted, so that it does not hide the error.
    #[must_use]
    pub fn with_data(mut self, data: impl Serialize) -> Self {
        self.0.data = to_raw_value(&data).ok();
        self
    }

    /// Adds the error that caused this one. The cause is never sent to the peer.
    #[must_use]
    pub fn with_source(mut self, source: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        self.0.source = Some(source.into());
        self
    }

    /// Marks the error as one that the model sees if a tool fails with it.
    #[cfg(feature = "server")]
    pub(crate) fn for_models(mut self) -> Self {
        self.0.is_for_models = true;
        self
    }

    /// Whether the model sees the error if a tool fails with it. This is for errors that are not failures, and that the model
    /// can work around.
    #[cfg(feature = "server")]
    pub(crate) fn is_for_models(&self) -> bool {
        self.0.is_for_models || self.is_declined()
    }

    /// Returns the JSON-RPC code: [`ErrorCode::INTERNAL_ERROR`] if the error has no other.
    #[must_use]
    pub fn code(&self) -> ErrorCode {
        match self.0.kind {
            Kind::Protocol(code) => code,
            // This is not a failure, but the request cannot be completed.
            Kind::Declined { .. } => ErrorCode::INVALID_REQUEST,
            _ => ErrorCode::INTERNAL_ERROR,
        }
    }

    /// Returns the message of the error, without its causes.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// Returns the `data` of a JSON-RPC error, as JSON.
    #[must_use]
    pub fn data(&self) -> Option<&RawValue> {
        self.0.data.as_deref()
    }

    /// Returns whether this is a JSON-RPC error, received in a response or created for one.
    #[must_use]
    pub fn is_protocol(&self) -> bool {
        matches!(self.0.kind, Kind::Protocol(_))
    }

    /// Returns whether the call timed out.
    #[must_use]
    pub fn is_timeout(&self) -> bool {
        self.0.kind == Kind::Timeout
    }

    /// Returns whether the call was cancelled, by either side.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.0.kind == Kind::Cancelled
    }

    /// Returns whether the connection is closed. A new connection may work.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.0.kind == Kind::Closed
    }

    /// Returns whether the operation is unsupported: the peer or the negotiated revision does not have it, and nothing was
    /// sent; or the peer requires a capability that this side has not declared.
    #[must_use]
    pub fn is_unsupported(&self) -> bool {
        matches!(
            self.0.kind,
            Kind::Unsupported | Kind::Protocol(ErrorCode::MISSING_CLIENT_CAPABILITY)
        )
    }

    /// Returns whether the user declined a question, or dismissed it without an answer.
    #[must_use]
    pub fn is_declined(&self) -> bool {
        matches!(self.0.kind, Kind::Declined { .. })
    }

    /// Returns whether the user dismissed a question without an answer. Asking again later may help.
    #[must_use]
    pub fn is_dismissed(&self) -> bool {
        self.0.kind == Kind::Declined { dismissed: true }
    }

    /// Returns whether the handler must return now, because the client must answer a question first; the handler then runs
    /// again. Return such an error unchanged: any other return value is ignored.
    /// See [MRTR](https://modelcontextprotocol.io/specification/2026-07-28/basic/patterns/mrtr).
    #[must_use]
    pub fn is_input_required(&self) -> bool {
        self.0.kind == Kind::Suspended
    }

    /// Returns whether a tool reported a failure. The message is the tool's; the session is not affected.
    #[must_use]
    pub fn is_tool_error(&self) -> bool {
        self.0.kind == Kind::Tool
    }

    /// Whether the peer's response does not have the type of the method's result.
    pub(crate) fn is_decode(&self) -> bool {
        self.0.kind == Kind::Decode
    }

    /// Whether the operation was refused, so that it certainly had no effect.
    #[cfg(feature = "http-server")]
    pub(crate) fn is_refusal(&self) -> bool {
        !matches!(
            self.0.kind,
            Kind::Timeout | Kind::Cancelled | Kind::Closed | Kind::Network { .. } | Kind::Io
        )
    }

    /// Returns whether one of this side's [`Limits`](crate::Limits) was reached.
    #[must_use]
    pub fn is_limit(&self) -> bool {
        self.0.kind == Kind::Limit
    }
}

/// Prints the message like `Display`, because a `main` that returns the error prints this; `{:#?}` shows the parts.
impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if f.alternate() {
            return self.0.fmt(f);
        }
        write!(f, "{self}")
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.message)?;
        if let Kind::Protocol(code) = self.0.kind {
            write!(f, " (code {code})")?;
        }
        Ok(())
    }
}

impl StdError for Error {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.0
            .source
            .as_deref()
            .map(|source| source as &(dyn StdError + 'static))
    }
}

impl From<io::Error> for Error {
    fn from(error: io::Error) -> Self {
        Self::new(Kind::Io, error.to_string()).with_source(error)
    }
}

impl From<ErrorObject> for Error {
    fn from(object: ErrorObject) -> Self {
        let mut error = Self::protocol(object.code, object.message);
        error.0.data = object.data;
        error
    }
}

impl From<SchemaError> for Error {
    fn from(error: SchemaError) -> Self {
        let kind = if error.is_limit() {
            Kind::Limit
        } else {
            Kind::Misuse
        };
        Self::new(kind, error.message().to_owned())
    }
}

#[cfg(feature = "auth")]
impl Error {
    /// A login failed with another error. The request that waited for it was not sent. It must not be retried automatically,
    /// because that could ask the user again.
    pub(crate) fn failed_login(message: String, source: Self) -> Self {
        let interaction_required = source.is_interaction_required();
        let kind = Kind::Authorization {
            interaction_required,
        };
        Self::new(kind, message).with_source(source)
    }
}

/// A failed login. [`source`](StdError::source) is the [`AuthError`](oxmcp_auth::AuthError), which has the details.
#[cfg(feature = "auth")]
impl From<oxmcp_auth::AuthError> for Error {
    fn from(error: oxmcp_auth::AuthError) -> Self {
        let kind = Kind::Authorization {
            interaction_required: error.kind() == oxmcp_auth::AuthErrorKind::InteractionRequired,
        };
        Self::new(kind, error.message().to_owned()).with_source(error)
    }
}

impl From<EncodeError> for Error {
    fn from(error: EncodeError) -> Self {
        Self::internal(error.to_string()).with_source(error.into_inner())
    }
}

impl From<TemplateError> for Error {
    fn from(error: TemplateError) -> Self {
        let misuse = Self::misuse(error.to_string());
        match error.into_inner() {
            Some(source) => misuse.with_source(source),
            None => misuse,
        }
    }
}

impl<'a> From<&'a Error> for ProbeFailure<'a> {
    fn from(error: &'a Error) -> Self {
        let is_protocol = error.is_protocol();
        Self {
            http_status: error.http_status(),
            code: is_protocol.then(|| error.code()),
            data: error.data(),
            is_unreadable: error.is_decode(),
        }
    }
}

/// The only conversion of an error to its form on the wire.
impl From<&Error> for ErrorObject {
    fn from(error: &Error) -> Self {
        let mut object = Self::new(error.code(), error.message());
        object.data.clone_from(&error.0.data);
        object
    }
}

#[cfg(test)]
mod negotiation_tests;
#[cfg(test)]
mod tests;
