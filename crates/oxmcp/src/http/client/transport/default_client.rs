//! The HTTP client that is there where the user brings none.

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

use crate::http::client::transport::connection::{Connection, Origin};
use crate::http::client::transport::connector::Connector;
use crate::http::client::transport::http_client::{HttpBody, HttpClient};
use crate::http::client::transport::http2;
use crate::http::client::transport::pool::Pool;
use crate::http::client::transport::response_body::AnswerBody;
use crate::http::client::transport::tls_roots::Trust;
use crate::{Error, Result};

/// How it is called in requests.
const NAME: &str = concat!("oxmcp/", env!("CARGO_PKG_VERSION"));

/// How often a request that was not served is sent again: to as many connections as there may be that nobody has seen closed.
const TRIES: usize = Pool::MOST;

/// A client that uses connections again.
pub(crate) struct DefaultClient {
    pool: Arc<Pool>,
    connector: Connector,
    /// Whether the server speaks HTTP/2, with which requests share connections.
    is_shared: AtomicBool,
    /// Held by whoever opens such a connection, with when and why it was the last time that none could be.
    opening: Mutex<Option<(Instant, String)>>,
}

impl DefaultClient {
    /// One that trusts whom the system trusts, and goes by way of the proxies that it names.
    pub(crate) fn new() -> Self {
        Self::over(Connector::new(Trust::System, Matcher::from_system()))
    }

    /// Adds the headers that it would add to each request to this server. Those of the user stay.
    pub(crate) fn add_headers(headers: &mut HeaderMap, uri: &Uri) -> Result<()> {
        let name = HeaderValue::from_static(NAME);
        headers.entry(USER_AGENT).or_insert(name);
        let host = Origin::of(uri)?.host()?;
        headers.entry(HOST).or_insert(host);
        Ok(())
    }

    pub(crate) fn over(connector: Connector) -> Self {
        Self {
            pool: Arc::default(),
            connector,
            is_shared: AtomicBool::new(false),
            opening: Mutex::default(),
        }
    }

    /// A connection to where a URI leads.
    async fn reach(&self, uri: &Uri) -> Result<Reached> {
        match self.pool.take(uri) {
            Some(connection) => Ok(Reached::kept(connection)),
            None if self.is_shared.load(Ordering::Relaxed) => {
                Box::pin(self.reach_beside(uri)).await
            }
            None => Box::pin(self.connect(uri)).await,
        }
    }

    /// One more connection of HTTP/2, since those that there are have no room. Requests do not wait for each other: some may be
    /// answered only when what this side has to say meanwhile has come.
    async fn reach_beside(&self, uri: &Uri) -> Result<Reached> {
        let since = Instant::now();
        // There will be room for many on the next one.
        let mut failed = self.opening.lock().await;
        if let Some(connection) = self.pool.take(uri) {
            return Ok(Reached::kept(connection));
        }
        let (when, error) = match failed.take() {
            // Another one would have done no better.
            Some((when, why)) if when >= since => (when, Error::unreachable(why)),
            _ => match self.connect(uri).await {
                Ok(reached) => return Ok(reached),
                Err(error) => (Instant::now(), error),
            },
        };
        *failed = Some((when, error.message().to_owned()));
        // A server that wants no further one has its reasons; then requests do wait.
        self.pool.take_any(uri).map(Reached::kept).ok_or(error)
    }

    async fn connect(&self, uri: &Uri) -> Result<Reached> {
        let socket = self.connector.connect(uri.clone()).await?;
        if socket.is_http2
            // Somebody may have been faster.
            && let Some(shared) = self.pool.take(uri)
        {
            return Ok(Reached::kept(shared));
        }
        let mut connection = Connection::open(socket, uri).await?;
        connection.occupy();
        let shared = connection.share();
        self.is_shared.store(shared.is_some(), Ordering::Relaxed);
        if let Some(shared) = shared {
            self.pool.put(shared);
        }
        Ok(Reached {
            connection,
            is_new: true,
        })
    }
}

/// A connection that was reached.
struct Reached {
    connection: Connection,
    is_new: bool,
}

impl Reached {
    /// One that may have been closed while nobody used it.
    fn kept(connection: Connection) -> Self {
        Self {
            connection,
            is_new: false,
        }
    }

    /// Sends a request. Gives it back where another connection may serve it.
    async fn send(
        mut self,
        request: Request<Full<Bytes>>,
        pool: &Arc<Pool>,
    ) -> Result<Result<Response<HttpBody>, Request<Full<Bytes>>>> {
        let again = self.connection.may_refuse().then(|| request.clone());
        let mut failed = match self.connection.send(request).await {
            Ok(response) => {
                let body = |body| HttpBody::new(AnswerBody::new(body, self.connection, pool));
                return Ok(Ok(response.map(body)));
            }
            Err(failed) => failed,
        };
        let unserved = again.filter(|_| http2::is_unserved(failed.error()));
        let unsent = failed.take_message().or(unserved);
        let why = Box::pin(self.connection.why(failed.error()));
        match unsent {
            Some(unsent) if !self.is_new => Ok(Err(unsent)),
            // The server closed it at once, or refused. Nothing was served.
            Some(_) => Err(Error::unreachable(why.await)),
            None => Err(Error::network(why.await)),
        }
    }
}

impl HttpClient for DefaultClient {
    async fn send(&self, request: Request<Bytes>) -> Result<Response<HttpBody>> {
        let mut request = request.map(Full::new);
        let uri = request.uri().clone();
        for _ in 0..=TRIES {
            let reached = self.reach(&uri).await?;
            match reached.send(request, &self.pool).await? {
                Ok(response) => return Ok(response),
                Err(unsent) => request = unsent,
            }
            *request.uri_mut() = uri.clone();
        }
        Err(Error::unreachable("the server takes no request"))
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
    async fn what_was_closed_before_anything_was_sent_was_not_reached() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/mcp", listener.local_addr().unwrap());
        let client = direct(Trust::nobody());
        for is_new in [true, false] {
            let reached = client.connect(&url.parse().unwrap()).await.unwrap();
            assert!(reached.is_new);
            drop(listener.accept().await.unwrap());
            let mut reached = Reached { is_new, ..reached };
            reached.connection.ended().await;
            let request = Request::get(&url).body(Full::default()).unwrap();
            let sent = reached.send(request, &client.pool).await;
            assert_eq!(sent.is_err_and(|error| error.is_unreachable()), is_new);
        }
    }

    /// Asks a server whose answer has this header in it. Returns the client, which keeps the connection, and to where.
    async fn answered(header: &str) -> (DefaultClient, Uri) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/mcp", listener.local_addr().unwrap());
        let client = direct(Trust::nobody());
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
    async fn a_connection_is_kept_for_less_than_the_server_keeps_it() {
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
    async fn one_that_must_be_closed_soon_does_not_wait_for_others() {
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

    fn direct(trust: Trust) -> DefaultClient {
        DefaultClient::over(Connector::new(trust, Matcher::builder().build()))
    }

    #[tokio::test]
    async fn without_tls_nobody_needs_certificates() {
        let client = direct(Trust::Unreadable);
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
