//! MCP over HTTP: the server endpoint, which serves every revision under one URL, and the client transport.
//!
//! | | feature | |
//! |---|---|---|
//! | [`StreamableHttp`] | `http-server` | a server behind a URL: a tower service, or `serve(addr)` |
//! | [`StreamableSession`] | `http-server` | one session of Streamable HTTP, for programs that route requests themselves |
//! | [`LegacySse`] | `http-server` | a server behind a URL for clients that support only the 2024-11-05 transport |
//! | [`SseTransport`] | `http-server` | one session of that transport, for programs that route requests themselves |
//! | [`Cluster`] | `http-server` | the state that the nodes of a server share: sessions, events, tasks, a bus and keys |
//! | [`ServerHandle`] | `http-server` | a handle to an address that is being served |
//! | [`HealthCheck`] | `http-server` | the liveness and readiness checks of an endpoint, as services to mount |
//! | [`Principal`](crate::Principal) | `http-server` | the authenticated caller of a request |
//! | [`ProtectedResource`] | `http-server`, `auth` | the access tokens that an endpoint requires, with metadata for clients |
//! | [`Endpoint`] | `http-client` | a URL to connect a client to |
//! | [`Reconnect`] | `http-client` | a client's retries and stream resumption |
//! | [`Login`] | `auth` | the login of a client to a server that requires access tokens |
//! | [`LoginAttempt`], [`StoredLogin`] | `auth` | a login that a web back end has started, and a stored login |
//! | [`TokenStore`] | `auth` | storage of logins: [`MemoryTokenStore`], [`FileTokenStore`], `KeyringTokenStore` (`keyring`) |
//! | [`Authorizer`] | `auth` | authorization of requests with your own tokens |
//! | [`HttpClient`] | `http-client` | your own HTTP client, instead of the default |
//!
//! See [transports](https://modelcontextprotocol.io/specification/2026-07-28/basic/transports).

#[cfg(feature = "http-client")]
mod client;
mod names;
#[cfg(all(feature = "auth", feature = "http-server"))]
mod protection;
#[cfg(feature = "http-server")]
mod server;

#[cfg(feature = "keyring")]
pub use client::KeyringTokenStore;
#[cfg(feature = "auth")]
pub use client::{
    AssertionRequest, Authorizer, FileTokenStore, Login, LoginAttempt, MemoryTokenStore,
    RefusedRequest, RequestToAuthorize, StoredLogin, TokenStore, TokenStoreLock,
};
#[cfg(feature = "http-client")]
pub use client::{DefaultClient, Endpoint, HttpBody, HttpClient, Reconnect};
#[cfg(feature = "http-client")]
#[doc(hidden)]
pub use client::{EndpointReader, EndpointWriter};
#[cfg(all(feature = "auth", feature = "http-server"))]
pub use protection::{ProtectedResource, ProtectedResourceMetadataService};
#[cfg(feature = "http-server")]
pub use server::{
    Cluster, HealthCheck, LegacySse, ResponseBody, ServerHandle, SseInbox, SseTransport,
    StreamableHttp, StreamableSession,
};
#[cfg(feature = "http-server")]
#[doc(hidden)]
pub use server::{SseReader, SseWriter};
