//! A transport that logs the messages of another one.

use std::{
    fmt, io,
    sync::{Arc, atomic::AtomicU64},
};

use crate::{
    error::Result,
    limits::Limits,
    sync::Mutex,
    transport::{
        mirror::HeaderMirror,
        traits::{
            CurrentLogin, Frame, Messages, ReadHalf, Startup, Transport, UserWaits, WriteHalf,
        },
    },
};

/// The default number of bytes of a message that are logged: enough for most messages, but not for images.
const MAX_BYTES: usize = 4 << 10;

/// Wraps a transport and logs one line per message: `-> {...}` for messages that this side sends, `<- {...}` for messages that
/// it receives. Messages are logged unchanged, secrets included.
///
/// ```
/// use oxmcp::{in_memory, transport::Logging};
///
/// let (client, server) = in_memory();
/// let client = Logging::new(client, std::io::stderr());
/// let server = Logging::with(server, |line| eprintln!("server {line}"));
/// ```
pub struct Logging<T> {
    transport: T,
    log: Log,
}

type Sink = dyn FnMut(&str) + Send;

#[derive(Clone)]
struct Log {
    sink: Arc<Mutex<Sink>>,
    max_bytes: usize,
}

impl<T: Transport> Logging<T> {
    /// Logs to a writer, which is flushed after each line. Lines that cannot be written are lost, and the session continues.
    pub fn new(transport: T, mut writer: impl io::Write + Send + 'static) -> Self {
        Self::with(transport, move |line| {
            let _ = writer
                .write_all(format!("{line}\n").as_bytes())
                .and_then(|()| writer.flush());
        })
    }

    /// Calls `sink` with each line, without a newline. Both directions wait while it runs.
    pub fn with(transport: T, sink: impl FnMut(&str) + Send + 'static) -> Self {
        Self {
            transport,
            log: Log {
                sink: Arc::new(Mutex::new(sink)),
                max_bytes: MAX_BYTES,
            },
        }
    }

    /// Sets the number of bytes of a message that are logged. For a longer message, its length is logged as well. Default: 4
    /// KiB.
    #[must_use]
    pub fn max_bytes(mut self, max_bytes: usize) -> Self {
        self.log.max_bytes = max_bytes;
        self
    }
}

impl<T: Transport> Transport for Logging<T> {
    type Read = LoggingReader<T::Read>;
    type Write = LoggingWriter<T::Write>;

    async fn connect(&mut self, limits: &Limits) -> Result<(Self::Read, Self::Write)> {
        let (read, write) = self.transport.connect(limits).await?;
        let reader = LoggingReader {
            read,
            log: self.log.clone(),
        };
        let writer = LoggingWriter {
            write,
            log: self.log.clone(),
        };
        Ok((reader, writer))
    }

    fn name(&self) -> String {
        self.transport.name()
    }

    fn identity(&self) -> Option<String> {
        self.transport.identity()
    }

    fn diagnosis(&self) -> Option<String> {
        self.transport.diagnosis()
    }

    fn startup(&self) -> Option<Startup> {
        self.transport.startup()
    }

    fn person_waits(&self) -> Option<UserWaits> {
        self.transport.person_waits()
    }

    fn current_login(&self) -> Option<CurrentLogin> {
        self.transport.current_login()
    }

    fn ended_unread(&self) -> bool {
        self.transport.ended_unread()
    }

    fn authorization(&self) -> Option<String> {
        self.transport.authorization()
    }

    fn ends_process(&self) -> bool {
        self.transport.ends_process()
    }

    fn is_strict(&self) -> bool {
        self.transport.is_strict()
    }

    fn is_legacy(&self) -> bool {
        self.transport.is_legacy()
    }

    fn answers_each(&self) -> bool {
        self.transport.answers_each()
    }

    fn mirror(&self) -> Option<HeaderMirror> {
        self.transport.mirror()
    }
}

/// The read half of a connection, which logs each message that it reads.
pub struct LoggingReader<R> {
    read: R,
    log: Log,
}

/// The write half of a connection, which logs each message that it writes.
pub struct LoggingWriter<W> {
    write: W,
    log: Log,
}

impl<R: ReadHalf> ReadHalf for LoggingReader<R> {
    async fn read(&mut self) -> Result<Option<Frame<'_>>> {
        let frame = self.read.read().await?;
        Ok(frame.inspect(|frame| self.log.frame(frame)))
    }

    fn try_read(&mut self) -> Option<Frame<'_>> {
        let frame = self.read.try_read();
        frame.inspect(|frame| self.log.frame(frame))
    }

    fn is_drained(&self) -> bool {
        self.read.is_drained()
    }
}

impl<W: WriteHalf> WriteHalf for LoggingWriter<W> {
    async fn write(&mut self, messages: Messages<'_>) -> Result<()> {
        for message in messages {
            self.log.message("->", message);
        }
        self.write.write(messages).await
    }

    fn bytes_written(&self) -> Option<Arc<AtomicU64>> {
        self.write.bytes_written()
    }

    async fn close(&mut self) -> Result<()> {
        self.write.close().await
    }

    fn can_reconnect(&self) -> bool {
        self.write.can_reconnect()
    }

    async fn reconnect(&mut self) -> Result<()> {
        self.write.reconnect().await
    }
}

impl Log {
    fn frame(&self, frame: &Frame<'_>) {
        match frame {
            Frame::Message(message) | Frame::MessageFrom { message, .. } => {
                self.message("<-", message);
            }
            Frame::TooLong { .. } => self.line("<- (message skipped: it exceeds the size limit)"),
            Frame::Failed { id, error } => self.line(&format!("<- (request {id} failed: {error})")),
        }
    }

    fn message(&self, direction: &str, message: &[u8]) {
        let shown = message.get(..self.max_bytes).unwrap_or(message);
        // White space in JSON may hold newlines, in messages of transports that are not line-framed.
        let text = String::from_utf8_lossy(shown).replace(['\n', '\r'], " ");
        if shown.len() == message.len() {
            self.line(&format!("{direction} {text}"));
        } else {
            self.line(&format!("{direction} {text}… ({} bytes)", message.len()));
        }
    }

    fn line(&self, line: &str) {
        let mut sink = self.sink.lock();
        sink(line);
    }
}

impl<T: fmt::Debug> fmt::Debug for Logging<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Logging").field(&self.transport).finish()
    }
}

impl<R: fmt::Debug> fmt::Debug for LoggingReader<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("LoggingReader").field(&self.read).finish()
    }
}

impl<W: fmt::Debug> fmt::Debug for LoggingWriter<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("LoggingWriter").field(&self.write).finish()
    }
}
