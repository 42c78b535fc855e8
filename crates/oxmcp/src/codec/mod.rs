//! Framings and URIs, as pure functions of bytes: no I/O, no clock, no runtime.

pub(crate) mod lines;
#[cfg(any(feature = "http-client", feature = "http-server"))]
#[cfg_attr(
    not(test),
    expect(
        dead_code,
        unused_imports,
        reason = "who reads and writes event streams comes next"
    )
)]
pub(crate) mod sse;
pub(crate) mod uri;
pub(crate) mod uri_template;
