//! The client's side of stdio: a server that is started as a process.
//!
//! | file | |
//! |---|---|
//! | `builder.rs` | [`Command`]: the program, its arguments, its timeouts |
//! | `launcher.rs` | starting the process, and starting it anew |
//! | `halves.rs` | reading and writing messages |
//! | `process.rs` | the process, as both halves share it |
//! | `supervisor.rs`, `process_group.rs` | the end of the process |
//! | `stderr.rs` | the standard error of the process |
//! | `diagnostics.rs`, `spawn_error.rs` | the errors of a process that fails, or cannot be started |

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
