//! Which HTTP a client speaks: with HTTP/2 begins who sends its preface, and with HTTP/1 everybody else.
//!
//! Hyper can find that out too, but it reads the preface by itself, and then makes room for as much again as it reads at once:
//! 8 KiB for as long as the connection lasts.

use std::{
    io::{self, IoSlice},
    mem,
    pin::Pin,
    task::{Context, Poll},
};

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, ReadBuf};

use super::overdue::Signs;

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// How much is read at first: most requests are shorter, and hyper reads what is left.
const FIRST: usize = 1 << 10;

/// A version of HTTP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Version {
    Http1,
    Http2,
}

/// A connection of which something was read already.
pub(super) struct Begun<I> {
    first: Vec<u8>,
    /// So much of it was handed out.
    taken: usize,
    io: I,
    signs: Signs,
}

/// Reads until it is known which HTTP is spoken. From then on `signs` shows what the client does.
pub(super) async fn begin<I: AsyncRead + Unpin>(
    mut io: I,
    signs: Signs,
) -> io::Result<(Version, Begun<I>)> {
    let mut first = Vec::with_capacity(FIRST);
    let version = loop {
        let ended = io.read_buf(&mut first).await? == 0;
        match version(&first) {
            Some(version) => break version,
            None if ended => break Version::Http1,
            None => {}
        }
    };
    let begun = Begun {
        first,
        taken: 0,
        io,
        signs,
    };
    Ok((version, begun))
}

/// What speaks who begins so; `None` where that can be said only later.
fn version(first: &[u8]) -> Option<Version> {
    if first.starts_with(PREFACE) {
        Some(Version::Http2)
    } else if PREFACE.starts_with(first) {
        None
    } else {
        Some(Version::Http1)
    }
}

impl<I: AsyncRead + Unpin> AsyncRead for Begun<I> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let rest = self.first.get(self.taken..).unwrap_or_default();
        if rest.is_empty() {
            let before = buffer.filled().len();
            let read = Pin::new(&mut self.io).poll_read(cx, buffer);
            if buffer.filled().len() > before {
                self.signs.heads.note_read();
            }
            return read;
        }
        self.signs.heads.note_read();
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

impl<I: AsyncWrite + Unpin> AsyncWrite for Begun<I> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.io).poll_write(cx, bytes);
        self.signs.writes.note(&written);
        written
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.io).poll_write_vectored(cx, slices);
        self.signs.writes.note(&written);
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
    async fn what_was_read_comes_out_again_before_the_rest() {
        for size in [1, 3, 4096] {
            let (mut client, server) = duplex(64);
            client.write_all(b"POST / HTTP/1.1").await.unwrap();
            let (version, mut begun) = begin(server, Signs::new()).await.unwrap();
            assert_eq!(version, Version::Http1);
            client.write_all(b"\r\n\r\n").await.unwrap();
            drop(client);
            let (mut all, mut piece) = (Vec::new(), vec![0; size]);
            loop {
                let read = begun.read(&mut piece).await.unwrap();
                if read == 0 {
                    break;
                }
                all.extend_from_slice(&piece[..read]);
            }
            assert_eq!(all, b"POST / HTTP/1.1\r\n\r\n", "in pieces of {size}");
        }
    }

    #[tokio::test]
    async fn who_says_nothing_and_goes_speaks_no_http2() {
        let (client, server) = duplex(64);
        drop(client);
        assert_eq!(begin(server, Signs::new()).await.unwrap().0, Version::Http1);
    }
}
