//! Framings: messages cut out of streams of bytes, as pure functions within a bound.
//!
//! | | |
//! |---|---|
//! | [`lines`] | a message per line, as over stdio |
//! | [`sse`] | [server-sent events](https://html.spec.whatwg.org/multipage/server-sent-events.html), as over HTTP |

pub mod lines;
pub mod sse;
#[cfg(test)]
mod sse_tests;
