//! The authorizer of a login: one flight for all requests that wait, refresh, and step-up.

use std::{
    fmt,
    sync::{Arc, OnceLock},
    time::Duration,
};

use http::{HeaderMap, HeaderValue};
use oxmcp_auth::{
    AuthErrorKind, Challenge, Secret,
    client::{CredentialKey, Credentials, Refusal, StepUps, TokenRequest, TokenType, Tokens},
    dpop::ProofKey,
};
use tokio::{task::JoinError, time::Instant};
use url::Url;

use crate::{
    error::{Error, Result},
    http::client::{
        login::{
            authorizer::{Authorizer, RefusedRequest, RequestToAuthorize},
            fetch::{Fetch, now},
            flow::Flow,
            settings::{Grant, Login},
        },
        transport::http_client::DynHttpClient,
    },
    session::task::spawn,
    sync::Mutex,
    transport::traits::PersonWaits,
};

/// How many seconds before its end a token is refreshed.
const EARLY: u64 = 2;
/// How long tokens count as new: a server that refuses them would refuse the next ones.
const NEW: Duration = Duration::from_secs(30);
/// How often a request is refused for want of a token, or for one that is not valid, until that is the answer: without a token,
/// and once with a new one.
const MAX_UNAUTHORIZED: usize = 2;

/// The authorizer of a login to one server.
pub(crate) struct LoginEngine(Arc<Shared>);

struct Shared {
    /// The URL of the MCP server.
    server: String,
    login: Login,
    fetch: Fetch,
    proof_key: OnceLock<Arc<ProofKey>>,
    state: Mutex<State>,
    /// The times at which somebody logs in.
    waits: PersonWaits,
    /// Held while tokens are got.
    flight: Arc<tokio::sync::Mutex<()>>,
}

#[derive(Default)]
struct State {
    /// Whether the store was asked.
    is_loaded: bool,
    credentials: Option<Arc<Credentials>>,
    /// The challenge that the server gave last, which says where its metadata is.
    challenge: Option<Challenge>,
    /// When the tokens came, and whether a refresh brought them.
    obtained: Option<(Instant, bool)>,
    /// The nonce that the MCP server gave last.
    nonce: Option<String>,
    step_ups: StepUps,
    /// How many flights have ended, and how the last one failed.
    flights: u64,
    failure: Option<Error>,
}

/// Why tokens are got.
enum Reason {
    /// They end soon, or have ended.
    Expiry,
    /// The server refused the token, or there was none. A token that was got for this very request is not refreshed.
    Refused {
        challenge: Option<Challenge>,
        is_new: bool,
    },
    /// The token lacks scopes that the operation needs.
    Scopes {
        challenge: Challenge,
        operation: String,
    },
}

impl LoginEngine {
    pub(crate) fn new(
        server: &Url,
        login: Login,
        own_client: Option<Arc<dyn DynHttpClient>>,
    ) -> Result<Self> {
        login.check_clients()?;
        let mut trusted = login.trusted_hosts.clone();
        if let Grant::Enterprise { provider, .. } = &login.grant {
            // It is the user who named it.
            let endpoint = provider.token_endpoint()?;
            let host = Url::parse(endpoint).ok();
            trusted.extend(host.and_then(|it| it.host_str().map(str::to_owned)));
        }
        let client = login.http_client.clone().or(own_client);
        let fetch = Fetch::new(server, &trusted, client)?;
        Ok(Self(Arc::new(Shared {
            server: server.as_str().to_owned(),
            login,
            fetch,
            proof_key: OnceLock::new(),
            state: Mutex::default(),
            waits: PersonWaits::new(),
            flight: Arc::default(),
        })))
    }
}

impl Authorizer for LoginEngine {
    async fn authorize(&self, request: RequestToAuthorize<'_>) -> Result<HeaderMap> {
        let shared = &self.0;
        shared.load().await?;
        let Some((mut tokens, mut key)) = shared.tokens_and_key() else {
            return Ok(HeaderMap::new());
        };
        if tokens.expires_within(EARLY, now()) && shared.can_renew() {
            let renewed = shared.fly(Reason::Expiry, Some(&tokens.access_token)).await;
            // Where it fails, the token may be good for a moment yet, and else the server says so.
            if let Err(error) = renewed {
                tracing::debug!(error = %crate::logged::Logged(&error), "a token could not be refreshed");
            } else if let Some(new) = shared.tokens_and_key() {
                (tokens, key) = new;
            }
        }
        let nonce = shared.state.lock().nonce.clone();
        let possession = key.as_deref().map(|key| (key, nonce.as_deref()));
        let url = request.url.to_string();
        Ok(tokens.headers(request.method, &url, possession, now())?)
    }

    async fn refused(&self, refused: RefusedRequest<'_>) -> Result<bool> {
        let shared = &self.0;
        let sent = token_of(refused.authorization());
        match Refusal::read(refused.status, refused.headers) {
            Some(Refusal::NonceRequired { nonce, .. }) => {
                shared.state.lock().nonce = Some(nonce);
                Ok(true)
            }
            Some(Refusal::Unauthorized { challenge }) => {
                if refused.refused_before >= MAX_UNAUTHORIZED {
                    return Ok(false);
                }
                let failure = shared.state.lock().failure.as_ref().map(Error::copy);
                let is_background =
                    refused.operation.is_empty() || refused.operation.starts_with("notifications/");
                if let Some(failure) = failure.filter(|_| is_background) {
                    // What a program does by itself must not ask a person again and again.
                    return Err(failure);
                }
                let obtained = shared.state.lock().obtained;
                let obtained = obtained.filter(|(at, _)| at.elapsed() < NEW);
                let is_new = refused.refused_before > 0 && obtained.is_some();
                if is_new && obtained.is_some_and(|(_, is_refreshed)| !is_refreshed) {
                    // Somebody has just logged in, and another login would bring nothing better.
                    return Ok(false);
                }
                let reason = Reason::Refused { challenge, is_new };
                shared.fly(reason, sent.as_ref()).await.map(|()| true)
            }
            Some(Refusal::InsufficientScope { scopes, challenge }) => {
                let current = shared.tokens();
                if current.is_some_and(|it| Some(&it.access_token) != sent.as_ref()) {
                    // Another request has asked for more meanwhile.
                    return Ok(true);
                }
                {
                    let state = shared.state.lock();
                    let requested = state.credentials.as_ref().map(|it| it.requested.clone());
                    let requested = requested.unwrap_or_default();
                    let operation = refused.operation;
                    let more = state.step_ups.step_up(operation, &requested, &scopes);
                    more.map_err(|error| Error::from(error).with_http_status(403))?;
                }
                let operation = refused.operation.to_owned();
                let reason = Reason::Scopes {
                    challenge,
                    operation,
                };
                shared.fly(reason, sent.as_ref()).await.map(|()| true)
            }
            _ => Ok(false),
        }
    }

    fn person_waits(&self) -> Option<PersonWaits> {
        Some(self.0.waits.clone())
    }
}

/// The token in a header.
fn token_of(header: Option<&HeaderValue>) -> Option<Secret> {
    let value = header?.to_str().ok()?;
    value.split_once(' ').map(|(_, token)| Secret::new(token))
}

impl Shared {
    fn tokens(&self) -> Option<Tokens> {
        self.tokens_and_key().map(|(tokens, _)| tokens)
    }

    /// The tokens, and the key that they are bound to.
    fn tokens_and_key(&self) -> Option<(Tokens, Option<Arc<ProofKey>>)> {
        let credentials = self.state.lock().credentials.clone()?;
        Some((credentials.tokens.clone()?, credentials.proof_key.clone()))
    }

    /// The key of new logins. Those that are there bring their own.
    fn proof_key(&self) -> Result<&Arc<ProofKey>> {
        if let Some(key) = self.proof_key.get() {
            return Ok(key);
        }
        let key = Arc::new(ProofKey::generate()?);
        Ok(self.proof_key.get_or_init(|| key))
    }

    /// Whether a login asks nobody.
    fn asks_nobody(&self) -> bool {
        matches!(
            self.login.grant,
            Grant::ClientCredentials | Grant::Assertion(_) | Grant::Enterprise { .. }
        )
    }

    /// Whether new tokens can be got without asking anybody.
    fn can_renew(&self) -> bool {
        self.asks_nobody() || self.tokens().is_some_and(|it| it.refresh_token.is_some())
    }

    /// Asks the store, once.
    async fn load(&self) -> Result<()> {
        if self.state.lock().is_loaded {
            return Ok(());
        }
        let _flight = self.flight.lock().await;
        if self.state.lock().is_loaded {
            return Ok(());
        }
        let found = self.login.find(&self.server).await?;
        let mut state = self.state.lock();
        state.credentials = found.map(Arc::new);
        state.is_loaded = true;
        Ok(())
    }

    fn key(&self, credentials: &Credentials) -> CredentialKey {
        CredentialKey::new(&self.login.user, &credentials.server.issuer, &self.server)
    }

    /// Gets tokens, or waits for those that another request is getting. `seen` is the token that is not good any more.
    async fn fly(self: &Arc<Self>, reason: Reason, seen: Option<&Secret>) -> Result<()> {
        let ended = self.state.lock().flights;
        let guard = Arc::clone(&self.flight).lock_owned().await;
        {
            let state = self.state.lock();
            let current = state.credentials.as_ref().and_then(|it| it.tokens.as_ref());
            if current.is_some_and(|it| Some(&it.access_token) != seen) {
                return Ok(());
            }
            if let Some(failure) = state.failure.as_ref().filter(|_| state.flights != ended) {
                return Err(failure.copy());
            }
        }
        let shared = Arc::clone(self);
        // It ends even if the request that wanted it does not wait: a refresh token is used once.
        let flight = spawn(async move {
            let result = shared.renew(reason).await;
            let mut state = shared.state.lock();
            state.flights += 1;
            state.failure = result.as_ref().err().map(Error::copy);
            drop(guard);
            result
        });
        let panicked = |_: JoinError| Error::internal("the login did not come to an end");
        flight.await.map_err(panicked)?
    }

    async fn renew(&self, reason: Reason) -> Result<()> {
        let before = self.state.lock().credentials.clone();
        let mut unavailable = None;
        let (challenge, operation) = match reason {
            Reason::Expiry => {
                // A person is asked when the server refuses the token, and not before.
                if self.refresh(before.as_deref()).await? || !self.asks_nobody() {
                    return Ok(());
                }
                (None, None)
            }
            Reason::Refused { challenge, is_new } => {
                if !is_new {
                    match self.refresh(before.as_deref()).await {
                        Ok(true) => return Ok(()),
                        Ok(false) => {}
                        Err(error) => unavailable = Some(error),
                    }
                }
                (challenge, None)
            }
            Reason::Scopes {
                challenge,
                operation,
            } => (Some(challenge), Some(operation)),
        };
        if let (Some(before), Some(_)) = (&before, &operation)
            && self.adopt(before).await?
        {
            // Somebody has agreed to more meanwhile.
            return Ok(());
        }
        if before.is_none()
            && let Some(found) = self.login.find(&self.server).await?
        {
            // Another program has logged in meanwhile.
            let is_login = found.tokens.is_some();
            self.state.lock().credentials = Some(Arc::new(found));
            if is_login {
                return Ok(());
            }
        }
        let before = self.state.lock().credentials.clone();
        let challenge = {
            let mut state = self.state.lock();
            state.challenge = challenge.or_else(|| state.challenge.take());
            state.challenge.clone()
        };
        let flow = Flow {
            login: &self.login,
            fetch: &self.fetch,
            server: &self.server,
            challenge: challenge.as_ref(),
            before: before.as_deref(),
            proof_key: self.proof_key()?,
            waits: &self.waits,
            registered: OnceLock::new(),
        };
        if let Some(error) = unavailable
            && !flow.has_moved().await
        {
            return Err(error);
        }
        let credentials = match flow.run().await {
            Ok(credentials) => credentials,
            Err(error) => {
                if let Some(registered) = flow.registered.into_inner()
                    && before.is_none()
                {
                    // The next login need not register another client.
                    self.save(registered).await?;
                }
                return Err(error);
            }
        };
        if let Some(operation) = operation {
            self.state.lock().step_ups.stepped_up(&operation);
        }
        self.keep(credentials, false).await
    }

    /// Refreshes the tokens. Returns whether there are new ones; `false` where a login is needed.
    async fn refresh(&self, before: Option<&Credentials>) -> Result<bool> {
        let Some(before) = before else {
            return Ok(false);
        };
        let key = self.key(before);
        let _lock = self.login.store.lock_boxed(&key).await?;
        if self.adopt(before).await? {
            return Ok(true);
        }
        if self.login.stored(&key).await?.is_none() {
            // Somebody has logged out meanwhile.
            return Ok(false);
        }
        let tokens = before.tokens.as_ref();
        let (Some(tokens), Some(client)) = (tokens, &before.client) else {
            return Ok(false);
        };
        let Some(token) = &tokens.refresh_token else {
            return Ok(false);
        };
        let resource = before.resource.as_deref();
        let scopes = tokens.scopes.clone();
        let mut request = TokenRequest::refresh(&before.server, client, token, resource, scopes)?;
        if let (TokenType::DPoP, Some(key)) = (tokens.token_type, &before.proof_key) {
            request = request.proof_key(Arc::clone(key));
        }
        match self.fetch.converse(request).await {
            Ok(new) => {
                let mut credentials = before.clone();
                credentials.tokens = Some(tokens.refreshed(new));
                self.keep(credentials, true).await?;
                Ok(true)
            }
            // Another process may have been quicker.
            Err(error) if is_refused(&error) => {
                if self.adopt(before).await? {
                    return Ok(true);
                }
                // It would be refused each time.
                let mut credentials = before.clone();
                let tokens = credentials.tokens.as_mut();
                tokens.into_iter().for_each(|it| it.refresh_token = None);
                self.save(credentials).await?;
                Ok(false)
            }
            Err(error) => Err(error),
        }
    }

    /// Takes what another process has put into the store meanwhile.
    async fn adopt(&self, before: &Credentials) -> Result<bool> {
        let Some(stored) = self.login.stored(&self.key(before)).await? else {
            return Ok(false);
        };
        let access = |it: &Credentials| it.tokens.as_ref().map(|it| it.access_token.clone());
        let is_newer = access(&stored).is_some() && access(&stored) != access(before);
        let is_good = stored.tokens.as_ref();
        let is_good = is_good.is_some_and(|it| !it.expires_within(EARLY, now()));
        if is_newer && is_good {
            let mut state = self.state.lock();
            state.credentials = Some(Arc::new(stored));
            state.obtained = Some((Instant::now(), true));
            return Ok(true);
        }
        Ok(false)
    }

    /// Keeps new credentials here and in the store.
    async fn keep(&self, credentials: Credentials, is_refreshed: bool) -> Result<()> {
        self.state.lock().obtained = Some((Instant::now(), is_refreshed));
        self.save(credentials).await
    }

    async fn save(&self, credentials: Credentials) -> Result<()> {
        let key = self.key(&credentials);
        let before = self.state.lock().credentials.clone();
        let before = before.map(|it| self.key(&it));
        let text = credentials.to_json();
        self.state.lock().credentials = Some(Arc::new(credentials));
        self.login.store.save_boxed(&key, text).await?;
        match before.filter(|before| *before != key) {
            // The server has another authorization server now.
            Some(before) => self.login.store.remove_boxed(&before).await,
            None => Ok(()),
        }
    }
}

/// Whether an authorization server has said no, rather than nothing.
fn is_refused(error: &Error) -> bool {
    let source = std::error::Error::source(error);
    let source = source.and_then(|it| it.downcast_ref::<oxmcp_auth::AuthError>());
    source.is_some_and(|it| it.kind() == AuthErrorKind::Refused)
}

/// Without tokens.
impl fmt::Debug for LoginEngine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LoginEngine")
            .field("server", &self.0.server)
            .finish_non_exhaustive()
    }
}
