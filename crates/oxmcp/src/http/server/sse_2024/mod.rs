//! Transport of 2024-11-05 (HTTP with SSE): messages arrive by POST, and all responses go into one stream of events, which the
//! client has opened with GET.
//!
//! | | |
//! |---|---|
//! | `service` | [`LegacySse`], a service for any number of sessions |
//! | `sessions` | the registry of its sessions, and their quota |
//! | `transport` | [`SseTransport`], one session, for programs that route requests themselves |

mod service;
mod sessions;
mod transport;

pub use service::LegacySse;
pub(super) use service::{Choose, names_session};
pub(super) use sessions::Sessions as SseSessions;
pub use transport::{SseInbox, SseReader, SseTransport, SseWriter};
