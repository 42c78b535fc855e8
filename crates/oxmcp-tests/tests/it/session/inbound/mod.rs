//! Requests and notifications that a peer sends, good and bad.

mod backlog;
mod batches;
mod eras;
mod invalid_messages;
mod malformed_text;
