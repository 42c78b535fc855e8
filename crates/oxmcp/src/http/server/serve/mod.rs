//! Serving an address: the accept loop, a task per connection, stalled clients, and the health checks.

mod accept;
mod activity;
mod connection;
mod health;
mod preface;
mod serving;
#[cfg(test)]
mod tests;
mod watched_body;

pub(crate) use accept::{listen, serve};
pub(crate) use activity::Activity;
pub use health::HealthCheck;
pub(crate) use health::{HealthState, Readiness, Stores};
pub(crate) use serving::CLOSE_GRACE;
pub use serving::ServerHandle;
pub(crate) use watched_body::{EventSource, MAX_FRAME, WatchedBody, next_frame};
