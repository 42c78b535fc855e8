//! Multi round-trip requests: a server requests input while it serves a request (2026-07-28 and later).
//!
//! See [MRTR](https://modelcontextprotocol.io/specification/2026-07-28/basic/patterns/mrtr).
//!
//! | | |
//! |---|---|
//! | `requests` | the input requests, and the result that carries them |
//! | `responses` | the responses to input requests |
//! | `checks` | checks of input requests against a client's capabilities, and of answers against their input requests |

pub(crate) mod checks;
pub(crate) mod requests;
pub(crate) mod responses;
