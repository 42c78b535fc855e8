//! Tests of the Redis stores, with Redis servers that they start.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "helpers of tests fail like tests; clippy excuses only functions with #[test]"
)]

mod bus;
mod changes;
mod connecting;
mod events;
mod forms;
mod losses;
mod moving;
mod nodes;
mod roaming;
mod server;
mod sessions;
mod tasks;
#[cfg(feature = "tls")]
mod tls;
mod values;
