//! Recovery of streams, sessions and connections.

mod reconnect_storms;
mod recovered_state;
mod resumption;
mod retries;
mod session_recovery;
