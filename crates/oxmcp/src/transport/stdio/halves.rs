//! The two halves, whatever the streams are.

use std::fmt;

#[cfg(unix)]
use tokio::net::{UnixStream, unix::pipe};

use super::threads;
#[cfg(unix)]
use crate::transport::LineWriter;
use crate::{
    Result,
    transport::{Frame, LineReader, Messages, ReadHalf, WriteHalf},
};

/// Reads messages from standard input.
pub struct StdioReader(Input);

/// Writes messages to standard output.
pub struct StdioWriter(Output);

enum Input {
    #[cfg(unix)]
    Pipe(LineReader<pipe::Receiver>),
    #[cfg(unix)]
    Socket(LineReader<UnixStream>),
    Thread(LineReader<threads::Reader>),
}

enum Output {
    #[cfg(unix)]
    Pipe(LineWriter<pipe::Sender>),
    #[cfg(unix)]
    Socket(LineWriter<UnixStream>),
    Thread(threads::Writer),
}

#[cfg(unix)]
pub(super) fn open(limit: usize) -> Result<(StdioReader, StdioWriter)> {
    use super::unix;

    let (input, output) = unix::take()?;
    let input = match unix::Input::new(input)? {
        unix::Input::Pipe(pipe) => Input::Pipe(LineReader::new(pipe, limit)),
        unix::Input::Socket(socket) => Input::Socket(LineReader::new(socket, limit)),
        unix::Input::File(file) => {
            Input::Thread(LineReader::new(threads::Reader::start(file)?, limit))
        }
    };
    let output = match unix::Output::new(output)? {
        unix::Output::Pipe(pipe) => Output::Pipe(LineWriter::new(pipe)),
        unix::Output::Socket(socket) => Output::Socket(LineWriter::new(socket)),
        unix::Output::File(file) => Output::Thread(threads::Writer::new(file)),
    };
    Ok((StdioReader(input), StdioWriter(output)))
}

#[cfg(not(unix))]
pub(super) fn open(limit: usize) -> Result<(StdioReader, StdioWriter)> {
    let input = LineReader::new(threads::Reader::start(std::io::stdin())?, limit);
    let output = threads::Writer::new(std::io::stdout());
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
