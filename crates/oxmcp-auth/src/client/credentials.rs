//! Stored credentials, by user, issuer and resource.

use std::{borrow::Borrow, sync::Arc};

use serde::{Deserialize, Serialize};

use super::{
    identity::{Client, StoredClient},
    tokens::{TokenType, Tokens},
};
use crate::{
    dpop::ProofKey,
    error::{AuthError, AuthErrorKind, Result},
    metadata::authorization_server::AuthorizationServerMetadata,
    scope::ScopeSet,
    secret::{Secret, unguessable},
    time::UnixTime,
};

/// The version of stored credentials that this release writes and reads.
const VERSION: u32 = 1;

/// The key of stored credentials: user, issuer and resource. Logins that differ in any of the three share nothing.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[non_exhaustive]
pub struct CredentialKey {
    /// The name of the user in the program; empty in a program with one user.
    pub user: String,
    /// The exact issuer of the credentials.
    pub issuer: String,
    /// The MCP server for which the credentials are.
    pub resource: String,
}

impl CredentialKey {
    /// Creates the key of a user's credentials from an issuer for a resource.
    #[must_use]
    pub fn new(
        user: impl Into<String>,
        issuer: impl Into<String>,
        resource: impl Into<String>,
    ) -> Self {
        Self {
            user: user.into(),
            issuer: issuer.into(),
            resource: resource.into(),
        }
    }
}

/// A stored login: the client, the tokens, and everything that the next refresh needs.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Credentials {
    /// A random name of the login, which a refresh does not change.
    pub login: String,
    /// The metadata of the authorization server when it issued the tokens: a refresh token is sent only to this token
    /// endpoint.
    pub server: AuthorizationServerMetadata,
    /// The client to which the tokens were issued. A workload that authenticates by an assertion needs none.
    pub client: Option<Client>,
    /// The `resource` parameter that was sent.
    pub resource: Option<String>,
    /// The scopes that were requested.
    pub requested: ScopeSet,
    /// The tokens; `None` if the client is registered, but no user is logged in.
    pub tokens: Option<Tokens>,
    /// The key that the tokens are bound to, if they are bound.
    pub proof_key: Option<Arc<ProofKey>>,
}

impl Credentials {
    /// Creates the credentials of a new login, without tokens.
    ///
    /// # Errors
    ///
    /// If the operating system provides no randomness.
    pub fn new(
        server: AuthorizationServerMetadata,
        client: Option<Client>,
        resource: Option<String>,
    ) -> Result<Self> {
        Ok(Self {
            login: unguessable()?.expose().to_owned(),
            server,
            client,
            resource,
            requested: ScopeSet::new(),
            tokens: None,
            proof_key: None,
        })
    }

    /// Returns the credentials as text, which must be stored where no one else can read it.
    ///
    /// The text does not include the private key of a client. It includes the DPoP key if that was
    /// [generated](ProofKey::generate); otherwise it leaves out the tokens that are bound to that key.
    #[must_use]
    pub fn to_json(&self) -> Secret {
        let proof_key = self.proof_key.as_ref().and_then(|it| it.to_stored());
        let stored = StoredCredentials {
            version: VERSION,
            login: self.login.clone(),
            server: self.server.clone(),
            client: self.client.as_ref().map(Client::to_stored),
            resource: self.resource.clone(),
            requested: self.requested.to_string(),
            proof_key: proof_key.map(|it| it.expose().to_owned()),
            tokens: usable(self.tokens.as_ref(), proof_key.is_some()).map(|it| StoredTokens {
                access_token: it.access_token.expose().to_owned(),
                token_type: it.token_type,
                expires_at: it.expires_at.map(UnixTime::seconds),
                refresh_token: it.refresh_token.as_ref().map(|it| it.expose().to_owned()),
                scopes: it.scopes.to_string(),
            }),
        };
        Secret::new(serde_json::to_string(&stored).unwrap_or_default())
    }

    /// Restores credentials from the result of [`to_json`](Self::to_json).
    ///
    /// # Errors
    ///
    /// If the text is not stored credentials, or has a version that this release cannot read.
    pub fn from_json(text: &Secret) -> Result<Self> {
        #[derive(Deserialize)]
        struct Version {
            version: u32,
        }
        let unreadable =
            |_| AuthError::malformed("could not read stored credentials; log in again");
        let Version { version } = serde_json::from_str(text.expose()).map_err(unreadable)?;
        if version != VERSION {
            return Err(AuthError::new(
                AuthErrorKind::Configuration,
                format!(
                    "stored credentials have version {version}, but this release reads version {VERSION}; log in again, or update"
                ),
            ));
        }
        let stored: StoredCredentials = serde_json::from_str(text.expose()).map_err(unreadable)?;
        let proof_key = stored.proof_key.map(Secret::new);
        let proof_key = proof_key.map(|it| ProofKey::from_stored(&it)).transpose()?;
        let tokens = stored.tokens.map(|it| Tokens {
            access_token: it.access_token.into(),
            token_type: it.token_type,
            expires_at: it.expires_at.map(UnixTime::from_seconds),
            refresh_token: it.refresh_token.map(Secret::new),
            scopes: ScopeSet::parse(&it.scopes),
        });
        Ok(Self {
            login: stored.login,
            server: stored.server,
            client: stored.client.map(Client::from_stored).transpose()?,
            resource: stored.resource,
            requested: ScopeSet::parse(&stored.requested),
            tokens: usable(tokens, proof_key.is_some()),
            proof_key: proof_key.map(Arc::new),
        })
    }
}

/// The tokens, if they are not bound or their key is present.
fn usable<T: Borrow<Tokens>>(tokens: Option<T>, has_key: bool) -> Option<T> {
    tokens.filter(|it| has_key || it.borrow().token_type == TokenType::Bearer)
}

#[derive(Serialize, Deserialize)]
struct StoredCredentials {
    version: u32,
    login: String,
    server: AuthorizationServerMetadata,
    client: Option<StoredClient>,
    resource: Option<String>,
    requested: String,
    tokens: Option<StoredTokens>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    proof_key: Option<String>,
}

#[derive(Serialize, Deserialize)]
struct StoredTokens {
    access_token: String,
    token_type: TokenType,
    expires_at: Option<u64>,
    refresh_token: Option<String>,
    scopes: String,
}
