//! Credentials as they are kept: by user, issuer and resource.

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

/// The form of stored credentials that this release writes.
const VERSION: u32 = 1;

/// Whose credentials they are, who gave them, and for what. Two logins that differ in any of the three share nothing.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[non_exhaustive]
pub struct CredentialKey {
    /// The user, as the program names them; empty in a program that has one.
    pub user: String,
    /// The authorization server that gave them, letter by letter.
    pub issuer: String,
    /// The MCP server that they are for.
    pub resource: String,
}

impl CredentialKey {
    /// The key of a user's credentials from an issuer for a resource.
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

/// A login as it is kept: the client, the tokens, and all that the next refresh needs.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Credentials {
    /// A random name of the login, which a refresh does not change.
    pub login: String,
    /// The authorization server, as it was when it gave the tokens: a refresh token goes to this token endpoint alone.
    pub server: AuthorizationServerMetadata,
    /// The client that the tokens were given to. A workload that says who it is by an assertion needs none.
    pub client: Option<Client>,
    /// The `resource` that was sent.
    pub resource: Option<String>,
    /// The scopes that were asked for.
    pub requested: ScopeSet,
    /// The tokens. Without any, the client is registered and nobody is logged in.
    pub tokens: Option<Tokens>,
    /// The key that the tokens are bound to, if they are.
    pub proof_key: Option<Arc<ProofKey>>,
}

impl Credentials {
    /// Credentials of a login that begins now.
    ///
    /// # Errors
    ///
    /// If the operating system gives no randomness.
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

    /// The credentials as text to be kept, where nobody else can read it. The private key of a client is not in it; that of proofs
    /// is, if it was [made](ProofKey::generate) here, and without it tokens that are bound to it are not.
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

    /// The credentials that a text was made of.
    ///
    /// # Errors
    ///
    /// If it was made of none, or by a newer release.
    pub fn from_json(text: &Secret) -> Result<Self> {
        #[derive(Deserialize)]
        struct Version {
            version: u32,
        }
        let unreadable =
            |_| AuthError::malformed("stored credentials cannot be read: log in again");
        let Version { version } = serde_json::from_str(text.expose()).map_err(unreadable)?;
        if version != VERSION {
            return Err(AuthError::new(
                AuthErrorKind::Configuration,
                format!(
                    "stored credentials have the form {version}, and this release reads {VERSION}: log in again, or update"
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

/// Tokens that are not bound, or whose key is there.
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
