//! Connections through a SOCKS proxy.
//! See [SOCKS 5](https://www.rfc-editor.org/rfc/rfc1928).

use std::{
    error::Error as StdError,
    fmt,
    future::{Ready, ready},
    io,
    task::{Context, Poll},
};

use http::{Uri, uri::Scheme};
use hyper_util::{
    client::{
        legacy::connect::{HttpConnector, proxy::SocksV5},
        proxy::matcher::Intercept,
    },
    rt::TokioIo,
};
use tokio::net::{TcpStream, lookup_host};
use tower_service::Service;

use crate::http::client::transport::destination::default_port;

type BoxError = Box<dyn StdError + Send + Sync>;

/// The port of proxies whose URL names no port.
pub(crate) const DEFAULT_PORT: u16 = 1080;

/// Whether a proxy speaks SOCKS, in any version.
pub(crate) fn is_socks(proxy: &Intercept) -> bool {
    let scheme = proxy.uri().scheme_str();
    scheme.is_some_and(|it| it.starts_with("socks"))
}

/// Connects to the server of a URL through a proxy.
///
/// # Errors
/// If the proxy cannot be reached, speaks SOCKS 4, or cannot reach the server.
pub(crate) async fn connect(
    mut tcp: HttpConnector,
    proxy: &Intercept,
    uri: &Uri,
) -> Result<TokioIo<TcpStream>, BoxError> {
    let hop = proxy.uri();
    let resolves_names =
        match hop.scheme_str() {
            Some("socks5h") => true,
            Some("socks5") => false,
            _ => return Err(
                "unsupported proxy scheme: only SOCKS 5 is supported; use socks5:// or socks5h://"
                    .into(),
            ),
        };
    let host = hop.host().unwrap_or_default();
    let hop = at(&format!(
        "{host}:{}",
        hop.port_u16().unwrap_or(DEFAULT_PORT)
    ))?;
    let server = at(&address(uri, resolves_names).await?)?;
    let socket = tcp.call(hop.clone()).await?;
    let mut socks = SocksV5::new(hop, Connected(Some(socket)));
    if let Some((user, password)) = proxy.raw_auth() {
        socks = socks.with_auth(user.to_owned(), password.to_owned());
    }
    Ok(socks.call(server).await?)
}

fn at(authority: &str) -> Result<Uri, http::Error> {
    Uri::builder()
        .scheme(Scheme::HTTP)
        .authority(authority)
        .path_and_query("/")
        .build()
}

/// The host and the port of a server, or its address, if the proxy does not resolve names. (`SocksV5::local_dns` would block the
/// thread.)
async fn address(uri: &Uri, resolves_names: bool) -> Result<String, BoxError> {
    let host = uri.host().unwrap_or_default();
    let scheme = uri.scheme().unwrap_or(&Scheme::HTTP);
    let port = uri.port_u16().unwrap_or_else(|| default_port(scheme));
    if resolves_names || host.starts_with('[') {
        return Ok(format!("{host}:{port}"));
    }
    let found = lookup_host((host, port)).await;
    let why = match found.map(|mut addresses| addresses.next()) {
        Ok(Some(address)) => return Ok(address.to_string()),
        Ok(None) => "no address found".to_owned(),
        Err(error) => error.to_string(),
    };
    let host = host.to_owned();
    Err(Box::new(Unresolved { host, why }))
}

/// The error for a name that this system cannot resolve. The proxy was not asked.
#[derive(Debug)]
pub(crate) struct Unresolved {
    host: String,
    why: String,
}

impl fmt::Display for Unresolved {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { host, why } = self;
        write!(
            f,
            "could not resolve {host}: {why}; to resolve names on the proxy, use socks5h:// instead of socks5://"
        )
    }
}

impl StdError for Unresolved {}

/// A connector that returns an existing connection.
pub(crate) struct Connected<T>(pub(crate) Option<T>);

impl<T> Service<Uri> for Connected<T> {
    type Response = T;
    type Error = io::Error;
    type Future = Ready<io::Result<T>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Uri) -> Self::Future {
        let used = || io::Error::from(io::ErrorKind::NotConnected);
        ready(self.0.take().ok_or_else(used))
    }
}
