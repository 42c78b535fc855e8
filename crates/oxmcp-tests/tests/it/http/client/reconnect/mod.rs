//! Recovery of streams, sessions and connections.

mod recovered_state;
mod resumption;
mod retries;
mod session_recovery;
