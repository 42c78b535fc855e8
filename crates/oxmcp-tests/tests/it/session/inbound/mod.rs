//! Requests and notifications from a peer, valid and invalid.

mod backlog;
mod batches;
#[cfg(unix)]
mod blocking_handlers;
mod eras;
mod invalid_messages;
mod malformed_text;
mod odd_messages;
