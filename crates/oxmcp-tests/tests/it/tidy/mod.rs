//! The rules of ARCHITECTURE.md and CONTRIBUTING.md that a program can check. Each rule has a test of its own check on a small
//! text.
//!
//! | file | its rules |
//! |---|---|
//! | `crates` | which crate depends on which, and which of them do no I/O |
//! | `layers` | the modules that each module may import from, and the path of the import |
//! | `circles` | no circle of imports, over `modules` (names of a crate) and `tokens` |
//! | `rooms` | entries of a folder, lengths, headers, `mod.rs` |
//! | `code` | one place for revisions and errors; no `unwrap`, no stray output |
//! | `attacks` | the transports of each test of an attack |
//! | `documents` | documents, examples and links to the specification |
//! | `source` | the files that the rules read |

#![expect(clippy::unwrap_used, reason = "these are tests")]

#[cfg(feature = "http-server")]
mod attacks;
mod circles;
mod code;
mod crates;
mod documents;
mod layers;
mod modules;
mod rooms;
mod source;
mod tokens;

/// Fails with all violations, if there are any.
#[track_caller]
fn none(wrong: &[String]) {
    assert!(wrong.is_empty(), "\n{}\n", wrong.join("\n"));
}
