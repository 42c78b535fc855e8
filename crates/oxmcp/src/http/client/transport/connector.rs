//! Connections to servers: direct ones, and by way of the proxies that the environment or the system names.

use std::{
    error::Error as StdError,
    io,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use http::{HeaderValue, Uri, uri::Scheme};
use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_rustls::HttpsConnector;
use hyper_util::client::{
    legacy::connect::{Connection, HttpConnector, proxy::Tunnel},
    proxy::matcher::{Intercept, Matcher},
};
use tokio::time::timeout;
use tower_service::Service;

use crate::http::client::transport::socks::{self, Reached, is_socks};
use crate::http::client::transport::tls_roots::{Trust, why};
use crate::{Error, Result};

/// How long it may take to reach a server.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// After how long a silent connection is probed, and how often before it is given up: a stream of events may be silent for
/// hours, and one that is dead should be taken up again.
const KEEPALIVE: Duration = Duration::from_secs(15);
const PROBES: u32 = 3;

type BoxError = Box<dyn StdError + Send + Sync>;

/// Makes connections.
#[derive(Clone, Debug)]
pub(crate) struct Connector {
    tcp: HttpConnector,
    trust: Trust,
    proxies: Arc<Matcher>,
    /// Whether servers speak HTTP/2 without TLS, too, which would say so.
    #[cfg(test)]
    pub(crate) speaks_http2: bool,
}

impl Connector {
    pub(crate) fn new(trust: Trust, proxies: Matcher) -> Self {
        let mut tcp = HttpConnector::new();
        tcp.enforce_http(false);
        tcp.set_nodelay(true);
        tcp.set_keepalive(Some(KEEPALIVE));
        tcp.set_keepalive_interval(Some(KEEPALIVE));
        tcp.set_keepalive_retries(Some(PROBES));
        #[cfg(any(target_os = "android", target_os = "fuchsia", target_os = "linux"))]
        tcp.set_tcp_user_timeout(Some(2 * KEEPALIVE));
        Self {
            tcp,
            trust,
            proxies: Arc::new(proxies),
            #[cfg(test)]
            speaks_http2: false,
        }
    }

    /// Reaches the server of a URL.
    ///
    /// # Errors
    /// What kept it from being reached, in words.
    pub(crate) async fn connect(&self, uri: Uri) -> Result<Socket> {
        let connecting = timeout(CONNECT_TIMEOUT, self.clone().reach(uri));
        let connected = connecting.await.unwrap_or_else(|_| {
            Err(format!("it could not be reached within {CONNECT_TIMEOUT:?}").into())
        });
        #[cfg(test)]
        let connected = connected.map(|mut socket| {
            socket.is_http2 |= self.speaks_http2;
            socket
        });
        connected.map_err(|error| Error::unreachable(why(&*error)))
    }

    async fn reach(mut self, uri: Uri) -> Result<Socket, BoxError> {
        let Some(proxy) = self.proxies.intercept(&uri) else {
            if uri.scheme() != Some(&Scheme::HTTPS) {
                return Ok(Socket::new(self.tcp.call(uri).await?));
            }
            let tls = self.trust.servers().await?;
            let mut direct = HttpsConnector::from((self.tcp, tls));
            return Ok(Socket::new(direct.call(uri).await?));
        };
        let named = proxy.uri().host().unwrap_or_default().to_owned();
        let connected = self.reach_by(&proxy, uri).await;
        connected.map_err(|error| format!("by way of the proxy {named}: {}", why(&*error)).into())
    }

    async fn reach_by(mut self, proxy: &Intercept, uri: Uri) -> Result<Socket, BoxError> {
        if is_socks(proxy) {
            let socket = socks::connect(self.tcp, proxy, &uri).await?;
            if uri.scheme() != Some(&Scheme::HTTPS) {
                return Ok(Socket::new(socket));
            }
            let tls = self.trust.servers().await?;
            let mut through = HttpsConnector::from((Reached(Some(socket)), tls));
            return Ok(Socket::new(through.call(uri).await?));
        }
        let hop = proxy.uri().clone();
        if uri.scheme() != Some(&Scheme::HTTPS) {
            let mut socket = if hop.scheme() == Some(&Scheme::HTTPS) {
                let tls = self.trust.proxies().await?;
                let mut connector = HttpsConnector::from((self.tcp, tls));
                Socket::new(connector.call(hop).await?)
            } else {
                Socket::new(self.tcp.call(hop).await?)
            };
            socket.relay = Some(Relay {
                credentials: proxy.basic_auth().cloned(),
            });
            return Ok(socket);
        }
        let connector = HttpsConnector::from((self.tcp, self.trust.proxies().await?));
        let mut tunnel = Tunnel::new(hop, connector);
        if let Some(credentials) = proxy.basic_auth() {
            tunnel = tunnel.with_auth(credentials.clone());
        }
        let tls = self.trust.servers().await?;
        let mut through = HttpsConnector::from((tunnel, tls));
        Ok(Socket::new(through.call(uri).await?))
    }
}

/// What bytes go through.
pub(crate) struct Socket {
    io: Box<dyn Io>,
    /// Whether the server wants to be spoken to in HTTP/2.
    pub(crate) is_http2: bool,
    /// Where it leads to a proxy that reads what is sent, and must be told where it goes.
    pub(crate) relay: Option<Relay>,
}

/// What each request tells such a proxy besides. Where there is a tunnel through it, the tunnel says it.
pub(crate) struct Relay {
    pub(crate) credentials: Option<HeaderValue>,
}

trait Io: Read + Write + Send + Unpin {}

impl<T: Read + Write + Send + Unpin> Io for T {}

impl Socket {
    fn new(io: impl Io + Connection + 'static) -> Self {
        Self {
            is_http2: io.connected().is_negotiated_h2(),
            io: Box::new(io),
            relay: None,
        }
    }

    #[cfg(feature = "http-server")]
    #[cfg(test)]
    pub(crate) fn of_http2(io: impl Read + Write + Send + Unpin + 'static) -> Self {
        Self {
            is_http2: true,
            io: Box::new(io),
            relay: None,
        }
    }
}

impl Read for Socket {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_read(cx, buffer)
    }
}

impl Write for Socket {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.io).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_shutdown(cx)
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.io).poll_write_vectored(cx, pieces)
    }
}
