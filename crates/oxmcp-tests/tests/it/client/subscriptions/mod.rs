//! Subscriptions of a client: handlers and watchers in every revision, streams of events where the
//! revision has them.

mod listen;
pub(crate) mod resync;
mod watch;
