//! Framings: decoders from byte streams to messages of bounded length, without I/O.
//!
//! | | |
//! |---|---|
//! | [`lines`] | a message per line, as over stdio |
//! | [`sse`] | [server-sent events](https://html.spec.whatwg.org/multipage/server-sent-events.html), as over HTTP |

pub mod lines;
pub mod sse;
#[cfg(test)]
mod sse_tests;
