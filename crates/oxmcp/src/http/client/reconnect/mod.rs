//! Reconnection: resumed streams, retries, recovered sessions, and redirects.
//!
//! # Where it is decided
//!
//! Redirects: `redirect.rs`. Whether a request may be sent again: `Exchanges::exchange` (`is_repeatable`), `Exchanges::send`, and
//! `deliver` for answers, all in `exchange/post.rs`. The pauses and the number of retries: `retry.rs`. Lost sessions:
//! `session_recovery.rs`, started by `Exchanges::exchange`; after a refusal without a reason once until a success (`Doubts` in
//! `exchange/shared.rs`). Requests that HTTP/2 left unprocessed: `http/client/transport/default_client.rs`. How an error tells it:
//! `is_unserved` in `error/http.rs`. Broken streams: `resumption.rs`.

pub(crate) mod redirect;
pub(crate) mod resumption;
pub(crate) mod retry;
pub(crate) mod session_recovery;
