//! Connections to servers over TCP, TLS, and the proxies that the environment or the system names.

use std::{error::Error as StdError, sync::Arc, time::Duration};

use http::{HeaderValue, Uri, uri::Scheme};
use hyper::rt::{Read, Write};
use hyper_rustls::HttpsConnector;
use hyper_util::client::{
    legacy::connect::{Connection, HttpConnector, proxy::Tunnel},
    proxy::matcher::{Intercept, Matcher},
};
use rustls::ClientConfig;
use tokio::time::timeout;
use tower_service::Service;

#[cfg(feature = "auth")]
use crate::http::client::transport::address_guard::{AddressGuard, GuardedResolver};
use crate::{
    error::{Error, Result},
    http::client::transport::{
        destination::default_port,
        socks::{self, Connected, Unresolved, is_socks},
        tls_roots::{TlsRoots, explain},
    },
};

/// The time limit for connecting, including proxies and TLS: long enough for a lost packet or two, and for a server that is
/// started on demand.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(15);
/// The idle time before a connection is probed, and the number of probes before it is closed: an event stream may be silent for
/// hours, and a dead one should be resumed.
const KEEPALIVE: Duration = Duration::from_secs(15);
const PROBES: u32 = 3;

type BoxError = Box<dyn StdError + Send + Sync>;

/// Connects to servers, directly or through proxies.
#[derive(Clone, Debug)]
pub(crate) struct Connector {
    tcp: HttpConnector,
    /// The connector that connects only to checked addresses.
    #[cfg(feature = "auth")]
    guarded: Option<HttpConnector<GuardedResolver>>,
    roots: TlsRoots,
    proxies: Arc<Matcher>,
    /// Whether servers speak HTTP/2 without TLS, too.
    #[cfg(test)]
    pub(crate) speaks_http2: bool,
}

impl Connector {
    pub(crate) fn new(roots: TlsRoots, proxies: Matcher) -> Self {
        let mut tcp = HttpConnector::new();
        configure(&mut tcp);
        Self {
            tcp,
            #[cfg(feature = "auth")]
            guarded: None,
            roots,
            proxies: Arc::new(proxies),
            #[cfg(test)]
            speaks_http2: false,
        }
    }

    /// The same connector, whose direct connections go only to addresses that a guard allows.
    #[cfg(feature = "auth")]
    pub(crate) fn guarded(mut self, guard: AddressGuard) -> Self {
        let mut tcp = HttpConnector::new_with_resolver(GuardedResolver::new(guard));
        configure(&mut tcp);
        self.guarded = Some(tcp);
        self
    }

    /// Connects to the server of a URL.
    ///
    /// # Errors
    /// [`Error::unreachable`], with the reason in words.
    pub(crate) async fn connect(&self, uri: Uri) -> Result<Socket> {
        let connecting = timeout(CONNECT_TIMEOUT, self.clone().direct_or_proxied(uri));
        let connected = connecting
            .await
            .unwrap_or_else(|_| Err(format!("no connection within {CONNECT_TIMEOUT:?}").into()));
        #[cfg(test)]
        let connected = connected.map(|mut socket| {
            socket.is_http2 |= self.speaks_http2;
            socket
        });
        connected.map_err(|error| Error::unreachable(explain(&*error)))
    }

    async fn direct_or_proxied(self, uri: Uri) -> Result<Socket, BoxError> {
        let Some(proxy) = self.proxies.intercept(&uri) else {
            #[cfg(feature = "auth")]
            if let Some(guarded) = self.guarded {
                return connect(guarded, self.roots.servers(), uri).await;
            }
            return connect(self.tcp, self.roots.servers(), uri).await;
        };
        let connected = self.proxied(&proxy, uri).await;
        connected.map_err(|error| {
            let text = explain(&*error);
            if error.is::<Unresolved>() {
                // The proxy did not cause the error.
                return text.into();
            }
            let host = proxy.uri().host().unwrap_or_default();
            format!("through the proxy {host}:{}: {text}", port(&proxy)).into()
        })
    }

    async fn proxied(self, proxy: &Intercept, uri: Uri) -> Result<Socket, BoxError> {
        if is_socks(proxy) {
            let socket = socks::connect(self.tcp, proxy, &uri).await?;
            return connect(Connected(Some(socket)), self.roots.servers(), uri).await;
        }
        let hop = proxy.uri().clone();
        if uri.scheme() != Some(&Scheme::HTTPS) {
            let mut socket = connect(self.tcp, self.roots.proxies(), hop).await?;
            socket.forward_proxy = Some(ForwardProxy {
                credentials: proxy.basic_auth().cloned(),
            });
            return Ok(socket);
        }
        let connector = HttpsConnector::from((self.tcp, self.roots.proxies().await?));
        let mut tunnel = Tunnel::new(hop, connector);
        if let Some(credentials) = proxy.basic_auth() {
            tunnel = tunnel.with_auth(credentials.clone());
        }
        connect(tunnel, self.roots.servers(), uri).await
    }
}

/// The port of a proxy, which is the default one if its URL names none.
fn port(proxy: &Intercept) -> u16 {
    let uri = proxy.uri();
    let of_scheme = || match uri.scheme() {
        _ if is_socks(proxy) => socks::DEFAULT_PORT,
        Some(scheme) => default_port(scheme),
        None => default_port(&Scheme::HTTP),
    };
    uri.port_u16().unwrap_or_else(of_scheme)
}

/// Sets the options of all TCP connections.
fn configure<R>(tcp: &mut HttpConnector<R>) {
    tcp.enforce_http(false);
    tcp.set_nodelay(true);
    tcp.set_keepalive(Some(KEEPALIVE));
    tcp.set_keepalive_interval(Some(KEEPALIVE));
    tcp.set_keepalive_retries(Some(PROBES));
    #[cfg(any(target_os = "android", target_os = "fuchsia", target_os = "linux"))]
    tcp.set_tcp_user_timeout(Some(2 * KEEPALIVE));
}

/// Connects through a connector, and speaks TLS if the URL requires it: only then is `tls` awaited, which reads certificates.
async fn connect<C>(
    mut connector: C,
    tls: impl Future<Output = Result<Arc<ClientConfig>>>,
    uri: Uri,
) -> Result<Socket, BoxError>
where
    C: Service<Uri, Response: Io + Connection + 'static, Error: Into<BoxError>, Future: Send>
        + 'static,
    C::Future: 'static,
{
    if uri.scheme() != Some(&Scheme::HTTPS) {
        let connected = connector.call(uri).await;
        return Ok(Socket::new(connected.map_err(Into::into)?));
    }
    let mut connector = HttpsConnector::from((connector, tls.await?));
    Ok(Socket::new(connector.call(uri).await?))
}

/// A stream of bytes to a server.
pub(crate) struct Socket {
    pub(crate) io: BoxIo,
    /// Whether the server has chosen HTTP/2.
    pub(crate) is_http2: bool,
    /// The proxy that forwards the requests, if there is no tunnel through it.
    pub(crate) forward_proxy: Option<ForwardProxy>,
}

/// A proxy that reads the requests, which contain the whole URL.
pub(crate) struct ForwardProxy {
    pub(crate) credentials: Option<HeaderValue>,
}

pub(crate) type BoxIo = Box<dyn Io>;

pub(crate) trait Io: Read + Write + Send + Unpin {}

impl<T: Read + Write + Send + Unpin> Io for T {}

impl Socket {
    fn new(io: impl Io + Connection + 'static) -> Self {
        Self {
            is_http2: io.connected().is_negotiated_h2(),
            io: Box::new(io),
            forward_proxy: None,
        }
    }

    #[cfg(feature = "http-server")]
    #[cfg(test)]
    pub(crate) fn http2(io: impl Io + 'static) -> Self {
        Self {
            is_http2: true,
            io: Box::new(io),
            forward_proxy: None,
        }
    }
}
