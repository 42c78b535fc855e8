//! Issuers that are slow to answer, and the requests that wait for them or for other issuers.

use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use oxmcp::{
    Result,
    auth::server::{Introspection, TrustedIssuer},
    http::{HttpBody, HttpClient, ProtectedResource},
};
use serde_json::json;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
    time::{Instant, sleep, timeout},
};

use super::issuer::{ISSUER, Issuer, URL, endpoint, whoami};

/// An issuer whose introspection never answers, and whose other answers come after a delay.
#[derive(Clone)]
struct Slow {
    issuer: Issuer,
    delay: Duration,
}

impl HttpClient for Slow {
    async fn send(&self, request: Request<Bytes>) -> Result<Response<HttpBody>> {
        if request.uri().path() == "/introspect" {
            std::future::pending::<()>().await;
        }
        sleep(self.delay).await;
        self.issuer.send(request).await
    }
}

fn introspecting(issuer: &Issuer, delay: Duration) -> ProtectedResource {
    let slow = Slow {
        issuer: issuer.clone(),
        delay,
    };
    issuer
        .resource()
        .introspection(Introspection::new(
            "https://slow.example.com",
            "https://slow.example.com/introspect",
        ))
        .http_client(slow)
}

#[tokio::test(start_paused = true)]
async fn slow_introspection_does_not_delay_other_issuers() {
    let issuer = Issuer::new();
    let endpoint = endpoint(&introspecting(&issuer, Duration::ZERO));
    // More tokens than may be introspected at once: the last requests are told to retry.
    let asking: Vec<_> = (0..1_100)
        .map(|i| {
            let endpoint = endpoint.clone();
            tokio::spawn(async move { whoami(&endpoint, &format!("opaque{i}")).await.0 })
        })
        .collect();
    tokio::task::yield_now().await;
    let begun = Instant::now();
    for scope in ["mcp", "other"] {
        let (status, said) = whoami(&endpoint, &issuer.token(scope)).await;
        assert_eq!((status, said), (StatusCode::OK, format!("ann may {scope}")));
    }
    assert_eq!(begun.elapsed(), Duration::ZERO);
    for asked in asking {
        assert_eq!(asked.await.unwrap(), StatusCode::SERVICE_UNAVAILABLE);
    }
}

#[tokio::test(start_paused = true)]
async fn request_waits_once_for_all_fetches() {
    let issuer = Issuer::new();
    let resource = introspecting(&issuer, Duration::from_secs(8));
    let endpoint = endpoint(&resource);
    let token = issuer.token("mcp");
    let begun = Instant::now();
    // The metadata arrive after 8 s, and the keys after 16 s.
    assert_eq!(
        whoami(&endpoint, &token).await.0,
        StatusCode::SERVICE_UNAVAILABLE
    );
    assert_eq!(begun.elapsed().as_secs(), 15);
    sleep(Duration::from_secs(2)).await;
    let (status, _) = timeout(Duration::from_secs(1), whoami(&endpoint, &token))
        .await
        .unwrap();
    assert_eq!(status, StatusCode::OK);
    assert_eq!(issuer.requests.load(Ordering::Relaxed), 2);
}

#[tokio::test]
async fn issuers_see_the_servers_user_agent() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let issuer = Arc::new(Issuer::new());
    let keys = json!({"keys": [issuer.key.public_jwk()]}).to_string();
    let answering = tokio::spawn(async move {
        let (mut socket, _) = listener.accept().await.unwrap();
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(socket.read_u8().await.unwrap());
        }
        let length = keys.len();
        let answer = format!("HTTP/1.1 200 OK\r\ncontent-length: {length}\r\n\r\n{keys}");
        socket.write_all(answer.as_bytes()).await.unwrap();
        String::from_utf8(head).unwrap().to_ascii_lowercase()
    });
    let trusted = TrustedIssuer::new(ISSUER).keys_at(format!("{url}/keys"));
    let resource = ProtectedResource::new(URL).issuer(trusted);
    let (status, _) = whoami(&endpoint(&resource), &issuer.token("mcp")).await;
    assert_eq!(status, StatusCode::OK);
    let head = answering.await.unwrap();
    assert!(head.contains("\r\nuser-agent: oxmcp/"), "{head}");
}
