//! Default HTTP client, on hyper: it takes connections out of the pool, and retries requests that a server has not served.

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use bytes::Bytes;
use http::{
    HeaderMap, HeaderValue, Request, Response, Uri,
    header::{HOST, USER_AGENT},
};
use http_body_util::Full;
use hyper_util::client::proxy::matcher::Matcher;
use tokio::{sync::Mutex, time::Instant};

#[cfg(feature = "auth")]
use crate::http::client::transport::address_guard::AddressGuard;
use crate::{
    error::{Error, Result},
    http::client::transport::{
        connection::Connection,
        connector::Connector,
        destination::Destination,
        http_client::{HttpBody, HttpClient},
        pool::{MAX_IDLE_CONNECTIONS, Pool},
        response_body::ResponseBody,
        stream_limits::Reset,
        tls_roots::TlsRoots,
    },
};

/// The value of the header `User-Agent`.
const USER_AGENT_NAME: &str = concat!("oxmcp/", env!("CARGO_PKG_VERSION"));

/// The maximum number of retries of a request that was not served: one for each connection of the pool, since all may be closed.
const MAX_RETRIES: usize = MAX_IDLE_CONNECTIONS;

/// The default [`HttpClient`] of an [`Endpoint`](crate::http::Endpoint): with the certificates and the proxies of the system, a
/// pool of connections, and HTTP/2 if the server supports it. It is public so that it can be wrapped.
///
/// ```
/// use bytes::Bytes;
/// use http::{Request, Response};
/// use oxmcp::{Result, http::{DefaultClient, Endpoint, HttpBody, HttpClient}};
///
/// /// Counts the requests.
/// struct Counting { client: DefaultClient, sent: std::sync::atomic::AtomicU64 }
///
/// impl HttpClient for Counting {
///     async fn send(&self, request: Request<Bytes>) -> Result<Response<HttpBody>> {
///         self.sent.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
///         self.client.send(request).await
///     }
/// }
///
/// let counting = Counting { client: DefaultClient::new(), sent: 0.into() };
/// let endpoint = Endpoint::new("https://example.com/mcp").http_client(counting);
/// # let _ = endpoint;
/// ```
pub struct DefaultClient {
    pool: Arc<Pool>,
    connector: Connector,
    /// Whether the server speaks HTTP/2, over which requests share connections.
    is_shared: AtomicBool,
    /// Held while a further connection of HTTP/2 is opened, with the last failure to open one.
    opening: Mutex<Option<FailedAttempt>>,
}

/// The time and the reason of a failure to open a connection.
struct FailedAttempt {
    at: Instant,
    why: String,
}

impl DefaultClient {
    /// Creates a client with the certificates and the proxies of the system.
    #[must_use]
    pub fn new() -> Self {
        Self::with_connector(Connector::new(TlsRoots::System, Matcher::from_system()))
    }

    /// The same client, which connects only to addresses that a guard allows.
    #[cfg(feature = "auth")]
    pub(crate) fn guarded(guard: AddressGuard) -> Self {
        let connector = Connector::new(TlsRoots::System, Matcher::from_system());
        Self::with_connector(connector.guarded(guard))
    }

    pub(crate) fn with_connector(connector: Connector) -> Self {
        Self {
            pool: Arc::default(),
            connector,
            is_shared: AtomicBool::new(false),
            opening: Mutex::default(),
        }
    }

    /// Adds the headers that this client adds to each request to a server. Headers of the user stay.
    pub(crate) fn add_headers(headers: &mut HeaderMap, uri: &Uri) -> Result<()> {
        let name = HeaderValue::from_static(USER_AGENT_NAME);
        headers.entry(USER_AGENT).or_insert(name);
        let host = Destination::of(uri)?.host_header()?;
        headers.entry(HOST).or_insert(host);
        Ok(())
    }

    /// A connection for a request: from the pool, or a new one.
    async fn checkout(&self, uri: &Uri) -> Result<Checkout> {
        match self.pool.take(uri) {
            Some(connection) => Ok(Checkout::pooled(connection)),
            None if self.is_shared.load(Ordering::Relaxed) => {
                Box::pin(self.open_another(uri)).await
            }
            None => Box::pin(self.connect(uri)).await,
        }
    }

    /// Opens one more connection of HTTP/2, because the others have no free stream. A request does not wait for a free stream: some
    /// responses come only after further requests.
    async fn open_another(&self, uri: &Uri) -> Result<Checkout> {
        let since = Instant::now();
        // Only one connection is opened at a time, because it has streams for many requests.
        let mut failed = self.opening.lock().await;
        if let Some(connection) = self.pool.take(uri) {
            return Ok(Checkout::pooled(connection));
        }
        let (at, error) = match failed.take() {
            // Another attempt would fail, too.
            Some(FailedAttempt { at, why }) if at >= since => (at, Error::unreachable(why)),
            _ => match self.connect(uri).await {
                Ok(checkout) => return Ok(checkout),
                Err(error) => (Instant::now(), error),
            },
        };
        let why = error.message().to_owned();
        *failed = Some(FailedAttempt { at, why });
        // If the server accepts no further connection, requests do wait.
        self.pool.take_any(uri).map(Checkout::pooled).ok_or(error)
    }

    async fn connect(&self, uri: &Uri) -> Result<Checkout> {
        let socket = self.connector.connect(uri.clone()).await?;
        if socket.is_http2
            // Another request may have opened one meanwhile.
            && let Some(shared) = self.pool.take(uri)
        {
            return Ok(Checkout::pooled(shared));
        }
        let mut connection = Connection::open(socket, uri).await?;
        connection.reserve_stream();
        let shared = connection.share();
        self.is_shared.store(shared.is_some(), Ordering::Relaxed);
        if let Some(shared) = shared {
            self.pool.put(shared);
        }
        Ok(Checkout {
            connection,
            is_new: true,
        })
    }
}

/// A connection for one request.
struct Checkout {
    connection: Connection,
    is_new: bool,
}

impl Checkout {
    /// A connection that may have been closed while it was idle.
    fn pooled(connection: Connection) -> Self {
        Self {
            connection,
            is_new: false,
        }
    }

    /// Sends a request. Returns the request if another connection may serve it.
    async fn send(
        mut self,
        request: Request<Full<Bytes>>,
        pool: &Arc<Pool>,
    ) -> Result<Result<Response<HttpBody>, Request<Full<Bytes>>>> {
        // Only HTTP/2 reports that a request that was sent was not served.
        let copy = self.connection.is_http2().then(|| request.clone());
        let mut failed = match self.connection.send(request).await {
            Ok(response) => {
                let body = |body| HttpBody::new(ResponseBody::new(body, self.connection, pool));
                return Ok(Ok(response.map(body)));
            }
            Err(failed) => failed,
        };
        let is_unserved = Reset::of(failed.error()).is_some_and(|reset| reset.is_unserved());
        let unserved = failed
            .take_message()
            .or_else(|| copy.filter(|_| is_unserved));
        let why = Box::pin(self.connection.explain(failed.error()));
        match unserved {
            Some(request) if !self.is_new => Ok(Err(request)),
            // The server closed the connection at once, or refused its first request.
            Some(_) => Err(Error::unreachable(why.await)),
            None => Err(Error::network(why.await)),
        }
    }
}

impl HttpClient for DefaultClient {
    async fn send(&self, request: Request<Bytes>) -> Result<Response<HttpBody>> {
        let mut request = request.map(Full::new);
        let uri = request.uri().clone();
        for _ in 0..=MAX_RETRIES {
            let checkout = self.checkout(&uri).await?;
            match checkout.send(request, &self.pool).await? {
                Ok(response) => return Ok(response),
                Err(unserved) => request = unserved,
            }
            *request.uri_mut() = uri.clone();
        }
        Err(Error::unreachable("the server accepts no requests"))
    }
}

impl Default for DefaultClient {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for DefaultClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("DefaultClient")
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::{io::AsyncWriteExt, net::TcpListener};

    use super::*;
    use crate::http::client::transport::proxy_tests::head;

    #[tokio::test]
    async fn connection_closed_before_sending_is_unreachable() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/mcp", listener.local_addr().unwrap());
        let client = direct(TlsRoots::none());
        for is_new in [true, false] {
            let checkout = client.connect(&url.parse().unwrap()).await.unwrap();
            assert!(checkout.is_new);
            drop(listener.accept().await.unwrap());
            let mut checkout = Checkout { is_new, ..checkout };
            checkout.connection.ended().await;
            let request = Request::get(&url).body(Full::default()).unwrap();
            let sent = checkout.send(request, &client.pool).await;
            assert_eq!(sent.is_err_and(|error| error.is_unreachable()), is_new);
        }
    }

    /// Makes a request to a server whose answer contains this header. Returns the client, which keeps the connection, and the URL.
    async fn answered(header: &str) -> (DefaultClient, Uri) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/mcp", listener.local_addr().unwrap());
        let client = direct(TlsRoots::none());
        let server = async {
            let (mut socket, _) = listener.accept().await.unwrap();
            head(&mut socket).await;
            let answer = format!("HTTP/1.1 200 OK\r\n{header}content-length: 0\r\n\r\n");
            socket.write_all(answer.as_bytes()).await.unwrap();
            socket
        };
        let request = Request::get(&url).body(Bytes::new()).unwrap();
        let (response, _socket) = tokio::join!(client.send(request), server);
        assert_eq!(response.unwrap().status(), 200);
        (client, url.parse().unwrap())
    }

    #[tokio::test]
    async fn idle_connection_is_closed_before_the_server_does() {
        for (header, seconds) in [
            ("", 4),
            ("keep-alive: timeout=3\r\n", 2),
            ("keep-alive: max=7, Timeout = 20\r\n", 19),
            ("keep-alive: timeout=100\r\n", 50),
            ("keep-alive: timeout=18446744073709551616\r\n", 4),
            ("keep-alive: max=7\r\n", 4),
            ("keep-alive: timeout=1\r\n", 0),
            ("keep-alive: timeout=0\r\n", 0),
        ] {
            let (client, _) = answered(header).await;
            tokio::time::pause();
            assert_eq!(client.pool.len(), usize::from(seconds > 0), "{header}");
            let step = Duration::from_millis(500);
            tokio::time::sleep((Duration::from_secs(seconds)).saturating_sub(step)).await;
            assert_eq!(client.pool.len(), usize::from(seconds > 0), "{header}");
            tokio::time::sleep(2 * step).await;
            assert_eq!(client.pool.len(), 0, "{header}");
            tokio::time::resume();
        }
    }

    #[tokio::test]
    async fn sweeper_follows_the_earliest_deadline() {
        let (long, _) = answered("keep-alive: timeout=40\r\n").await;
        let (short, uri) = answered("").await;
        tokio::time::pause();
        let pool = &long.pool;
        pool.put(short.pool.take(&uri).unwrap());
        assert_eq!(pool.len(), 2);
        tokio::time::sleep(Duration::from_secs(5)).await;
        assert_eq!(pool.len(), 1);
        tokio::time::sleep(Duration::from_secs(40)).await;
        assert_eq!(pool.len(), 0);
    }

    #[tokio::test]
    async fn early_response_is_read() {
        use tokio::io::AsyncReadExt;

        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/mcp", listener.local_addr().unwrap());
        let client = direct(TlsRoots::none());
        for _ in 0..5 {
            let server = async {
                let (mut socket, _) = listener.accept().await.unwrap();
                let mut beginning = [0; 1024];
                socket.read_exact(&mut beginning).await.unwrap();
                let answer = b"HTTP/1.1 413 Content Too Large\r\ncontent-length: 4\r\nconnection: close\r\n\r\nmuch";
                socket.write_all(answer).await.unwrap();
                // The rest of the body is not read: the connection is reset.
                drop(socket);
            };
            let body = Bytes::from(vec![b'x'; 10 << 20]);
            let request = Request::post(&url).body(body).unwrap();
            let (response, ()) = tokio::join!(client.send(request), server);
            assert_eq!(response.unwrap().status(), 413);
        }
    }

    fn direct(roots: TlsRoots) -> DefaultClient {
        DefaultClient::with_connector(Connector::new(roots, Matcher::builder().build()))
    }

    #[tokio::test]
    async fn certificates_are_read_only_for_tls() {
        let client = direct(TlsRoots::Unreadable);
        let request = |url: &str| Request::get(url).body(Bytes::new()).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let authority = listener.local_addr().unwrap();
        let plain = client.send(request(&format!("http://{authority}/")));
        let server = async {
            let (mut socket, _) = listener.accept().await.unwrap();
            head(&mut socket).await;
            let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n";
            socket.write_all(answer).await.unwrap();
        };
        let (answer, ()) = tokio::join!(plain, server);
        assert_eq!(answer.unwrap().status(), 200);
        let secret = client.send(request(&format!("https://{authority}/")));
        let error = secret.await.unwrap_err();
        assert!(error.is_unreachable(), "{error}");
        assert!(error.message().contains("SSL_CERT_FILE"), "{error}");
    }
}
