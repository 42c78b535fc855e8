//! Load balancer that sends each request of HTTP/1 to the next node, whatever it is about.

use std::{io, net::SocketAddr};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt, copy_bidirectional},
    net::{TcpListener, TcpStream},
};

/// The longest head of a request.
const MAX_HEAD: usize = 64 << 10;

/// Serves an address of this machine, for as long as the program runs. Returns it.
///
/// # Errors
/// Where there is none.
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

/// To the first node that can be reached. Once it may have begun, a request is sent to no other.
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

/// The head of a request, and what came with it. The connection is for this request alone, so that the next one goes elsewhere.
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
