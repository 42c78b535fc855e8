//! Authorization of the Model Context Protocol without I/O: each step takes what was received, and returns the next HTTP
//! request or the decision. The crate has no runtime and no clock.

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
