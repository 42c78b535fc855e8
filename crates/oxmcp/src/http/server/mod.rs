//! The server side of HTTP.
//!
//! | | |
//! |---|---|
//! | `endpoint` | [`StreamableHttp`]: its settings and its state |
//! | `routing` | the routing of a request to its session, or to its stateless answer |
//! | `validation/` | the checks that a request must pass |
//! | `stateless` | the answers to modern requests, and to legacy ones without sessions |
//! | `sessions/` | sessions that `initialize` opens, and their streams |
//! | `sse_2024/` | the transport of 2024-11-05 |
//! | `streamable_session` | [`StreamableSession`], for programs that route requests themselves |
//! | `serve/` | the accept loop and its connections |
//! | `cors` | the headers that let pages of listed origins read responses |
//! | `finish` | the last step of each response |
//! | `caller` | the caller of a request, and the HTTP request that handlers can read |
//! | `response` | [`ResponseBody`], and functions that make each kind of response |
//! | `watched_body` | bodies that are dropped if the client reads nothing for too long |
//! | `event_encoding` | the encoding of messages as events |

mod caller;
mod cors;
mod endpoint;
mod event_encoding;
mod response;
mod response_finisher;
mod routing;
mod serve;
mod sessions;
mod sse_2024;
mod stateless;
mod streamable_session;
#[cfg(test)]
mod tests;
mod validation;
mod watched_body;

pub use endpoint::StreamableHttp;
pub use response::ResponseBody;
pub use serve::{HealthCheck, ServerHandle};
pub use sse_2024::{LegacySse, SseInbox, SseReader, SseTransport, SseWriter};
pub use streamable_session::StreamableSession;
