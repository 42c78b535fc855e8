//! Framings and URIs, as pure functions of bytes: no I/O, no clock, no runtime.

pub(crate) mod lines;
#[cfg(any(feature = "http-client", feature = "http-server"))]
pub(crate) mod sse;
pub(crate) mod uri;
pub(crate) mod uri_template;
