//! The steps of a client, from a request that was refused to a token that is sent with it.
//!
//! A [`Conversation`] is a step that asks others: it gives a request, takes the response, and at last has a result.
//! [`Discovery`] finds the authorization server, [`choose_client`] finds who we are there, [`Authorization`] is what a person
//! has to agree to, and a [`TokenRequest`] of any grant ends in [`Tokens`].
//!
//! | | |
//! |---|---|
//! | `conversation` | requests that lead to one result |
//! | `refusal` | what a response of the MCP server says of a token |
//! | `discovery` | from an MCP server to the metadata of its authorization server |
//! | `identity` | the client at an authorization server |
//! | `choice` | which client to use |
//! | `registration` | metadata of a client; dynamic registration |
//! | `authentication` | how a client proves who it is at a token endpoint |
//! | `authorization` | the authorization request, and the answer to it |
//! | `scope_selection` | which scopes to ask for; bounds on asking for more |
//! | `token_request` | requests of every grant |
//! | `oauth_error` | errors of OAuth endpoints, as sentences without secrets |
//! | `tokens` | tokens as they were given, and as they are sent |
//! | `revocation` | giving a token back |
//! | `credentials` | what is kept of a login: by user, issuer and resource |

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
