//! Protects an endpoint by tokens: access tokens of authorization servers, or its own tokens.
//!
//! The decisions are made in `oxmcp-auth`; this module does the I/O and the waiting.
//!
//! # Where it is decided
//!
//! After `Host` and `Origin`, `Protection::admit` (`protection.rs`) checks the token: the endpoint's own tokens in
//! `token_authentication.rs`, access tokens in `guard.rs`, by `TokenVerifier` and `ResourceServer` of oxmcp-auth. When the message
//! has been read, `needed_scopes` (`server/dispatch/scopes.rs`) finds the scopes. Both start in `http/server/validation/token.rs`.
//! A batch in which one message lacks a scope is rejected as a whole with 403. Streams end with their token: `deadline.rs`.

mod deadline;
mod fetch;
mod guard;
mod metadata;
mod protected_resource;
#[expect(
    clippy::module_inception,
    reason = "it is the protection itself, and the other modules are its parts"
)]
mod protection;
mod token_authentication;

pub(crate) use deadline::StreamDeadline;
pub use metadata::ProtectedResourceMetadataService;
pub use protected_resource::ProtectedResource;
pub(crate) use protection::Protection;
pub(crate) use token_authentication::{TokenAuthentication, check_scopes};
