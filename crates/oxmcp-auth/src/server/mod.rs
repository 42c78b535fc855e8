//! The resource server's side: a request is let in, or refused with an answer that says what to do.
//!
//! | | |
//! |---|---|
//! | `resource_server` | [`ResourceServer`]: what a server demands, its metadata, and the answers to refused requests |
//! | `credentials` | [`Credentials`]: the access token that a request bears |
//! | `token_verifier` | [`TokenVerifier`]: whether a token is valid, and what must be fetched to know |
//! | `trusted_issuer` | [`TrustedIssuer`]: an issuer whose tokens are verified by its keys |
//! | `key_cache` | the keys of an issuer, and when they are fetched |
//! | `introspection` | [`Introspection`]: tokens whose issuer is asked |
//! | `token_cache` | tokens that were verified lately |
//! | `locks` | locks without poisoning |
//! | `verified_token` | [`VerifiedToken`]: whom a token stands for, and what it is good for |
//! | `scopes` | [`ScopeHierarchy`]: which scopes imply which |
//! | `refusal` | [`Refusal`]: why a request is not let in |

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
