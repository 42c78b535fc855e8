//! The steps of a client, from a refused request to the token with which it is sent again.
//!
//! [`Discovery`] finds the authorization server, [`choose_client`] chooses or registers the client, [`Authorization`] asks the
//! user for consent, and a [`TokenRequest`] gets the [`Tokens`]. A step that sends HTTP requests is a [`Conversation`]: it
//! returns a request, receives the response, and finally returns its result.

mod authentication;
mod authorization;
mod choice;
mod conversation;
mod credentials;
mod discovery;
mod identity;
mod oauth_error;
mod refusal;
mod registration;
mod revocation;
mod scope_selection;
mod token_request;
mod tokens;

#[cfg(test)]
mod tests;

pub use authorization::{Authorization, AuthorizationAttempt, AuthorizationCode};
pub use choice::{ClientChoice, ClientOptions, choose_client};
pub use conversation::Conversation;
pub use credentials::{CredentialKey, Credentials};
pub use discovery::{Discovered, Discovery, DiscoveryOptions, ResourceParameter};
pub use identity::Client;
pub use refusal::Refusal;
pub use registration::{ApplicationType, ClientMetadata, Registration};
pub use revocation::Revocation;
pub use scope_selection::{ScopeSelection, StepUps};
pub use token_request::{SubjectToken, TokenExchange, TokenRequest};
pub use tokens::{TokenType, Tokens};
