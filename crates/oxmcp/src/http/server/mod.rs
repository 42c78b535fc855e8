//! The server's side of HTTP.

mod answer;
mod body;
mod context;
mod detached;
mod ending;
mod endpoint;
mod events;
mod exchange;
mod get;
mod kept;
mod ladder;
mod legacy;
mod open;
mod pipe;
mod places;
mod post;
mod principal;
mod pump;
mod respond;
mod restore;
mod serve;
mod session;
mod sessions;
mod sse_2024;
mod streams;
mod unused;

pub use body::ResponseBody;
pub use endpoint::StreamableHttp;
pub use principal::Principal;
pub use serve::Serving;
pub use sse_2024::{LegacySse, SseInbox, SseReader, SseTransport, SseWriter};
