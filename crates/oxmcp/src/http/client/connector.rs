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
use rustls::ClientConfig;
use tokio::time::timeout;
use tower_service::Service;

use crate::{Error, Result, session::with_causes};

/// How long it may take to reach a server.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// After how long a silent connection is probed, and how often before it is given up: a stream of events may be silent for
/// hours, and one that is dead should be taken up again.
const KEEPALIVE: Duration = Duration::from_secs(15);
const PROBES: u32 = 3;

type BoxError = Box<dyn StdError + Send + Sync>;

/// Makes connections.
#[derive(Clone, Debug)]
pub(super) struct Connector {
    /// To servers.
    direct: HttpsConnector<HttpConnector>,
    /// To proxies, which speak HTTP/1.1.
    hop: HttpsConnector<HttpConnector>,
    tls: Arc<ClientConfig>,
    proxies: Arc<Matcher>,
}

impl Connector {
    /// `tls` is for servers, and may offer them HTTP/2.
    pub(super) fn new(tls: ClientConfig, proxies: Matcher) -> Self {
        let mut tcp = HttpConnector::new();
        tcp.enforce_http(false);
        tcp.set_nodelay(true);
        tcp.set_keepalive(Some(KEEPALIVE));
        tcp.set_keepalive_interval(Some(KEEPALIVE));
        tcp.set_keepalive_retries(Some(PROBES));
        #[cfg(any(target_os = "android", target_os = "fuchsia", target_os = "linux"))]
        tcp.set_tcp_user_timeout(Some(2 * KEEPALIVE));
        let mut hop_tls = tls.clone();
        hop_tls.alpn_protocols.clear();
        let tls = Arc::new(tls);
        Self {
            direct: (tcp.clone(), Arc::clone(&tls)).into(),
            hop: (tcp, hop_tls).into(),
            tls,
            proxies: Arc::new(proxies),
        }
    }

    /// Reaches the server of a URL.
    ///
    /// # Errors
    /// What kept it from being reached, in words.
    pub(super) async fn connect(&self, uri: Uri) -> Result<Socket> {
        let connecting = timeout(CONNECT_TIMEOUT, self.clone().reach(uri));
        let connected = connecting.await.unwrap_or_else(|_| {
            Err(format!("it could not be reached within {CONNECT_TIMEOUT:?}").into())
        });
        connected.map_err(|error| Error::unreachable(with_causes(&*error)))
    }

    async fn reach(mut self, uri: Uri) -> Result<Socket, BoxError> {
        let Some(proxy) = self.proxies.intercept(&uri) else {
            return Ok(Socket::new(self.direct.call(uri).await?));
        };
        let named = proxy.uri().host().unwrap_or_default().to_owned();
        let connected = self.reach_by(&proxy, uri).await;
        connected.map_err(|error| {
            format!("by way of the proxy {named}: {}", with_causes(&*error)).into()
        })
    }

    async fn reach_by(mut self, proxy: &Intercept, uri: Uri) -> Result<Socket, BoxError> {
        if uri.scheme() != Some(&Scheme::HTTPS) {
            let mut socket = Socket::new(self.hop.call(proxy.uri().clone()).await?);
            socket.relay = Some(Relay {
                credentials: proxy.basic_auth().cloned(),
            });
            return Ok(socket);
        }
        let mut tunnel = Tunnel::new(proxy.uri().clone(), self.hop);
        if let Some(credentials) = proxy.basic_auth() {
            tunnel = tunnel.with_auth(credentials.clone());
        }
        let mut through = HttpsConnector::from((tunnel, self.tls));
        Ok(Socket::new(through.call(uri).await?))
    }
}

/// What bytes go through.
pub(super) struct Socket {
    io: Box<dyn Io>,
    /// Where it leads to a proxy that reads what is sent, and must be told where it goes.
    pub(super) relay: Option<Relay>,
}

/// What each request tells such a proxy besides. Where there is a tunnel through it, the tunnel says it.
pub(super) struct Relay {
    pub(super) credentials: Option<HeaderValue>,
}

trait Io: Read + Write + Connection + Send + Unpin {}

impl<T: Read + Write + Connection + Send + Unpin> Io for T {}

impl Socket {
    fn new(io: impl Io + 'static) -> Self {
        Self {
            io: Box::new(io),
            relay: None,
        }
    }

    /// Whether the server wants to be spoken to in HTTP/2.
    pub(super) fn is_http2(&self) -> bool {
        self.io.connected().is_negotiated_h2()
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
