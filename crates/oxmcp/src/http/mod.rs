//! MCP over HTTP: the endpoint that serves every revision under one URL, and the client transport for such URLs.
//!
//! | | feature | |
//! |---|---|---|
//! | [`StreamableHttp`] | `http-server` | a server behind a URL: a tower service, or `serve(addr)` |
//! | [`StreamableSession`] | `http-server` | one session of Streamable HTTP, for programs that route requests themselves |
//! | [`LegacySse`] | `http-server` | a server behind a URL for clients that support only the transport of 2024-11-05 |
//! | [`SseTransport`] | `http-server` | one session of that transport, for programs that route requests themselves |
//! | [`Cluster`] | `http-server` | the state that the nodes of a server share: sessions, events, tasks, a bus and keys |
//! | [`ServerHandle`] | `http-server` | an address that is served |
//! | [`HealthCheck`] | `http-server` | the liveness and readiness checks of an endpoint, as services to mount |
//! | [`Principal`] | `http-server` | the authenticated caller of a request |
//! | [`ProtectedResource`] | `http-server`, `auth` | the access tokens that an endpoint demands, with metadata for clients |
//! | [`Endpoint`] | `http-client` | a URL to connect a client to |
//! | [`Reconnect`] | `http-client` | the retries of a client, and the resumption of its streams |
//! | [`Login`] | `auth` | the login of a client to a server that demands access tokens |
//! | [`LoginAttempt`], [`StoredLogin`] | `auth` | a login that a web back end has begun, and a stored login |
//! | [`TokenStore`] | `auth` | storage of logins: [`MemoryTokenStore`], [`FileTokenStore`], `KeyringTokenStore` (`keyring`) |
//! | [`Authorizer`] | `auth` | authorization of requests with tokens of your own |
//! | [`HttpClient`] | `http-client` | an HTTP client of your own, in place of the default one |
//!
//! See [transports](https://modelcontextprotocol.io/specification/2026-07-28/basic/transports).

// The modules of this directory:
//
// | `protection` | access tokens that an endpoint demands |
// | `server` | the endpoint, its sessions, and addresses that are served |
// | `client` | the exchanges with an endpoint, and the HTTP client |
// | `cluster` | the state that the nodes of a server share |
// | `names` | names of the headers that client and server look up |

#[cfg(feature = "http-client")]
mod client;
#[cfg(feature = "http-server")]
mod cluster;
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
pub use client::{
    DefaultClient, Endpoint, EndpointReader, EndpointWriter, HttpBody, HttpClient, Reconnect,
};
#[cfg(feature = "http-server")]
pub use cluster::Cluster;
#[cfg(all(feature = "auth", feature = "http-server"))]
pub use protection::{ProtectedResource, ProtectedResourceMetadataService};
#[cfg(feature = "http-server")]
pub use server::{
    HealthCheck, LegacySse, ResponseBody, ServerHandle, SseInbox, SseReader, SseTransport,
    SseWriter, StreamableHttp, StreamableSession,
};

#[cfg(feature = "http-server")]
pub use crate::transport::principal::Principal;
