//! Opening a session with a server.

pub(super) mod handshake;
pub(super) mod known_servers;
pub(super) mod negotiate;
pub(super) mod opening;
