use std::sync::atomic::{AtomicBool, Ordering};

use super::{StdioReader, StdioWriter, halves};
use crate::{Error, Limits, Result, transport::Transport};

static CONNECTED: AtomicBool = AtomicBool::new(false);

/// The standard input and output of this process, for a server that a client starts: the
/// [stdio transport](https://modelcontextprotocol.io/specification/2026-07-28/basic/transports/stdio).
///
/// # Nothing else can write to the client
/// On Unix, connecting moves the two streams to private descriptors. From then on `println!`, a C library or a child
/// process that writes to standard output writes to standard error instead, where it does no harm; and standard input
/// is empty for all but the session, so that no child process eats the client's messages. Child processes do not inherit
/// the private descriptors. On other systems this is not possible: there, nothing in the server may use standard output.
///
/// # How it reads and writes
/// On Linux, pipes are opened anew and used without blocking, so that no other process that holds the same pipe notices;
/// sockets (Node.js gives them to the servers that it starts) are switched to non-blocking as they are. Files, terminals and
/// everything on other systems get a thread that blocks.
///
/// A process has these streams once, so they connect once.
///
/// ```
/// use oxmcp::{Limits, stdio, transport::Transport};
///
/// # async fn example() -> oxmcp::Result<()> {
/// let (read, write) = stdio().connect(&Limits::default()).await?;
/// # Ok(())
/// # }
/// ```
#[must_use]
pub fn stdio() -> Stdio {
    Stdio(())
}

/// The transport over standard input and output; made by [`stdio()`].
#[derive(Debug)]
pub struct Stdio(());

impl Transport for Stdio {
    type Read = StdioReader;
    type Write = StdioWriter;

    async fn connect(&mut self, limits: &Limits) -> Result<(StdioReader, StdioWriter)> {
        if CONNECTED.swap(true, Ordering::AcqRel) {
            return Err(Error::misuse(
                "stdio() is connected already: a process has one standard input and output, hence one session on them",
            ));
        }
        halves::open(limits.max_message_bytes)
    }

    fn name(&self) -> String {
        "the client on stdio".into()
    }
}
