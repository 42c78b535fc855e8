//! Tests of the crate as its users see it, without the SDK, in one binary.

#![expect(
    clippy::unwrap_used,
    reason = "helpers of tests fail like tests; clippy excuses only functions with #[test]"
)]

mod explicit;
mod hosts;
mod inference;
mod messages;
mod options;
