//! The client's side of stdio: a server that is started as a process.
//!
//! | file | |
//! |---|---|
//! | `builder.rs` | [`Command`]: the program, its arguments, how long its end may take |
//! | `launcher.rs` | starting it, and starting it anew |
//! | `halves.rs` | reading and writing messages |
//! | `process.rs` | the process, as both halves share it |
//! | `supervisor.rs`, `process_group.rs` | its end |
//! | `stderr.rs` | its log |
//! | `diagnostics.rs`, `spawn_error.rs` | the errors when it fails, or cannot be started |

mod builder;
mod diagnostics;
mod halves;
mod launcher;
mod process;
mod process_group;
mod spawn_error;
mod stderr;
mod supervisor;

pub use builder::Command;
pub use halves::{CommandReader, CommandWriter};
pub use stderr::Stderr;
