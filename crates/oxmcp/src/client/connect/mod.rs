//! Opening a session: discovery of what a server speaks, negotiation, and fallback.
//!
//! | | |
//! |-|-|
//! | `negotiate.rs` | the choice of the first request, the fallbacks, and the session that is handed out |
//! | `handshake.rs` | `server/discover` and `initialize` on one connection |
//! | `reconnect.rs` | another session with the same server, set up as the one that has ended |
//! | `patience.rs` | how long a server is waited for |
//! | `known_servers.rs` | the eras of servers, kept for the next connection |

pub(super) mod handshake;
pub(super) mod known_servers;
pub(super) mod negotiate;
mod patience;
mod reconnect;
