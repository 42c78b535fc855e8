//! The server's side of HTTP.
//!
//! | | |
//! |---|---|
//! | `endpoint` | [`StreamableHttp`]: its settings and its state |
//! | `routing` | from a request to its session, or to its stateless answer |
//! | `validation/` | the checks that a request must pass |
//! | `stateless` | the answers to modern requests |
//! | `sessions/` | sessions that `initialize` opens, and their streams |
//! | `sse_2024/` | the transport of 2024-11-05 |
//! | `serve/` | the accept loop and its connections |
//! | `caller` | [`Principal`], and the HTTP request that handlers see |
//! | `response` | [`ResponseBody`], and the forms of responses |
//! | `event_encoding` | messages as events |

mod caller;
mod endpoint;
mod event_encoding;
mod response;
mod routing;
mod serve;
mod sessions;
mod sse_2024;
mod stateless;
mod validation;

pub use caller::Principal;
pub use endpoint::StreamableHttp;
pub use response::ResponseBody;
pub use serve::Serving;
pub use sse_2024::{LegacySse, SseInbox, SseReader, SseTransport, SseWriter};
