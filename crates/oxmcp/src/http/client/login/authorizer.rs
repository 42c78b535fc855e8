//! The trait that gives each request what authorizes it, and hears of refusals.

use std::future::Future;

use futures_core::future::BoxFuture;
use http::{HeaderMap, HeaderValue, Method, StatusCode, Uri, header::AUTHORIZATION};

use crate::{
    error::Result,
    transport::traits::{CurrentLogin, PersonWaits},
};

/// What authorizes the requests to a server: implement it where your program has tokens of its own, and
/// [`Login`](super::Login) is not what you want.
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
///         // A new token could be had here; without one, the refusal is the answer.
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
    /// The headers that authorize a request, which take the place of others of the same names. It is asked before each request,
    /// and should keep what it knows.
    ///
    /// # Errors
    /// Where the request cannot be authorized: then it is not sent, and fails with this error.
    ///
    /// # Cancel safety
    /// The future is dropped where the request is given up.
    fn authorize(
        &self,
        request: RequestToAuthorize<'_>,
    ) -> impl Future<Output = Result<HeaderMap>> + Send;

    /// The server has answered 401 or 403. Returns whether the request is to be sent again, authorized anew; a request is sent five
    /// times at most.
    ///
    /// # Errors
    /// Where that is what the request should fail with, instead of the server's answer.
    ///
    /// # Cancel safety
    /// The future is dropped where the request is given up.
    fn refused(&self, refused: RefusedRequest<'_>) -> impl Future<Output = Result<bool>> + Send {
        let _ = refused;
        async { Ok(false) }
    }

    /// A request that was refused before was sent again, and served. Its JSON-RPC method and what it names are as in
    /// [`RefusedRequest::operation`].
    fn served(&self, operation: &str) {
        let _ = operation;
    }

    /// On whose behalf it authorizes: see [`Transport::authorization`](crate::transport::Transport::authorization). `None`,
    /// the default, where it is not known or may change.
    fn identity(&self) -> Option<String> {
        None
    }

    /// The login on whose behalf it authorizes, where that can change: see
    /// [`Transport::current_login`](crate::transport::Transport::current_login). `None`, the default, where it stays the same.
    fn current_login(&self) -> Option<CurrentLogin> {
        None
    }

    /// What it waits for a person with: see [`Transport::person_waits`](crate::transport::Transport::person_waits). `None`,
    /// the default, where it never does.
    fn person_waits(&self) -> Option<PersonWaits> {
        None
    }
}

/// A request that is about to be sent.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct RequestToAuthorize<'a> {
    /// The method.
    pub method: &'a Method,
    /// The whole URL.
    pub url: &'a Uri,
}

/// A request that was refused, and how.
#[derive(Debug)]
#[non_exhaustive]
pub struct RefusedRequest<'a> {
    /// The method.
    pub method: &'a Method,
    /// The whole URL.
    pub url: &'a Uri,
    /// The JSON-RPC method and what it names, as `tools/call add`; empty where there is no message.
    pub operation: &'a str,
    /// 401 or 403.
    pub status: StatusCode,
    /// The headers of the answer.
    pub headers: &'a HeaderMap,
    /// The headers that authorized the request.
    pub authorized_by: &'a HeaderMap,
    /// How often this request was refused before.
    pub refused_before: usize,
}

impl RefusedRequest<'_> {
    /// The header `Authorization` that was sent.
    pub(super) fn authorization(&self) -> Option<&HeaderValue> {
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
    fn waits(&self) -> Option<PersonWaits>;
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

    fn waits(&self) -> Option<PersonWaits> {
        self.person_waits()
    }
}
