//! The transport over the standard input and output of this process, and its two halves.

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
};

#[cfg(unix)]
use tokio::net::{UnixStream, unix::pipe};

#[cfg(unix)]
use crate::transport::{io::LineWriter, stdio::descriptors};
use crate::{
    error::{Error, Result},
    limits::Limits,
    transport::{
        io::LineReader,
        stdio::blocking,
        traits::{Frame, Messages, ReadHalf, Transport, WriteHalf},
    },
};

static CONNECTED: AtomicBool = AtomicBool::new(false);

/// Returns the transport over this process's standard input and output, for a server that a client starts: the [stdio
/// transport](https://modelcontextprotocol.io/specification/2026-07-28/basic/transports/stdio).
///
/// # Nothing else can write to the client
/// On Unix, connecting moves the two streams to private descriptors. From then on, output of `println!`, a C library or a child
/// process to standard output goes to standard error instead, where it does no harm. Standard input is empty for everything
/// except the session, so that no child process consumes the client's messages. Child processes do not inherit the private
/// descriptors. On other systems this is impossible: there, nothing else in the server may use standard output.
///
/// # How it reads and writes
/// On Linux, pipes are reopened and used without blocking, so that other processes with the same pipe are not affected. Sockets
/// (which Node.js passes to the servers that it starts) are switched to non-blocking mode. Files, terminals, and everything on
/// other systems get a thread that blocks.
///
/// A process has only one standard input and output, so this transport connects once.
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

/// The transport over standard input and output; created by [`stdio()`].
#[derive(Debug)]
pub struct Stdio(());

impl Transport for Stdio {
    type Read = StdioReader;
    type Write = StdioWriter;

    async fn connect(&mut self, limits: &Limits) -> Result<(StdioReader, StdioWriter)> {
        if CONNECTED.swap(true, Ordering::AcqRel) {
            return Err(Error::misuse(
                "stdio() is already in use: a process has only one standard input and output",
            ));
        }
        open(limits.max_message_bytes)
    }

    fn name(&self) -> String {
        "the client on stdio".into()
    }

    fn ends_process(&self) -> bool {
        true
    }
}

/// Reads messages from standard input.
pub struct StdioReader(Input);

/// Writes messages to standard output.
pub struct StdioWriter(Output);

enum Input {
    #[cfg(unix)]
    Pipe(LineReader<pipe::Receiver>),
    #[cfg(unix)]
    Socket(LineReader<UnixStream>),
    Thread(LineReader<blocking::Reader>),
}

enum Output {
    #[cfg(unix)]
    Pipe(LineWriter<pipe::Sender>),
    #[cfg(unix)]
    Socket(LineWriter<UnixStream>),
    Thread(blocking::Writer),
}

#[cfg(unix)]
fn open(limit: usize) -> Result<(StdioReader, StdioWriter)> {
    let (input, output) = descriptors::take()?;
    let input = match descriptors::Input::new(input)? {
        descriptors::Input::Pipe(pipe) => Input::Pipe(LineReader::new(pipe, limit)),
        descriptors::Input::Socket(socket) => Input::Socket(LineReader::new(socket, limit)),
        descriptors::Input::File(file) => {
            Input::Thread(LineReader::new(blocking::Reader::start(file)?, limit))
        }
    };
    let output = match descriptors::Output::new(output)? {
        descriptors::Output::Pipe(pipe) => Output::Pipe(LineWriter::new(pipe)),
        descriptors::Output::Socket(socket) => Output::Socket(LineWriter::new(socket)),
        descriptors::Output::File(file) => Output::Thread(blocking::Writer::new(file)),
    };
    Ok((StdioReader(input), StdioWriter(output)))
}

#[cfg(not(unix))]
fn open(limit: usize) -> Result<(StdioReader, StdioWriter)> {
    let input = LineReader::new(blocking::Reader::start(std::io::stdin())?, limit);
    let output = blocking::Writer::new(std::io::stdout());
    Ok((
        StdioReader(Input::Thread(input)),
        StdioWriter(Output::Thread(output)),
    ))
}

impl ReadHalf for StdioReader {
    async fn read(&mut self) -> Result<Option<Frame<'_>>> {
        match &mut self.0 {
            #[cfg(unix)]
            Input::Pipe(pipe) => pipe.read().await,
            #[cfg(unix)]
            Input::Socket(socket) => socket.read().await,
            Input::Thread(thread) => thread.read().await,
        }
    }

    fn try_read(&mut self) -> Option<Frame<'_>> {
        match &mut self.0 {
            #[cfg(unix)]
            Input::Pipe(pipe) => pipe.try_read(),
            #[cfg(unix)]
            Input::Socket(socket) => socket.try_read(),
            Input::Thread(thread) => thread.try_read(),
        }
    }

    fn is_drained(&self) -> bool {
        match &self.0 {
            #[cfg(unix)]
            Input::Pipe(pipe) => pipe.is_drained(),
            #[cfg(unix)]
            Input::Socket(socket) => socket.is_drained(),
            // The thread may have read more already.
            Input::Thread(_) => false,
        }
    }
}

impl WriteHalf for StdioWriter {
    async fn write(&mut self, messages: Messages<'_>) -> Result<()> {
        match &mut self.0 {
            #[cfg(unix)]
            Output::Pipe(pipe) => pipe.write(messages).await,
            #[cfg(unix)]
            Output::Socket(socket) => socket.write(messages).await,
            Output::Thread(thread) => thread.write(messages).await,
        }
    }

    fn bytes_written(&self) -> Option<Arc<AtomicU64>> {
        match &self.0 {
            #[cfg(unix)]
            Output::Pipe(pipe) => pipe.bytes_written(),
            #[cfg(unix)]
            Output::Socket(socket) => socket.bytes_written(),
            Output::Thread(thread) => Some(thread.bytes_written()),
        }
    }

    async fn close(&mut self) -> Result<()> {
        match &mut self.0 {
            #[cfg(unix)]
            Output::Pipe(pipe) => pipe.close().await,
            #[cfg(unix)]
            Output::Socket(socket) => socket.close().await,
            Output::Thread(thread) => thread.close(),
        }
    }
}

impl fmt::Debug for StdioReader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("StdioReader").field(&self.0.kind()).finish()
    }
}

impl fmt::Debug for StdioWriter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("StdioWriter").field(&self.0.kind()).finish()
    }
}

impl Input {
    fn kind(&self) -> &'static str {
        match self {
            #[cfg(unix)]
            Self::Pipe(_) => "pipe",
            #[cfg(unix)]
            Self::Socket(_) => "socket",
            Self::Thread(_) => "thread",
        }
    }
}

impl Output {
    fn kind(&self) -> &'static str {
        match self {
            #[cfg(unix)]
            Self::Pipe(_) => "pipe",
            #[cfg(unix)]
            Self::Socket(_) => "socket",
            Self::Thread(_) => "thread",
        }
    }
}
