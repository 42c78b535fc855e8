//! Discovery of a server's revision: probe, fallback, and what is remembered.

mod mortal_servers;
pub(crate) mod negotiation;
mod reconnecting;
mod restarts;
mod slow_servers;
mod surfaced_failures;
