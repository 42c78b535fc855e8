//! MCP over HTTP: the endpoint that serves every revision under one URL, and the client's way to any such URL.
//!
//! | | feature | |
//! |---|---|---|
//! | [`StreamableHttp`] | `http-server` | a server behind a URL: a tower service, or `serve(addr)` |
//! | [`StreamableSession`] | `http-server` | one session of it, for those who route requests themselves |
//! | [`LegacySse`] | `http-server` | the same for clients that know no transport but that of 2024-11-05 |
//! | [`SseTransport`] | `http-server` | one session of it, for those who route requests themselves |
//! | [`Cluster`] | `http-server` | what the nodes of a server share: sessions, events, tasks, a bus and keys |
//! | [`Serving`] | `http-server` | an address that is served |
//! | [`HealthCheck`] | `http-server` | whether an endpoint lives, and is ready: services to mount |
//! | [`Principal`] | `http-server` | who makes a request, as the middleware in front has found out |
//! | [`ProtectedResource`] | `http-server`, `auth` | the access tokens that an endpoint demands, and what tells clients where to get them |
//! | [`Endpoint`] | `http-client` | a URL to connect a client to |
//! | [`Reconnect`] | `http-client` | its retries, and the resumption of its streams |
//! | [`Login`] | `auth` | how a client logs in to a server that wants it to |
//! | [`LoginAttempt`], [`StoredLogin`] | `auth` | a login that a web back end has begun, and one that is stored |
//! | [`TokenStore`] | `auth` | where the credentials of logins are kept: [`MemoryTokenStore`], [`FileTokenStore`], and with `keyring` `KeyringTokenStore` |
//! | [`Authorizer`] | `auth` | what authorizes requests, for tokens of your own |
//! | [`HttpClient`] | `http-client` | an HTTP client of your own to reach it with |
//!
//! See [transports](https://modelcontextprotocol.io/specification/2026-07-28/basic/transports).

// The files of this room:
//
// | `protection` | access tokens that an endpoint demands |
// | `server` | the endpoint, its sessions, and addresses that are served |
// | `client` | the exchanges with an endpoint, and the HTTP client |
// | `cluster` | what the nodes of a server share, as one |
// | `names` | header names that both sides look up |

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
    HealthCheck, LegacySse, ResponseBody, Serving, SseInbox, SseReader, SseTransport, SseWriter,
    StreamableHttp, StreamableSession,
};

#[cfg(feature = "http-server")]
pub use crate::transport::principal::Principal;
