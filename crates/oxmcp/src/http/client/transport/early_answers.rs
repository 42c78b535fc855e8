//! A socket from which an answer can be read while the request is still being written.

use std::{
    io::{self, IoSlice},
    pin::Pin,
    task::{Context, Poll, Waker, ready},
};

use hyper::rt::{Read, ReadBuf, ReadBufCursor, Write};

use crate::http::client::transport::connector::BoxIo;

/// The number of bytes to read at once after writing has failed: the refusal of a request is short.
const LAST_READ: usize = 4 << 10;

/// A socket that holds back a write error until reading has ended.
///
/// A server that refuses a body answers, and may close the connection before it has read the whole body: then writing fails, but
/// the answer with the reason can still be read. See [RFC 9112, 9.6](https://www.rfc-editor.org/rfc/rfc9112#section-9.6).
pub(crate) struct EarlyAnswers {
    io: BoxIo,
    /// The error of the write that failed.
    failed: Option<io::Error>,
    reading_ended: bool,
    /// The task that waits for the write error.
    writer: Option<Waker>,
}

impl EarlyAnswers {
    pub(crate) fn new(io: BoxIo) -> Self {
        Self {
            io,
            failed: None,
            reading_ended: false,
            writer: None,
        }
    }

    /// Writes, unless writing has failed: then the error is returned once reading has ended.
    fn unless_failed<T>(
        &mut self,
        cx: &mut Context<'_>,
        write: impl FnOnce(Pin<&mut BoxIo>, &mut Context<'_>) -> Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if self.failed.is_none() {
            match write(Pin::new(&mut self.io), cx) {
                Poll::Ready(Err(error)) => self.failed = Some(error),
                polled => return polled,
            }
        }
        match &self.failed {
            Some(failed) if self.reading_ended => {
                let error = io::Error::new(failed.kind(), failed.to_string());
                Poll::Ready(Err(error))
            }
            _ => {
                self.writer = Some(cx.waker().clone());
                Poll::Pending
            }
        }
    }
}

impl Read for EarlyAnswers {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        mut buffer: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        if self.failed.is_none() {
            return Pin::new(&mut self.io).poll_read(cx, buffer);
        }
        // Only a separate buffer shows whether anything was read.
        let mut bytes = [0; LAST_READ];
        let room = buffer.remaining().min(LAST_READ);
        let mut own = ReadBuf::new(bytes.get_mut(..room).unwrap_or_default());
        let polled = ready!(Pin::new(&mut self.io).poll_read(cx, own.unfilled()));
        buffer.put_slice(own.filled());
        if own.filled().is_empty() {
            self.reading_ended = true;
            if let Some(writer) = self.writer.take() {
                writer.wake();
            }
        }
        Poll::Ready(polled)
    }
}

impl Write for EarlyAnswers {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.unless_failed(cx, |io, cx| io.poll_write(cx, bytes))
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.unless_failed(cx, |io, cx| io.poll_write_vectored(cx, parts))
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.unless_failed(cx, |io, cx| io.poll_flush(cx))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use http::Request;
    use http_body_util::Full;
    use hyper::client::conn::http1;

    use super::*;

    /// A server that reads little, answers, and disconnects.
    #[derive(Default)]
    struct Gone {
        written: usize,
        answer: &'static [u8],
        reader: Option<Waker>,
    }

    impl Read for Gone {
        fn poll_read(
            mut self: Pin<&mut Self>,
            cx: &mut Context<'_>,
            mut buffer: ReadBufCursor<'_>,
        ) -> Poll<io::Result<()>> {
            if self.written < 2_000 {
                self.reader = Some(cx.waker().clone());
                return Poll::Pending;
            }
            buffer.put_slice(std::mem::take(&mut self.answer));
            Poll::Ready(Ok(()))
        }
    }

    impl Write for Gone {
        fn poll_write(
            mut self: Pin<&mut Self>,
            _: &mut Context<'_>,
            bytes: &[u8],
        ) -> Poll<io::Result<usize>> {
            if self.written >= 2_000 {
                if let Some(reader) = self.reader.take() {
                    reader.wake();
                }
                return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()));
            }
            let taken = bytes.len().min(1_000);
            self.written += taken;
            Poll::Ready(Ok(taken))
        }

        fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }

        fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }
    }

    async fn status(answer: &'static [u8]) -> Result<u16, hyper::Error> {
        let gone = Gone {
            answer,
            ..Gone::default()
        };
        let io = EarlyAnswers::new(Box::new(gone));
        let (mut sender, connection) = http1::handshake(io).await?;
        tokio::spawn(connection);
        let body = Full::new(Bytes::from(vec![b'x'; 1 << 20]));
        let request = Request::post("/mcp").header("host", "a").body(body);
        let response = sender.send_request(request.unwrap()).await?;
        Ok(response.status().as_u16())
    }

    #[tokio::test]
    async fn response_is_read_after_a_failed_write() {
        let answer = b"HTTP/1.1 413 Content Too Large\r\ncontent-length: 0\r\n\r\n";
        assert_eq!(status(answer).await.unwrap(), 413);
        // Without an answer the write error is returned, and nothing waits forever.
        assert!(status(b"").await.is_err());
    }
}
