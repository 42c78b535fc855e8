//! The server's side of stdio: the standard input and output of this process.

mod blocking;
#[cfg(unix)]
mod descriptors;
mod streams;

pub use streams::{Stdio, StdioReader, StdioWriter, stdio};
