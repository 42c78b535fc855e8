//! Errors of HTTP and of the network: their constructors and accessors.

use std::{borrow::Cow, time::Duration};

use serde::Deserialize;
use serde_json::json;

use super::{Error, Kind};

/// The largest integer that every reader of JSON reads exactly.
const MAX_INTEGER: u64 = (1 << 53) - 1;

impl Error {
    /// Creates an error for a server that could not be reached: nothing was sent, so a retry is safe. For custom HTTP clients.
    #[must_use]
    pub fn unreachable(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(Kind::Network { sent: false }, message)
    }

    /// Creates an error for a connection that failed before the response arrived: the server may or may not have processed the
    /// request. For custom HTTP clients.
    #[must_use]
    pub fn network(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(Kind::Network { sent: true }, message)
    }

    /// Adds the status of the HTTP response that reported the error.
    #[must_use]
    pub(crate) fn with_http_status(mut self, status: u16) -> Self {
        self.0.http_status = Some(status);
        self
    }

    /// Returns the status of the HTTP response that reported the error. `None` without a response, or if its status was a
    /// success.
    ///
    /// ```
    /// # async fn run(session: oxmcp::ClientSession) -> oxmcp::Result<()> {
    /// if let Err(error) = session.call_tool("add", serde_json::json!({})).await
    ///     && error.http_status() == Some(503)
    /// {
    ///     println!("the server is busy: {error}");
    /// }
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn http_status(&self) -> Option<u16> {
        self.0.http_status
    }

    /// Returns the header `WWW-Authenticate` of the HTTP response that reported the error: the challenges of a server that asks
    /// for other credentials. Several headers are joined by commas.
    #[must_use]
    pub fn www_authenticate(&self) -> Option<&str> {
        self.0.www_authenticate.as_deref()
    }

    /// Returns whether authorization failed: a login gave no token, so the request was not sent; or the server rejected the
    /// token that it had asked for. The source of the error is the [`AuthError`](crate::auth::AuthError), which has the
    /// details.
    #[cfg(feature = "auth")]
    #[must_use]
    pub fn is_authorization(&self) -> bool {
        matches!(self.0.kind, Kind::Authorization { .. })
    }

    /// Returns whether a user must log in or grant more scopes, and could not be asked. A web back end then begins a login
    /// ([`Login::begin_after`](crate::http::Login::begin_after)).
    #[cfg(feature = "auth")]
    #[must_use]
    pub fn is_interaction_required(&self) -> bool {
        matches!(
            self.0.kind,
            Kind::Authorization {
                interaction_required: true
            }
        )
    }

    /// Returns whether the server responded with 401: it requires credentials, or other ones.
    #[must_use]
    pub fn is_unauthorized(&self) -> bool {
        self.0.http_status == Some(401)
    }

    /// Returns whether the server certainly did not process the request, so that a retry is safe. That is so if the server
    /// could not be reached, if a login gave no token, and after a response with 401, 403, 404, 429, or 503 with `Retry-After`.
    ///
    /// It is not known after a failed connection, or after 502 and 504, with which a load balancer reports a missing response:
    /// then this returns `false`, as for all errors that do not concern reaching the server.
    ///
    /// ```
    /// # async fn run(session: oxmcp::ClientSession) -> oxmcp::Result<()> {
    /// let order = || session.call_tool("order", serde_json::json!({"item": "tea"}));
    /// match order().await {
    ///     Err(error) if error.is_unserved() => drop(order().await?),
    ///     Err(error) if error.is_network() => println!("look whether it was ordered: {error}"),
    ///     outcome => drop(outcome?),
    /// }
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn is_unserved(&self) -> bool {
        #[cfg(feature = "auth")]
        if self.is_authorization() {
            return true;
        }
        self.0.is_refused_unserved || self.0.kind == Kind::Network { sent: false }
    }

    /// Marks the error as a refusal for a while: the request had no effect, and may be repeated after `wait`.
    ///
    /// Over HTTP, the error is sent with the status 429 and the header `Retry-After`, unless a part of the response was sent
    /// before. Without other data, the error's `data` has the member `retryAfterMs`, so that clients of other transports know the
    /// time, too. A client of this SDK that receives 429 waits, and repeats the request within its deadline.
    /// See [429](https://www.rfc-editor.org/rfc/rfc6585#section-4).
    ///
    /// ```
    /// use std::time::Duration;
    /// use oxmcp::Error;
    ///
    /// let error = Error::limit("too many reports are being printed").with_retry_after(Duration::from_secs(3));
    /// assert_eq!(error.retry_after(), Some(Duration::from_secs(3)));
    /// ```
    #[must_use]
    pub fn with_retry_after(mut self, wait: Duration) -> Self {
        if self.0.data.is_none() {
            let wait = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX);
            self = self.with_data(json!({"retryAfterMs": wait.min(MAX_INTEGER)}));
        }
        self.0.retry_after = Some(wait);
        self
    }

    /// Returns the time after which the refused request may be repeated: that of [`with_retry_after`](Self::with_retry_after),
    /// or of the response of the peer. `None` if it is not known.
    #[must_use]
    pub fn retry_after(&self) -> Option<Duration> {
        #[derive(Deserialize)]
        struct Data {
            #[serde(rename = "retryAfterMs")]
            retry_after_ms: u64,
        }
        self.0.retry_after.or_else(|| {
            let data: Data = serde_json::from_str(self.data()?.get()).ok()?;
            Some(Duration::from_millis(data.retry_after_ms))
        })
    }

    /// Sets the time that the server asks to wait, from the response that reported the error.
    #[cfg(feature = "http-client")]
    pub(crate) fn refused_for(mut self, wait: Duration) -> Self {
        self.0.retry_after = Some(wait);
        self
    }

    /// The time that this error of this side asks the peer to wait, in whole seconds and at least one.
    #[cfg(feature = "http-server")]
    pub(crate) fn retry_after_seconds(&self) -> Option<u64> {
        let wait = self.0.retry_after?;
        let begun = u64::from(wait.subsec_nanos() > 0);
        Some(wait.as_secs().saturating_add(begun).max(1))
    }

    /// The time for which the server asked this side to wait with a refusal that is repeated automatically: 429 with
    /// `Retry-After`.
    pub(crate) fn asked_to_wait(&self) -> Option<Duration> {
        self.0
            .retry_after
            .filter(|_| self.0.http_status == Some(429))
    }

    /// Returns whether the server could not be reached, or the connection failed before the response arrived. Unlike with
    /// [`is_closed`](Self::is_closed), the session continues. The server may have processed the request, unless
    /// [`is_unserved`](Self::is_unserved).
    #[must_use]
    pub fn is_network(&self) -> bool {
        matches!(self.0.kind, Kind::Network { .. })
    }
}

#[cfg_attr(
    not(feature = "http-client"),
    expect(dead_code, reason = "only HTTP clients use it")
)]
impl Error {
    /// An HTTP response that is not a JSON-RPC message.
    pub(crate) fn http(status: u16, message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(Kind::Http, message).with_http_status(status)
    }

    /// Adds the challenges of the HTTP response that reported the error.
    #[must_use]
    pub(crate) fn with_challenges(mut self, challenges: Option<String>) -> Self {
        self.0.www_authenticate = challenges.map(String::into_boxed_str);
        self
    }

    /// Sets whether the HTTP response that reported the error shows that the request was not processed.
    #[must_use]
    pub(crate) fn refused_unserved(mut self, is_unserved: bool) -> Self {
        self.0.is_refused_unserved = is_unserved;
        self
    }

    /// Whether nothing was sent, because the server could not be reached.
    pub(crate) fn is_unreachable(&self) -> bool {
        self.0.kind == Kind::Network { sent: false }
    }
}
