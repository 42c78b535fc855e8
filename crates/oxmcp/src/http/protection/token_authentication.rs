//! Authentication by the endpoint's own bearer tokens, without an issuer or metadata.

use std::{future::Future, sync::Arc, time::Duration};

use futures_core::future::BoxFuture;
use http::{StatusCode, request::Parts};
use oxmcp_auth::{
    Challenge, ScopeSet, Secret,
    server::{Credentials, Refusal},
};

use super::{
    deadline::StreamDeadline,
    guard::{RECHECK, Refused, mark_sensitive, refused},
};
use crate::transport::principal::Principal;

type Authenticate =
    Arc<dyn Fn(Secret) -> BoxFuture<'static, Result<Principal, Refusal>> + Send + Sync>;

/// The user's function that finds the caller of a token.
#[derive(Clone)]
pub(crate) struct TokenAuthentication(Authenticate);

impl TokenAuthentication {
    pub(crate) fn new<F, Fut>(authenticate: F) -> Self
    where
        F: Fn(Secret) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Principal, Refusal>> + Send + 'static,
    {
        Self(Arc::new(move |token| Box::pin(authenticate(token))))
    }

    /// Admits a request, and stores its [`Principal`] in its extensions.
    ///
    /// # Errors
    /// The response that refuses the request.
    pub(crate) async fn admit(&self, parts: &mut Parts) -> Result<(), Refused> {
        let admitted = self.principal(parts).await;
        mark_sensitive(parts);
        let principal = admitted.map_err(|refusal| refuse(&refusal, None))?;
        parts.extensions.insert(principal);
        Ok(())
    }

    async fn principal(&self, parts: &Parts) -> Result<Principal, Refusal> {
        (self.0)(Credentials::own_token(&parts.headers)?).await
    }

    /// The deadline of a stream. Its client then reopens it, so that a revoked token does not keep it open.
    pub(crate) fn deadline() -> StreamDeadline {
        StreamDeadline::after(Duration::from_secs(RECHECK))
    }
}

/// Checks that a principal has the scopes that an operation needs.
///
/// # Errors
/// The response that refuses the request, with the scopes that are missing.
pub(crate) fn check_scopes(
    principal: Option<&Principal>,
    needed: &ScopeSet,
) -> Result<(), Refused> {
    if principal.is_some_and(|it| it.permits(needed)) {
        return Ok(());
    }
    let granted = principal.and_then(Principal::granted_scopes);
    let lacks = |scope: &&str| !granted.is_some_and(|it| it.contains(scope));
    let missing: ScopeSet = needed.iter().filter(lacks).collect();
    let refusal = Refusal::insufficient_scope(needed.clone());
    Err(refuse(&refusal, Some(&missing)))
}

/// The response of a refusal. A 401 has the plain challenge, because there is no metadata that leads to a token.
fn refuse(refusal: &Refusal, missing: Option<&ScopeSet>) -> Refused {
    let mut challenge = Challenge::bearer();
    match (refusal.status(), refusal.code()) {
        (StatusCode::SERVICE_UNAVAILABLE, _) => return refused(refusal, refusal.response(&[])),
        (StatusCode::UNAUTHORIZED, _) | (_, None) => {}
        (_, Some(code)) => {
            let description = missing.map_or_else(
                || refusal.description(),
                |missing| Refusal::insufficient_scope(missing.clone()).description(),
            );
            challenge = challenge
                .with("error", code)
                .with("error_description", description);
        }
    }
    if let Some(needed) = refusal.needed_scopes() {
        challenge = challenge.with("scope", needed.to_string());
    }
    refused(refusal, refusal.response(&[challenge]))
}
