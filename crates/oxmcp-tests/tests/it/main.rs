//! The integration tests: the crate as its users see it, in one binary.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "helpers of tests fail like tests; clippy excuses only functions with #[test]"
)]

mod child;
mod client;
mod examples;
mod extension;
#[cfg(any(feature = "http-client", feature = "http-server"))]
mod http;
mod macros;
mod public_api;
mod schemas;
mod server;
mod session;
#[cfg(feature = "http-server")]
mod store;
mod support;
mod tidy;
mod transport;
