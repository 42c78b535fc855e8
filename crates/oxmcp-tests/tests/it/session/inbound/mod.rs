//! Requests and notifications from a peer, valid and invalid.

mod backlog;
mod batches;
mod eras;
mod invalid_messages;
mod malformed_text;
