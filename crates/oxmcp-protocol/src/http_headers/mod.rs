//! HTTP headers that repeat parts of a message, for proxies that route messages without reading them.
//!
//! See [request metadata](https://modelcontextprotocol.io/specification/2026-07-28/basic/transports/streamable-http#request-metadata).

//!
//! | | |
//! |---|---|
//! | `names` | the headers of the protocol |
//! | `value` | header values: plain text, or base64 if plain text would not arrive unchanged |
//! | `annotation` | `x-mcp-header` in the schema of a tool's input |
//! | `params` | [`ParamHeaders`]: the arguments that a client repeats and a server checks |

mod annotation;
pub mod names;
mod params;
#[cfg(test)]
mod tests;
mod value;

pub use params::{Mismatch, ParamHeaders, ReceivedHeader};
pub use value::{HeaderValueError, decode, encode};
