//! `in_memory`: two connected transports.

use futures_util::FutureExt;
use oxmcp::{
    Limits, in_memory,
    transport::{Messages, Transport, WriteHalf},
};

use crate::transport::{all, next};

#[tokio::test]
async fn each_side_reads_the_others_messages() {
    let (mut client, mut server) = in_memory();
    let (mut client_read, mut client_write) = client.connect(&Limits::default()).await.unwrap();
    let (mut server_read, mut server_write) = server.connect(&Limits::default()).await.unwrap();

    client_write
        .write(Messages::from_lines(b"{\"a\":1}\n[]\n").unwrap())
        .await
        .unwrap();
    server_write
        .write(Messages::from_lines(b"{\"b\":2}\n").unwrap())
        .await
        .unwrap();
    assert_eq!(next(&mut client_read).await.unwrap(), "{\"b\":2}");
    client_write.close().await.unwrap();
    assert_eq!(all(&mut server_read).await, ["{\"a\":1}", "[]"]);

    server_write
        .write(Messages::from_lines(b"{\"late\":3}\n").unwrap())
        .await
        .unwrap();
    drop(server_write);
    assert_eq!(all(&mut client_read).await, ["{\"late\":3}"]);
}

#[tokio::test]
async fn writer_waits_for_a_slow_reader() {
    let (mut client, mut server) = in_memory();
    let (_read, mut write) = client.connect(&Limits::default()).await.unwrap();
    let (mut read, _write) = server.connect(&Limits::default()).await.unwrap();
    let mut line = vec![b' '; 100_000];
    line.extend_from_slice(b"{}\n");
    let messages = Messages::from_lines(&line).unwrap();

    let mut writing = Box::pin(write.write(messages));
    assert!(
        writing.as_mut().now_or_never().is_none(),
        "the buffers are bounded"
    );
    let (written, message) = tokio::join!(writing, next(&mut read));
    written.unwrap();
    assert_eq!(message.unwrap().trim(), "{}");
}

#[tokio::test]
async fn dropped_peer_ends_the_connection() {
    let (mut client, server) = in_memory();
    let (mut read, mut write) = client.connect(&Limits::default()).await.unwrap();
    drop(server);
    assert_eq!(next(&mut read).await, None);
    let error = write
        .write(Messages::from_lines(b"{}\n").unwrap())
        .await
        .unwrap_err();
    assert!(error.is_closed(), "{error}");
}
