//! Transport of 2024-11-05 (HTTP with SSE): messages come by POST, and all that is answered goes into one stream of events, which
//! the client got by GET.
//!
//! [`SseTransport`] is one session of it, for those who route requests themselves; [`LegacySse`] is a service for any number.

mod service;
mod sessions;
mod transport;

pub use service::LegacySse;
pub(super) use service::{Choose, names_session};
pub(super) use sessions::Sessions as SseSessions;
pub use transport::{SseInbox, SseReader, SseTransport, SseWriter};
