//! The client: what it can do for servers, and what it asks of them.

mod call;
mod features;
mod handle;
mod listener;
mod listing;
mod negotiate;
mod peer;
mod session;
mod subscription;
mod verdicts;

pub use call::Call;
pub use handle::Client;
pub use listing::Listing;
pub use session::ClientSession;
pub use subscription::{Subscription, SubscriptionEnd, SubscriptionEvent};
