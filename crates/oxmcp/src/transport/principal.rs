//! [`Principal`], the authenticated caller of a request.

use std::{
    fmt,
    hash::{Hash, Hasher},
    sync::Arc,
};

#[cfg(all(feature = "auth", feature = "server"))]
use oxmcp_auth::server::ResourceServer;
#[cfg(feature = "auth")]
use oxmcp_auth::{ScopeSet, server::VerifiedToken};

/// The authenticated caller of a request. It is established by `http::ProtectedResource`, by the function of
/// `StreamableHttp::authenticate`, or by your own middleware in front of the endpoint, which puts a `Principal` into the
/// extensions of each request.
///
/// Sessions are bound to their principal: any other caller with the ID of a session gets 404, as if it did not exist. No
/// principal has more sessions than [`HttpLimits::max_sessions_each`](crate::HttpLimits::max_sessions_each). Request states
/// (`requestState`) and resumed streams are bound to it as well. Without a principal, callers cannot be told apart, and anyone
/// who knows the ID of a session can use it.
///
/// A principal is an opaque name: the same in all requests of a caller, and different for different callers. Principals with
/// equal names are equal, whatever else is known about them. If tokens identify callers, use the issuer with the subject as the
/// name, and add the client if clients should not share sessions. Never use the token, which changes.
///
/// ```
/// use oxmcp::Principal;
///
/// # let mut request = http::Request::new(());
/// let subject = "https://login.example.com|alice"; // as the token says, once its signature was checked
/// request.extensions_mut().insert(Principal::new(subject));
/// ```
#[derive(Clone)]
pub struct Principal {
    name: Arc<str>,
    #[cfg(feature = "auth")]
    token: Option<Arc<VerifiedToken>>,
    /// The scopes that the user's own authentication has set.
    #[cfg(feature = "auth")]
    scopes: Option<Arc<ScopeSet>>,
    /// The resource server that decides what the token permits.
    #[cfg(all(feature = "auth", feature = "server"))]
    resource: Option<Arc<ResourceServer>>,
    /// Whether features that the token does not permit are hidden from the principal.
    #[cfg(all(feature = "auth", feature = "server"))]
    hides_unpermitted: bool,
}

impl Principal {
    /// Creates a principal with this name.
    #[must_use]
    pub fn new(name: impl Into<Arc<str>>) -> Self {
        Self {
            name: name.into(),
            #[cfg(feature = "auth")]
            token: None,
            #[cfg(feature = "auth")]
            scopes: None,
            #[cfg(all(feature = "auth", feature = "server"))]
            resource: None,
            #[cfg(all(feature = "auth", feature = "server"))]
            hides_unpermitted: false,
        }
    }

    /// Sets the scopes of the principal, for your own authentication. They permit features that need them by
    /// [`Tool::scopes`](crate::Tool::scopes) and similar methods; requests for features that need other scopes are rejected
    /// with 403. A text may contain several scopes, separated by spaces.
    ///
    /// ```
    /// use oxmcp::Principal;
    ///
    /// let ann = Principal::new("ann").scopes(["files:read", "files:write"]);
    /// assert!(ann.granted_scopes().is_some_and(|it| it.contains("files:read")));
    /// ```
    #[cfg(feature = "auth")]
    #[must_use]
    pub fn scopes<S: AsRef<str>>(mut self, scopes: impl IntoIterator<Item = S>) -> Self {
        let all = scopes.into_iter().fold(ScopeSet::new(), |all, it| {
            all.union(&ScopeSet::parse(it.as_ref()))
        });
        self.scopes = Some(Arc::new(all));
        self
    }

    /// Returns the scopes of the principal: those of its token, or those that were [set](Self::scopes). `None` if neither is
    /// known.
    #[cfg(feature = "auth")]
    #[must_use]
    pub fn granted_scopes(&self) -> Option<&ScopeSet> {
        let from_token = self.token.as_ref().map(|it| &it.scopes);
        from_token.or(self.scopes.as_deref())
    }

    /// Creates the principal of a verified token. Its name is the token's
    /// [`owner_key`](oxmcp_auth::server::VerifiedToken::owner_key).
    ///
    /// # Errors
    /// If the token names neither a subject nor a client.
    #[cfg(feature = "auth")]
    pub fn from_token(token: Arc<VerifiedToken>) -> Result<Self, oxmcp_auth::AuthError> {
        Ok(Self {
            name: token.shared_owner_key()?,
            token: Some(token),
            scopes: None,
            #[cfg(feature = "server")]
            resource: None,
            #[cfg(feature = "server")]
            hides_unpermitted: false,
        })
    }

    /// The same principal, with the resource server that decides what its token permits, and whether other features are hidden.
    #[cfg(feature = "http-server")]
    #[cfg(feature = "auth")]
    pub(crate) fn of_resource(
        self,
        resource: Arc<ResourceServer>,
        hides_unpermitted: bool,
    ) -> Self {
        Self {
            resource: Some(resource),
            hides_unpermitted,
            ..self
        }
    }

    /// Whether features that the token does not permit are hidden from the principal.
    #[cfg(all(feature = "auth", feature = "server"))]
    pub(crate) fn hides_unpermitted(&self) -> bool {
        self.hides_unpermitted
    }

    /// Whether features that need these scopes are hidden from the principal.
    #[cfg(all(feature = "auth", feature = "server"))]
    pub(crate) fn hides(&self, needed: &ScopeSet) -> bool {
        self.hides_unpermitted && !self.permits(needed)
    }

    /// Whether the principal has these scopes, by its token or by the scopes that were set. Without either, nothing is
    /// permitted.
    #[cfg(all(feature = "auth", feature = "server"))]
    pub(crate) fn permits(&self, needed: &ScopeSet) -> bool {
        match (&self.resource, &self.token) {
            (Some(resource), Some(token)) => resource.check_operation(token, needed).is_ok(),
            _ => self.granted_scopes().is_some_and(|it| it.includes(needed)),
        }
    }

    /// Returns the token of this request: its issuer, subject and client, its scopes, its expiry, and all other claims. `None`
    /// if a middleware has set only a name.
    #[cfg(feature = "auth")]
    #[must_use]
    pub fn token(&self) -> Option<&VerifiedToken> {
        self.token.as_deref()
    }

    #[cfg(feature = "http-server")]
    pub(crate) fn shared(&self) -> Arc<str> {
        Arc::clone(&self.name)
    }

    /// Returns the name of the principal.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.name
    }
}

impl PartialEq for Principal {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for Principal {}

impl Hash for Principal {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name.hash(state);
    }
}

/// Omits the name: names of people do not belong in logs.
impl fmt::Debug for Principal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Principal(..)")
    }
}
