//! The resource server: it accepts a request, or refuses it with a response that tells the client what to do.
//!
//! | | |
//! |---|---|
//! | `resource_server` | [`ResourceServer`]: the requirements of a server, its metadata, and the responses to refused requests |
//! | `credentials` | [`Credentials`]: the access token of a request |
//! | `token_verifier` | [`TokenVerifier`]: the verification of tokens, and the requests that it needs |
//! | `trusted_issuer` | [`TrustedIssuer`]: an issuer whose tokens are verified by its keys |
//! | `key_cache` | the cached keys of an issuer, and their fetches |
//! | `introspection` | [`Introspection`]: an issuer that is asked whether its tokens are valid |
//! | `token_cache` | tokens that were verified recently |
//! | `locks` | locks without poisoning |
//! | `verified_token` | [`VerifiedToken`]: the user, client and scopes of a valid token |
//! | `scopes` | [`ScopeHierarchy`]: scopes that imply others |
//! | `refusal` | [`Refusal`]: the reason why a request is refused |

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
