//! Authorization of a client's requests: by tokens of the program, and by logins of every kind.
//!
//! | | |
//! |---|---|
//! | `authorizer` | the trait that provides the authorization of each request, and handles refusals |
//! | `authorized_client` | an HTTP client that authorizes its requests, and sends refused ones again |
//! | `settings` | the settings of a login |
//! | `engine` | the authorizer of a login: one flight for all requests that wait, refresh, step-up |
//! | `failure` | the meaning of failures, and their error messages |
//! | `flow` | the flow from a refusal to credentials, by every grant |
//! | `fetch` | the sender of a login's requests: guarded, and bounded in time and size |
//! | `loopback` | the listener that a browser is redirected to |
//! | `browser` | the prompts that show the page of a login: by an opener, or by this machine's browser and terminal |
//! | `attempt` | logins of web back ends, begun and finished by two requests |
//! | `stored` | stored logins: lookup, listing, and logout |
//! | `token_store/` | the stores of credentials |

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
