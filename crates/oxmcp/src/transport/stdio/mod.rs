//! The server's side of stdio: the standard input and output of this process.
//!
//! | file | |
//! |---|---|
//! | `streams.rs` | the transport and its two halves |
//! | `descriptors.rs` | on Unix, the streams move to private descriptors |
//! | `blocking.rs` | threads for streams that block |

mod blocking;
#[cfg(unix)]
mod descriptors;
mod streams;

pub use streams::{Stdio, StdioReader, StdioWriter, stdio};
