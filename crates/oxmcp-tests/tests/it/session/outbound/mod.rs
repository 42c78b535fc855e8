//! Calls that a session makes of its peer.

mod malformed_answers;
mod timeouts;
