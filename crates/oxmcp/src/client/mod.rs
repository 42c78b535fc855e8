//! The client: its sessions, the requests that it makes, and the handlers that serve requests of servers.
//!
//! | | |
//! |-|-|
//! | `client.rs`, `features.rs` | [`Client`], the handle, and the settings and handlers behind it |
//! | `session.rs` | [`ClientSession`], and the state of a session that its handle and its connection share |
//! | `dispatch.rs`, `methods.rs` | a server's requests and notifications on their way to the handlers; one row for each method |
//! | `offers.rs`, `server_facts.rs` | the features that a server offers, by its self-description |
//! | `requested_state.rs` | the state that was requested from a legacy server, and that is lost with the session |
//! | `connect/` | opening a session: discovery, negotiation, fallback, and the eras of known servers |
//! | `requests/` | a method for each request, [`Call`], lists, typed results, rounds of input, mirrored headers |
//! | `handlers/` | the user's handlers: elicitation, sampling, roots, notifications |
//! | `subscriptions/` | [`Subscription`], [`ResourceWatch`], and the task that keeps a session subscribed |
//! | `cache/` | the cache of responses, by the freshness that servers declare |

mod cache;
#[expect(
    clippy::module_inception,
    reason = "the room is named after its handle"
)]
mod client;
mod connect;
mod dispatch;
pub(crate) mod features;
mod handlers;
mod methods;
mod offers;
mod requested_state;
pub(crate) mod requests;
mod server_facts;
pub(crate) mod session;
mod subscriptions;

pub use cache::options::{CacheMode, CacheOptions};
pub use client::Client;
pub use handlers::{
    arguments::AnswerArguments,
    elicitation::{Accept, Answer, IntoElicitResult},
    sampling::IntoCreateMessageResult,
};
pub use offers::FeatureKind;
pub use requests::{
    call::Call, listing::Listing, multi_round_trip::CallOutcome, operations::IntoPromptArguments,
};
pub use session::ClientSession;
pub use subscriptions::{
    events::{SubscriptionEnd, SubscriptionEvent},
    resource_watch::ResourceWatch,
    subscription::{Listen, Subscription},
};
