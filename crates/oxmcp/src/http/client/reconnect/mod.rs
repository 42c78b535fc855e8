//! Reconnection: resumed streams, retries, recovered sessions, and redirects.
//!
//! # Where it is decided
//!
//! Redirects: `redirect.rs`. Retries: `retry.rs`, used by `Exchanges::send`, and by `deliver` (`exchange/post.rs`) for answers.
//! Lost sessions: `session_recovery.rs`, started by `Exchanges::exchange`; after a refusal without a reason once until a success
//! (`Doubts` in `exchange/shared.rs`). Requests that HTTP/2 left unprocessed: `http/client/transport/default_client.rs`. How an
//! error tells it: `is_unserved` in `error/http.rs`. Broken streams: `resumption.rs`.

pub(crate) mod redirect;
pub(crate) mod resumption;
pub(crate) mod retry;
pub(crate) mod session_recovery;
