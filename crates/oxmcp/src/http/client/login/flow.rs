//! The flow of a login, from a refusal to credentials, by every grant.

use std::{
    future::Future,
    pin::pin,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    time::Duration,
};

use oxmcp_auth::{
    AuthError, Challenge, ScopeSet, Secret,
    client::{
        Authorization, AuthorizationAttempt, Client, ClientChoice, ClientMetadata, ClientOptions,
        Credentials, Discovered, Discovery, TokenExchange, TokenRequest, choose_client,
    },
    dpop::ProofKey,
    internal::shown_url,
};
use tokio::{select, sync::watch, time::timeout};

use crate::{
    error::{Error, Result},
    http::client::login::{
        failure::{explain, given_up, nobody_came, wants_another_client},
        fetch::{Fetch, now},
        loopback::Loopback,
        settings::{AssertionRequest, Grant, Login},
    },
    transport::traits::UserWaits,
};

/// The time limit for a person to log in.
const PERSON_TIMEOUT: Duration = Duration::from_secs(600);

/// The inputs of a login, and its state.
pub(crate) struct Flow<'a> {
    pub(crate) login: &'a Login,
    pub(crate) fetch: &'a Fetch,
    /// The URL of the MCP server.
    pub(crate) server: &'a str,
    pub(crate) challenge: Option<&'a Challenge>,
    /// The refusal to refresh the tokens, if a login is needed because of it.
    pub(crate) refused: Option<&'a Error>,
    /// The login before, whose client and scopes are reused at the same authorization server.
    pub(crate) before: Option<&'a Credentials>,
    pub(crate) proof_key: &'a Arc<ProofKey>,
    pub(crate) waits: &'a UserWaits,
    pub(crate) waiters: &'a Waiters,
    /// Whether the client in use was registered by an earlier login.
    pub(crate) is_remembered: AtomicBool,
    /// The client that was registered, which is kept even if no person logs in.
    pub(crate) registered: OnceLock<Credentials>,
}

impl Flow<'_> {
    /// Logs in.
    pub(crate) async fn run(&self) -> Result<Credentials> {
        if let Some(what_to_do) = self.login.grant.cannot_ask() {
            let message = format!(
                "{:?} requires a login, and no user can be asked here{}; {what_to_do}",
                shown_url(self.server),
                self.refusal()
            );
            let challenge = self.challenge.map(Challenge::to_string);
            return Err(
                Error::from(AuthError::interaction_required(message)).with_challenges(challenge)
            );
        }
        if let Grant::Loopback { prompt, .. } = &self.login.grant {
            prompt.check().map_err(|error| {
                let text = format!("{}{}", error.message(), self.refusal());
                AuthError::interaction_required(text)
            })?;
        }
        let discovered = self.discover().await?;
        match self.log_in(&discovered, true).await {
            // Another client is registered, once.
            Err(error) if wants_another_client(&error) && self.is_remembered.load(Relaxed) => {
                self.log_in(&discovered, false).await
            }
            result => result,
        }
    }

    /// The authorization server's reason for refusing a refresh, for the error if no person can log in.
    fn refusal(&self) -> String {
        let words = self.refused.map(Error::message);
        words.map_or_else(String::new, |it| {
            format!(" (could not refresh the tokens: {it})")
        })
    }

    /// Logs in by the grant, with the client of the login before if `may_reuse` allows that.
    async fn log_in(&self, discovered: &Discovered, may_reuse: bool) -> Result<Credentials> {
        let nothing = ScopeSet::new();
        let before = self.before_there(discovered).map(|it| &it.requested);
        let selection = &self.login.scopes;
        let scopes = selection.select(self.challenge, discovered, before.unwrap_or(&nothing));
        let (client, request) = match &self.login.grant {
            Grant::Redirect { uri, send } => {
                let client = self.client(discovered, uri, &scopes, may_reuse).await?;
                let attempt = self.authorization(discovered, &client, uri, &scopes);
                let attempt = attempt.begin()?;
                let answer = self.ask(send(attempt.url().to_owned())).await?;
                let request = self.code_request(discovered, &client, &attempt, &answer)?;
                (Some(client), request)
            }
            Grant::Loopback { port, prompt } => {
                let loopback = self.listen(*port).await?;
                let uri = loopback.redirect_uri().to_owned();
                let client = self.client(discovered, &uri, &scopes, may_reuse).await?;
                let attempt = self.authorization(discovered, &client, &uri, &scopes);
                let attempt = attempt.begin()?;
                let mut shown = prompt.show(attempt.url().to_owned());
                let answer = self.ask(async {
                    let mut answer = pin!(loopback.answer(attempt.state().expose()));
                    // The browser may reach the listener while the opener still runs.
                    select! {
                        answer = &mut answer => return answer,
                        shown = &mut shown => shown?,
                    }
                    select! {
                        answer = answer => answer,
                        answer = prompt.pasted(attempt.state().clone()) => Ok(answer),
                    }
                });
                let request = self.code_request(discovered, &client, &attempt, &answer.await?)?;
                (Some(client), request)
            }
            _ => self.without_person(discovered, &scopes).await?,
        };
        let proof_key = self.is_bound(discovered);
        let proof_key = proof_key.then(|| Arc::clone(self.proof_key));
        let bound = proof_key.clone().into_iter();
        let request = bound.fold(request, TokenRequest::proof_key);
        let tokens = self.fetch.converse(request).await;
        let mut tokens = tokens.map_err(|error| match &client {
            Some(client) => explain(self.login, error, client),
            None => error,
        })?;
        if discovered.is_default {
            // A refresh token from default endpoints, which no metadata has named, is not sent there again.
            tokens.refresh_token = None;
        }
        let resource = discovered.resource.clone();
        let mut credentials = Credentials::new(discovered.server.clone(), client, resource)?;
        credentials.requested = scopes;
        credentials.tokens = Some(tokens);
        credentials.proof_key = proof_key;
        Ok(credentials)
    }

    /// The request for tokens, with the code in an answer.
    fn code_request(
        &self,
        discovered: &Discovered,
        client: &Client,
        attempt: &AuthorizationAttempt,
        answer: &str,
    ) -> Result<TokenRequest> {
        let code = attempt.finish(answer);
        let code = code.map_err(|error| explain(self.login, error.into(), client))?;
        let server = &discovered.server;
        Ok(TokenRequest::authorization_code(
            server, client, attempt, code,
        )?)
    }

    /// Waits for a person, for as long as a request waits for the login.
    async fn ask(&self, answer: impl Future<Output = Result<String>>) -> Result<String> {
        let _wait = self.waits.begin();
        select! {
            biased;
            answer = timeout(PERSON_TIMEOUT, answer) => {
                answer.map_err(|_| nobody_came(PERSON_TIMEOUT))?
            }
            () = self.waiters.gone() => Err(given_up()),
        }
    }

    /// Whether the MCP server names another token endpoint than that of the login before.
    pub(crate) async fn has_moved(&self) -> bool {
        let Ok(discovered) = self.discover().await else {
            return false;
        };
        self.before.is_some_and(|before| {
            let (old, new) = (&before.server, &discovered.server);
            old.issuer != new.issuer || old.token_endpoint != new.token_endpoint
        })
    }

    pub(crate) async fn discover(&self) -> Result<Discovered> {
        let mut options = self.login.discovery.clone();
        let clients = self.login.clients.iter().filter_map(Client::issuer);
        let before = self.before.map(|it| it.server.issuer.as_str());
        let known = clients.chain(before).map(str::to_owned);
        options.preferred_issuers.extend(known);
        let discovery = Discovery::new(self.server, self.challenge, options)?;
        self.fetch.converse(discovery).await
    }

    /// The login before, if it was at the same authorization server. At default endpoints, which no metadata has named, no stored
    /// credentials are used.
    pub(crate) fn before_there(&self, discovered: &Discovered) -> Option<&Credentials> {
        self.before
            .filter(|it| it.server.issuer == discovered.server.issuer && !discovered.is_default)
    }

    /// The listener: at the given port, or else at the port that the client is registered with, if that is free.
    async fn listen(&self, port: Option<u16>) -> Result<Loopback> {
        let registered = self.before.and_then(|it| it.client.as_ref());
        let registered = registered
            .and_then(Client::redirect_uris)
            .unwrap_or_default();
        let registered = registered.iter().filter_map(|it| url::Url::parse(it).ok());
        let registered = registered.filter_map(|it| it.port()).next();
        if let (None, Some(port)) = (port, registered)
            && let Ok(loopback) = Loopback::bind(Some(port)).await
        {
            return Ok(loopback);
        }
        Loopback::bind(port).await
    }

    /// The client to use at the authorization server.
    pub(crate) async fn client(
        &self,
        discovered: &Discovered,
        redirect_uri: &str,
        scopes: &ScopeSet,
        may_reuse: bool,
    ) -> Result<Client> {
        let mut options = ClientOptions::default();
        options.registered.clone_from(&self.login.clients);
        let before = self.before_there(discovered).filter(|_| may_reuse);
        let before = before.and_then(|it| it.client.clone());
        // A client can be reused only at the issuer and with the redirect URI that it was registered with, so both must be known.
        let before = before.filter(|it| it.issuer().is_some() && it.redirect_uris().is_some());
        let remembered = before.as_ref().map(|it| it.id().to_owned());
        options.registered.extend(before);
        options.document.clone_from(&self.login.document);
        let name = &self.login.client_name;
        options.dynamic = Some(ClientMetadata::new(name, [redirect_uri])?);
        let server = &discovered.server;
        let scopes = self.login.scopes.to_register(scopes, discovered);
        // No client is registered if there is no page to send a person to.
        server.authorization_endpoint()?;
        match choose_client(server, &options, Some(redirect_uri), &scopes, now())? {
            ClientChoice::Ready(client) => {
                let is_remembered = remembered.as_deref() == Some(client.id())
                    && !self.login.is_configured(&client);
                self.is_remembered.store(is_remembered, Relaxed);
                Ok(client)
            }
            ClientChoice::Register(registration) => {
                let client = self.fetch.converse(*registration).await?;
                let resource = discovered.resource.clone();
                let kept = Credentials::new(server.clone(), Some(client.clone()), resource)?;
                self.registered.get_or_init(|| kept);
                Ok(client)
            }
            _ => Err(Error::misuse("could not choose a client")),
        }
    }

    pub(crate) fn authorization<'a>(
        &self,
        discovered: &'a Discovered,
        client: &'a Client,
        redirect_uri: &'a str,
        scopes: &ScopeSet,
    ) -> Authorization<'a> {
        let request = Authorization::new(discovered, client, redirect_uri).scopes(scopes.clone());
        if self.is_bound(discovered) {
            return request.proof_key(self.proof_key.thumbprint());
        }
        request
    }

    /// Whether the token is to be bound to a key: if the user wants it, or the server accepts no other.
    pub(crate) fn is_bound(&self, discovered: &Discovered) -> bool {
        let metadata = discovered.resource_metadata.as_ref();
        let is_required = metadata.and_then(|it| it.dpop_bound_access_tokens_required);
        let is_challenged = self.challenge.is_some_and(|it| it.is("DPoP"));
        self.login.uses_dpop || is_required == Some(true) || is_challenged
    }

    /// The token request of a grant that asks no person.
    async fn without_person(
        &self,
        discovered: &Discovered,
        scopes: &ScopeSet,
    ) -> Result<(Option<Client>, TokenRequest)> {
        let server = &discovered.server;
        let resource = discovered.resource.as_deref();
        if discovered.is_default {
            return Err(AuthError::interaction_required(format!(
                "{:?} names no authorization server, and this login does not use the default one; \
                 configure the issuer (`Login::issuer`)",
                shown_url(self.server)
            ))
            .into());
        }
        match &self.login.grant {
            Grant::Assertion(assertion) => {
                let request = AssertionRequest {
                    issuer: server.issuer.clone(),
                    token_endpoint: server.token_endpoint()?.to_owned(),
                    resource: discovered.resource.clone(),
                };
                let assertion = timeout(PERSON_TIMEOUT, assertion(request));
                let assertion =
                    Secret::new(assertion.await.map_err(|_| nobody_came(PERSON_TIMEOUT))??);
                let client = self.login.clients.first();
                let scopes = scopes.clone();
                let request =
                    TokenRequest::jwt_bearer(server, client, &assertion, resource, scopes)?;
                Ok((client.cloned(), request))
            }
            Grant::Enterprise {
                provider,
                client: there,
                subject,
            } => {
                let client = self.configured_client(discovered)?;
                let subject = timeout(PERSON_TIMEOUT, subject());
                let subject = subject.await.map_err(|_| nobody_came(PERSON_TIMEOUT))??;
                let exchange = TokenExchange::id_jag(provider, there, &subject, &server.issuer)?;
                let exchange = resource.into_iter().fold(exchange, TokenExchange::resource);
                let exchange = exchange.scopes(scopes);
                let grant = self.fetch.converse_as_configured(exchange).await?;
                let scopes = scopes.clone();
                let request =
                    TokenRequest::jwt_bearer(server, Some(&client), &grant, resource, scopes)?;
                Ok((Some(client), request))
            }
            _ => {
                let client = self.configured_client(discovered)?;
                let scopes = scopes.clone();
                let request = TokenRequest::client_credentials(server, &client, resource, scopes)?;
                Ok((Some(client), request))
            }
        }
    }

    /// The client that the user has configured for this authorization server.
    fn configured_client(&self, discovered: &Discovered) -> Result<Client> {
        let mut options = ClientOptions::default();
        options.registered.clone_from(&self.login.clients);
        options.document.clone_from(&self.login.document);
        let server = &discovered.server;
        match choose_client(server, &options, None, &ScopeSet::new(), now())? {
            ClientChoice::Ready(client) => Ok(client),
            _ => Err(Error::misuse("could not choose a client")),
        }
    }
}

/// The requests that wait for a login, which asks a person only while there are some.
#[derive(Debug)]
pub(crate) struct Waiters(watch::Sender<usize>);

impl Waiters {
    pub(crate) fn new() -> Self {
        Self(watch::Sender::new(0))
    }

    /// Counts a request, until the returned guard is dropped.
    pub(crate) fn enter(&self) -> Waiter<'_> {
        self.0.send_modify(|count| *count += 1);
        Waiter(self)
    }

    pub(crate) fn is_empty(&self) -> bool {
        *self.0.borrow() == 0
    }

    /// Waits until no request waits.
    pub(crate) async fn gone(&self) {
        // `self` holds the sender, so the channel is not closed.
        let _ = self.0.subscribe().wait_for(|count| *count == 0).await;
    }
}

/// A guard that counts one waiting request.
pub(crate) struct Waiter<'a>(&'a Waiters);

impl Drop for Waiter<'_> {
    fn drop(&mut self) {
        self.0.0.send_modify(|count| *count -= 1);
    }
}
