//! The opening of a session: discovery of the server's revisions, negotiation, and fallback.
//!
//! # Where it is decided
//!
//! Whether a server is legacy, and which revision is spoken: `Handshake::discover` (`handshake.rs`), by oxmcp-protocol
//! `revision/negotiation.rs` (`is_answer` tells which errors say nothing about the era). The first request, silence and
//! fallbacks: `negotiate.rs`. Over HTTP, an era that was concluded from silence or from a 500 is not remembered, and a refused
//! `initialize` may lead to the transport of 2024-11-05 (`http/client/sse_2024.rs`).

pub(crate) mod handshake;
pub(crate) mod known_servers;
pub(crate) mod negotiate;
mod patience;
mod reconnect;
