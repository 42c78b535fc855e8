//! The client: what it can do for servers, and what it asks of them.

mod answer;
mod backoff;
mod cache;
mod call;
mod complete;
mod extension;
mod features;
mod follow;
mod handle;
mod hooks;
mod listener;
mod listing;
mod logs;
mod manual;
mod methods;
mod negotiate;
mod peer;
mod request;
mod rounds;
mod session;
mod subscription;
mod template;
mod updates;
mod verdicts;
mod watch;

pub use answer::{Accept, AnswerArguments, IntoCreateMessageResult, IntoElicitResult};
pub use cache::{CacheMode, CacheOptions};
pub use call::Call;
pub use handle::Client;
pub use listing::Listing;
pub use manual::CallOutcome;
pub use session::ClientSession;
pub use subscription::{Listen, Subscription, SubscriptionEnd, SubscriptionEvent};
pub use watch::ResourceWatch;
