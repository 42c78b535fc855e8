//! The client: its sessions, the requests that it makes, and the handlers that serve requests of servers.

mod cache;
#[expect(
    clippy::module_inception,
    reason = "the module is named after its handle"
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
    call::Call, left_out::ListingOmission, listing::Listing, multi_round_trip::CallOutcome,
    operations::IntoPromptArguments,
};
pub use session::ClientSession;
pub use subscriptions::{
    events::{SubscriptionEnd, SubscriptionEvent},
    resource_watch::ResourceWatch,
    subscription::{Listen, Subscription},
};

pub use crate::session::tolerance::ToleratedDeviation;
