//! [`Authorizer`], the trait that provides the authorization of each request, and handles refusals.

use std::future::Future;

use futures_core::future::BoxFuture;
use http::{HeaderMap, HeaderValue, Method, StatusCode, Uri, header::AUTHORIZATION};

use crate::{
    error::Result,
    transport::traits::{CurrentLogin, UserWaits},
};

/// The authorization of the requests to a server. Implement it if your program manages its own tokens, and
/// [`Login`](super::Login) does not fit.
///
/// ```
/// use http::{HeaderMap, HeaderValue};
/// use oxmcp::{Result, http::{Authorizer, Endpoint, RefusedRequest, RequestToAuthorize}};
///
/// struct Vault;
///
/// impl Authorizer for Vault {
///     async fn authorize(&self, _: RequestToAuthorize<'_>) -> Result<HeaderMap> {
///         let mut value = HeaderValue::from_static("Bearer …");
///         value.set_sensitive(true);
///         Ok(HeaderMap::from_iter([(http::header::AUTHORIZATION, value)]))
///     }
///
///     async fn refused(&self, refused: RefusedRequest<'_>) -> Result<bool> {
///         // A new token could be obtained here; without one, the refusal is the answer.
///         Ok(false)
///     }
/// }
///
/// let endpoint = Endpoint::new("https://example.com/mcp").authorizer(Vault);
/// # let _ = endpoint;
/// ```
///
/// See [Access Token Usage](https://modelcontextprotocol.io/specification/2026-07-28/basic/authorization#access-token-usage).
pub trait Authorizer: Send + Sync + 'static {
    /// Returns the headers that authorize a request, which replace other headers of the same names. This is called before each
    /// request, and should cache its results.
    ///
    /// # Errors
    /// If the request cannot be authorized. It is not sent, and fails with this error.
    ///
    /// # Cancel safety
    /// The future is dropped if the request is cancelled.
    fn authorize(
        &self,
        request: RequestToAuthorize<'_>,
    ) -> impl Future<Output = Result<HeaderMap>> + Send;

    /// Handles a 401 or 403 from the server. Returns whether the request is to be sent again with new authorization; a request
    /// is sent five times at most.
    ///
    /// # Errors
    /// If the request is to fail with this error, instead of the server's answer.
    ///
    /// # Cancel safety
    /// The future is dropped if the request is cancelled.
    fn refused(&self, refused: RefusedRequest<'_>) -> impl Future<Output = Result<bool>> + Send {
        let _ = refused;
        async { Ok(false) }
    }

    /// Handles the success of a request that was refused before and sent again. `operation` is as in [`RefusedRequest::operation`].
    fn served(&self, operation: &str) {
        let _ = operation;
    }

    /// Returns the identity on whose behalf requests are authorized: see
    /// [`Transport::authorization`](crate::transport::Transport::authorization). `None`, the default, if it is not known or may
    /// change.
    fn identity(&self) -> Option<String> {
        None
    }

    /// Returns the login on whose behalf requests are authorized, if it can change: see
    /// [`Transport::current_login`](crate::transport::Transport::current_login). `None`, the default, if it stays the same.
    fn current_login(&self) -> Option<CurrentLogin> {
        None
    }

    /// Returns the times at which the authorizer waits for a person: see
    /// [`Transport::person_waits`](crate::transport::Transport::person_waits). `None`, the default, if it never does.
    fn person_waits(&self) -> Option<UserWaits> {
        None
    }
}

/// A request that is about to be sent.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct RequestToAuthorize<'a> {
    /// The HTTP method.
    pub method: &'a Method,
    /// The whole URL.
    pub url: &'a Uri,
}

/// A request that was refused, and its refusal.
#[derive(Debug)]
#[non_exhaustive]
pub struct RefusedRequest<'a> {
    /// The HTTP method.
    pub method: &'a Method,
    /// The whole URL.
    pub url: &'a Uri,
    /// The JSON-RPC method and the name or URI in its params, as `tools/call add`; empty if there is no message.
    pub operation: &'a str,
    /// The status of the answer: 401 or 403.
    pub status: StatusCode,
    /// The headers of the answer.
    pub headers: &'a HeaderMap,
    /// The headers that authorized the request.
    pub authorized_by: &'a HeaderMap,
    /// The number of earlier refusals of this request.
    pub refused_before: usize,
}

impl RefusedRequest<'_> {
    /// The header `Authorization` that was sent.
    pub(crate) fn authorization(&self) -> Option<&HeaderValue> {
        self.authorized_by.get(AUTHORIZATION)
    }
}

/// An [`Authorizer`] as a trait object.
pub(crate) trait DynAuthorizer: Send + Sync {
    fn authorize_boxed<'a>(
        &'a self,
        request: RequestToAuthorize<'a>,
    ) -> BoxFuture<'a, Result<HeaderMap>>;
    fn refused_boxed<'a>(&'a self, refused: RefusedRequest<'a>) -> BoxFuture<'a, Result<bool>>;
    fn notify_served(&self, operation: &str);
    fn name_identity(&self) -> Option<String>;
    fn login(&self) -> Option<CurrentLogin>;
    fn waits(&self) -> Option<UserWaits>;
}

impl<A: Authorizer> DynAuthorizer for A {
    fn authorize_boxed<'a>(
        &'a self,
        request: RequestToAuthorize<'a>,
    ) -> BoxFuture<'a, Result<HeaderMap>> {
        Box::pin(self.authorize(request))
    }

    fn refused_boxed<'a>(&'a self, refused: RefusedRequest<'a>) -> BoxFuture<'a, Result<bool>> {
        Box::pin(self.refused(refused))
    }

    fn notify_served(&self, operation: &str) {
        self.served(operation);
    }

    fn name_identity(&self) -> Option<String> {
        self.identity()
    }

    fn login(&self) -> Option<CurrentLogin> {
        self.current_login()
    }

    fn waits(&self) -> Option<UserWaits> {
        self.person_waits()
    }
}
