//! Reconnection: resumed streams, retries, recovered sessions, and redirects.
//!
//! | | |
//! |---|---|
//! | `retry` | the pauses between attempts |
//! | `resumption` | resumption of streams that broke off, and the stream by GET |
//! | `session_recovery` | another session in place of one that the server has lost |
//! | `redirect` | redirects |

pub(super) mod redirect;
pub(super) mod resumption;
pub(super) mod retry;
pub(super) mod session_recovery;
