//! Errors of HTTP and of the network: their constructors and questions.

use std::borrow::Cow;

use super::{Error, Kind};

impl Error {
    /// The server could not be reached: nothing was sent, so that asking again can do no harm. For HTTP clients of your
    /// own.
    #[must_use]
    pub fn unreachable(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(Kind::Network { sent: false }, message)
    }

    /// The connection failed on the way to the server or back: whether the server has done what it was asked is not
    /// known. For HTTP clients of your own.
    #[must_use]
    pub fn network(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(Kind::Network { sent: true }, message)
    }

    /// An HTTP answer that is no JSON-RPC message.
    #[cfg_attr(
        not(feature = "http-client"),
        expect(dead_code, reason = "who speaks HTTP says it")
    )]
    pub(crate) fn http(status: u16, message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(Kind::Http, message).with_http_status(status)
    }

    /// The same error with the status of the HTTP answer that it came with.
    #[must_use]
    pub(crate) fn with_http_status(mut self, status: u16) -> Self {
        self.0.http_status = Some(status);
        self
    }

    /// The status of the HTTP answer that said so. `None` where there was none, or it was a good one.
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

    /// The same error with the challenges of the HTTP answer that it came with.
    #[cfg_attr(
        not(feature = "http-client"),
        expect(dead_code, reason = "who speaks HTTP says it")
    )]
    #[must_use]
    pub(crate) fn with_challenges(mut self, challenges: Option<String>) -> Self {
        self.0.www_authenticate = challenges.map(String::into_boxed_str);
        self
    }

    /// The header `WWW-Authenticate` of the HTTP answer that said so: what the server wants instead of the credentials that
    /// it got. Several are one text, with commas between them.
    #[must_use]
    pub fn www_authenticate(&self) -> Option<&str> {
        self.0.www_authenticate.as_deref()
    }

    /// Whether a login did not come to a token, so that nothing was asked of the server, or it refused the token that it
    /// wanted. The error that caused it is the [`AuthError`](crate::auth::AuthError), which says more.
    #[cfg(feature = "auth")]
    #[must_use]
    pub fn is_authorization(&self) -> bool {
        matches!(self.0.kind, Kind::Authorization { .. })
    }

    /// Whether somebody has to log in, or to agree to more, and nobody could be asked: a web back end begins a login then
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

    /// Whether the server wants credentials, or other ones: it answered 401.
    #[must_use]
    pub fn is_unauthorized(&self) -> bool {
        self.0.http_status == Some(401)
    }

    /// The same error, where the HTTP answer that it came with says that nothing was done.
    #[cfg_attr(
        not(feature = "http-client"),
        expect(dead_code, reason = "who speaks HTTP says it")
    )]
    #[must_use]
    pub(crate) fn refused_unserved(mut self, is_unserved: bool) -> Self {
        self.0.is_refused_unserved = is_unserved;
        self
    }

    /// Whether it is certain that the server has done nothing of what it was asked, so that asking again can do no harm: it could
    /// not be reached, a login did not come to a token, or the HTTP answer says so, which is 401, 403, 404, 429, or 503 with
    /// `Retry-After`. After 502 and 504, by which a balancer says that it got no answer, and after a connection that failed nobody
    /// knows, and this is false; so it is for errors that have nothing to do with the way to the server.
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

    /// Whether the server could not be reached, or the connection failed before the answer was there. The session goes
    /// on: [`is_closed`](Self::is_closed) is another thing. The server may have done what it was asked, unless
    /// [`is_unserved`](Self::is_unserved).
    #[must_use]
    pub fn is_network(&self) -> bool {
        matches!(self.0.kind, Kind::Network { .. })
    }

    /// Whether nothing was sent, because the server could not be reached.
    #[cfg_attr(
        not(feature = "http-client"),
        expect(dead_code, reason = "who speaks HTTP asks")
    )]
    pub(crate) fn is_unreachable(&self) -> bool {
        self.0.kind == Kind::Network { sent: false }
    }
}
