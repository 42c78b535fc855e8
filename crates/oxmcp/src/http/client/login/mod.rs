//! Authorization of a client's requests: tokens of one's own, and logins of every kind.
//!
//! | | |
//! |---|---|
//! | `authorizer` | the trait that gives each request its headers, and hears of refusals |
//! | `authorized_client` | an HTTP client that asks it, and sends again what was refused |
//! | `settings` | a login, as users configure it |
//! | `engine` | the authorizer of a login: one flight for all that wait, refresh, step-up |
//! | `failure` | what failures mean, and words for them |
//! | `flow` | from a refusal to credentials, by every grant |
//! | `fetch` | what is sent on the way: guarded, and bounded in time and size |
//! | `loopback` | the listener that a browser is redirected to |
//! | `browser` | how a person gets to see the page of a login: by an opener, or by this machine's browser and terminal |
//! | `attempt` | logins of web back ends, begun and finished by two requests |
//! | `stored` | what a store has: found, listed, and given back |
//! | `token_store/` | where credentials are kept |

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

pub(super) use authorized_client::AuthorizedClient;
pub(super) use authorizer::DynAuthorizer;
pub(super) use engine::LoginEngine;
