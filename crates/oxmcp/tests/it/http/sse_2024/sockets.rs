//! Sessions over real sockets.

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

use crate::http::sse_2024::*;

/// Reads until the text has come.
async fn read_until(stream: &mut TcpStream, text: &str) -> String {
    let mut read = Vec::new();
    while !String::from_utf8_lossy(&read).contains(text) {
        let byte = timeout(Duration::from_secs(60), stream.read_u8()).await;
        read.push(byte.expect("it does not come").unwrap());
    }
    String::from_utf8(read).unwrap()
}

#[tokio::test]
async fn d3_an_address_is_served_until_it_is_closed() {
    let serving = service(calculator()).serve("127.0.0.1:0").await.unwrap();
    let address = serving.local_addr();
    let mut get = TcpStream::connect(address).await.unwrap();
    let head = format!("GET /sse HTTP/1.1\r\nhost: {address}\r\n\r\n");
    get.write_all(head.as_bytes()).await.unwrap();
    let begun = read_until(&mut get, "\n\n").await;
    let (_, endpoint) = begun.split_once("data: ").unwrap();

    let mut post = TcpStream::connect(address).await.unwrap();
    for id in 1..3 {
        let body = ping(id).to_string();
        let request = format!(
            "POST /sse{} HTTP/1.1\r\nhost: {address}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
            endpoint.trim_end(),
            body.len(),
        );
        post.write_all(request.as_bytes()).await.unwrap();
        read_until(&mut post, "HTTP/1.1 202 Accepted\r\n").await;
        read_until(&mut post, "\r\n\r\n").await;
        read_until(&mut get, &format!("\"id\":{id},")).await;
    }
    serving.close().await;
    let mut rest = String::new();
    get.read_to_string(&mut rest).await.unwrap();
    assert!(rest.ends_with("\r\n0\r\n\r\n"), "{rest:?}");
    assert!(TcpStream::connect(address).await.is_err());
}
