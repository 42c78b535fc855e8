//! Multi round-trip requests: a server asks while it answers (2026-07-28 and later).
//!
//! See [MRTR](https://modelcontextprotocol.io/specification/2026-07-28/basic/patterns/mrtr).
//!
//! | | |
//! |---|---|
//! | `requests` | the questions, and the result that carries them |
//! | `responses` | the answers |
//! | `checks` | questions held against a client's capabilities, and answers against their questions |

pub(crate) mod checks;
pub(crate) mod requests;
pub(crate) mod responses;
