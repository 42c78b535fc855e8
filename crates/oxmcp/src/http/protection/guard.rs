//! The guard of an endpoint: the authentication and authorization of a request before it is read.

use std::{
    pin::pin,
    sync::Arc,
    time::{Duration, SystemTime},
};

use futures_core::future::BoxFuture;
use http::{HeaderName, Response, header, request::Parts};
use oxmcp_auth::{
    AuthError, ScopeSet, Secret, UnixTime,
    dpop::ReplayCache,
    server::{
        Credentials, Fetch, Presented, Refusal, ResourceServer, TokenVerifier, Verification,
        VerifiedToken,
    },
};
use tokio::time::{Instant, timeout_at};

use super::{
    deadline::StreamDeadline,
    fetch::{Clients, Waiting},
};
use crate::{
    http::server::ResponseBody, logged::Logged, session::task::spawn,
    transport::principal::Principal,
};

/// The total time that a request waits for fetches, longer than one fetch may take.
const WAIT: Duration = Duration::from_secs(15);

/// The maximum lifetime of a stream, in seconds, if its token may be revoked before it expires, or has no known expiry. The client
/// then reopens the stream, and the token is checked again.
pub(crate) const RECHECK: u64 = 600;

/// The header of a DPoP proof.
const DPOP: HeaderName = HeaderName::from_static("dpop");

/// The user's verifier.
pub(crate) type Verify =
    Arc<dyn Fn(Secret) -> BoxFuture<'static, Result<VerifiedToken, AuthError>> + Send + Sync>;

/// The authentication and authorization of requests to an endpoint.
pub(crate) struct Guard {
    pub(crate) resource: Arc<ResourceServer>,
    pub(crate) verifier: TokenVerifier,
    pub(crate) own: Option<Verify>,
    pub(crate) clients: Clients,
    pub(crate) is_owned_without_client: bool,
    pub(crate) hides_unpermitted: bool,
    /// The seconds by which streams may outlive their token; `None` if they do not end with it.
    pub(crate) stream_skew: Option<u64>,
    /// The DPoP proofs that have been used.
    pub(crate) proofs: ReplayCache,
    pub(crate) waiting: Waiting,
}

pub(crate) type Refused = Box<Response<ResponseBody>>;

/// Marks the credentials of a request as sensitive: handlers see its headers and may log them.
pub(crate) fn mark_sensitive(parts: &mut Parts) {
    for name in [header::AUTHORIZATION, DPOP] {
        if let Some(value) = parts.headers.get_mut(name) {
            value.set_sensitive(true);
        }
    }
}

/// Logs a refusal, and returns its response.
pub(crate) fn refused(refusal: &Refusal, response: oxmcp_auth::Response) -> Refused {
    if let Some(error) = refusal.error() {
        tracing::debug!(%error, status = %refusal.status(), "rejected request");
    }
    Box::new(response.map(|body| ResponseBody::full(body.into_bytes())))
}

impl Guard {
    /// Admits a request, and stores its [`Principal`] in its extensions.
    ///
    /// # Errors
    /// The response that refuses the request.
    pub(crate) async fn admit(self: &Arc<Self>, parts: &mut Parts) -> Result<(), Refused> {
        let admitted = self.principal(parts).await;
        mark_sensitive(parts);
        let principal = admitted.map_err(|refusal| self.refuse(&refusal))?;
        parts.extensions.insert(principal);
        Ok(())
    }

    async fn principal(self: &Arc<Self>, parts: &Parts) -> Result<Principal, Refusal> {
        let credentials = Credentials::from_headers(&parts.headers)?;
        // Most tokens have been verified before.
        let known = self
            .own
            .is_none()
            .then(|| self.verifier.verified_credentials(&credentials, now()));
        let token = match known.flatten() {
            Some(token) => token,
            None => self.verify(&credentials.token()).await?,
        };
        let presented = Presented::new(&credentials, &token, &parts.method, &parts.headers);
        self.resource
            .check_possession(&presented, &self.proofs, now())?;
        self.resource.check_scopes(&token)?;
        let token = if self.is_owned_without_client {
            Arc::new(VerifiedToken::clone(&token).owned_without_client())
        } else {
            token
        };
        let principal = Principal::from_token(token).map_err(Refusal::invalid)?;
        Ok(principal.of_resource(Arc::clone(&self.resource), self.hides_unpermitted))
    }

    async fn verify(self: &Arc<Self>, token: &Secret) -> Result<Arc<VerifiedToken>, Refusal> {
        if let Some(own) = &self.own {
            let verified = own(token.clone()).await;
            // Checked after the verification, because the token may have been revoked in the meantime.
            if let Some(refusal) = self.verifier.revocation(token) {
                return Err(refusal);
            }
            return verified.map(Arc::new).map_err(Refusal::from);
        }
        let deadline = Instant::now() + WAIT;
        loop {
            let mut fetched = pin!(self.waiting.list(token).notified());
            // Registers before the check, so that a fetch that finishes between the check and the waiting is not missed.
            fetched.as_mut().enable();
            match self.verifier.verify(token, now()) {
                Verification::Valid(token) => return Ok(token),
                Verification::Refused(refusal) => return Err(refusal),
                Verification::Fetch(request) => self.fetch(request, token.clone()),
                _ => {}
            }
            if timeout_at(deadline, fetched).await.is_err() {
                return Err(Refusal::unavailable(AuthError::unavailable(
                    "timed out waiting for the token's issuer",
                )));
            }
        }
    }

    /// The deadline of the streams of a request, which outlive the request.
    pub(crate) fn deadline(&self, principal: &Principal) -> Option<StreamDeadline> {
        let skew = self.stream_skew?;
        let token = principal.token()?;
        let left = token.expires.map(|it| it.plus(skew).seconds_since(now()));
        let left = match left {
            Some(left) if token.is_introspected => left.min(RECHECK),
            Some(left) => left,
            None => RECHECK,
        };
        Some(StreamDeadline::after(Duration::from_secs(left)))
    }

    /// Fetches the data that a verification needs, in its own task: the request that started it may be dropped while other requests
    /// wait.
    fn fetch(self: &Arc<Self>, request: Fetch, token: Secret) {
        let guard = Arc::clone(self);
        spawn(async move {
            let outcome = guard.clients.fetch(&request).await;
            if let Err(error) = &outcome {
                tracing::warn!(error, "failed to verify access tokens");
            }
            // The metadata are fetched once, unless that fails.
            for it in guard.verifier.fetched(&request, outcome, now()) {
                tracing::warn!(
                    issuer = %Logged(request.issuer()),
                    document = %Logged(&it.document),
                    member = %Logged(&it.member),
                    read_as = it.read_as,
                    "tolerated an authorization document that does not follow the specification"
                );
            }
            guard.waiting.wake(&request, &token);
        });
    }

    /// Checks that the token of a request has the scopes that its operation needs.
    ///
    /// # Errors
    /// The response that refuses the request.
    pub(crate) fn check_operation(&self, parts: &Parts, needed: &ScopeSet) -> Result<(), Refused> {
        let principal = parts.extensions.get::<Principal>();
        let token = principal.and_then(Principal::token);
        let checked = match token {
            Some(token) => self.resource.check_operation(token, needed),
            None => Err(Refusal::missing()),
        };
        checked.map_err(|refusal| self.refuse(&refusal))
    }

    fn refuse(&self, refusal: &Refusal) -> Refused {
        refused(refusal, self.resource.answer(refusal))
    }

    /// Rejects a token from now on, even if it is valid.
    pub(crate) fn reject_token(&self, token: &Secret) {
        self.verifier.reject_token(token, now());
    }
}

fn now() -> UnixTime {
    SystemTime::now().into()
}
