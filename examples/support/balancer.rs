//! A load balancer that sends each HTTP/1 request to the next node, without sticky sessions.

use std::{io, net::SocketAddr};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt, copy_bidirectional},
    net::{TcpListener, TcpStream},
};

/// The maximum length of a request's head.
const MAX_HEAD: usize = 64 << 10;

/// Listens on a local address until the program ends. Returns the address.
///
/// # Errors
/// If no address can be bound.
pub async fn balance(nodes: Vec<SocketAddr>) -> io::Result<SocketAddr> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    tokio::spawn(async move {
        let mut turn = 0;
        while let Ok((client, _)) = listener.accept().await {
            turn += 1;
            let mut nodes = nodes.clone();
            let count = nodes.len().max(1);
            nodes.rotate_left(turn % count);
            tokio::spawn(async move { forward(client, &nodes).await });
        }
    });
    Ok(address)
}

/// Forwards a request to the first reachable node. Never sends a request to a second node, since the first may have begun it.
async fn forward(mut client: TcpStream, nodes: &[SocketAddr]) -> io::Result<()> {
    let head = read_head(&mut client).await?;
    for node in nodes {
        if let Ok(mut node) = TcpStream::connect(node).await {
            node.write_all(&head).await?;
            copy_bidirectional(&mut client, &mut node).await?;
            return Ok(());
        }
    }
    let answer =
        b"HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\nContent-Length: 0\r\n\r\n";
    client.write_all(answer).await
}

/// Reads the head of a request, and the bytes that came with it. Adds `Connection: close`, so that the next request opens a new
/// connection and goes to the next node.
async fn read_head(client: &mut TcpStream) -> io::Result<Vec<u8>> {
    let mut read = Vec::new();
    while !read.windows(4).any(|it| it == b"\r\n\r\n") {
        if read.len() > MAX_HEAD || client.read_buf(&mut read).await? == 0 {
            return Err(io::ErrorKind::InvalidData.into());
        }
    }
    let line = read.windows(2).position(|it| it == b"\r\n").unwrap_or(0);
    let rest = read.split_off(line);
    read.extend_from_slice(b"\r\nConnection: close");
    read.extend(rest);
    Ok(read)
}
