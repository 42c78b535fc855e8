//! Stored logins: lookup, listing, and logout.

use oxmcp_auth::{
    ScopeSet, UnixTime,
    client::{Client, CredentialKey, Credentials, Revocation, TokenType, Tokens},
};
use url::Url;

use crate::{
    error::{Error, Result},
    http::client::{
        login::{fetch::Fetch, settings::Login},
        redaction::redacted_url,
    },
};

/// A login in a store, without its tokens.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct StoredLogin {
    /// The issuer of the authorization server that issued the tokens.
    pub issuer: String,
    /// The whole URL of the MCP server that the tokens are for.
    pub resource: String,
    /// The id of the client that the tokens were issued to, if there is one.
    pub client_id: Option<String>,
    /// The scopes that were granted.
    pub scopes: ScopeSet,
    /// The time at which the access token expires, if that is known.
    pub expires_at: Option<UnixTime>,
    /// Whether there is a refresh token: then the login continues after the access token has expired.
    pub is_refreshable: bool,
}

impl Login {
    /// Returns the logins of the [`user`](Self::user) in the [`store`](Self::store), for all servers.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> oxmcp::Result<()> {
    /// use oxmcp::http::{Login, MemoryTokenStore};
    ///
    /// let login = Login::browser().store(MemoryTokenStore::new());
    /// for stored in login.credentials().await? {
    ///     println!("{} by {}: {}", stored.resource, stored.issuer, stored.scopes);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// If the store fails. Credentials that cannot be read are left out.
    ///
    /// # Cancel safety
    /// Cancel safe: it changes nothing.
    pub async fn credentials(&self) -> Result<Vec<StoredLogin>> {
        let mut all = Vec::new();
        for key in self.store.keys_boxed(&self.user).await? {
            let Some(credentials) = self.stored(&key).await? else {
                continue;
            };
            // Without tokens, the entry is only a client that was registered.
            all.extend(credentials.tokens.map(|tokens| StoredLogin {
                issuer: key.issuer,
                resource: key.resource,
                client_id: credentials.client.map(|it| it.id().to_owned()),
                scopes: tokens.scopes,
                expires_at: tokens.expires_at,
                is_refreshable: tokens.refresh_token.is_some(),
            }));
        }
        Ok(all)
    }

    /// Logs the [`user`](Self::user) out of the MCP server at a URL: the tokens are revoked if their issuer supports that ([RFC
    /// 7009](https://www.rfc-editor.org/rfc/rfc7009)), and deleted from the [`store`](Self::store). If there are none, nothing is
    /// done.
    ///
    /// Close the sessions that use the tokens before: sessions keep an access token until it expires or the server refuses it.
    /// They no longer refresh it.
    ///
    /// ```no_run
    /// # async fn run(login: oxmcp::http::Login) -> oxmcp::Result<()> {
    /// login.user("ann").logout("https://mcp.example/mcp").await
    /// # }
    /// ```
    ///
    /// # Errors
    /// If the store fails, or if the tokens could not be revoked. In the second case they are deleted nevertheless, and the error
    /// says so: a copy of them can be used until it expires.
    ///
    /// # Cancel safety
    /// If the future is dropped, the tokens may be revoked and still be stored: log out again.
    pub async fn logout(&self, server: impl AsRef<str>) -> Result<()> {
        let server = server_url(server.as_ref())?;
        let fetch = Fetch::new(&server, &self.trusted_hosts, self.http_client.clone())?;
        let mut failure = None;
        for key in self.store.keys_boxed(&self.user).await? {
            if key.resource != server.as_str() {
                continue;
            }
            // Without the lock, a refresh could bring other tokens meanwhile.
            let _lock = self.store.lock_boxed(&key).await?;
            let revoked = match self.stored(&key).await? {
                Some(credentials) => revoke(&fetch, &credentials).await,
                None => Ok(()),
            };
            self.store.remove_boxed(&key).await?;
            failure = failure.or_else(|| revoked.err());
        }
        let Some(error) = failure else {
            return Ok(());
        };
        let message = format!(
            "deleted the tokens for {:?}, but could not revoke them, so they may be valid until they expire: {}",
            redacted_url(&server),
            error.message()
        );
        Err(Error::failed_login(message, error))
    }

    /// The stored credentials for an MCP server: a login if there is one, otherwise a client that was registered.
    pub(crate) async fn find(&self, server: &str) -> Result<Option<Credentials>> {
        let mut found = None;
        for key in self.store.keys_boxed(&self.user).await? {
            if key.resource == server {
                found = self.stored(&key).await?.or(found);
            }
            if found.as_ref().is_some_and(|it| it.tokens.is_some()) {
                break;
            }
        }
        Ok(found)
    }

    /// The stored credentials under a key.
    pub(crate) async fn stored(&self, key: &CredentialKey) -> Result<Option<Credentials>> {
        let text = self.store.load_boxed(key).await?;
        let credentials = text.and_then(|text| match Credentials::from_json(&text) {
            Ok(credentials) => Some(credentials),
            // Credentials that cannot be read are left out, because they would prevent another login.
            Err(error) => {
                tracing::warn!(error = %crate::logged::Logged(&error), "ignoring unreadable stored credentials");
                None
            }
        });
        Ok(credentials.map(|mut it| {
            it.client = it.client.map(|client| self.with_key(client));
            // A login that must be bound to a key does not use tokens that were obtained without one.
            let is_bound = |it: &Tokens| it.token_type == TokenType::DPoP;
            it.tokens = it.tokens.filter(|it| !self.uses_dpop || is_bound(it));
            it
        }))
    }

    /// The client with its key, which is never stored: a client that has a key is a configured one.
    pub(crate) fn with_key(&self, client: Client) -> Client {
        let mut own = self.clients.iter().chain(&self.document);
        let own = own.find(|own| own.id() == client.id());
        own.cloned().unwrap_or(client)
    }
}

/// The URL of an MCP server, in the form under which credentials for it are stored.
pub(crate) fn server_url(text: &str) -> Result<Url> {
    let url = Url::parse(text).ok();
    let url = url.filter(|it| matches!(it.scheme(), "http" | "https"));
    let mut url = url.ok_or_else(|| {
        Error::misuse("the URL of the MCP server must begin with https:// or http://")
    })?;
    url.set_fragment(None);
    // Neither call fails for a URL with a host.
    let _ = url.set_username("");
    let _ = url.set_password(None);
    Ok(url)
}

async fn revoke(fetch: &Fetch, credentials: &Credentials) -> Result<()> {
    let revocation = match (&credentials.client, &credentials.tokens) {
        (Some(client), Some(tokens)) => Revocation::new(&credentials.server, client, tokens),
        _ => None,
    };
    match revocation {
        Some(revocation) => fetch.converse(revocation).await,
        None => Ok(()),
    }
}
