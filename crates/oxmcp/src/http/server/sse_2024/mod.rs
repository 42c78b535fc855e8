//! The transport of 2024-11-05: messages come by POST, and all that is answered goes into one stream of events, which the
//! client got by GET.
//!
//! [`SseTransport`] is one session of it, for those who route requests themselves; [`LegacySse`] is a service for any number.

mod query;
mod responses;
mod service;
mod sessions;
mod transport;

pub(super) use query::is_message;
pub(super) use service::Choose;
pub use service::LegacySse;
pub(super) use sessions::Sessions as SseSessions;
pub use transport::{SseInbox, SseReader, SseTransport, SseWriter};
