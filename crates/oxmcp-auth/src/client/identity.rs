//! A client that is known to an authorization server.

use std::{fmt, sync::Arc};

use serde::{Deserialize, Serialize};

use crate::{
    error::{AuthError, Result},
    jose::SigningKey,
    secret::Secret,
    time::UnixTime,
    url_rules::{UrlRules, is_same_issuer},
};

/// The most bytes of a client's id.
const MAX_ID: usize = 2048;

/// The method by which a client authenticates.
#[derive(Clone)]
pub(crate) enum ClientAuthentication {
    /// No authentication: a public client sends only its id.
    None,
    /// A secret, sent by the method that the server's metadata names.
    Secret(Secret),
    /// A secret in the header ([RFC 6749, section 2.3.1](https://www.rfc-editor.org/rfc/rfc6749#section-2.3.1)).
    SecretBasic(Secret),
    /// A secret in the body.
    SecretPost(Secret),
    /// A signed assertion ([RFC 7523](https://www.rfc-editor.org/rfc/rfc7523#section-2.2)).
    PrivateKeyJwt(Arc<SigningKey>),
}

impl fmt::Debug for ClientAuthentication {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::None => "none",
            Self::Secret(_) => "secret",
            Self::SecretBasic(_) => "client_secret_basic",
            Self::SecretPost(_) => "client_secret_post",
            Self::PrivateKeyJwt(_) => "private_key_jwt",
        })
    }
}

/// A client that is known to an authorization server: its ID, and the method by which it authenticates.
///
/// ```
/// use oxmcp_auth::client::Client;
///
/// let client = Client::new("my-client")?.with_secret("hunter2").issued_by("https://as.example");
/// assert!(!format!("{client:?}").contains("hunter2"));
/// # Ok::<(), oxmcp_auth::AuthError>(())
/// ```
///
/// See [Client Registration](https://modelcontextprotocol.io/specification/2026-07-28/basic/authorization/client-registration).
#[derive(Clone, Debug)]
pub struct Client {
    id: String,
    authentication: ClientAuthentication,
    issuer: Option<String>,
    redirect_uris: Option<Vec<String>>,
    expires_at: Option<UnixTime>,
}

impl Client {
    /// Creates a client that was registered manually. Name the server with [`issued_by`](Self::issued_by).
    ///
    /// # Errors
    ///
    /// If the ID is empty, longer than 2 KiB, or not printable ASCII.
    pub fn new(id: impl Into<String>) -> Result<Self> {
        let id = id.into();
        let is_id =
            (1..=MAX_ID).contains(&id.len()) && id.bytes().all(|it| matches!(it, b' '..=b'~'));
        if !is_id {
            return Err(AuthError::malformed(
                "invalid client ID: empty, too long, or not printable ASCII",
            ));
        }
        Ok(Self {
            id,
            authentication: ClientAuthentication::None,
            issuer: None,
            redirect_uris: None,
            expires_at: None,
        })
    }

    /// Creates a client whose ID is the URL of its metadata document. The ID is the same at every server.
    ///
    /// # Errors
    ///
    /// If the URL is not https, or has no path.
    pub fn from_document_url(url: impl Into<String>) -> Result<Self> {
        let url = url.into();
        check_document_url(&url)?;
        Self::new(url)
    }

    pub(crate) fn registered(issuer: &str, id: String) -> Result<Self> {
        Ok(Self::new(id)?.issued_by(issuer))
    }

    /// Sets the client secret, which is sent by the method that the server's metadata names.
    #[must_use]
    pub fn with_secret(mut self, secret: impl Into<Secret>) -> Self {
        self.authentication = ClientAuthentication::Secret(secret.into());
        self
    }

    /// Sets the private key with which the client signs assertions (`private_key_jwt`).
    #[must_use]
    pub fn with_key(mut self, key: Arc<SigningKey>) -> Self {
        self.authentication = ClientAuthentication::PrivateKeyJwt(key);
        self
    }

    /// Binds the client to this authorization server. It is never used at another one.
    #[must_use]
    pub fn issued_by(mut self, issuer: impl Into<String>) -> Self {
        self.issuer = Some(issuer.into());
        self
    }

    /// Sets the redirect URIs with which the client is registered. It is never used with others.
    #[must_use]
    pub fn with_redirect_uris(mut self, uris: Vec<String>) -> Self {
        self.redirect_uris = Some(uris);
        self
    }

    pub(crate) fn with_registered_secret(
        mut self,
        secret: Secret,
        method: Option<&str>,
    ) -> Result<Self> {
        self.authentication = match method {
            None | Some("client_secret_basic") => ClientAuthentication::SecretBasic(secret),
            Some("client_secret_post") => ClientAuthentication::SecretPost(secret),
            Some("none") => ClientAuthentication::None,
            Some(other) => {
                return Err(AuthError::unsupported(format!(
                    "unsupported authentication method {other:?} of the registered client"
                )));
            }
        };
        Ok(self)
    }

    pub(crate) fn with_expiry(mut self, at: UnixTime) -> Self {
        self.expires_at = Some(at);
        self
    }

    /// Returns the ID of the client.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Returns whether the client authenticates with a secret or a key.
    ///
    /// Bind such a client to a server with [`issued_by`](Self::issued_by): an MCP server could otherwise name another
    /// authorization server, which could misuse the credentials that it receives.
    #[must_use]
    pub fn is_confidential(&self) -> bool {
        !matches!(self.authentication, ClientAuthentication::None)
    }

    /// Returns the authorization server to which the client is bound, if any.
    #[must_use]
    pub fn issuer(&self) -> Option<&str> {
        self.issuer.as_deref()
    }

    /// Returns the redirect URIs with which the client is registered, if they are known.
    #[must_use]
    pub fn redirect_uris(&self) -> Option<&[String]> {
        self.redirect_uris.as_deref()
    }

    /// The secret by which the client authenticates, if it has one.
    pub(crate) fn secret(&self) -> Option<&Secret> {
        match &self.authentication {
            ClientAuthentication::Secret(secret)
            | ClientAuthentication::SecretBasic(secret)
            | ClientAuthentication::SecretPost(secret) => Some(secret),
            ClientAuthentication::None | ClientAuthentication::PrivateKeyJwt(_) => None,
        }
    }

    pub(crate) fn authentication(&self) -> &ClientAuthentication {
        &self.authentication
    }

    /// Returns whether the client can be used at this server, with this redirect URI, at the time `now`.
    #[must_use]
    pub fn is_usable(&self, issuer: &str, redirect_uri: Option<&str>, now: UnixTime) -> bool {
        let is_theirs = self
            .issuer
            .as_deref()
            .is_none_or(|it| is_same_issuer(it, issuer));
        let is_registered = redirect_uri.is_none_or(|uri| {
            let uris = self.redirect_uris.as_ref();
            uris.is_none_or(|uris| uris.iter().any(|it| it == uri))
        });
        is_theirs && is_registered && self.expires_at.is_none_or(|at| now < at)
    }

    /// Fails if the client is bound to another server.
    pub(crate) fn check_issuer(&self, issuer: &str) -> Result<()> {
        match &self.issuer {
            Some(own) if !is_same_issuer(own, issuer) => Err(AuthError::untrusted(format!(
                "client {:?} is registered at {own:?}, but the MCP server names the authorization server {issuer:?}; if that is \
                 right, configure a client that is registered there",
                self.id
            ))),
            _ => Ok(()),
        }
    }

    /// The stored form of the client. A private key is not stored: a client with one is configured again each time.
    pub(crate) fn to_stored(&self) -> StoredClient {
        let (method, secret) = match &self.authentication {
            ClientAuthentication::None | ClientAuthentication::PrivateKeyJwt(_) => (None, None),
            ClientAuthentication::Secret(it) => (Some("secret"), Some(it)),
            ClientAuthentication::SecretBasic(it) => (Some("client_secret_basic"), Some(it)),
            ClientAuthentication::SecretPost(it) => (Some("client_secret_post"), Some(it)),
        };
        StoredClient {
            id: self.id.clone(),
            method: method.map(str::to_owned),
            secret: secret.map(|it| it.expose().to_owned()),
            issuer: self.issuer.clone(),
            redirect_uris: self.redirect_uris.clone(),
            expires_at: self.expires_at.map(UnixTime::seconds),
        }
    }

    pub(crate) fn from_stored(stored: StoredClient) -> Result<Self> {
        let secret = stored.secret.map(Secret::new);
        let authentication = match (stored.method.as_deref(), secret) {
            (None, _) => ClientAuthentication::None,
            (Some("secret"), Some(it)) => ClientAuthentication::Secret(it),
            (Some("client_secret_basic"), Some(it)) => ClientAuthentication::SecretBasic(it),
            (Some("client_secret_post"), Some(it)) => ClientAuthentication::SecretPost(it),
            _ => {
                return Err(AuthError::malformed(
                    "could not read stored credentials; log in again",
                ));
            }
        };
        Ok(Self {
            authentication,
            issuer: stored.issuer,
            redirect_uris: stored.redirect_uris,
            expires_at: stored.expires_at.map(UnixTime::from_seconds),
            ..Self::new(stored.id)?
        })
    }
}

/// The stored form of a client.
#[derive(Serialize, Deserialize)]
pub(crate) struct StoredClient {
    id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    method: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    secret: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    issuer: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    redirect_uris: Option<Vec<String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    expires_at: Option<u64>,
}

pub(crate) fn check_document_url(url: &str) -> Result<()> {
    if is_https_with_path(url) {
        return Ok(());
    }
    Err(AuthError::configuration(format!(
        "invalid client metadata URL {url:?}: must be https, with a path and without a fragment"
    )))
}

/// Whether a URL can be a client ID.
fn is_https_with_path(url: &str) -> bool {
    let parsed = UrlRules::https().parse(url, "URL");
    parsed.is_ok_and(|it| it.path() != "/")
}
