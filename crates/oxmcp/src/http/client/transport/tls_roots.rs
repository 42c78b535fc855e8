//! The certificates that TLS trusts: those of the system.

use std::{error::Error as StdError, io, sync::Arc};

use rustls::{
    CertificateError, ClientConfig, ConfigBuilder, WantsVerifier, client::WantsClientCert,
    crypto::CryptoProvider,
};
use rustls_platform_verifier::BuilderVerifierExt;
use tokio::{sync::OnceCell, task::spawn_blocking};

use crate::{
    error::{Error, Result},
    session::handler::traits::with_causes,
};

/// The advice if the system does not trust the authority that issued a certificate.
const OWN_AUTHORITY: &str = "this system does not trust the certificate's issuer; add the issuer's CA certificate to \
    the trust store of the system, or name its file in SSL_CERT_FILE if the store is files, as on Linux";

/// The advice if there is no cryptography provider.
const NO_PROVIDER: &str = "no cryptography provider for TLS; enable the feature `ring` or `aws-lc-rs` of oxmcp, or install a \
    rustls provider with `CryptoProvider::install_default`";

/// The advice if a server shows the certificate of an authority, as many that were made by hand are.
const AUTHORITY_AS_SERVER: &str = "the server's certificate is a CA certificate (basicConstraints CA:TRUE), which cannot identify a \
    server; create one with CA:FALSE, as with `openssl req -x509 -addext basicConstraints=critical,CA:FALSE`";

/// The advice if the server does not speak TLS.
const NO_TLS: &str = "the server does not speak TLS; use http:// in its URL if that is intended";

/// The trusted certificates.
#[derive(Clone, Debug)]
pub(crate) enum TlsRoots {
    /// The certificates of the system. They are read when the first connection needs them, once in a process: that takes
    /// milliseconds, and many clients never need them.
    System,
    #[cfg(test)]
    These(TlsConfigs),
    /// A system that has no certificates.
    #[cfg(test)]
    Unreadable,
}

/// The configurations of TLS.
#[derive(Clone, Debug)]
pub(crate) struct TlsConfigs {
    /// The configuration for servers, which offers HTTP/2.
    servers: Arc<ClientConfig>,
    /// The configuration for proxies, which speak HTTP/1.1.
    proxies: Arc<ClientConfig>,
}

static SYSTEM: OnceCell<TlsConfigs> = OnceCell::const_new();

impl TlsRoots {
    /// The configuration for servers.
    ///
    /// # Errors
    /// If the certificates of the system cannot be read. The next call tries again.
    pub(crate) async fn servers(&self) -> Result<Arc<ClientConfig>> {
        Ok(self.tls().await?.servers)
    }

    /// The configuration for proxies.
    ///
    /// # Errors
    /// As for [`servers`](Self::servers).
    pub(crate) async fn proxies(&self) -> Result<Arc<ClientConfig>> {
        Ok(self.tls().await?.proxies)
    }

    async fn tls(&self) -> Result<TlsConfigs> {
        match self {
            Self::System => {
                let tls = SYSTEM.get_or_try_init(|| async {
                    let read = spawn_blocking(TlsConfigs::system).await;
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

impl TlsConfigs {
    fn system() -> Result<Self> {
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
        "could not read the CA certificates of this system: {}; install a package such as ca-certificates, or check that \
         SSL_CERT_FILE names a file of certificates",
        with_causes(error)
    ))
}

fn builder() -> Result<ConfigBuilder<ClientConfig, WantsVerifier>, rustls::Error> {
    let provider = CryptoProvider::get_default().cloned().or_else(built_in);
    let provider = provider.ok_or_else(|| rustls::Error::General(NO_PROVIDER.to_owned()))?;
    ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions()
}

/// The provider of the enabled features, if the program has installed none.
fn built_in() -> Option<Arc<CryptoProvider>> {
    #[cfg(feature = "aws-lc-rs")]
    return Some(Arc::new(rustls::crypto::aws_lc_rs::default_provider()));
    #[cfg(all(feature = "ring", not(feature = "aws-lc-rs")))]
    return Some(Arc::new(rustls::crypto::ring::default_provider()));
    #[cfg(not(any(feature = "ring", feature = "aws-lc-rs")))]
    None
}

/// The reason for which a connection failed, as text with advice.
pub(crate) fn explain(error: &(dyn StdError + 'static)) -> String {
    let text = with_causes(error);
    let unknown = rustls::Error::InvalidCertificate(CertificateError::UnknownIssuer);
    match tls_error(error) {
        Some(error) if *error == unknown => format!("{text}: {OWN_AUTHORITY}"),
        Some(rustls::Error::InvalidMessage(_)) => format!("{text}: {NO_TLS}"),
        Some(_) if text.contains("CaUsedAsEndEntity") => format!("{text}: {AUTHORITY_AS_SERVER}"),
        _ => text,
    }
}

/// The TLS error among an error and its sources.
fn tls_error<'a>(error: &'a (dyn StdError + 'static)) -> Option<&'a rustls::Error> {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(error) = error.downcast_ref::<rustls::Error>() {
            return Some(error);
        }
        // The source of an I/O error is not the error inside it, but the source of that error.
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

    impl TlsRoots {
        /// No certificates at all.
        pub(crate) fn none() -> Self {
            let config = builder().unwrap();
            Self::These(TlsConfigs::new(
                config.with_root_certificates(RootCertStore::empty()),
            ))
        }
    }

    #[test]
    fn ca_certificate_error_gives_advice() {
        #[derive(Debug)]
        struct CaUsedAsEndEntity;
        impl std::fmt::Display for CaUsedAsEndEntity {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("CaUsedAsEndEntity")
            }
        }
        impl StdError for CaUsedAsEndEntity {}
        let other = rustls::OtherError(Arc::new(CaUsedAsEndEntity));
        let error = rustls::Error::InvalidCertificate(CertificateError::Other(other));
        let text = explain(&io::Error::other(error));
        assert!(text.contains("CA:FALSE"), "{text}");
    }

    #[test]
    fn untrusted_certificate_error_gives_advice() {
        for (error, is_of_authority) in [
            (CertificateError::UnknownIssuer, true),
            (CertificateError::Expired, false),
        ] {
            let error = io::Error::other(rustls::Error::InvalidCertificate(error));
            let text = explain(&io::Error::other(error));
            assert_eq!(text.contains("SSL_CERT_FILE"), is_of_authority, "{text}");
        }
    }
}
