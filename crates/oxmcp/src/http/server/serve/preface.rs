//! The preface of a connection: its first bytes, which distinguish HTTP/2 from HTTP/1.
//!
//! The `auto` connections of hyper-util also detect the version, but keep 8 KiB for it until the connection ends. That is more than
//! half of the memory of an idle session.

use std::{
    io::{self, IoSlice},
    mem,
    pin::Pin,
    task::{Context, Poll},
};

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, ReadBuf};

use super::activity::Activity;

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// The size of the first read. Most requests are shorter, and hyper reads the rest.
const FIRST_READ: usize = 1 << 10;

/// A version of HTTP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Version {
    Http1,
    Http2,
}

/// The I/O of a connection whose first bytes have been read. It records reads and writes in the [`Activity`].
pub(crate) struct PrefacedIo<I> {
    first: Vec<u8>,
    /// The number of these bytes that hyper has read.
    taken: usize,
    io: I,
    activity: Activity,
}

/// Reads until the HTTP version is known.
pub(crate) async fn read<I: AsyncRead + Unpin>(
    mut io: I,
    activity: Activity,
) -> io::Result<(Version, PrefacedIo<I>)> {
    let mut first = Vec::with_capacity(FIRST_READ);
    let version = loop {
        let ended = io.read_buf(&mut first).await? == 0;
        match version(&first) {
            Some(version) => break version,
            None if ended => break Version::Http1,
            None => {}
        }
    };
    let io = PrefacedIo {
        first,
        taken: 0,
        io,
        activity,
    };
    Ok((version, io))
}

/// The HTTP version of a client with these first bytes; `None` while both versions are possible.
fn version(first: &[u8]) -> Option<Version> {
    if first.starts_with(PREFACE) {
        Some(Version::Http2)
    } else if PREFACE.starts_with(first) {
        None
    } else {
        Some(Version::Http1)
    }
}

impl<I: AsyncRead + Unpin> AsyncRead for PrefacedIo<I> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let rest = self.first.get(self.taken..).unwrap_or_default();
        if rest.is_empty() {
            let before = buffer.filled().len();
            let result = Pin::new(&mut self.io).poll_read(cx, buffer);
            if buffer.filled().len() > before {
                self.activity.note_read();
            }
            return result;
        }
        self.activity.note_read();
        let (now, later) = rest.split_at(rest.len().min(buffer.remaining()));
        buffer.put_slice(now);
        if later.is_empty() {
            drop(mem::take(&mut self.first));
        } else {
            self.taken += now.len();
        }
        Poll::Ready(Ok(()))
    }
}

impl<I: AsyncWrite + Unpin> AsyncWrite for PrefacedIo<I> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.io).poll_write(cx, bytes);
        self.activity.note_write(&written);
        written
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.io).poll_write_vectored(cx, slices);
        self.activity.note_write(&written);
        written
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncWriteExt, duplex};

    use super::*;

    #[test]
    fn only_the_whole_preface_is_http2() {
        for length in 0..PREFACE.len() {
            assert_eq!(version(&PREFACE[..length]), None, "{length}");
        }
        assert_eq!(version(PREFACE), Some(Version::Http2));
        assert_eq!(version(b"PRI * HTTP/1.1\r\n"), Some(Version::Http1));
        assert_eq!(version(b"POST / HTTP/1.1\r\n"), Some(Version::Http1));
    }

    #[tokio::test]
    async fn first_bytes_are_read_again_before_the_rest() {
        for size in [1, 3, 4096] {
            let (mut client, server) = duplex(64);
            client.write_all(b"POST / HTTP/1.1").await.unwrap();
            let (version, mut io) = read(server, Activity::new()).await.unwrap();
            assert_eq!(version, Version::Http1);
            client.write_all(b"\r\n\r\n").await.unwrap();
            drop(client);
            let (mut all, mut piece) = (Vec::new(), vec![0; size]);
            loop {
                let count = io.read(&mut piece).await.unwrap();
                if count == 0 {
                    break;
                }
                all.extend_from_slice(&piece[..count]);
            }
            assert_eq!(all, b"POST / HTTP/1.1\r\n\r\n", "in pieces of {size}");
        }
    }

    #[tokio::test]
    async fn silent_client_is_treated_as_http1() {
        let (client, server) = duplex(64);
        drop(client);
        assert_eq!(
            read(server, Activity::new()).await.unwrap().0,
            Version::Http1
        );
    }
}
