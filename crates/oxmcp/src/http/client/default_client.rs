//! The HTTP client that is there where the user brings none.

use std::{
    fmt,
    sync::{Arc, OnceLock},
    time::Duration,
};

use bytes::Bytes;
use futures_util::TryStreamExt;
use http::{
    HeaderValue, Request, Response,
    header::{PROXY_AUTHORIZATION, USER_AGENT},
};
use http_body_util::{BodyDataStream, Full};
use hyper_util::{
    client::{
        legacy::{self, Client},
        proxy::matcher::Matcher,
    },
    rt::{TokioExecutor, TokioTimer},
};
use rustls::{ClientConfig, ConfigBuilder, RootCertStore, WantsVerifier, crypto::ring};
use rustls_platform_verifier::BuilderVerifierExt;

use super::{
    connector::Connector,
    http_client::{HttpBody, HttpClient},
};
use crate::{Error, Result, session::with_causes};

/// How long an idle connection is kept: less than most servers and proxies keep one, so that it is not used while it dies.
const IDLE: Duration = Duration::from_secs(50);
const NAME: &str = concat!("oxmcp/", env!("CARGO_PKG_VERSION"));

/// A client with a pool of connections.
pub(super) struct DefaultClient {
    pool: Client<Connector, Full<Bytes>>,
    connector: Connector,
}

impl DefaultClient {
    /// # Errors
    /// Where the certificates of the system cannot be read, and they are needed.
    pub(super) fn new(needs_tls: bool) -> Result<Self> {
        let tls = match tls() {
            Err(_) if !needs_tls => trusting_nobody()?,
            tls => tls?,
        };
        Ok(Self::over(Connector::new(tls, Matcher::from_system())))
    }

    fn over(connector: Connector) -> Self {
        let pool = Client::builder(TokioExecutor::new())
            .pool_idle_timeout(IDLE)
            .pool_timer(TokioTimer::new())
            .build(connector.clone());
        Self { pool, connector }
    }
}

impl HttpClient for DefaultClient {
    async fn send(&self, mut request: Request<Bytes>) -> Result<Response<HttpBody>> {
        let for_proxy = self.connector.proxy_authorization(request.uri());
        let headers = request.headers_mut();
        headers
            .entry(USER_AGENT)
            .or_insert(HeaderValue::from_static(NAME));
        if let Some(credentials) = for_proxy {
            headers.insert(PROXY_AUTHORIZATION, credentials);
        }
        let response = self.pool.request(request.map(Full::new)).await;
        let response = response.map_err(|error| failed(&error))?;
        Ok(response.map(|body| {
            let chunks = BodyDataStream::new(body);
            HttpBody::new(chunks.map_err(|error| Error::network(with_causes(&error))))
        }))
    }
}

impl fmt::Debug for DefaultClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("DefaultClient")
    }
}

fn failed(error: &legacy::Error) -> Error {
    let text = with_causes(error);
    if error.is_connect() {
        Error::unreachable(text)
    } else {
        Error::network(text)
    }
}

/// How to trust servers: as the system does. The system's certificates are read once.
fn tls() -> Result<ClientConfig> {
    static TLS: OnceLock<Result<ClientConfig, String>> = OnceLock::new();
    let tls = TLS.get_or_init(|| {
        let config = builder()
            .and_then(BuilderVerifierExt::with_platform_verifier)
            .map_err(|error| with_causes(&error))?;
        let mut config = config.with_no_client_auth();
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(config)
    });
    tls.clone().map_err(|error| {
        Error::unreachable(format!(
            "cannot read the certificates of the system: {error}"
        ))
    })
}

/// For a system without certificates, and a server without TLS.
fn trusting_nobody() -> Result<ClientConfig> {
    let config = builder().map_err(|error| Error::unreachable(with_causes(&error)))?;
    let config = config.with_root_certificates(RootCertStore::empty());
    Ok(config.with_no_client_auth())
}

fn builder() -> Result<ConfigBuilder<ClientConfig, WantsVerifier>, rustls::Error> {
    let provider = Arc::new(ring::default_provider());
    ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions()
}

#[cfg(test)]
mod tests {
    use tokio::{
        io::{AsyncReadExt, AsyncWriteExt},
        net::TcpListener,
    };

    use super::*;

    /// Sends a request to `url` by a proxy that answers with `status`; returns what the proxy was sent.
    async fn by_proxy(url: &str, status: u16) -> (Result<Response<HttpBody>>, String) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let proxies = Matcher::builder().all(format!("http://me:secret@{address}"));
        let connector = Connector::new(trusting_nobody().unwrap(), proxies.build());
        let client = DefaultClient::over(connector);
        let proxy = async {
            let (mut socket, _) = listener.accept().await.unwrap();
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n") {
                head.push(socket.read_u8().await.unwrap());
            }
            let answer = format!("HTTP/1.1 {status} Here\r\ncontent-length: 0\r\n\r\n");
            socket.write_all(answer.as_bytes()).await.unwrap();
            String::from_utf8(head).unwrap()
        };
        let request = Request::get(url).body(Bytes::new()).unwrap();
        tokio::join!(client.send(request), proxy)
    }

    #[tokio::test]
    async fn a_proxy_is_told_where_requests_go_and_who_asks() {
        let (response, head) = by_proxy("http://example.test/mcp", 200).await;
        assert_eq!(response.unwrap().status(), 200);
        assert!(head.starts_with("GET http://example.test/mcp HTTP/1.1\r\n"));
        assert!(head.contains("proxy-authorization: Basic bWU6c2VjcmV0\r\n"));
        assert!(head.contains("host: example.test\r\n"));
    }

    #[tokio::test]
    async fn attack_21_a_proxy_sees_nothing_of_what_is_for_a_server_with_tls() {
        let (response, head) = by_proxy("https://example.test/mcp", 407).await;
        let error = response.unwrap_err();
        assert!(error.is_unreachable(), "{error}");
        assert!(error.message().contains("by way of the proxy 127.0.0.1"));
        assert!(!error.message().contains("secret"), "{error}");
        assert!(head.starts_with("CONNECT example.test:443 HTTP/1.1\r\n"));
        assert!(head.contains("Proxy-Authorization: Basic bWU6c2VjcmV0\r\n"));
        assert!(!head.contains("mcp"));
    }
}
