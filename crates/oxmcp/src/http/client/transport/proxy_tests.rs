//! Requests through proxies, and to servers that do not speak the scheme of the URL.

use bytes::Bytes;
use http::{Request, Response};
use hyper_util::client::proxy::matcher::Matcher;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};

use crate::{
    error::Result,
    http::client::transport::{
        connector::Connector,
        default_client::DefaultClient,
        http_client::{HttpBody, HttpClient},
        tls_roots::TlsRoots,
    },
};

/// The head of the next request.
pub(crate) async fn head(socket: &mut TcpStream) -> String {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(socket.read_u8().await.unwrap());
    }
    String::from_utf8(head).unwrap()
}

/// Sends a request to `url` by a proxy that answers with `status`; returns the head that the proxy has received.
async fn by_proxy(url: &str, status: u16) -> (Result<Response<HttpBody>>, String) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let proxies = Matcher::builder().all(format!("http://me:secret@{address}"));
    let connector = Connector::new(TlsRoots::none(), proxies.build());
    let client = DefaultClient::with_connector(connector);
    let proxy = async {
        let (mut socket, _) = listener.accept().await.unwrap();
        let head = head(&mut socket).await;
        let answer = format!("HTTP/1.1 {status} Here\r\ncontent-length: 0\r\n\r\n");
        socket.write_all(answer.as_bytes()).await.unwrap();
        head
    };
    let request = Request::get(url).body(Bytes::new()).unwrap();
    tokio::join!(client.send(request), proxy)
}

#[tokio::test]
async fn forward_proxy_gets_whole_url_and_credentials() {
    let (response, head) = by_proxy("http://example.test/mcp", 200).await;
    assert_eq!(response.unwrap().status(), 200);
    assert!(head.starts_with("GET http://example.test/mcp HTTP/1.1\r\n"));
    assert!(head.contains("proxy-authorization: Basic bWU6c2VjcmV0\r\n"));
    assert!(head.contains("host: example.test\r\n"));
}

// Attack: leaks of secrets.
#[tokio::test]
async fn http_proxy_sees_nothing_of_tls_traffic() {
    let (response, head) = by_proxy("https://example.test/mcp", 407).await;
    let error = response.unwrap_err();
    assert!(error.is_unreachable(), "{error}");
    assert!(error.message().contains("through the proxy 127.0.0.1"));
    assert!(!error.message().contains("secret"), "{error}");
    assert!(head.starts_with("CONNECT example.test:443 HTTP/1.1\r\n"));
    assert!(head.contains("Proxy-Authorization: Basic bWU6c2VjcmV0\r\n"));
    assert!(!head.contains("mcp"));
}

/// Reads `count` bytes.
async fn bytes(socket: &mut TcpStream, count: usize) -> Vec<u8> {
    let mut bytes = vec![0; count];
    socket.read_exact(&mut bytes).await.unwrap();
    bytes
}

/// Sends a request by a proxy that speaks SOCKS 5 and requires a password. Returns the destination that the proxy is asked to
/// connect to, and the first byte that is sent there.
async fn by_socks(scheme: &str, url: &str, reply: u8) -> (Result<Response<HttpBody>>, Vec<u8>, u8) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let proxies = Matcher::builder().all(format!("{scheme}://me:secret@{address}"));
    let connector = Connector::new(TlsRoots::none(), proxies.build());
    let client = DefaultClient::with_connector(connector);
    let proxy = async {
        let (mut socket, _) = listener.accept().await.unwrap();
        assert_eq!(bytes(&mut socket, 3).await, [5, 1, 2]);
        socket.write_all(&[5, 2]).await.unwrap();
        assert_eq!(bytes(&mut socket, 11).await, *b"\x01\x02me\x06secret");
        socket.write_all(&[1, 0]).await.unwrap();
        assert_eq!(bytes(&mut socket, 3).await, [5, 1, 0]);
        let mut to = bytes(&mut socket, 2).await;
        let rest = if to[0] == 3 { usize::from(to[1]) } else { 3 };
        to.extend(bytes(&mut socket, rest + 2).await);
        let answer = [5, reply, 0, 1, 0, 0, 0, 0, 0, 0];
        socket.write_all(&answer).await.unwrap();
        let first = socket.read_u8().await.unwrap_or_default();
        if first == b'G' {
            assert!(head(&mut socket).await.starts_with("ET /mcp HTTP/1.1\r\n"));
            let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n";
            socket.write_all(answer).await.unwrap();
        }
        (to, first)
    };
    let request = Request::get(url).body(Bytes::new()).unwrap();
    let (response, (to, first)) = tokio::join!(client.send(request), proxy);
    (response, to, first)
}

#[tokio::test]
async fn socks_proxy_is_supported() {
    const NAME: &[u8] = b"\x03\x0cexample.test";
    let table: [(&str, &str, &[u8]); 3] = [
        (
            "socks5h",
            "http://example.test/mcp",
            &[NAME, &[0, 80]].concat(),
        ),
        (
            "socks5h",
            "http://example.test:8080/mcp",
            &[NAME, &[31, 144]].concat(),
        ),
        ("socks5", "http://127.0.0.1/mcp", &[1, 127, 0, 0, 1, 0, 80]),
    ];
    for (scheme, url, expected) in table {
        let (response, to, _) = by_socks(scheme, url, 0).await;
        assert_eq!(response.unwrap().status(), 200);
        assert_eq!(to, expected, "{scheme} {url}");
    }
    let (_, to, _) = by_socks("socks5", "http://localhost:81/mcp", 0).await;
    assert!(to.ends_with(&[0, 81]) && to[0] != 3, "{to:?}");
}

// Attack: leaks of secrets.
#[tokio::test]
async fn socks_proxy_sees_nothing_of_tls_traffic() {
    const HANDSHAKE: u8 = 22;
    let (response, to, first) = by_socks("socks5h", "https://example.test/mcp", 0).await;
    assert!(response.unwrap_err().is_unreachable());
    assert_eq!((&to[to.len() - 2..], first), (&[1, 187][..], HANDSHAKE));
}

#[tokio::test]
async fn errors_of_a_socks_proxy_are_explained() {
    const REFUSED: u8 = 5;
    let (response, ..) = by_socks("socks5h", "http://example.test/mcp", REFUSED).await;
    let error = response.unwrap_err();
    assert!(error.is_unreachable(), "{error}");
    assert!(error.message().contains("the proxy 127.0.0.1:"), "{error}");
    assert!(error.message().contains("connection refused"), "{error}");
    assert!(!error.message().contains("secret"), "{error}");
    let proxies = Matcher::builder().all("socks4://127.0.0.1:1");
    let client = DefaultClient::with_connector(Connector::new(TlsRoots::none(), proxies.build()));
    let request = Request::get("http://example.test/").body(Bytes::new());
    let error = client.send(request.unwrap()).await.unwrap_err();
    assert!(error.message().contains("socks5://"), "{error}");
}

/// Makes a request to a server that sends `answer` whatever it receives. Returns the message of the error.
async fn answered(scheme: &str, answer: &[u8]) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("{scheme}://{}/mcp", listener.local_addr().unwrap());
    let connector = Connector::new(TlsRoots::none(), Matcher::builder().build());
    let client = DefaultClient::with_connector(connector);
    let server = async {
        let (mut socket, _) = listener.accept().await.unwrap();
        socket
            .read_buf(&mut Vec::with_capacity(1 << 14))
            .await
            .unwrap();
        socket.write_all(answer).await.unwrap();
        socket.shutdown().await.unwrap();
        socket
    };
    let request = Request::get(url).body(Bytes::new()).unwrap();
    let (response, _socket) = tokio::join!(client.send(request), server);
    response.unwrap_err().message().to_owned()
}

#[tokio::test]
async fn tls_and_plain_servers_are_distinguished() {
    let answer = b"HTTP/1.1 400 Bad Request\r\nconnection: close\r\n\r\n";
    let error = answered("https", answer).await;
    assert!(
        error.contains("does not speak TLS") && error.contains("http://"),
        "{error}"
    );
    let alert = [21, 3, 1, 0, 2, 2, 70];
    let error = answered("http", &alert).await;
    assert!(
        error.contains("speaks TLS") && error.contains("https://"),
        "{error}"
    );
    let error = answered("http", b"").await;
    assert!(error.contains("if it speaks TLS, use https://"), "{error}");
    let error = answered("http", b"220 mail.example ESMTP\r\n").await;
    assert!(!error.contains("TLS"), "{error}");
}

#[tokio::test]
async fn proxy_is_not_blamed_for_unrequested_name() {
    let proxies = Matcher::builder().all("socks5://127.0.0.1:1");
    let client = DefaultClient::with_connector(Connector::new(TlsRoots::none(), proxies.build()));
    let request = Request::get("http://no-such-host.invalid/").body(Bytes::new());
    let error = client.send(request.unwrap()).await.unwrap_err();
    assert!(!error.message().contains("through the proxy"), "{error}");
    for words in ["no-such-host.invalid", "socks5h://"] {
        assert!(error.message().contains(words), "{error}");
    }
}

#[tokio::test]
async fn proxy_error_names_the_default_port() {
    // Nothing listens at these addresses of this machine.
    for (proxy, named) in [
        ("http://127.8.7.6", "through the proxy 127.8.7.6:80: "),
        ("https://127.8.7.6", "through the proxy 127.8.7.6:443: "),
        ("socks5h://127.8.7.6", "through the proxy 127.8.7.6:1080: "),
        ("http://127.8.7.6:1", "through the proxy 127.8.7.6:1: "),
    ] {
        for url in ["http://example.test/", "https://example.test/"] {
            let proxies = Matcher::builder().all(proxy);
            let connector = Connector::new(TlsRoots::none(), proxies.build());
            let client = DefaultClient::with_connector(connector);
            let request = Request::get(url).body(Bytes::new()).unwrap();
            let error = client.send(request).await.unwrap_err();
            assert!(error.message().contains(named), "{proxy} {url}: {error}");
        }
    }
}
