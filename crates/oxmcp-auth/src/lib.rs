//! MCP authorization without I/O: each step receives a message, and returns the next HTTP request or the decision. The crate
//! has no runtime and no clock.
//!
//! - [`client`] gets from a refused request to an access token: discovery, registration, authorization, token requests.
//! - [`server`] protects an MCP server: it verifies access tokens, and makes the responses to refused requests.
//! - [`jose`] has keys, key sets and signed tokens; [`dpop`] has proofs of possession.
//!
//! ```
//! use oxmcp_auth::{Challenge, UnixTime, client::{Conversation, Discovery, DiscoveryOptions}};
//!
//! let challenge = Challenge::bearer().with("resource_metadata", "https://mcp.example/metadata.json");
//! let mut discovery = Discovery::new("https://mcp.example/mcp", Some(&challenge), DiscoveryOptions::default())?;
//! let now = UnixTime::from(std::time::SystemTime::now());
//! // Send this request, and pass the response to `discovery.receive`.
//! assert_eq!(discovery.request(now)?.uri(), "https://mcp.example/metadata.json");
//! # Ok::<(), oxmcp_auth::AuthError>(())
//! ```

#![cfg_attr(docsrs, feature(doc_cfg))]

mod bounded_map;
mod challenge;
pub mod client;
pub mod dpop;
mod error;
mod exchange;
pub mod jose;
mod jwt;
mod metadata;
mod scope;
mod secret;
pub mod server;
mod time;
mod url_rules;

pub use challenge::Challenge;
pub use error::{AuthError, AuthErrorKind};
pub use exchange::{Body, Request, Response};
pub use jwt::Claims;
pub use metadata::{
    authorization_server::AuthorizationServerMetadata,
    document::Tolerated,
    protected_resource::ProtectedResourceMetadata,
    well_known::{authorization_server_metadata_urls, protected_resource_metadata_urls},
};
pub use scope::ScopeSet;
pub use secret::Secret;
pub use time::UnixTime;
pub use url_rules::UrlRules;

/// The items that only the SDK may use: they can change with any release.
#[doc(hidden)]
pub mod internal {
    pub use crate::url_rules::{is_uri, shown_url};
}

/// The code in README.md is tested as documentation.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}
