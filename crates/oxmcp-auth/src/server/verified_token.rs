//! Valid access tokens, and their owners.

use std::{
    fmt,
    sync::{Arc, OnceLock},
};

use crate::{
    error::{AuthError, Result},
    jwt::Claims,
    scope::ScopeSet,
    time::UnixTime,
};

/// A valid access token: the user and client that it was issued to, and the scopes that it grants.
///
/// ```
/// use oxmcp_auth::{ScopeSet, UnixTime, server::VerifiedToken};
///
/// // A custom verifier makes one like this.
/// let mut token = VerifiedToken::new("https://auth.example.com");
/// token.subject = Some("ann".to_owned());
/// token.scopes = ScopeSet::parse("files:read");
/// token.expires = Some(UnixTime::from_seconds(1_800_000_000));
/// assert!(token.owner_key().is_ok());
/// ```
#[derive(Clone)]
#[non_exhaustive]
pub struct VerifiedToken {
    /// The issuer of the token.
    pub issuer: String,
    /// The user (`sub`), or the other subject that the token represents.
    pub subject: Option<String>,
    /// The client to which the token was issued.
    pub client_id: Option<String>,
    /// The scopes that the token grants.
    pub scopes: ScopeSet,
    /// The time at which the token expires. It may be absent for tokens that were introspected.
    pub expires: Option<UnixTime>,
    /// Whether the token was introspected. Its issuer may revoke it at any time, so a stream that is opened with it must not
    /// last as long as the token.
    pub is_introspected: bool,
    /// The thumbprint of the key that the token is bound to. Without a proof by that key, the token is refused.
    pub thumbprint: Option<String>,
    /// The owner of everything that is created with the token, if issuer, subject and client do not determine it.
    pub owner: Option<String>,
    /// All claims that the issuer makes about the token; `None` if a custom verifier created it.
    pub claims: Option<Claims>,
    shared_key: SharedKey,
}

/// The owner key, cached on first use. A clone has none, since the fields of a clone may be changed.
#[derive(Default)]
struct SharedKey(OnceLock<Arc<str>>);

impl Clone for SharedKey {
    fn clone(&self) -> Self {
        Self::default()
    }
}

impl VerifiedToken {
    /// Creates a token of this issuer, which has no owner yet: set its `subject` or `client_id`, or its `owner`.
    #[must_use]
    pub fn new(issuer: impl Into<String>) -> Self {
        Self {
            issuer: issuer.into(),
            subject: None,
            client_id: None,
            scopes: ScopeSet::new(),
            expires: None,
            is_introspected: false,
            thumbprint: None,
            owner: None,
            claims: None,
            shared_key: SharedKey::default(),
        }
    }

    /// The token that the claims of a JSON Web Token or of an introspection response describe.
    pub(crate) fn from_claims(issuer: &str, claims: Claims) -> Self {
        let known = claims.known();
        let client = [&known.client_id, &known.azp, &known.cid, &known.appid];
        let client_id = client.into_iter().flatten().next().cloned();
        let scopes = if known.scope.is_empty() {
            &known.scp
        } else {
            &known.scope
        };
        Self {
            subject: known.sub.clone(),
            client_id,
            scopes: scopes.iter().collect(),
            expires: known.exp,
            thumbprint: known.cnf.as_ref().and_then(|it| it.jkt.clone()),
            claims: Some(claims),
            ..Self::new(issuer)
        }
    }

    /// Leaves the client out of the owner key, for servers whose users register a new client with each login. Tokens without
    /// a subject keep their client in it.
    #[must_use]
    pub fn owned_without_client(mut self) -> Self {
        if let (None, Some(subject)) = (&self.owner, &self.subject) {
            self.owner = Some(key(&self.issuer, Some(subject), None));
        }
        self
    }

    /// Returns the key of the owner of sessions, tasks, subscriptions and cache entries.
    ///
    /// It is `owner` if that is set, or else made of issuer, subject and client, each with its length, so that different owners
    /// never have the same key.
    ///
    /// # Errors
    ///
    /// If the token has neither an owner, a subject nor a client, since all such tokens would have the same owner.
    pub fn owner_key(&self) -> Result<String> {
        if let Some(owner) = &self.owner {
            return Ok(owner.clone());
        }
        if self.subject.is_none() && self.client_id.is_none() {
            return Err(AuthError::invalid_token(
                "token has neither a subject nor a client",
            ));
        }
        let (subject, client) = (self.subject.as_deref(), self.client_id.as_deref());
        Ok(key(&self.issuer, subject, client))
    }

    /// Returns the [owner key](Self::owner_key), which is computed once and shared.
    ///
    /// # Errors
    ///
    /// If the token has neither an owner, a subject nor a client.
    pub fn shared_owner_key(self: &Arc<Self>) -> Result<Arc<str>> {
        if let Some(key) = self.shared_key.0.get() {
            return Ok(Arc::clone(key));
        }
        let key: Arc<str> = self.owner_key()?.into();
        Ok(Arc::clone(self.shared_key.0.get_or_init(|| key)))
    }
}

fn key(issuer: &str, subject: Option<&str>, client: Option<&str>) -> String {
    let part = |part: Option<&str>| match part {
        Some(part) => format!("{}:{part}", part.len()),
        None => "-".to_owned(),
    };
    [part(Some(issuer)), part(subject), part(client)].join("|")
}

/// Leaves out subject, client and claims, which may name people.
impl fmt::Debug for VerifiedToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("VerifiedToken")
            .field("issuer", &self.issuer)
            .field("scopes", &self.scopes)
            .field("expires", &self.expires)
            .finish_non_exhaustive()
    }
}
