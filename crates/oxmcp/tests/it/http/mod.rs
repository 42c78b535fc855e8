//! HTTP, on both sides.

#[cfg(feature = "http-server")]
mod server;
