//! Logins of web back ends, which one request of a browser begins and another one finishes, possibly in another process.

use std::{
    fmt, iter,
    sync::{Arc, OnceLock, atomic::AtomicBool},
};

use http::{
    HeaderMap, HeaderValue, Method,
    header::{ACCEPT, CONTENT_TYPE, WWW_AUTHENTICATE},
};
use oxmcp_auth::{
    AuthError, Body, Challenge, Request, Response, ScopeSet, Secret, UnixTime,
    client::{
        AuthorizationAttempt, Client, Conversation, CredentialKey, Credentials, Refusal,
        TokenRequest,
    },
    dpop::ProofKey,
};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::{
    error::{Error, Result},
    http::client::login::{
        failure::{explain, wants_another_client},
        fetch::{Fetch, now},
        flow::{Flow, Waiters},
        settings::{Grant, Login},
        stored::server_url,
    },
    logged::Logged,
    session::sealing::{self, Bound, Refused, random},
    transport::traits::UserWaits,
};

/// The time limit for a person to log in, in seconds.
const LIFETIME: u64 = 600;
/// The maximum length of a sealed attempt that is opened, in characters.
const MAX_SEALED: usize = 64 << 10;

/// An attempt to log in: the page to send the user's browser to, and the state that is kept until the browser comes back.
#[derive(Clone)]
#[must_use = "the user is to be sent to its URL"]
pub struct LoginAttempt {
    url: String,
    sealed: String,
}

impl LoginAttempt {
    /// Returns the URL of the page to send the user's browser to.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Returns the attempt as text, for [`Login::finish`]: 1 to 3 KiB of the characters of base64url. Keep it where only this
    /// user's browser brings it back, as in a cookie (`Secure`, `HttpOnly`, `SameSite=Lax`), or with the user's session. It is
    /// sealed: it cannot be read, changed, or used for another user. It expires after 10 minutes.
    #[must_use]
    pub fn sealed(&self) -> &str {
        &self.sealed
    }
}

/// Omits the URL, whose `state` is meant only for the user's browser.
impl fmt::Debug for LoginAttempt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LoginAttempt").finish_non_exhaustive()
    }
}

/// The content of a sealed attempt.
#[derive(Serialize, Deserialize)]
struct Record {
    /// The time of its expiry, in seconds since 1970.
    expires: u64,
    /// The URL of the MCP server.
    server: String,
    attempt: Box<RawValue>,
    /// The credentials of the login, still without tokens.
    credentials: Box<RawValue>,
    /// Whether the endpoints are the default ones, which no metadata has named.
    is_default: bool,
}

impl Login {
    /// Begins a login of the [`user`](Self::user) to the MCP server at a URL, if the login is by [`redirect`](Self::redirect): the
    /// authorization server is found and checked, and the client is registered if necessary. A client that was registered serves
    /// all users of the store.
    ///
    /// The requested scopes are those that the server asks for, and those of the user's present login, if there is one.
    ///
    /// # Errors
    /// If the login is of another kind, or if a step before the page of the authorization server fails.
    ///
    /// # Cancel safety
    /// If the future is dropped, no login is begun.
    pub async fn begin(&self, server: impl AsRef<str>) -> Result<LoginAttempt> {
        self.begin_with(server.as_ref(), None).await
    }

    /// Begins a login because a request failed: with the scopes that the error reports as missing, in addition to those that
    /// the user has agreed to before.
    ///
    /// ```no_run
    /// use oxmcp::{ClientSession, Result, http::Login};
    ///
    /// /// `None` where the user has to be sent to a URL first.
    /// async fn delete(session: &ClientSession, login: &Login) -> Result<Option<String>> {
    ///     match session.call_tool("delete", serde_json::json!({})).await {
    ///         Ok(_) => Ok(None),
    ///         Err(error) if error.is_interaction_required() => {
    ///             let attempt = login.begin_after("https://mcp.example/mcp", &error).await?;
    ///             // Keep `attempt.sealed()` for `finish`.
    ///             Ok(Some(attempt.url().to_owned()))
    ///         }
    ///         Err(error) => Err(error),
    ///     }
    /// }
    /// ```
    ///
    /// # Errors
    /// As [`begin`](Self::begin).
    ///
    /// # Cancel safety
    /// As [`begin`](Self::begin).
    pub async fn begin_after(
        &self,
        server: impl AsRef<str>,
        refused: &Error,
    ) -> Result<LoginAttempt> {
        self.begin_with(server.as_ref(), challenge_of(refused))
            .await
    }

    async fn begin_with(&self, server: &str, challenge: Option<Challenge>) -> Result<LoginAttempt> {
        let Grant::Begun { uri } = &self.grant else {
            return Err(Error::misuse(
                "only a `Login::redirect` can be begun and finished: other logins start when a request needs them",
            ));
        };
        self.check_clients()?;
        let url = server_url(server)?;
        let server = url.as_str();
        let fetch = Fetch::new(&url, &self.trusted_hosts, self.http_client.clone())?;
        let challenge = match challenge {
            Some(challenge) => Some(challenge),
            None => ask_challenge(&fetch, server).await,
        };
        let before = match self.find(server).await? {
            Some(before) => Some(before),
            None => self.clone().user("").find(server).await?.map(without_login),
        };
        let (proof_key, waits) = (Arc::new(ProofKey::generate()?), UserWaits::new());
        let waiters = Waiters::new();
        let flow = Flow {
            login: self,
            fetch: &fetch,
            server,
            challenge: challenge.as_ref(),
            refused: None,
            before: before.as_ref(),
            proof_key: &proof_key,
            waits: &waits,
            waiters: &waiters,
            is_remembered: AtomicBool::new(false),
            registered: OnceLock::new(),
        };
        let discovered = flow.discover().await?;
        let requested = flow.before_there(&discovered);
        let requested = requested.map(|it| it.requested.clone());
        let requested = requested.unwrap_or_default();
        let scopes = self
            .scopes
            .select(challenge.as_ref(), &discovered, &requested);
        let client = flow.client(&discovered, uri, &scopes, true).await?;
        let attempt = flow.authorization(&discovered, &client, uri, &scopes);
        let attempt = attempt.begin()?;
        let is_bound = flow.is_bound(&discovered);
        if let Some(registered) = flow.registered.into_inner() {
            self.keep_registered(server, &registered).await?;
        }
        let mut authority = discovered.server;
        // Metadata that refresh and revocation do not need would be too large for a cookie.
        authority.scopes_supported = None;
        authority.response_types_supported = None;
        authority.grant_types_supported = None;
        authority.authorization_grant_profiles_supported = None;
        let mut credentials = Credentials::new(authority, Some(client), discovered.resource)?;
        credentials.requested = scopes;
        credentials.proof_key = is_bound.then_some(proof_key);
        let record = Record {
            expires: now().plus(LIFETIME).seconds(),
            server: server.to_owned(),
            attempt: raw(&attempt.to_json())?,
            credentials: raw(&credentials.to_json())?,
            is_default: discovered.is_default,
        };
        Ok(LoginAttempt {
            url: attempt.url().to_owned(),
            sealed: self.seal(&record)?,
        })
    }

    /// Finishes a login that was begun for the [`user`](Self::user), with the URL that their browser was redirected to, or only
    /// its query: exchanges the code for tokens, and puts these into the [`store`](Self::store). From then on an
    /// [`Endpoint`](crate::http::Endpoint) with this login uses them; open sessions find them automatically.
    ///
    /// The user must be known from your own session with them, never from the callback.
    ///
    /// # Errors
    /// If the attempt belongs to another user, was sealed with other keys, has expired or is already finished; if the callback
    /// is not the answer to it, or reports that the user did not agree; if the code cannot be exchanged, or the tokens cannot
    /// be stored. Begin another login then.
    ///
    /// # Cancel safety
    /// If the future is dropped, the code may be used up without a token being stored: begin another login.
    pub async fn finish(&self, sealed: impl AsRef<str>, callback: impl AsRef<str>) -> Result<()> {
        let record = self.open(sealed.as_ref(), now())?;
        let mut credentials = Credentials::from_json(&Secret::new(record.credentials.get()))?;
        credentials.client = credentials.client.map(|it| self.with_key(it));
        let client = credentials.client.clone();
        let key = CredentialKey::new(&self.user, &credentials.server.issuer, &record.server);
        let finished = self
            .exchange(&key, callback.as_ref(), &record, credentials)
            .await;
        match (finished, client) {
            (Err(error), Some(client)) => {
                if wants_another_client(&error) && !self.is_configured(&client) {
                    // The next login registers another client.
                    self.forget_registered(&key, &client).await?;
                }
                Err(explain(self, error, &client))
            }
            (finished, _) => finished,
        }
    }

    /// Exchanges the code that came back for tokens, and stores them.
    async fn exchange(
        &self,
        key: &CredentialKey,
        callback: &str,
        record: &Record,
        mut credentials: Credentials,
    ) -> Result<()> {
        let attempt = AuthorizationAttempt::from_json(&Secret::new(record.attempt.get()))?;
        let code = attempt.finish(callback)?;
        let client = credentials.client.as_ref();
        let client = client.ok_or_else(|| Error::internal("the login attempt has no client"))?;
        let _lock = self.store.lock_boxed(key).await?;
        let stored = self.stored(key).await?;
        if stored.is_some_and(|it| it.login == credentials.login) {
            // An authorization server takes a code that comes twice for a stolen one, and revokes the tokens.
            return Err(refused_attempt("it is already finished"));
        }
        let server = server_url(&record.server)?;
        let fetch = Fetch::new(&server, &self.trusted_hosts, self.http_client.clone())?;
        let request =
            TokenRequest::authorization_code(&credentials.server, client, &attempt, code)?;
        let request = match &credentials.proof_key {
            Some(key) => request.proof_key(Arc::clone(key)),
            None => request,
        };
        let mut tokens = fetch.converse(request).await?;
        if record.is_default {
            // A refresh token from default endpoints, which no metadata has named, is not sent there again.
            tokens.refresh_token = None;
        }
        credentials.tokens = Some(tokens);
        self.store.save_boxed(key, credentials.to_json()).await?;
        for other in self.store.keys_boxed(&self.user).await? {
            // The server has another authorization server now.
            if other.resource == key.resource && other.issuer != key.issuer {
                self.store.remove_boxed(&other).await?;
            }
        }
        Ok(())
    }

    /// Stores a client that was registered, for the logins of all users.
    async fn keep_registered(&self, server: &str, registered: &Credentials) -> Result<()> {
        let key = CredentialKey::new("", &registered.server.issuer, server);
        let _lock = self.store.lock_boxed(&key).await?;
        let kept = self.stored(&key).await?;
        if kept.is_some_and(|it| it.tokens.is_some()) {
            // The user with the empty name has logged in, and that login stays.
            return Ok(());
        }
        self.store.save_boxed(&key, registered.to_json()).await
    }

    /// Removes a client that its authorization server no longer knows, for the user and for all users. The caller must not hold
    /// a lock of the store.
    pub(crate) async fn forget_registered(
        &self,
        key: &CredentialKey,
        client: &Client,
    ) -> Result<()> {
        for user in [key.user.as_str(), ""] {
            let key = CredentialKey::new(user, &key.issuer, &key.resource);
            let _lock = self.store.lock_boxed(&key).await?;
            let kept = self.stored(&key).await?;
            let is_it =
                |it: &Credentials| it.client.as_ref().is_some_and(|it| it.id() == client.id());
            if let Some(mut kept) = kept.filter(is_it) {
                kept.client = None;
                self.store.save_boxed(&key, kept.to_json()).await?;
            }
        }
        Ok(())
    }

    fn seal(&self, record: &Record) -> Result<String> {
        let broken = || Error::internal("could not seal the login attempt");
        let plain = serde_json::to_vec(record).map_err(|error| broken().with_source(error))?;
        let user = [self.user.as_bytes()];
        let sealed = sealing::seal(&plain, bound_to(&user), self.keys.sealing()?, random()?);
        sealed.ok_or_else(broken)
    }

    fn open(&self, sealed: &str, now: UnixTime) -> Result<Record> {
        let user = [self.user.as_bytes()];
        let opened = if sealed.len() > MAX_SEALED {
            Err(Refused::TooLong)
        } else {
            sealing::open(sealed, bound_to(&user), &self.keys)
        };
        let record = opened.and_then(|plain| {
            let record: Record = serde_json::from_slice(&plain).map_err(|_| Refused::Malformed)?;
            if now.seconds() >= record.expires {
                return Err(Refused::Expired);
            }
            Ok(record)
        });
        record.map_err(|reason| {
            refused_attempt(match reason {
                Refused::Expired => "it has expired",
                Refused::UnknownKey => {
                    "it was sealed with a key that this process does not have (`Login::keys`)"
                }
                Refused::Forged => "it was modified, or begun for another user",
                Refused::TooLong | Refused::Malformed => "it is malformed",
            })
        })
    }
}

/// The binding of a sealed attempt to its user.
fn bound_to<'a>(user: &'a [&'a [u8]]) -> Bound<'a> {
    Bound {
        purpose: b"oxmcp login attempt",
        parts: user,
    }
}

fn raw(json: &Secret) -> Result<Box<RawValue>> {
    let raw = RawValue::from_string(json.expose().to_owned());
    raw.map_err(|_| Error::internal("could not serialize the login attempt"))
}

fn refused_attempt(why: &str) -> Error {
    Error::from(AuthError::interaction_required(format!(
        "could not finish the login attempt: {why}; begin another login"
    )))
}

/// The client in the credentials of one user, for the login of another user.
fn without_login(mut credentials: Credentials) -> Credentials {
    credentials.requested = ScopeSet::new();
    credentials.tokens = None;
    credentials
}

/// The challenge in an error, or in one of its sources.
fn challenge_of(error: &Error) -> Option<Challenge> {
    let mut errors = iter::successors(Some(error as &(dyn std::error::Error + 'static)), |error| {
        error.source()
    });
    let text = errors.find_map(|it| it.downcast_ref::<Error>()?.www_authenticate());
    let value = HeaderValue::from_str(text?).ok()?;
    let challenges = Challenge::from_headers(&HeaderMap::from_iter([(WWW_AUTHENTICATE, value)]));
    Challenge::for_oauth(&challenges, false).cloned()
}

/// The challenge of an MCP server for a request without a token: it may contain the URL of the metadata, and the scopes to ask for.
/// A server that gives no challenge may have metadata at the default location.
async fn ask_challenge(fetch: &Fetch, server: &str) -> Option<Challenge> {
    let asked = fetch.converse(Probe(server)).await;
    asked.unwrap_or_else(|error| {
        tracing::debug!(error = %Logged(&error), "the MCP server sent no challenge");
        None
    })
}

/// A request without a token.
struct Probe<'a>(&'a str);

impl Conversation for Probe<'_> {
    type Output = Option<Challenge>;

    fn request(&mut self, _: UnixTime) -> Result<Request, AuthError> {
        let ping = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
        let mut request = Request::new(Body::from(ping.to_owned()));
        *request.method_mut() = Method::POST;
        *request.uri_mut() = self.0.parse().unwrap_or_default();
        let headers = request.headers_mut();
        let accept = HeaderValue::from_static("application/json, text/event-stream");
        headers.insert(ACCEPT, accept);
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        Ok(request)
    }

    fn receive(
        &mut self,
        response: &Response,
        _: UnixTime,
    ) -> Result<Option<Self::Output>, AuthError> {
        let refusal = Refusal::read(response.status(), response.headers());
        Ok(Some(refusal.and_then(|it| it.challenge().cloned())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::sealing::StateKey;

    fn record() -> Record {
        Record {
            expires: 1600,
            server: "https://mcp.example/mcp".to_owned(),
            attempt: RawValue::from_string(r#"{"verifier": "hunter2"}"#.to_owned()).unwrap(),
            credentials: RawValue::NULL.to_owned(),
            is_default: false,
        }
    }

    fn login(key: u8, user: &str) -> Login {
        let key = StateKey::new([key; StateKey::LENGTH]);
        Login::redirect("https://app.example")
            .keys([key])
            .user(user)
    }

    #[test]
    fn sealed_attempt_opens_for_its_user_until_expiry() {
        let ann = login(1, "ann");
        let sealed = ann.seal(&record()).unwrap();
        assert!(sealed.len() < 400 && !sealed.contains("hunter2"));
        let at = UnixTime::from_seconds;
        let opened = ann.open(&sealed, at(1599)).unwrap();
        assert_eq!(opened.server, record().server);
        let mut changed = sealed.clone();
        let last = changed.pop().unwrap();
        changed.push(if last == 'A' { 'Q' } else { 'A' });
        let long = "A".repeat(MAX_SEALED + 1);
        for (login, sealed, now, why) in [
            (&ann, &*sealed, 1600, "expired"),
            (&login(1, "bob"), &*sealed, 0, "another user"),
            (&login(1, ""), &*sealed, 0, "another user"),
            (&login(2, "ann"), &*sealed, 0, "Login::keys"),
            (&ann, &*changed, 0, "modified"),
            (&ann, "", 0, "it is malformed"),
            (&ann, &*long, 0, "it is malformed"),
        ] {
            let error = login.open(sealed, at(now)).err().unwrap();
            assert!(error.message().contains(why), "{why}: {error}");
            assert!(error.is_interaction_required());
        }
    }

    #[test]
    fn challenge_is_found_in_the_error_source() {
        let inner = Error::http(403, "no").with_challenges(Some("Bearer scope=\"a b\"".to_owned()));
        let outer = Error::internal("outer").with_source(inner);
        let scope = challenge_of(&outer).unwrap().scope().unwrap();
        assert_eq!(scope.to_string(), "a b");
        assert!(challenge_of(&Error::internal("none")).is_none());
    }
}
