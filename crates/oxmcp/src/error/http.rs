//! Errors of HTTP and of the network: their constructors and accessors.

use std::borrow::Cow;

use super::{Error, Kind};

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
