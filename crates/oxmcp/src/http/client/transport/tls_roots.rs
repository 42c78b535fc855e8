//! Whom TLS trusts: whom the system trusts.

use std::{error::Error as StdError, io, sync::Arc};

use rustls::{
    CertificateError, ClientConfig, ConfigBuilder, WantsVerifier, client::WantsClientCert,
    crypto::ring,
};
use rustls_platform_verifier::BuilderVerifierExt;
use tokio::{sync::OnceCell, task::spawn_blocking};

use crate::{Error, Result, session::with_causes};

/// What to do where a certificate is one of those that only some trust.
const OWN_AUTHORITY: &str = "nobody whom this system trusts has issued the certificate: let the system trust the \
    authority that did; where the system keeps certificates in files, as Linux does, the variable SSL_CERT_FILE can name another one";

/// What to do where nobody speaks TLS.
const NO_TLS: &str =
    "what answers there does not speak TLS: begin its URL with http:// if that is right";

/// Whom to trust.
#[derive(Clone, Debug)]
pub(crate) enum Trust {
    /// Whom the system trusts. Its certificates are read when the first connection needs them, once in a process: that takes
    /// milliseconds, and many a client never needs them.
    System,
    #[cfg(test)]
    These(Tls),
    /// A system that has no certificates.
    #[cfg(test)]
    Unreadable,
}

/// How to speak TLS.
#[derive(Clone, Debug)]
pub(crate) struct Tls {
    /// Offers HTTP/2.
    servers: Arc<ClientConfig>,
    /// Proxies speak HTTP/1.1.
    proxies: Arc<ClientConfig>,
}

static SYSTEM: OnceCell<Tls> = OnceCell::const_new();

impl Trust {
    /// How to speak to servers.
    ///
    /// # Errors
    /// Where the certificates of the system cannot be read. It is tried again the next time.
    pub(crate) async fn servers(&self) -> Result<Arc<ClientConfig>> {
        Ok(self.tls().await?.servers)
    }

    /// How to speak to proxies.
    ///
    /// # Errors
    /// As above.
    pub(crate) async fn proxies(&self) -> Result<Arc<ClientConfig>> {
        Ok(self.tls().await?.proxies)
    }

    async fn tls(&self) -> Result<Tls> {
        match self {
            Self::System => {
                let tls = SYSTEM.get_or_try_init(|| async {
                    let read = spawn_blocking(Tls::of_the_system).await;
                    read.map_err(|error| Error::unreachable(with_causes(&error)))?
                });
                Ok(tls.await?.clone())
            }
            #[cfg(test)]
            Self::These(tls) => Ok(tls.clone()),
            #[cfg(test)]
            Self::Unreadable => Err(unreadable(&rustls::Error::General("none".into()))),
        }
    }
}

impl Tls {
    fn of_the_system() -> Result<Self> {
        let config = builder().and_then(BuilderVerifierExt::with_platform_verifier);
        Ok(Self::new(config.map_err(|error| unreadable(&error))?))
    }

    fn new(config: ConfigBuilder<ClientConfig, WantsClientCert>) -> Self {
        let proxies = config.with_no_client_auth();
        let mut servers = proxies.clone();
        servers.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Self {
            servers: Arc::new(servers),
            proxies: Arc::new(proxies),
        }
    }
}

fn unreadable(error: &rustls::Error) -> Error {
    Error::unreachable(format!(
        "cannot read the certificates of this system, by which servers with https are known ({}): does it lack a package \
         like ca-certificates, or does the variable SSL_CERT_FILE not name a file of certificates?",
        with_causes(error)
    ))
}

fn builder() -> Result<ConfigBuilder<ClientConfig, WantsVerifier>, rustls::Error> {
    let provider = Arc::new(ring::default_provider());
    ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions()
}

/// What kept a server from being reached, in words, and what to do.
pub(crate) fn why(error: &(dyn StdError + 'static)) -> String {
    let text = with_causes(error);
    let unknown = rustls::Error::InvalidCertificate(CertificateError::UnknownIssuer);
    match of_tls(error) {
        Some(error) if *error == unknown => format!("{text}: {OWN_AUTHORITY}"),
        Some(rustls::Error::InvalidMessage(_)) => format!("{text}: {NO_TLS}"),
        _ => text,
    }
}

/// What went wrong with TLS.
fn of_tls<'a>(error: &'a (dyn StdError + 'static)) -> Option<&'a rustls::Error> {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(error) = error.downcast_ref::<rustls::Error>() {
            return Some(error);
        }
        // What an I/O error was made of is no source of it, but its source is.
        let within = error
            .downcast_ref::<io::Error>()
            .and_then(|error| error.get_ref());
        next = match within {
            Some(within) => Some(within),
            None => error.source(),
        };
    }
    None
}

#[cfg(test)]
mod tests {
    use rustls::RootCertStore;

    use super::*;

    impl Trust {
        /// No server is trusted.
        pub(crate) fn nobody() -> Self {
            let config = builder().unwrap();
            Self::These(Tls::new(
                config.with_root_certificates(RootCertStore::empty()),
            ))
        }
    }

    #[test]
    fn who_is_not_trusted_is_told_how_to_be() {
        for (error, is_of_authority) in [
            (CertificateError::UnknownIssuer, true),
            (CertificateError::Expired, false),
        ] {
            let error = io::Error::other(rustls::Error::InvalidCertificate(error));
            let text = why(&io::Error::other(error));
            assert_eq!(text.contains("SSL_CERT_FILE"), is_of_authority, "{text}");
        }
    }
}
