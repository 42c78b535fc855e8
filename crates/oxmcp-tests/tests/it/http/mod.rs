//! MCP over HTTP: the endpoint of a server, the client, both together, attacks and load.

#[cfg(feature = "http-server")]
pub(crate) mod attack_table;
#[cfg(all(feature = "http-client", feature = "http-server"))]
mod attacks;
#[cfg(feature = "http-client")]
mod client;
#[cfg(all(feature = "http-client", feature = "http-server"))]
mod end_to_end;
#[cfg(feature = "http-server")]
mod health;
#[cfg(all(feature = "http-client", feature = "http-server"))]
mod load;
#[cfg(any(
    all(feature = "auth", feature = "http-client"),
    feature = "http-server"
))]
pub(crate) mod log_lines;
#[cfg(feature = "http-server")]
mod metrics;
#[cfg(feature = "http-server")]
mod mounts;
#[cfg(feature = "http-server")]
mod probes;
#[cfg(feature = "http-server")]
pub(crate) mod server;
#[cfg(feature = "http-server")]
mod sse_2024;
