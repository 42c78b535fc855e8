//! HTTP, on both sides.

#[cfg(feature = "http-client")]
mod client;
#[cfg(feature = "http-server")]
mod server;
