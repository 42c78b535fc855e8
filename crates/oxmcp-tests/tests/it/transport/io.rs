//! `transport::io` and `transport::stream`: lines over any pair of byte streams.

use std::{
    io,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Poll},
};

use futures_util::FutureExt;
use oxmcp::{
    Limits,
    transport::{self, Frame, Messages, ReadHalf, Transport, WriteHalf},
};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadBuf};

use crate::transport::{TOO_LONG, all, next, next_now};

fn limits(max_message_bytes: usize) -> Limits {
    Limits::default().max_message_bytes(max_message_bytes)
}

/// A reader that gives its input in pieces of one size, is pending before each of them, and counts its polls.
struct Pieces {
    rest: &'static [u8],
    size: usize,
    ready: bool,
    polls: Arc<AtomicUsize>,
}

impl Pieces {
    fn new(rest: &'static [u8], size: usize) -> (Self, Arc<AtomicUsize>) {
        let polls = Arc::new(AtomicUsize::new(0));
        let pieces = Self {
            rest,
            size,
            ready: false,
            polls: Arc::clone(&polls),
        };
        (pieces, polls)
    }
}

impl AsyncRead for Pieces {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.polls.fetch_add(1, Ordering::Relaxed);
        self.ready = !self.ready;
        if self.ready {
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        let count = self.size.min(self.rest.len()).min(buffer.remaining());
        let (piece, rest) = self.rest.split_at(count);
        buffer.put_slice(piece);
        self.rest = rest;
        Poll::Ready(Ok(()))
    }
}

#[tokio::test]
async fn messages_arriving_together_are_read_without_waiting() {
    let (input, polls) = Pieces::new(b"{}\n\n[]\n0123456789\n{\"a\":1}\n{\"cut", 100);
    let mut transport = transport::io(input, tokio::io::sink());
    let (mut read, _write) = transport.connect(&limits(8)).await.unwrap();
    assert_eq!(next_now(&mut read), None, "nothing was read yet");
    assert_eq!(next(&mut read).await.unwrap(), "{}");
    let asked = polls.load(Ordering::Relaxed);
    for expected in ["[]", TOO_LONG, "{\"a\":1}"] {
        assert_eq!(next_now(&mut read).as_deref(), Some(expected));
    }
    assert_eq!(next_now(&mut read), None);
    assert_eq!(polls.load(Ordering::Relaxed), asked);
    assert_eq!(next(&mut read).await.unwrap(), "{\"cut");
    assert_eq!(next_now(&mut read), None);
}

#[tokio::test]
async fn messages_are_lines() {
    let input = b"{\"a\":1}\r\n\n[]\n \n{\"a long one\":true}\n{\"half";
    for size in 1..input.len() {
        let (pieces, _) = Pieces::new(input, size);
        let mut transport = transport::io(pieces, tokio::io::sink());
        let (mut read, _) = transport.connect(&limits(10)).await.unwrap();
        let expected = ["{\"a\":1}", "[]", TOO_LONG, "{\"half"];
        assert_eq!(all(&mut read).await, expected, "in pieces of {size}");
        assert_eq!(next(&mut read).await, None, "the end stays the end");
    }
}

#[tokio::test]
async fn dropped_read_loses_nothing() {
    let (pieces, _) = Pieces::new(b"{\"a\":1}\n{\"b\":2}\n", 3);
    let mut transport = transport::io(pieces, tokio::io::sink());
    let (mut read, _) = transport.connect(&Limits::default()).await.unwrap();
    let mut messages = Vec::new();
    loop {
        // Each future is polled once and dropped.
        match read.read().now_or_never() {
            None => {}
            Some(Ok(Some(Frame::Message(message)))) => messages.push(message.to_vec()),
            Some(end) => {
                assert!(end.unwrap().is_none());
                break;
            }
        }
    }
    assert_eq!(messages, [b"{\"a\":1}", b"{\"b\":2}"]);
}

#[tokio::test]
async fn buffered_messages_cost_no_read() {
    let (pieces, polls) = Pieces::new(b"{}\n{}\n{}\n", 1024);
    let mut transport = transport::io(pieces, tokio::io::sink());
    let (mut read, _) = transport.connect(&Limits::default()).await.unwrap();
    next(&mut read).await.unwrap();
    let before = polls.load(Ordering::Relaxed);
    next(&mut read).await.unwrap();
    next(&mut read).await.unwrap();
    assert_eq!(polls.load(Ordering::Relaxed), before);
}

#[tokio::test]
async fn huge_line_is_skipped_in_bounded_memory() {
    let (mut peer, ours) = tokio::io::duplex(64 << 10);
    let mut transport = transport::stream(ours);
    let (mut read, _write) = transport.connect(&limits(1 << 20)).await.unwrap();
    let send = async {
        let piece = vec![b'x'; 1 << 20];
        for _ in 0..100 {
            peer.write_all(&piece).await.unwrap();
        }
        peer.write_all(b"\n{\"next\":1}\n").await.unwrap();
        drop(peer);
    };
    let ((), messages) = tokio::join!(send, all(&mut read));
    assert_eq!(messages, [TOO_LONG, "{\"next\":1}"]);
}

/// A writer that counts writes and flushes.
#[derive(Default)]
struct Counting {
    writes: Arc<AtomicUsize>,
    flushes: Arc<AtomicUsize>,
}

impl AsyncWrite for Counting {
    fn poll_write(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.writes.fetch_add(1, Ordering::Relaxed);
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.flushes.fetch_add(1, Ordering::Relaxed);
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

#[tokio::test]
async fn batch_is_one_write_and_one_flush() {
    let counting = Counting::default();
    let (writes, flushes) = (Arc::clone(&counting.writes), Arc::clone(&counting.flushes));
    let mut transport = transport::io(tokio::io::empty(), counting);
    let (_, mut write) = transport.connect(&Limits::default()).await.unwrap();
    let messages = Messages::from_lines(b"{}\n{}\n{}\n").unwrap();
    write.write(messages).await.unwrap();
    assert_eq!(writes.load(Ordering::Relaxed), 1);
    assert_eq!(flushes.load(Ordering::Relaxed), 1);
}

#[tokio::test]
async fn closed_writer_ends_stream_while_reader_lives() {
    let (mut peer, ours) = tokio::io::duplex(1024);
    let (mut read, mut write) = transport::stream(ours)
        .connect(&Limits::default())
        .await
        .unwrap();
    write
        .write(Messages::from_lines(b"{}\n").unwrap())
        .await
        .unwrap();
    write.close().await.unwrap();
    let mut sent = String::new();
    peer.read_to_string(&mut sent).await.unwrap();
    assert_eq!(sent, "{}\n");

    peer.write_all(b"[]\n").await.unwrap();
    drop(peer);
    assert_eq!(all(&mut read).await, ["[]"]);
    let refused = write.write(Messages::from_lines(b"{}\n").unwrap()).await;
    assert!(refused.unwrap_err().is_closed());
    write.close().await.unwrap();
}

#[tokio::test]
async fn vanished_peer_is_a_closed_connection() {
    let (peer, ours) = tokio::io::duplex(1024);
    drop(peer);
    let (mut read, mut write) = transport::stream(ours)
        .connect(&Limits::default())
        .await
        .unwrap();
    assert_eq!(next(&mut read).await, None);
    let error = write
        .write(Messages::from_lines(b"{}\n").unwrap())
        .await
        .unwrap_err();
    assert!(error.is_closed(), "{error}");
    write.close().await.unwrap();
}

#[tokio::test]
async fn streams_connect_once() {
    let mut transport = transport::io(tokio::io::empty(), tokio::io::sink());
    transport.connect(&Limits::default()).await.unwrap();
    let error = transport.connect(&Limits::default()).await.unwrap_err();
    assert!(error.message().contains("already in use"), "{error}");
}

#[cfg(unix)]
#[tokio::test]
async fn unix_sockets_are_supported() {
    let (ours, theirs) = tokio::net::UnixStream::pair().unwrap();
    let (_read, mut write) = transport::stream(ours)
        .connect(&Limits::default())
        .await
        .unwrap();
    let (mut read, _write) = transport::stream(theirs)
        .connect(&Limits::default())
        .await
        .unwrap();
    write
        .write(Messages::from_lines(b"{}\n[]\n").unwrap())
        .await
        .unwrap();
    write.close().await.unwrap();
    assert_eq!(all(&mut read).await, ["{}", "[]"]);
}

#[tokio::test]
async fn tcp_streams_are_supported() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let ours = tokio::net::TcpStream::connect(listener.local_addr().unwrap())
        .await
        .unwrap();
    let (theirs, _) = listener.accept().await.unwrap();
    let (read, write) = ours.into_split();
    let (_read, mut write) = transport::io(read, write)
        .connect(&Limits::default())
        .await
        .unwrap();
    let (mut read, _write) = transport::stream(theirs)
        .connect(&Limits::default())
        .await
        .unwrap();
    write
        .write(Messages::from_lines(b"{}\n").unwrap())
        .await
        .unwrap();
    write.close().await.unwrap();
    assert_eq!(all(&mut read).await, ["{}"]);
}

#[test]
fn messages_are_whole_lines() {
    let messages = Messages::from_lines(b"{}\n[1]\n").unwrap();
    assert_eq!(
        messages.into_iter().collect::<Vec<_>>(),
        [&b"{}"[..], b"[1]"]
    );
    for wrong in [&b""[..], b"{}"] {
        assert!(Messages::from_lines(wrong).is_err());
    }
}
