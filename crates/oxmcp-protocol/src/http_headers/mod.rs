//! HTTP headers that mirror parts of a message, for proxies that route messages without reading them.
//!
//! See [request metadata](https://modelcontextprotocol.io/specification/2026-07-28/basic/transports/streamable-http#request-metadata).

mod annotation;
pub mod names;
mod params;
#[cfg(test)]
mod tests;
mod value;

pub use params::{Mismatch, ParamHeaders, ReceivedHeader};
pub use value::{HeaderValueError, decode, encode};
