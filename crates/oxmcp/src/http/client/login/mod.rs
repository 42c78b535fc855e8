//! Authorization of a client's requests: by tokens of the program, and by logins of every kind.
//!
//! # Where it is decided
//!
//! At 401 and 403, `AuthorizedClient` (`authorized_client.rs`) asks `LoginEngine` (`engine.rs`): one login for all requests that
//! wait (`Shared::fly`), refresh, step-up. `Flow::run` (`flow.rs`) knows every grant. Trust in metadata, issuers and responses is
//! decided in oxmcp-auth `client/`; allowed addresses in `http/client/transport/address_guard.rs`.

mod attempt;
mod authorized_client;
mod authorizer;
mod browser;
mod engine;
mod failure;
mod fetch;
mod flow;
mod loopback;
mod settings;
mod stored;
mod token_store;

pub use attempt::LoginAttempt;
pub use authorizer::{Authorizer, RefusedRequest, RequestToAuthorize};
pub use settings::{AssertionRequest, Login};
pub use stored::StoredLogin;
#[cfg(feature = "keyring")]
pub use token_store::KeyringTokenStore;
pub use token_store::{FileTokenStore, MemoryTokenStore, TokenStore, TokenStoreLock};

pub(crate) use authorized_client::AuthorizedClient;
pub(crate) use authorizer::DynAuthorizer;
pub(crate) use engine::LoginEngine;
