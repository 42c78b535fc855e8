//! `Logging`: one line per message, in both directions.

use std::{
    io,
    sync::{Arc, Mutex},
};

use oxmcp::{
    Limits, Result, in_memory,
    transport::{Frame, InMemory, Logging, Messages, ReadHalf, Transport, WriteHalf},
};

use crate::transport::{TOO_LONG, all, next};

/// A shared writer whose output the test can read.
#[derive(Clone, Default)]
struct Shared(Arc<Mutex<Vec<u8>>>);

impl Shared {
    fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
    }
}

impl io::Write for Shared {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Sends `theirs` to a logged transport, then `ours` through it.
async fn talk(
    mut logged: Logging<InMemory>,
    mut peer: InMemory,
    theirs: &[u8],
    ours: &[u8],
) -> Vec<String> {
    let limits = Limits::default().max_message_bytes(30);
    let (mut read, mut write) = logged.connect(&limits).await.unwrap();
    let (_read, mut peer_write) = peer.connect(&limits).await.unwrap();
    peer_write
        .write(Messages::from_lines(theirs).unwrap())
        .await
        .unwrap();
    peer_write.close().await.unwrap();
    let received = all(&mut read).await;
    write
        .write(Messages::from_lines(ours).unwrap())
        .await
        .unwrap();
    write.close().await.unwrap();
    received
}

#[tokio::test]
async fn each_message_is_logged_as_one_line() {
    let (client, server) = in_memory();
    let log = Shared::default();
    let logged = Logging::new(client, log.clone()).max_bytes(10);
    assert_eq!(logged.name(), in_memory().0.name());
    let theirs = format!(
        "{{\"a\":1}}\n{}\n{{\"long\":\"0123456789\"}}\n",
        "x".repeat(31)
    );
    let received = talk(logged, server, theirs.as_bytes(), b"{}\n[]\n").await;
    assert_eq!(
        received,
        ["{\"a\":1}", TOO_LONG, "{\"long\":\"0123456789\"}"]
    );
    let expected = "\
<- {\"a\":1}
<- (message skipped: it exceeds the size limit)
<- {\"long\":\"0… (21 bytes)
-> {}
-> []
";
    assert_eq!(log.text(), expected);
}

#[tokio::test]
async fn closure_receives_each_line() {
    let (client, server) = in_memory();
    let lines = Arc::new(Mutex::new(Vec::new()));
    let sink = Arc::clone(&lines);
    let logged = Logging::with(client, move |line| {
        sink.lock().unwrap().push(line.to_owned());
    });
    talk(logged, server, b"{}\n", b"[]\n").await;
    assert_eq!(*lines.lock().unwrap(), ["<- {}", "-> []"]);
}

/// A writer that always fails.
struct Broken;

impl io::Write for Broken {
    fn write(&mut self, _: &[u8]) -> io::Result<usize> {
        Err(io::ErrorKind::StorageFull.into())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[tokio::test]
async fn failing_log_does_not_disturb_the_session() {
    let (client, server) = in_memory();
    let received = talk(Logging::new(client, Broken), server, b"{}\n", b"[]\n").await;
    assert_eq!(received, ["{}"]);
}

/// A custom transport whose message has line breaks between its tokens.
struct Pretty;
struct PrettyReader;
struct Nowhere;

impl Transport for Pretty {
    type Read = PrettyReader;
    type Write = Nowhere;

    async fn connect(&mut self, _: &Limits) -> Result<(PrettyReader, Nowhere)> {
        Ok((PrettyReader, Nowhere))
    }
}

impl ReadHalf for PrettyReader {
    async fn read(&mut self) -> Result<Option<Frame<'_>>> {
        Ok(Some(Frame::Message(b"{\r\n\"a\": 1\n}")))
    }
}

impl WriteHalf for Nowhere {
    async fn write(&mut self, _: Messages<'_>) -> Result<()> {
        Ok(())
    }

    async fn close(&mut self) -> Result<()> {
        Ok(())
    }
}

#[tokio::test]
async fn custom_transport_is_logged_in_single_lines() {
    let log = Shared::default();
    let mut logged = Logging::new(Pretty, log.clone());
    let (mut read, _write) = logged.connect(&Limits::default()).await.unwrap();
    next(&mut read).await.unwrap();
    assert_eq!(log.text(), "<- {  \"a\": 1 }\n");
}
