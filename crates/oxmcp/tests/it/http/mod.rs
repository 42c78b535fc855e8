//! HTTP, on both sides.

#[cfg(all(feature = "http-client", feature = "http-server"))]
mod attacks;
#[cfg(all(feature = "http-client", feature = "http-server"))]
mod both;
#[cfg(feature = "http-client")]
mod client;
#[cfg(all(feature = "http-client", feature = "http-server"))]
mod load;
#[cfg(feature = "http-server")]
mod server;
