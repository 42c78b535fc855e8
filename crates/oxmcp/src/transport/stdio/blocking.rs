//! Blocking reads and writes on threads, for files, terminals, and everything else that is not a pipe or a socket.

use std::{
    io::{self, Read, Write},
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
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

/// The number of bytes that a thread reads at once.
const CHUNK: usize = 64 << 10;
/// The number of bytes that a thread writes at once. It is small, so that a slow peer, which reads a few KiB each second, still
/// shows progress when the connection ends.
const WRITE_CHUNK: usize = 4 << 10;

/// Reads in a separate thread.
///
/// The thread does not belong to the runtime, which waits for its threads when it ends: this thread may wait forever for a key
/// on a terminal.
pub(crate) struct Reader {
    chunks: mpsc::Receiver<io::Result<Bytes>>,
    current: Bytes,
}

impl Reader {
    pub(crate) fn start(input: impl Read + Send + 'static) -> Result<Self> {
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

/// Writes on the runtime's blocking threads, for which the runtime waits when it ends, so that no written data is lost.
pub(crate) struct Writer {
    output: Option<Arc<Mutex<dyn Write + Send>>>,
    written: Arc<AtomicU64>,
}

impl Writer {
    pub(crate) fn new(output: impl Write + Send + 'static) -> Self {
        Self {
            output: Some(Arc::new(Mutex::new(output))),
            written: Arc::default(),
        }
    }

    pub(crate) fn bytes_written(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.written)
    }

    pub(crate) async fn write(&self, messages: Messages<'_>) -> Result<()> {
        let Some(output) = self.output.clone() else {
            return Err(Error::closed("the connection was closed on this side"));
        };
        let lines = messages.as_lines().to_vec();
        let count = self.bytes_written();
        let writing = task::spawn_blocking(move || {
            let mut output = output.lock();
            write_counted(&mut *output, &lines, &count)?;
            output.flush()
        });
        match writing.await {
            Ok(result) => result.map_err(stream_error),
            Err(_) => Err(Error::closed("the runtime is shutting down")),
        }
    }

    /// Drops the stream; every write has flushed it.
    pub(crate) fn close(&mut self) -> Result<()> {
        self.output = None;
        Ok(())
    }
}

/// Writes all bytes, and counts the bytes that each write takes.
fn write_counted(output: &mut dyn Write, mut bytes: &[u8], count: &AtomicU64) -> io::Result<()> {
    while !bytes.is_empty() {
        let part = bytes.get(..WRITE_CHUNK).unwrap_or(bytes);
        match output.write(part) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(written) => {
                count.fetch_add(written as u64, Ordering::Relaxed);
                bytes.advance(written);
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::sync::OnceLock;

    use super::*;

    /// Takes no more than 3 KiB at once, and checks the bytes that were counted before.
    struct Output {
        counted: Arc<OnceLock<Arc<AtomicU64>>>,
        taken: u64,
    }

    impl Write for Output {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let counted = self.counted.get().map(|it| it.load(Ordering::Relaxed));
            assert_eq!(counted, Some(self.taken));
            assert!(bytes.len() <= 4 << 10);
            let count = bytes.len().min(3 << 10);
            self.taken += count as u64;
            Ok(count)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[tokio::test]
    async fn each_partial_write_is_counted_at_once() {
        let counted = Arc::new(OnceLock::new());
        let writer = Writer::new(Output {
            counted: Arc::clone(&counted),
            taken: 0,
        });
        counted.set(writer.bytes_written()).unwrap();
        let line = [&[b' '; 99_999][..], b"\n"].concat();
        writer.write(Messages::new(&line)).await.unwrap();
        assert_eq!(writer.bytes_written().load(Ordering::Relaxed), 100_000);
    }
}
