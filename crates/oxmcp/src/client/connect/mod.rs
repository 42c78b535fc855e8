//! The opening of a session: discovery of the server's revisions, negotiation, and fallback.
//!
//! | | |
//! |-|-|
//! | `negotiate.rs` | the choice of the first request, the fallbacks, and the session that is handed out |
//! | `handshake.rs` | `server/discover` and `initialize` on one connection |
//! | `reconnect.rs` | a new session with the same server, set up like the one that has ended |
//! | `patience.rs` | the timeouts of a server that is being connected to |
//! | `known_servers.rs` | the eras of servers, kept for the next connection |

pub(super) mod handshake;
pub(super) mod known_servers;
pub(super) mod negotiate;
mod patience;
mod reconnect;
