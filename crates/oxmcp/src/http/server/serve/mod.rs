//! Serving of an address: the accept loop, and a task for each of its connections.
//!
//! | | |
//! |---|---|
//! | `accept` | the accept loop: the bound on connections, and the graceful shutdown |
//! | `connection` | the task of a connection over HTTP/1 or HTTP/2, which enforces its deadlines |
//! | `activity` | the deadlines of a connection, by what it waits for |
//! | `preface` | which version of HTTP a client speaks, by its first bytes |
//! | `serving` | [`Serving`], the handle of users |

mod accept;
mod activity;
mod connection;
mod preface;
mod serving;
#[cfg(test)]
mod tests;

pub(crate) use accept::{listen, serve};
pub(super) use activity::Activity;
pub(super) use serving::CLOSE_GRACE;
pub use serving::Serving;
