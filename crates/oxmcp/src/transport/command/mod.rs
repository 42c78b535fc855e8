//! The client's side of stdio: a server that is started as a process.

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
