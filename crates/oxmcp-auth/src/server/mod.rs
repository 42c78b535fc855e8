//! The resource server: accepts a request, or refuses it with a response that tells the client what to do.
//!
//! [`Credentials`] finds the access token of a request, a [`TokenVerifier`] verifies it, and a [`ResourceServer`] checks its
//! scopes and makes the challenges for refused requests.

mod credentials;
mod introspection;
mod key_cache;
mod locks;
mod refusal;
mod resource_server;
mod scopes;
mod token_cache;
mod token_verifier;
mod trusted_issuer;
mod verified_token;

pub use credentials::Credentials;
pub use introspection::Introspection;
pub use refusal::Refusal;
pub use resource_server::{Presented, ResourceServer};
pub use scopes::ScopeHierarchy;
pub use token_verifier::{Fetch, TokenVerifier, Verification};
pub use trusted_issuer::TrustedIssuer;
pub use verified_token::VerifiedToken;
