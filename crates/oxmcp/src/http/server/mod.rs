//! The server's side of HTTP.

mod answer;
mod body;
mod context;
mod detached;
#[path = "sessions/expiry.rs"]
mod ending;
mod endpoint;
#[path = "event_encoding.rs"]
mod events;
#[path = "stateless.rs"]
mod exchange;
#[path = "sessions/get.rs"]
mod get;
#[path = "sessions/persistence.rs"]
mod kept;
#[path = "validation/mod.rs"]
mod ladder;
#[path = "sessions/post.rs"]
mod legacy;
mod open;
#[path = "sessions/channel.rs"]
mod pipe;
#[path = "sessions/quota.rs"]
mod places;
mod post;
mod principal;
#[path = "sessions/event_stream.rs"]
mod pump;
#[path = "routing.rs"]
mod respond;
#[path = "sessions/restore.rs"]
mod restore;
mod serve;
#[path = "sessions/session.rs"]
mod session;
#[path = "sessions/registry.rs"]
mod sessions;
mod sse_2024;
#[path = "sessions/streams.rs"]
mod streams;
#[path = "sessions/eviction.rs"]
mod unused;

pub use body::ResponseBody;
pub use endpoint::StreamableHttp;
pub use principal::Principal;
pub use serve::Serving;
pub use sse_2024::{LegacySse, SseInbox, SseReader, SseTransport, SseWriter};
