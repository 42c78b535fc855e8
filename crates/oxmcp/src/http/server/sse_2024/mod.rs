//! The 2024-11-05 transport (HTTP with SSE): messages arrive by POST, and all responses go into one event stream, which the client
//! opens with GET.

mod service;
mod sessions;
mod transport;

pub use service::LegacySse;
pub(crate) use service::names_session;
pub(crate) use sessions::Sessions as SseSessions;
pub use transport::{SseInbox, SseReader, SseTransport, SseWriter};
