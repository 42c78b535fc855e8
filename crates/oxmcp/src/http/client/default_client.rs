//! The HTTP client that is there where the user brings none.

use std::{
    sync::{Arc, OnceLock},
    time::Duration,
};

use bytes::Bytes;
use futures_util::TryStreamExt;
use http::{Request, Response};
use reqwest::redirect::Policy;
use rustls::{ClientConfig, ConfigBuilder, RootCertStore, WantsVerifier, crypto::ring};
use rustls_platform_verifier::BuilderVerifierExt;

use super::http_client::{HttpBody, HttpClient};
use crate::{Error, Result, session::with_causes};

/// How long it may take to reach a server.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// How long an idle connection is kept: less than most servers and proxies keep one, so that it is not used while it dies.
const IDLE: Duration = Duration::from_secs(50);

/// A client with a pool of connections.
#[derive(Debug)]
pub(super) struct DefaultClient(reqwest::Client);

impl DefaultClient {
    /// # Errors
    /// Where the certificates of the system cannot be read, and they are needed.
    pub(super) fn new(needs_tls: bool) -> Result<Self> {
        let tls = match tls() {
            Err(_) if !needs_tls => trusting_nobody()?,
            tls => tls?,
        };
        let client = reqwest::Client::builder()
            .tls_backend_preconfigured(tls)
            .redirect(Policy::none())
            .retry(reqwest::retry::never())
            .tcp_nodelay(true)
            .connect_timeout(CONNECT_TIMEOUT)
            .pool_idle_timeout(IDLE)
            .user_agent(concat!("oxmcp/", env!("CARGO_PKG_VERSION")))
            .build();
        let client = client.map_err(|error| {
            Error::unreachable(format!(
                "cannot make HTTP requests: {}",
                with_causes(&error)
            ))
        })?;
        Ok(Self(client))
    }
}

impl HttpClient for DefaultClient {
    async fn send(&self, request: Request<Bytes>) -> Result<Response<HttpBody>> {
        let request = reqwest::Request::try_from(request).map_err(failed)?;
        let mut answer = self.0.execute(request).await.map_err(failed)?;
        let mut response = Response::new(());
        *response.status_mut() = answer.status();
        *response.headers_mut() = std::mem::take(answer.headers_mut());
        Ok(response.map(|()| HttpBody::new(answer.bytes_stream().map_err(failed))))
    }
}

/// The URL is left out: it may hold secrets, and who asked knows it.
fn failed(error: reqwest::Error) -> Error {
    let error = error.without_url();
    let text = with_causes(&error);
    let unsent = error.is_connect() || error.is_builder();
    if unsent {
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
