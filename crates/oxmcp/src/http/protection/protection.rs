//! The protection of an endpoint, by access tokens of authorization servers or by its own tokens.

use http::request::Parts;
use oxmcp_auth::ScopeSet;

use super::{
    deadline::StreamDeadline,
    guard::Refused,
    protected_resource::ProtectedResource,
    token_authentication::{TokenAuthentication, check_scopes},
};
use crate::{
    error::{Error, Result},
    server::Features,
    transport::principal::Principal,
};

/// The authentication that an endpoint requires.
#[derive(Clone)]
pub(crate) enum Protection {
    /// By access tokens of authorization servers.
    Resource(ProtectedResource),
    /// By the endpoint's own tokens.
    Tokens(TokenAuthentication),
    /// Both were set, which is an error.
    Both,
}

impl Protection {
    /// Sets the protection of an endpoint, replacing an earlier one of the same kind.
    pub(crate) fn set(self, protection: &mut Option<Self>) {
        *protection = Some(match (protection.take(), self) {
            (None | Some(Self::Resource(_)), new @ Self::Resource(_))
            | (None | Some(Self::Tokens(_)), new @ Self::Tokens(_)) => new,
            _ => Self::Both,
        });
    }

    /// Checks the settings.
    ///
    /// # Errors
    /// If a setting is invalid, or both kinds were set.
    pub(crate) fn check(&self) -> Result<()> {
        match self {
            Self::Resource(resource) => resource.check(),
            Self::Tokens(_) => Ok(()),
            Self::Both => Err(Error::misuse(
                "both `protect` and `authenticate` are set: use `protect` for access tokens of an authorization server, or \
                 `authenticate` for your own tokens",
            )),
        }
    }

    /// The resource whose access tokens are required.
    pub(crate) fn resource(&self) -> Option<&ProtectedResource> {
        match self {
            Self::Resource(resource) => Some(resource),
            Self::Tokens(_) | Self::Both => None,
        }
    }

    /// Admits a request of a [checked](Self::check) endpoint, and stores its [`Principal`] in its extensions.
    ///
    /// # Errors
    /// The response that refuses the request.
    pub(crate) async fn admit(&self, parts: &mut Parts) -> Result<(), Refused> {
        match self {
            Self::Resource(resource) => match resource.guard() {
                Ok(guard) => guard.admit(parts).await,
                Err(_) => Ok(()),
            },
            Self::Tokens(tokens) => tokens.admit(parts).await,
            Self::Both => Ok(()),
        }
    }

    /// Checks that the caller of an admitted request has the scopes that its operation needs.
    ///
    /// # Errors
    /// The response that refuses the request.
    pub(crate) fn check_operation(&self, parts: &Parts, needed: &ScopeSet) -> Result<(), Refused> {
        match self.resource().and_then(|it| it.guard().ok()) {
            Some(guard) => guard.check_operation(parts, needed),
            None => check_scopes(parts.extensions.get::<Principal>(), needed),
        }
    }

    /// The deadline of a stream that an admitted request opens, or keeps open.
    pub(crate) fn stream_deadline(&self, parts: &Parts) -> Option<StreamDeadline> {
        match self {
            Self::Resource(resource) => resource.stream_deadline(parts),
            Self::Tokens(_) => Some(TokenAuthentication::deadline()),
            Self::Both => None,
        }
    }

    /// Warns about features that no caller can use, because no caller can have their scopes. Without protection, callers have
    /// scopes only if a middleware in front of the endpoint sets them.
    pub(crate) fn warn_of_scopes(protection: Option<&Self>, features: &Features) {
        let lacks = |scopes: &ScopeSet| match protection {
            None => true,
            Some(protection) => protection.resource().is_some_and(|it| it.lacks(scopes)),
        };
        for (kind, name, scopes) in features.scopes().filter(|(.., scopes)| lacks(scopes)) {
            tracing::warn!(kind, name, %scopes, "feature requires scopes that no caller can have");
        }
    }
}
