//! The rules of ARCHITECTURE.md and CONTRIBUTING.md that a program can check. Each rule has a test of its own check on a small
//! text.

#![expect(clippy::unwrap_used, reason = "these are tests")]

#[cfg(feature = "http-server")]
mod attacks;
mod circles;
mod code;
mod crates;
mod documents;
mod errors;
mod layers;
mod modules;
mod revisions;
mod rooms;
mod source;
mod tokens;

/// Fails with all violations, if there are any.
#[track_caller]
fn none(wrong: &[String]) {
    assert!(wrong.is_empty(), "\n{}\n", wrong.join("\n"));
}
