//! Multi round-trip requests: a server requests input while it serves a request (2026-07-28 and later).
//!
//! See [MRTR](https://modelcontextprotocol.io/specification/2026-07-28/basic/patterns/mrtr).

pub(crate) mod checks;
pub(crate) mod requests;
pub(crate) mod responses;
