//! Blocking reads and writes on threads, for files, terminals, and all else that is not a pipe or a socket.

use std::{
    io::{self, Read, Write},
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
    thread,
};

use bytes::{Buf, Bytes};
use tokio::{
    io::{AsyncRead, ReadBuf},
    sync::mpsc,
    task,
};

use crate::{
    error::{Error, Result},
    sync::Mutex,
    transport::{io::stream_error, traits::Messages},
};

/// How much the thread reads at once.
const CHUNK: usize = 64 << 10;

/// Reads in a thread of its own.
///
/// It is no thread of the runtime: those are waited for when the runtime ends, and this one may wait for a key on a
/// terminal for ever.
pub(super) struct Reader {
    chunks: mpsc::Receiver<io::Result<Bytes>>,
    current: Bytes,
}

impl Reader {
    pub(super) fn start(input: impl Read + Send + 'static) -> Result<Self> {
        let (sender, chunks) = mpsc::channel(1);
        thread::Builder::new()
            .name("oxmcp-stdin".into())
            .spawn(move || read_all(input, &sender))?;
        Ok(Self {
            chunks,
            current: Bytes::new(),
        })
    }
}

/// Reads until the end, an error, or the receiver is dropped.
fn read_all(mut input: impl Read, sender: &mpsc::Sender<io::Result<Bytes>>) {
    let mut buffer = vec![0; CHUNK];
    loop {
        let chunk = match input.read(&mut buffer) {
            Ok(0) => return,
            Ok(count) => Ok(Bytes::copy_from_slice(
                buffer.get(..count).unwrap_or_default(),
            )),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => Err(error),
        };
        let failed = chunk.is_err();
        if sender.blocking_send(chunk).is_err() || failed {
            return;
        }
    }
}

impl AsyncRead for Reader {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.current.is_empty() {
            match ready!(self.chunks.poll_recv(cx)) {
                Some(chunk) => self.current = chunk?,
                None => return Poll::Ready(Ok(())),
            }
        }
        let count = self.current.len().min(buffer.remaining());
        buffer.put_slice(self.current.get(..count).unwrap_or_default());
        self.current.advance(count);
        Poll::Ready(Ok(()))
    }
}

/// Writes on the runtime's threads for blocking work, which are waited for: nothing that was written is lost.
pub(super) struct Writer(Option<Arc<Mutex<dyn Write + Send>>>);

impl Writer {
    pub(super) fn new(output: impl Write + Send + 'static) -> Self {
        Self(Some(Arc::new(Mutex::new(output))))
    }

    pub(super) async fn write(&self, messages: Messages<'_>) -> Result<()> {
        let Some(output) = self.0.clone() else {
            return Err(Error::closed("the connection was closed on this side"));
        };
        let lines = messages.as_lines().to_vec();
        let written = task::spawn_blocking(move || {
            let mut output = output.lock();
            output.write_all(&lines)?;
            output.flush()
        });
        match written.await {
            Ok(result) => result.map_err(stream_error),
            Err(_) => Err(Error::closed("the runtime is shutting down")),
        }
    }

    /// Drops the stream; every write has flushed it.
    pub(super) fn close(&mut self) -> Result<()> {
        self.0 = None;
        Ok(())
    }
}
