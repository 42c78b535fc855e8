//! Tokens that were found valid, and whom they stand for.

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

/// An access token that was found valid: who has sent it, through which client, and what may be done with it.
///
/// ```
/// use oxmcp_auth::{ScopeSet, UnixTime, server::VerifiedToken};
///
/// // As a verifier of one's own makes it.
/// let mut token = VerifiedToken::new("https://auth.example.com");
/// token.subject = Some("ann".to_owned());
/// token.scopes = ScopeSet::parse("files:read");
/// token.expires = Some(UnixTime::from_seconds(1_800_000_000));
/// assert!(token.owner_key().is_ok());
/// ```
#[derive(Clone)]
#[non_exhaustive]
pub struct VerifiedToken {
    /// Who has issued it.
    pub issuer: String,
    /// The user (`sub`), or whatever else it stands for.
    pub subject: Option<String>,
    /// The client that it was given to.
    pub client_id: Option<String>,
    /// What it may be used for.
    pub scopes: ScopeSet,
    /// When it ends. Tokens that were introspected need not say.
    pub expires: Option<UnixTime>,
    /// Whether its issuer was asked, and may say something else the next time: a stream that is opened with it is not to last as
    /// long as the token.
    pub is_introspected: bool,
    /// The thumbprint of the key that it is bound to: it is refused without a proof by that key.
    pub thumbprint: Option<String>,
    /// What the things that are made with it belong to, where issuer, subject and client do not say it.
    pub owner: Option<String>,
    /// All that its issuer says of it; `None` where a verifier of one's own has made it.
    pub claims: Option<Claims>,
    shared_key: SharedKey,
}

/// The owner key, once it was asked for. A copy has none, since its fields may be changed.
#[derive(Default)]
struct SharedKey(OnceLock<Arc<str>>);

impl Clone for SharedKey {
    fn clone(&self) -> Self {
        Self::default()
    }
}

impl VerifiedToken {
    /// A token of that issuer, which stands for nobody yet: set its `subject` or `client_id`, or its `owner`.
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

    /// What the claims of a token say, or the answer to an introspection.
    pub(super) fn from_claims(issuer: &str, claims: Claims) -> Self {
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

    /// Leaves the client out of what things belong to, for servers whose users register a new client with each login.
    /// Tokens without a subject keep theirs.
    #[must_use]
    pub fn owned_without_client(mut self) -> Self {
        if let (None, Some(subject)) = (&self.owner, &self.subject) {
            self.owner = Some(key(&self.issuer, Some(subject), None));
        }
        self
    }

    /// What sessions, tasks, listens and caches belong to: issuer, subject and client, each with its length before it, so
    /// that no two that differ are written alike.
    ///
    /// # Errors
    ///
    /// Where there is neither a subject nor a client: all such tokens would own the same things.
    pub fn owner_key(&self) -> Result<String> {
        if let Some(owner) = &self.owner {
            return Ok(owner.clone());
        }
        if self.subject.is_none() && self.client_id.is_none() {
            return Err(AuthError::invalid_token(
                "the token says neither a subject nor a client, so nothing can belong to whoever sends it",
            ));
        }
        let (subject, client) = (self.subject.as_deref(), self.client_id.as_deref());
        Ok(key(&self.issuer, subject, client))
    }

    /// The [owner key](Self::owner_key), made once for all who share the token.
    ///
    /// # Errors
    ///
    /// Where there is neither a subject nor a client.
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

/// Names of people and what else the claims say are left out.
impl fmt::Debug for VerifiedToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("VerifiedToken")
            .field("issuer", &self.issuer)
            .field("scopes", &self.scopes)
            .field("expires", &self.expires)
            .finish_non_exhaustive()
    }
}
