//! The client's side of stdio: a server that is started as a process.

mod builder;
mod evidence;
mod group;
mod halves;
mod launch;
mod process;
mod stderr;
mod supervisor;

pub use builder::Command;
pub use halves::{CommandReader, CommandWriter};
pub use stderr::Stderr;
