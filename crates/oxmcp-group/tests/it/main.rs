//! Tests of groups with servers in the same process, and of configuration files.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "helpers of tests fail like tests; clippy excuses only functions with #[test]"
)]

#[cfg(feature = "gateway")]
mod clients;
// Most formats have servers at a URL.
#[cfg(feature = "http-client")]
mod config;
#[cfg(feature = "gateway")]
mod extensions;
mod failures;
#[cfg(feature = "gateway")]
mod gateway;
#[cfg(feature = "gateway")]
mod gateway_support;
#[cfg(feature = "gateway")]
mod hostile;
mod lists;
#[cfg(all(feature = "gateway", unix))]
mod processes;
mod questions;
mod resources;
#[cfg(feature = "gateway")]
mod rounds;
mod support;
#[cfg(feature = "gateway")]
mod tasks;
