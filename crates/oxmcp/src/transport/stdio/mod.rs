//! The server's side of stdio: the standard input and output of this process.

mod halves;
mod standard;
mod threads;
#[cfg(unix)]
mod unix;

pub use halves::{StdioReader, StdioWriter};
pub use standard::{Stdio, stdio};
