//! Principal: the caller of a request, as authentication has established it.

use std::{
    fmt,
    hash::{Hash, Hasher},
    sync::Arc,
};

#[cfg(feature = "auth")]
use oxmcp_auth::server::VerifiedToken;
#[cfg(all(feature = "auth", feature = "server"))]
use oxmcp_auth::{ScopeSet, server::ResourceServer};

/// The caller of a request, as authentication has established it: `http::ProtectedResource`, or a
/// middleware of your own in front of the endpoint, which puts one into the extensions of each request.
///
/// Sessions are then bound to it: whoever else names the id of a session gets 404, as if there were none; and no principal has
/// more of them than [`HttpLimits::max_sessions_each`](crate::HttpLimits::max_sessions_each). So are the states of requests
/// that ask, and streams that are resumed. Without it all requests come from nobody in particular, and a session's id is all
/// that there is to know.
///
/// It is an opaque name, equal for the same caller in all requests and different for different ones: two of one name are equal,
/// whatever else is known of them. Where callers are told apart by tokens, that is the issuer with the subject, and the client
/// where clients should not share sessions; never the token, which changes.
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
    /// Decides what its token permits.
    #[cfg(all(feature = "auth", feature = "server"))]
    resource: Option<Arc<ResourceServer>>,
    /// Whether it is not shown what its token does not permit.
    #[cfg(all(feature = "auth", feature = "server"))]
    hides_unpermitted: bool,
}

impl Principal {
    /// The principal of this name.
    #[must_use]
    pub fn new(name: impl Into<Arc<str>>) -> Self {
        Self {
            name: name.into(),
            #[cfg(feature = "auth")]
            token: None,
            #[cfg(all(feature = "auth", feature = "server"))]
            resource: None,
            #[cfg(all(feature = "auth", feature = "server"))]
            hides_unpermitted: false,
        }
    }

    /// The principal that a token stands for. Its name is the token's
    /// [`owner_key`](oxmcp_auth::server::VerifiedToken::owner_key).
    ///
    /// # Errors
    /// Where the token says neither a subject nor a client.
    #[cfg(feature = "auth")]
    pub fn of_token(token: Arc<VerifiedToken>) -> Result<Self, oxmcp_auth::AuthError> {
        Ok(Self {
            name: token.shared_owner_key()?,
            token: Some(token),
            #[cfg(feature = "server")]
            resource: None,
            #[cfg(feature = "server")]
            hides_unpermitted: false,
        })
    }

    /// The same, whose token permits what that resource says, and who may not be shown what it does not.
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

    /// Whether it is not shown what its token does not permit.
    #[cfg(all(feature = "auth", feature = "server"))]
    pub(crate) fn hides_unpermitted(&self) -> bool {
        self.hides_unpermitted
    }

    /// Whether it is not shown what needs these scopes.
    #[cfg(all(feature = "auth", feature = "server"))]
    pub(crate) fn hides(&self, needed: &ScopeSet) -> bool {
        self.hides_unpermitted && !self.permits(needed)
    }

    /// Whether its token permits what needs these scopes. Without a token nothing does.
    #[cfg(all(feature = "auth", feature = "server"))]
    pub(crate) fn permits(&self, needed: &ScopeSet) -> bool {
        let (Some(resource), Some(token)) = (&self.resource, &self.token) else {
            return false;
        };
        resource.check_operation(token, needed).is_ok()
    }

    /// The token that came with this request: its issuer, subject and client, its scopes, when it ends, and all else that its
    /// issuer says. `None` where a middleware has given a name alone.
    #[cfg(feature = "auth")]
    #[must_use]
    pub fn token(&self) -> Option<&VerifiedToken> {
        self.token.as_deref()
    }

    #[cfg(feature = "http-server")]
    pub(crate) fn shared(&self) -> Arc<str> {
        Arc::clone(&self.name)
    }

    /// The name.
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

/// Without the name: those of people do not belong in logs.
impl fmt::Debug for Principal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Principal(..)")
    }
}
