//! Serving an address: the accept loop, a task for each of its connections, and the health checks.
//!
//! | | |
//! |---|---|
//! | `accept` | the accept loop: the limit of connections, and the graceful shutdown |
//! | `connection` | the task of a connection over HTTP/1 or HTTP/2, which enforces its deadlines |
//! | `activity` | the deadlines of a connection, by the state that it is in |
//! | `preface` | detection of the HTTP version of a client, by its first bytes |
//! | `health` | [`HealthCheck`], liveness and readiness |
//! | `serving` | [`ServerHandle`], the public handle |

mod accept;
mod activity;
mod connection;
mod health;
mod preface;
mod serving;
#[cfg(test)]
mod tests;

pub(crate) use accept::{listen, serve};
pub(super) use activity::Activity;
pub use health::HealthCheck;
pub(super) use health::{HealthState, Readiness, Stores};
pub(super) use serving::CLOSE_GRACE;
pub use serving::ServerHandle;
