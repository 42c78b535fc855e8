//! The headers of HTTP that repeat what a message says, for whoever routes messages without reading them.
//!
//! See [request metadata](https://modelcontextprotocol.io/specification/2026-07-28/basic/transports/streamable-http#request-metadata).

mod annotation;
mod client;
#[cfg(any(feature = "http-server", test))]
mod decode;
mod encode;
pub(crate) mod names;
mod params;
mod scalar;
#[cfg(any(feature = "http-server", test))]
mod server;
#[cfg(test)]
mod tests;

#[cfg(any(feature = "http-server", test))]
pub(crate) use decode::decode;
pub(crate) use encode::encode;
pub(crate) use params::{Mismatch, ParamHeaders};
#[cfg(any(feature = "http-server", test))]
pub(crate) use server::Given;
