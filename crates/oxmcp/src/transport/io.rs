//! Newline-delimited JSON over any pair of byte streams, and the errors of such streams.

use std::{
    fmt,
    io::{self, ErrorKind},
    ops::Range,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use oxmcp_protocol::framing::lines::{Lines, NextLine};
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    time,
};

use crate::{
    debug::opaque_debug,
    error::{Error, Result},
    limits::Limits,
    transport::traits::{Frame, Messages, ReadHalf, Transport, WriteHalf},
};

/// The longest time that a stream may take to close; a TLS connection, for example, waits for its peer.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(2);

/// Messages over any pair of byte streams: one JSON value per line, as in the
/// [stdio transport](https://modelcontextprotocol.io/specification/2026-07-28/basic/transports/stdio).
///
/// This is the transport for anything with a reader and a writer: Unix sockets, TCP, serial lines, the pipes of a process in a
/// container. Pass unbuffered streams: this buffers reads and writes. It connects once.
///
/// ```
/// # async fn example() -> oxmcp::Result<()> {
/// let (read, write) = tokio::net::TcpStream::connect("127.0.0.1:4000").await?.into_split();
/// let transport = oxmcp::transport::io(read, write);
/// # Ok(())
/// # }
/// ```
pub fn io<R, W>(read: R, write: W) -> Io<R, W>
where
    R: AsyncRead + Send + Unpin + 'static,
    W: AsyncWrite + Send + Unpin + 'static,
{
    Io(Some((read, write)))
}

/// Messages over a single stream that is both reader and writer, as with [`io()`].
///
/// If the stream has its own split (`into_split` of tokio's sockets), [`io()`] with its halves saves a lock.
///
/// ```
/// let (ours, theirs) = tokio::io::duplex(1024);
/// let transport = oxmcp::transport::stream(ours);
/// ```
pub fn stream<S>(stream: S) -> Io<tokio::io::ReadHalf<S>, tokio::io::WriteHalf<S>>
where
    S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    let (read, write) = tokio::io::split(stream);
    io(read, write)
}

/// A transport over a pair of byte streams; created by [`io()`] and [`stream`].
pub struct Io<R, W>(Option<(R, W)>);

impl<R, W> Transport for Io<R, W>
where
    R: AsyncRead + Send + Unpin + 'static,
    W: AsyncWrite + Send + Unpin + 'static,
{
    type Read = LineReader<R>;
    type Write = LineWriter<W>;

    async fn connect(&mut self, limits: &Limits) -> Result<(Self::Read, Self::Write)> {
        let (read, write) = self.0.take().ok_or_else(|| {
            Error::misuse("the streams are already in use; create a new transport from new streams")
        })?;
        let reader = LineReader::new(read, limits.max_message_bytes);
        Ok((reader, LineWriter::new(write)))
    }
}

impl<R, W> fmt::Debug for Io<R, W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Io")
            .field("connected", &self.0.is_none())
            .finish()
    }
}

/// Reads one message per line from a byte stream. Blank lines are skipped.
pub struct LineReader<R> {
    reader: R,
    lines: Lines,
    ended: bool,
}

impl<R: AsyncRead + Send + Unpin + 'static> LineReader<R> {
    /// Creates a reader of messages of at most `max_message_bytes`.
    pub(crate) fn new(reader: R, max_message_bytes: usize) -> Self {
        Self {
            reader,
            lines: Lines::new(max_message_bytes),
            ended: false,
        }
    }

    /// Waits for the next line, whose bytes [`line`](Self::line) returns. `None` at the end of the stream. Cancel safe.
    pub(crate) async fn find(&mut self) -> io::Result<Option<NextLine>> {
        loop {
            match self.lines.next() {
                Some(found) => return Ok(Some(found)),
                None if self.ended => return Ok(None),
                None => {}
            }
            if self.reader.read_buf(self.lines.read_buffer()).await? == 0 {
                self.ended = true;
                self.lines.finish();
            }
        }
    }

    /// The next line, if it has been read already.
    pub(crate) fn try_find(&mut self) -> Option<NextLine> {
        self.lines.next()
    }

    /// The frame of a line that was found.
    pub(crate) fn frame(&self, found: NextLine) -> Frame<'_> {
        match found {
            NextLine::Line(line) => Frame::Message(self.line(line)),
            NextLine::TooLong => Frame::TooLong {
                beginning: self.beginning(),
            },
        }
    }

    pub(crate) fn line(&self, line: Range<usize>) -> &[u8] {
        self.lines.line(line)
    }

    /// The beginning of the line that was too long.
    fn beginning(&self) -> &[u8] {
        self.lines.beginning()
    }
}

impl<R: AsyncRead + Send + Unpin + 'static> ReadHalf for LineReader<R> {
    async fn read(&mut self) -> Result<Option<Frame<'_>>> {
        let found = self.find().await.map_err(stream_error)?;
        Ok(found.map(|found| self.frame(found)))
    }

    fn try_read(&mut self) -> Option<Frame<'_>> {
        let found = self.try_find()?;
        Some(self.frame(found))
    }

    fn is_drained(&self) -> bool {
        self.lines.is_drained()
    }
}

opaque_debug!([R] LineReader<R>, |it| { ended: it.ended });

/// Writes one message per line to a byte stream.
pub struct LineWriter<W> {
    writer: Option<W>,
    written: Arc<AtomicU64>,
}

impl<W: AsyncWrite + Send + Unpin + 'static> LineWriter<W> {
    pub(crate) fn new(writer: W) -> Self {
        Self {
            writer: Some(writer),
            written: Arc::default(),
        }
    }

    /// The stream, until it is closed.
    #[cfg(all(unix, feature = "client"))]
    pub(crate) fn stream(&self) -> Option<&W> {
        self.writer.as_ref()
    }

    async fn shut_down(mut writer: W) -> Result<()> {
        match time::timeout(CLOSE_TIMEOUT, writer.shutdown()).await {
            Ok(Err(error)) if !is_gone(&error) => Err(stream_error(error)),
            Ok(_) => Ok(()),
            Err(_) => Err(Error::timeout(
                "the connection was aborted: it could not be closed in time",
            )),
        }
    }
}

impl<W: AsyncWrite + Send + Unpin + 'static> WriteHalf for LineWriter<W> {
    async fn write(&mut self, messages: Messages<'_>) -> Result<()> {
        let Some(writer) = &mut self.writer else {
            return Err(Error::closed("the connection was closed on this side"));
        };
        let mut rest = messages.as_lines();
        while !rest.is_empty() {
            let count = writer.write(rest).await.map_err(stream_error)?;
            if count == 0 {
                return Err(stream_error(ErrorKind::WriteZero.into()));
            }
            self.written.fetch_add(count as u64, Ordering::Relaxed);
            rest = rest.get(count..).unwrap_or_default();
        }
        writer.flush().await.map_err(stream_error)
    }

    fn bytes_written(&self) -> Option<Arc<AtomicU64>> {
        Some(Arc::clone(&self.written))
    }

    async fn close(&mut self) -> Result<()> {
        match self.writer.take() {
            // Not every stream notifies its peer on shutdown: a pipe does when it is dropped.
            Some(writer) => Self::shut_down(writer).await,
            None => Ok(()),
        }
    }
}

impl<W> fmt::Debug for LineWriter<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LineWriter")
            .field("open", &self.writer.is_some())
            .finish()
    }
}

/// Converts an error of the stream: to `Error::closed` only if the peer is gone.
pub(crate) fn stream_error(error: io::Error) -> Error {
    if is_gone(&error) {
        return Error::closed(format!("connection lost: {error}")).with_source(error);
    }
    Error::from(error)
}

/// Whether the error only means that the peer is gone.
fn is_gone(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::BrokenPipe
            | ErrorKind::ConnectionReset
            | ErrorKind::ConnectionAborted
            | ErrorKind::NotConnected
            | ErrorKind::UnexpectedEof
    )
}
