//! The authorizer of a login: one flight for all requests that wait for tokens, refresh, and step-up.

use std::{
    fmt,
    sync::{Arc, OnceLock, atomic::AtomicBool},
    time::Duration,
};

use http::{HeaderMap, HeaderValue};
use oxmcp_auth::{
    Challenge, Secret,
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
            failure::{explain, given_up, is_given_up, is_refused, is_unknown_client, oauth_error},
            fetch::{Fetch, now},
            flow::{Flow, Waiters},
            settings::{Grant, Login},
        },
        redaction::fingerprint,
    },
    session::task::spawn,
    sync::Mutex,
    transport::{
        mirror::HeaderMirror,
        traits::{CurrentLogin, UserWaits},
    },
};

/// The number of seconds before its expiry at which a token is refreshed.
const EARLY: u64 = 2;
/// The age up to which tokens count as new: a server that refuses new tokens would refuse the next ones, too.
const NEW: Duration = Duration::from_secs(30);
/// The number of refusals for lack of a valid token after which a request fails: one without a token, and one with a new token.
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
    /// The times at which a person logs in.
    waits: UserWaits,
    /// The requests that wait for tokens.
    waiters: Waiters,
    /// The login as the cache knows it, and the other authorization that answers depend on, if that is known.
    current: CurrentLogin,
    own_authorization: Option<String>,
    /// Held while tokens are obtained.
    flight: Arc<tokio::sync::Mutex<()>>,
}

#[derive(Default)]
struct State {
    /// Whether the store was read.
    is_loaded: bool,
    credentials: Option<Arc<Credentials>>,
    /// The access token that the present tokens have replaced, if they could not be stored: the store then contains older ones.
    superseded: Option<Secret>,
    /// The last challenge of the server, which tells where its metadata is.
    challenge: Option<Challenge>,
    /// The time at which this process obtained the tokens, and whether by a refresh. Tokens of another program may be of any age.
    obtained: Option<(Instant, bool)>,
    /// The newest access token that the server has refused.
    refused: Option<Secret>,
    /// The last nonce of the MCP server.
    nonce: Option<String>,
    step_ups: StepUps,
    /// The time at which the server refused the tokens of a new login, unless there was another login since.
    rejected: Option<Instant>,
    /// The number of flights that have ended, and the failure of the last one.
    flights: u64,
    failure: Option<Failure>,
}

impl State {
    fn access_token(&self) -> Option<&Secret> {
        let tokens = self.credentials.as_ref()?.tokens.as_ref()?;
        Some(&tokens.access_token)
    }
}

/// The failure of a flight.
struct Failure {
    error: Error,
    /// Whether the flight was cancelled because no request waited for it. This does not concern later requests.
    is_given_up: bool,
}

/// The reason for which tokens are obtained.
enum Reason {
    /// The tokens expire soon, or have expired.
    Expiry,
    /// The server refused the token, or there was none. A token that was obtained for this very request is not refreshed.
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

/// The result of a refresh.
enum Refreshed {
    /// There are new tokens.
    Done,
    /// The tokens cannot be refreshed, with the refusal of the authorization server if it was asked.
    LoginNeeded(Option<Error>),
}

impl Refreshed {
    /// The result if another process has stored these credentials meanwhile.
    fn by(newer: &Credentials) -> Self {
        if is_good(newer) {
            Self::Done
        } else {
            Self::LoginNeeded(None)
        }
    }
}

impl LoginEngine {
    pub(crate) fn new(
        server: &Url,
        login: Login,
        own_authorization: Option<String>,
        mirror: HeaderMirror,
    ) -> Result<Self> {
        login.check_clients()?;
        let mut fetch = Fetch::new(server, &login.trusted_hosts, login.http_client.clone())?;
        fetch.mirror = mirror;
        Ok(Self(Arc::new(Shared {
            server: server.as_str().to_owned(),
            login,
            fetch,
            proof_key: OnceLock::new(),
            state: Mutex::default(),
            waits: UserWaits::new(),
            waiters: Waiters::new(),
            current: CurrentLogin::new(),
            own_authorization,
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
            // This request does not keep a login open: it can be sent with the present token, too.
            let renewed = shared.fly(Reason::Expiry, Some(&tokens.access_token), true);
            let renewed = renewed.await;
            // If the renewal fails, the token may still be valid for a moment; otherwise the server refuses it.
            if let Err(error) = renewed {
                tracing::debug!(error = %crate::logged::Logged(&error), "could not refresh a token");
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
        let operation = refused.operation;
        let is_background = operation.is_empty() || operation.starts_with("notifications/");
        match Refusal::read(refused.status, refused.headers) {
            Some(Refusal::NonceRequired { nonce, .. }) => {
                shared.state.lock().nonce = Some(nonce);
                Ok(true)
            }
            Some(Refusal::Unauthorized { challenge }) => {
                let is_new = {
                    let mut state = shared.state.lock();
                    if state.access_token() == sent.as_ref() {
                        // The refusal of an older token may arrive later.
                        state.refused.clone_from(&sent);
                    }
                    let rejected = state.rejected;
                    if rejected.is_some_and(|at| is_background || at.elapsed() < NEW) {
                        return Ok(false);
                    }
                    let obtained = state.obtained.filter(|(at, _)| at.elapsed() < NEW);
                    let is_new = refused.refused_before > 0 && obtained.is_some();
                    let is_refreshed = obtained.is_some_and(|(_, is_refreshed)| is_refreshed);
                    if is_new && !is_refreshed {
                        // A person has just logged in, and another login would bring nothing better.
                        state.rejected = Some(Instant::now());
                        return Ok(false);
                    }
                    if refused.refused_before >= MAX_UNAUTHORIZED {
                        return Ok(false);
                    }
                    is_new
                };
                let reason = Reason::Refused { challenge, is_new };
                let flight = shared.fly(reason, sent.as_ref(), is_background);
                flight.await.map(|()| true)
            }
            Some(Refusal::InsufficientScope { scopes, challenge }) => {
                let current = shared.tokens();
                if current.is_some_and(|it| Some(&it.access_token) != sent.as_ref()) {
                    // Another request has obtained a new token meanwhile.
                    return Ok(true);
                }
                {
                    let state = shared.state.lock();
                    let requested = state.credentials.as_ref().map(|it| it.requested.clone());
                    let requested = requested.unwrap_or_default();
                    let more = state.step_ups.step_up(operation, &requested, &scopes);
                    more.map_err(|error| Error::from(error).with_http_status(403))?;
                }
                let reason = Reason::Scopes {
                    challenge,
                    operation: operation.to_owned(),
                };
                let flight = shared.fly(reason, sent.as_ref(), is_background);
                flight.await.map(|()| true)
            }
            _ => Ok(false),
        }
    }

    fn served(&self, operation: &str) {
        self.0.state.lock().step_ups.served(operation);
    }

    fn current_login(&self) -> Option<CurrentLogin> {
        Some(self.0.current.clone())
    }

    fn person_waits(&self) -> Option<UserWaits> {
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

    /// The key of new logins. Existing logins have their own.
    fn proof_key(&self) -> Result<&Arc<ProofKey>> {
        if let Some(key) = self.proof_key.get() {
            return Ok(key);
        }
        let key = Arc::new(ProofKey::generate()?);
        Ok(self.proof_key.get_or_init(|| key))
    }

    /// Whether a login works without a person.
    fn asks_nobody(&self) -> bool {
        matches!(
            self.login.grant,
            Grant::ClientCredentials | Grant::Assertion(_) | Grant::Enterprise { .. }
        )
    }

    /// Whether new tokens can be obtained without asking a person.
    fn can_renew(&self) -> bool {
        self.asks_nobody() || self.tokens().is_some_and(|it| it.refresh_token.is_some())
    }

    /// Reads the store, once.
    async fn load(&self) -> Result<()> {
        if self.state.lock().is_loaded {
            return Ok(());
        }
        let _flight = self.flight.lock().await;
        if self.state.lock().is_loaded {
            return Ok(());
        }
        if let Some(found) = self.login.find(&self.server).await? {
            self.put(found);
        }
        self.state.lock().is_loaded = true;
        Ok(())
    }

    /// Sets the credentials to use from now on.
    fn put(&self, credentials: Credentials) {
        let mut state = self.state.lock();
        let before = state.credentials.as_ref().map(|it| &it.login);
        if before != Some(&credentials.login) {
            // The name changes before any request is sent with the credentials.
            let own = self.own_authorization.as_deref();
            let own = own.filter(|_| credentials.tokens.is_some());
            let name = own.map(|own| fingerprint([own.as_bytes(), credentials.login.as_bytes()]));
            self.current.set(name);
        }
        state.credentials = Some(Arc::new(credentials));
    }

    fn key(&self, credentials: &Credentials) -> CredentialKey {
        CredentialKey::new(&self.login.user, &credentials.server.issuer, &self.server)
    }

    /// Obtains tokens, or waits for those that another request is obtaining. `seen` is the token that is no longer valid.
    async fn fly(
        self: &Arc<Self>,
        reason: Reason,
        seen: Option<&Secret>,
        is_background: bool,
    ) -> Result<()> {
        let ended = self.state.lock().flights;
        // A message that the program sends by itself may refresh tokens and wait for a login, but no person is asked only
        // because of such messages.
        let _foreground = (!is_background).then(|| self.waiters.enter());
        let guard = Arc::clone(&self.flight).lock_owned().await;
        {
            let state = self.state.lock();
            let current = state.access_token();
            if current.is_some() && current != seen && current != state.refused.as_ref() {
                return Ok(());
            }
            let failure = state.failure.as_ref().filter(|_| state.flights != ended);
            if let Some(failure) = failure.filter(|it| is_background || !it.is_given_up) {
                return Err(failure.error.copy());
            }
        }
        let shared = Arc::clone(self);
        // The flight continues even if its request is dropped: a refresh token can be used only once.
        let flight = spawn(async move {
            let result = shared.renew(reason).await;
            let mut state = shared.state.lock();
            state.flights += 1;
            state.failure = result.as_ref().err().map(|error| Failure {
                error: error.copy(),
                is_given_up: is_given_up(error),
            });
            drop(guard);
            result
        });
        let panicked = |_: JoinError| Error::internal("the login was aborted");
        flight.await.map_err(panicked)?
    }

    async fn renew(&self, reason: Reason) -> Result<()> {
        let before = self.state.lock().credentials.clone();
        if self.find_another(before.as_deref()).await? {
            return Ok(());
        }
        let (mut not_refreshed, mut refused) = (None, None);
        let (challenge, operation) = match reason {
            Reason::Expiry => {
                // A person is asked only when the server refuses the token.
                let refreshed = self.refresh(before.as_deref()).await?;
                if matches!(refreshed, Refreshed::Done) || !self.asks_nobody() {
                    return Ok(());
                }
                (None, None)
            }
            Reason::Refused { challenge, is_new } => {
                if !is_new {
                    match self.refresh(before.as_deref()).await {
                        Ok(Refreshed::Done) => return Ok(()),
                        Ok(Refreshed::LoginNeeded(error)) => refused = error,
                        Err(error) => not_refreshed = Some(error),
                    }
                }
                (challenge, None)
            }
            Reason::Scopes {
                challenge,
                operation,
            } => (Some(challenge), Some(operation)),
        };
        if let (Some(before), Some(_)) = (&before, &operation) {
            let stored = self.login.stored(&self.key(before)).await?;
            if self.adopt(before, stored).is_some_and(|it| is_good(&it)) {
                // The person has agreed to more scopes in another process meanwhile.
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
            refused: refused.as_ref(),
            before: before.as_deref(),
            proof_key: self.proof_key()?,
            waits: &self.waits,
            waiters: &self.waiters,
            is_remembered: AtomicBool::new(false),
            registered: OnceLock::new(),
        };
        if let Some(error) = not_refreshed
            && !flow.has_moved().await
        {
            return Err(error);
        }
        if !self.asks_nobody() && self.waiters.is_empty() {
            return Err(given_up());
        }
        let credentials = match flow.run().await {
            Ok(credentials) => credentials,
            Err(error) => {
                if let Some(registered) = flow.registered.into_inner() {
                    // The client is kept, so that the next login need not register another one.
                    self.keep_registered(registered).await?;
                }
                return Err(error);
            }
        };
        if let Some(operation) = operation {
            self.state.lock().step_ups.stepped_up(&operation);
        }
        let key = self.key(&credentials);
        // Without the lock, a refresh of the login before could overwrite the new credentials.
        let _lock = self.login.store.lock_boxed(&key).await?;
        self.keep(credentials, false).await
    }

    /// Refreshes the tokens.
    ///
    /// # Errors
    /// If the authorization server neither issues nor refuses tokens, or does not know the client that is configured. The present
    /// tokens stay, because they may be valid still, or again.
    async fn refresh(&self, before: Option<&Credentials>) -> Result<Refreshed> {
        let Some(before) = before else {
            return Ok(Refreshed::LoginNeeded(None));
        };
        let key = self.key(before);
        let lock = self.login.store.lock_boxed(&key).await?;
        let stored = self.login.stored(&key).await?;
        if stored.as_ref().is_none_or(|it| it.tokens.is_none()) {
            // The user has logged out meanwhile.
            return Ok(Refreshed::LoginNeeded(None));
        }
        let newer = self.adopt(before, stored);
        if newer.as_ref().is_some_and(|it| is_good(it)) {
            return Ok(Refreshed::Done);
        }
        if newer.is_none() && self.state.lock().superseded.is_some() {
            // Otherwise other processes would use a refresh token that is already used up.
            self.save(before.clone()).await?;
        }
        let before = newer.as_deref().unwrap_or(before);
        let tokens = before.tokens.as_ref();
        let (Some(tokens), Some(client)) = (tokens, &before.client) else {
            return Ok(Refreshed::LoginNeeded(None));
        };
        let Some(token) = &tokens.refresh_token else {
            return Ok(Refreshed::LoginNeeded(None));
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
                Ok(Refreshed::Done)
            }
            // `unauthorized_client` means that this client cannot refresh tokens at all.
            Err(error)
                if matches!(
                    oauth_error(&error),
                    Some("invalid_grant" | "unauthorized_client")
                ) =>
            {
                // Another process may have been faster, if the locks of the store do not exclude it.
                let stored = self.login.stored(&key).await?;
                if let Some(newer) = self.adopt(before, stored) {
                    return Ok(Refreshed::by(&newer));
                }
                self.save(without_refresh_token(before)).await?;
                Ok(Refreshed::LoginNeeded(Some(error)))
            }
            Err(error) if is_unknown_client(&error) && !self.login.is_configured(client) => {
                let mut credentials = without_refresh_token(before);
                credentials.client = None;
                self.save(credentials).await?;
                drop(lock);
                self.login.forget_registered(&key, client).await?;
                Ok(Refreshed::LoginNeeded(Some(error)))
            }
            // Many servers refuse by other codes, or by a page. The refresh token stays until another login replaces it, because
            // such an answer may have another reason than the token.
            Err(error) if is_refused(&error) && !is_unknown_client(&error) => {
                let stored = self.login.stored(&key).await?;
                Ok(match self.adopt(before, stored) {
                    Some(newer) => Refreshed::by(&newer),
                    None => Refreshed::LoginNeeded(Some(error)),
                })
            }
            Err(error) => Err(explain(&self.login, error, client)),
        }
    }

    /// Takes over the newer tokens that another process has stored meanwhile.
    fn adopt(&self, before: &Credentials, stored: Option<Credentials>) -> Option<Arc<Credentials>> {
        let tokens = |it: &Credentials| {
            let tokens = it.tokens.as_ref();
            tokens.map(|it| (it.access_token.clone(), it.refresh_token.clone()))
        };
        let superseded = self.state.lock().superseded.clone();
        let newer = stored.filter(|it| {
            let access_token = it.tokens.as_ref().map(|it| &it.access_token);
            let is_older = access_token == superseded.as_ref();
            access_token.is_some() && !is_older && tokens(it) != tokens(before)
        })?;
        self.take(newer);
        self.state.lock().credentials.clone()
    }

    /// Takes over the login that another program has made, if the store has none under the key of the present credentials: there
    /// were no credentials, or the server has another authorization server now. Returns whether there is such a login.
    async fn find_another(&self, before: Option<&Credentials>) -> Result<bool> {
        if let Some(before) = before
            && self.login.stored(&self.key(before)).await?.is_some()
        {
            return Ok(false);
        }
        let Some(found) = self.login.find(&self.server).await? else {
            return Ok(false);
        };
        if found.tokens.is_some() {
            self.take(found);
            return Ok(true);
        }
        if before.is_none() {
            self.put(found);
        }
        Ok(false)
    }

    /// Takes over the login of another program.
    fn take(&self, newer: Credentials) {
        self.put(newer);
        let mut state = self.state.lock();
        state.obtained = None;
        state.rejected = None;
        state.superseded = None;
    }

    /// Keeps new credentials here and in the store.
    async fn keep(&self, credentials: Credentials, is_refreshed: bool) -> Result<()> {
        {
            let mut state = self.state.lock();
            state.obtained = Some((Instant::now(), is_refreshed));
            if !is_refreshed {
                state.rejected = None;
            }
        }
        self.save(credentials).await
    }

    /// Keeps the client that a failed login has registered, unless the credentials in the store cannot use it.
    async fn keep_registered(&self, registered: Credentials) -> Result<()> {
        let key = self.key(&registered);
        {
            let state = self.state.lock();
            let before = state.credentials.as_ref();
            let is_elsewhere = before.is_some_and(|before| self.key(before) != key);
            if is_elsewhere || state.superseded.is_some() {
                // The login at the other authorization server stays, and so do tokens that are newer than those in the store.
                return Ok(());
            }
        }
        let _lock = self.login.store.lock_boxed(&key).await?;
        let credentials = match self.login.stored(&key).await? {
            Some(mut stored) => {
                let tokens = stored.tokens.as_ref();
                if tokens.is_some_and(|it| it.refresh_token.is_some()) {
                    // The refresh token belongs to the client that it was issued to.
                    return Ok(());
                }
                stored.client = registered.client;
                stored
            }
            // The user has not logged in, or has logged out.
            None => registered,
        };
        self.save(credentials).await
    }

    /// Keeps credentials here and in the store. The caller holds the lock of the store.
    async fn save(&self, credentials: Credentials) -> Result<()> {
        let key = self.key(&credentials);
        let before = self.state.lock().credentials.clone();
        let text = credentials.to_json();
        self.put(credentials);
        let saved = self.login.store.save_boxed(&key, text).await;
        {
            let mut state = self.state.lock();
            if saved.is_ok() {
                state.superseded = None;
            } else if state.superseded.is_none() {
                let tokens = before.as_ref().and_then(|it| it.tokens.as_ref());
                state.superseded = tokens.map(|it| it.access_token.clone());
            }
        }
        saved?;
        let before = before.map(|it| self.key(&it));
        match before.filter(|before| *before != key) {
            // The server has another authorization server now.
            Some(before) => self.login.store.remove_boxed(&before).await,
            None => Ok(()),
        }
    }
}

/// The credentials without their refresh token, which would be refused each time.
fn without_refresh_token(credentials: &Credentials) -> Credentials {
    let mut credentials = credentials.clone();
    let tokens = credentials.tokens.as_mut();
    tokens.into_iter().for_each(|it| it.refresh_token = None);
    credentials
}

/// Whether the access token is valid for a while.
fn is_good(credentials: &Credentials) -> bool {
    let tokens = credentials.tokens.as_ref();
    tokens.is_some_and(|it| !it.expires_within(EARLY, now()))
}

/// Omits the tokens.
impl fmt::Debug for LoginEngine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LoginEngine")
            .field("server", &self.0.server)
            .finish_non_exhaustive()
    }
}
