//! Subscriptions of a client: handlers and watches in every revision, streams of events in
//! revisions that have them.

mod listen;
pub(crate) mod resync;
mod watch;
