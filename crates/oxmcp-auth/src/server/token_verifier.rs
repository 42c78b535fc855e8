//! Verifier of access tokens: a machine of steps that says whether a token is valid, or what must be fetched to know.

use std::{collections::HashMap, fmt, sync::Arc};

use super::{
    credentials::Credentials,
    introspection::Introspection,
    key_cache::{KeyCache, Refresh},
    locks::{Mutex, RwLock},
    refusal::Refusal,
    token_cache::{TokenCache, TokenHash, WholeHash},
    trusted_issuer::TrustedIssuer,
    verified_token::VerifiedToken,
};
use crate::{
    error::{AuthError, AuthErrorKind, Result},
    exchange::{Request, Response},
    jose::{Jwk, Jws, KeyError},
    jwt::{Claims, Expected},
    secret::Secret,
    time::UnixTime,
    url_rules,
};

/// Seconds that clocks may differ by, where nothing else was set.
const CLOCK_SKEW: u64 = 60;

/// Tokens that were never found valid and whose issuer is asked at once; one more is answered that it is to try again. Those that
/// are asked about again do not wait for these, and are as many as the cache has places.
const MAX_INTROSPECTIONS: usize = 1_000;

/// Seconds after which a question counts as lost.
const LOST: u64 = 30;

/// Seconds for which a revoked token is refused, where it is not known when it ends: most end within the day.
const REVOKED_FOR: u64 = 24 * 3600;

/// Verifies access tokens: by the keys of issuers, or by asking them. What was found is kept, so that a token that comes
/// again costs a hash and a lookup.
///
/// It is a machine of steps and does no I/O: [`verify`](Self::verify) says what to fetch, where it must know more;
/// [`fetched`](Self::fetched) takes what came, and then the token is verified again. Of many requests that need the same,
/// one is told to fetch, and the others to wait. Many threads may use it at once: what takes long, it does under no lock.
///
/// ```
/// use oxmcp_auth::{Secret, UnixTime, server::{TokenVerifier, TrustedIssuer, Verification}};
///
/// let verifier = TokenVerifier::new(["https://mcp.example.com/mcp"])?
///     .issuer(TrustedIssuer::new("https://auth.example.com"))?;
/// let now = UnixTime::from_seconds(1_800_000_000);
/// let verification = verifier.verify(&Secret::new("not a token"), now);
/// assert!(matches!(verification, Verification::Refused(_)));
/// # Ok::<(), oxmcp_auth::AuthError>(())
/// ```
pub struct TokenVerifier {
    audiences: Vec<String>,
    clock_skew: u64,
    issuers: Vec<KnownIssuer>,
    introspection: Option<Introspection>,
    /// Tokens whose issuer was asked, and when.
    asked: Mutex<HashMap<TokenHash, UnixTime>>,
    /// Locked after the keys of an issuer, or after `asked`, where both are.
    cache: RwLock<TokenCache>,
}

/// An issuer, and its keys as far as they are known.
struct KnownIssuer {
    trusted: TrustedIssuer,
    keys: RwLock<KeyCache>,
}

/// What is known of a token.
#[derive(Debug)]
#[non_exhaustive]
pub enum Verification {
    /// It is valid.
    Valid(Arc<VerifiedToken>),
    /// It is not, or that cannot be found out.
    Refused(Refusal),
    /// Send [`Fetch::request`], give what comes to [`TokenVerifier::fetched`], and verify the token again.
    Fetch(Fetch),
    /// Another has been told to fetch what is needed: verify the token again once that has come.
    Wait,
}

/// A request that must be answered before a token can be verified. Redirects are not to be followed.
#[derive(Debug)]
pub struct Fetch {
    request: Box<Request>,
    issuer: String,
    is_discovered: bool,
    of: Of,
}

#[derive(Clone, Copy, Debug)]
enum Of {
    /// Keys or metadata of the issuer at that place of the list.
    Issuer(usize),
    Token(TokenHash),
}

impl Fetch {
    /// The request to send.
    #[must_use]
    pub fn request(&self) -> &Request {
        &self.request
    }

    /// The issuer that is asked, or whose keys are fetched. One that is slow should hold up none of the others.
    #[must_use]
    pub fn issuer(&self) -> &str {
        &self.issuer
    }

    /// Whether the issuer's metadata have named the URL, and not the configuration: then it must not lead into the network of
    /// the server that asks.
    #[must_use]
    pub fn is_discovered(&self) -> bool {
        self.is_discovered
    }

    /// Whether no other token than the one that was verified waits for it.
    #[must_use]
    pub fn is_of_one_token(&self) -> bool {
        matches!(self.of, Of::Token(_))
    }
}

impl TokenVerifier {
    /// Takes tokens for these audiences: the URL of the MCP server, as clients name it (`resource`), and what else its
    /// issuers write for it. A URL that is an origin is taken with and without a slash at its end, since many clients
    /// cannot help adding it.
    ///
    /// # Errors
    ///
    /// Where there is none: a server that took tokens for others would be their thief's.
    pub fn new<S: Into<String>>(audiences: impl IntoIterator<Item = S>) -> Result<Self> {
        let mut all: Vec<String> = audiences.into_iter().map(Into::into).collect();
        if all.is_empty() || all.iter().any(String::is_empty) {
            return Err(AuthError::configuration(
                "a server that verifies tokens needs its audience: the URL that clients reach it by",
            ));
        }
        let origins: Vec<_> = all.iter().filter_map(|it| other_form(it)).collect();
        all.extend(origins);
        Ok(Self {
            audiences: all,
            clock_skew: CLOCK_SKEW,
            issuers: Vec::new(),
            introspection: None,
            asked: Mutex::default(),
            cache: RwLock::default(),
        })
    }

    /// Takes tokens of that issuer as well.
    ///
    /// # Errors
    ///
    /// Where the issuer is no https URL (or http, on loopback), or is there already, or an audience of it is empty.
    pub fn issuer(mut self, trusted: TrustedIssuer) -> Result<Self> {
        let name = trusted.issuer.clone();
        url_rules::UrlRules::https_or_loopback().check(&name, "issuer")?;
        if self.issuers.iter().any(|it| it.trusted.issuer == name) {
            return Err(AuthError::configuration(format!(
                "the issuer {name:?} is there twice"
            )));
        }
        if trusted.audiences.iter().any(String::is_empty) {
            return Err(AuthError::configuration(format!(
                "an audience of the issuer {name:?} is empty"
            )));
        }
        let keys = RwLock::new(KeyCache::new(name, trusted.source.clone()));
        self.issuers.push(KnownIssuer { trusted, keys });
        Ok(self)
    }

    /// Asks about tokens that are no JSON Web Tokens of a trusted issuer.
    #[must_use]
    pub fn introspection(mut self, introspection: Introspection) -> Self {
        self.introspection = Some(introspection);
        self
    }

    /// Seconds that clocks may differ by, 60 by default.
    #[must_use]
    pub fn clock_skew(mut self, seconds: u64) -> Self {
        self.clock_skew = seconds;
        self
    }

    /// The issuers whose tokens are taken, for the metadata of the server.
    pub fn issuers(&self) -> impl Iterator<Item = &str> {
        let trusted = self.issuers.iter().map(|it| it.trusted.issuer.as_str());
        let asked = self.introspection.iter().map(|it| it.issuer.as_str());
        let is_new = |it: &&str| !self.issuers.iter().any(|known| known.trusted.issuer == *it);
        trusted.chain(asked.filter(is_new))
    }

    /// What is known of a token without doing anything: most requests need no more.
    #[must_use]
    pub fn verified(&self, token: &Secret, now: UnixTime) -> Option<Arc<VerifiedToken>> {
        self.verified_hash(&WholeHash::of(token.expose().as_bytes()), now)
    }

    /// The same for the token that a request bears, which is not copied.
    #[must_use]
    pub fn verified_credentials(
        &self,
        credentials: &Credentials,
        now: UnixTime,
    ) -> Option<Arc<VerifiedToken>> {
        self.verified_hash(&WholeHash::of(credentials.bytes()), now)
    }

    fn verified_hash(&self, hash: &WholeHash, now: UnixTime) -> Option<Arc<VerifiedToken>> {
        self.cache.read().valid(hash, now).cloned()
    }

    /// Verifies a token. A signature that was not checked before takes up to half a millisecond.
    pub fn verify(&self, token: &Secret, now: UnixTime) -> Verification {
        let hash = TokenHash::of(token.expose());
        if let Some(known) = self.known(&hash, now) {
            return known;
        }
        let verification = self.verify_anew(token, hash, now);
        if let Verification::Refused(refusal) = &verification {
            self.cache.write().refuse(hash, refusal.clone(), now);
        }
        verification
    }

    fn known(&self, hash: &TokenHash, now: UnixTime) -> Option<Verification> {
        Some(match self.cache.read().get(hash, now)? {
            Ok(token) => Verification::Valid(token),
            Err(refusal) => Verification::Refused(refusal),
        })
    }

    fn verify_anew(&self, token: &Secret, hash: TokenHash, now: UnixTime) -> Verification {
        let signed = Jws::parse(token.expose()).and_then(|jws| {
            let claims = Claims::parse(jws.payload())?;
            Ok((jws, claims))
        });
        if let Ok((_, claims)) = &signed
            && let Some(place) = self.issuer_of(claims)
            && let Ok(signed) = signed
        {
            return self.verify_signed(place, signed, hash, now);
        }
        if let Some(introspection) = &self.introspection {
            return self.introspect(introspection, token, hash, now);
        }
        let error = signed.err().unwrap_or_else(|| {
            AuthError::invalid_token("the token is from another issuer than this server trusts")
        });
        Verification::Refused(Refusal::invalid(error))
    }

    /// The issuer of a token, and its place in the list.
    fn issuer_of(&self, claims: &Claims) -> Option<(usize, &KnownIssuer)> {
        let name = claims.known().iss.as_deref()?;
        let mut issuers = self.issuers.iter().enumerate();
        issuers.find(|(_, it)| it.trusted.issuer == name)
    }

    /// What needs no key is checked first: a token that is refused in any case fetches none.
    fn verify_signed(
        &self,
        (index, issuer): (usize, &KnownIssuer),
        (jws, claims): (Jws, Claims),
        hash: TokenHash,
        now: UnixTime,
    ) -> Verification {
        let refuse = |error| Verification::Refused(Refusal::invalid(error));
        let expected = Expected {
            issuer: &issuer.trusted.issuer,
            audiences: &self.audiences,
            own_audiences: &issuer.trusted.audiences,
            clock_skew: self.clock_skew,
            now,
        };
        if let Err(error) = issuer.trusted.check(&jws, &claims, &expected) {
            return refuse(error);
        }
        let kept = {
            let keys = issuer.keys.read();
            keys.keys(now)
                .map(|(keys, fresh)| (Arc::clone(keys), fresh))
        };
        // Under no lock: others would wait for each signature.
        let found = kept.as_ref().map(|(keys, is_fresh)| {
            let key = keys.verify(&jws).map(Jwk::thumbprint);
            (key, *is_fresh)
        });
        // Old keys are good until there are new ones: one request fetches these, and the others go on.
        let is_missing = !matches!(found, Some((Ok(_) | Err(KeyError::Signature), true)));
        let refresh = if is_missing {
            issuer.keys.write().refresh(now)
        } else {
            Refresh::TooEarly
        };
        match (found, refresh) {
            (
                _,
                Refresh::Fetch {
                    request,
                    is_discovered,
                },
            ) => Verification::Fetch(Fetch {
                request,
                issuer: issuer.trusted.issuer.clone(),
                is_discovered,
                of: Of::Issuer(index),
            }),
            (Some((Ok(key), _)), _) => {
                let (token, until) = issuer.trusted.accept(claims, self.clock_skew);
                let token = Arc::new(token);
                // The key may have been withdrawn meanwhile, and with it what it has signed.
                let keys = issuer.keys.read();
                if keys.are_current(kept.as_ref().map(|(keys, _)| keys), now) {
                    let mut cache = self.cache.write();
                    cache.insert(hash, Arc::clone(&token), until, Some(key));
                }
                Verification::Valid(token)
            }
            (None | Some((Err(KeyError::Unknown), _)), Refresh::InFlight) => Verification::Wait,
            (None, Refresh::TooEarly) => {
                let error = issuer.keys.read().error();
                Verification::Refused(Refusal::unavailable(error))
            }
            (Some((Err(KeyError::Unknown), _)), Refresh::TooEarly) => {
                // The key may be new, and then the token is good.
                let failure = issuer.keys.read().failure();
                failure.map_or_else(
                    || {
                        refuse(AuthError::invalid_token(
                            "the token is signed by a key that its issuer has not published",
                        ))
                    },
                    |error| Verification::Refused(Refusal::unavailable(error)),
                )
            }
            (Some((Err(KeyError::Signature), _)), _) => refuse(AuthError::invalid_token(
                "the signature of the token is not that of its issuer",
            )),
        }
    }

    fn introspect(
        &self,
        introspection: &Introspection,
        token: &Secret,
        hash: TokenHash,
        now: UnixTime,
    ) -> Verification {
        let mut asked = self.asked.lock();
        // The answer may have come since the token was looked up.
        if let Some(known) = self.known(&hash, now) {
            return known;
        }
        let is_under_way = |since: &UnixTime| now < since.plus(LOST);
        if asked.get(&hash).is_some_and(is_under_way) {
            return Verification::Wait;
        }
        // Anybody can send tokens that are none, as many as they like.
        let is_new = !self.cache.read().was_valid(&hash);
        if is_new && asked.len() >= MAX_INTROSPECTIONS {
            asked.retain(|_, since| is_under_way(since));
        }
        if is_new && asked.len() >= MAX_INTROSPECTIONS {
            return Verification::Refused(Refusal::unavailable(AuthError::unavailable(
                "too many introspections are under way",
            )));
        }
        match introspection.request(token) {
            Ok(request) => {
                asked.insert(hash, now);
                Verification::Fetch(Fetch {
                    request: Box::new(request),
                    issuer: introspection.issuer.clone(),
                    is_discovered: false,
                    of: Of::Token(hash),
                })
            }
            Err(error) => Verification::Refused(Refusal::unavailable(error)),
        }
    }

    /// Takes what has come of a request: the response, or a sentence that says why there is none. The body need not be
    /// read beyond 1 MiB.
    pub fn fetched(&self, fetch: &Fetch, outcome: Result<Response, String>, now: UnixTime) {
        let outcome = outcome.map_err(AuthError::unavailable);
        match fetch.of {
            Of::Issuer(index) => {
                if let Some(issuer) = self.issuers.get(index) {
                    self.keys_fetched(issuer, outcome, now);
                }
            }
            Of::Token(hash) => self.introspected(hash, outcome, now),
        }
    }

    fn keys_fetched(&self, issuer: &KnownIssuer, outcome: Result<Response>, now: UnixTime) {
        let mut keys = issuer.keys.write();
        keys.fetched(outcome, now);
        if let Some((keys, true)) = keys.keys(now) {
            let published: Vec<_> = keys.keys().iter().map(Jwk::thumbprint).collect();
            let has = |key: &str| published.iter().any(|it| it == key);
            let mut cache = self.cache.write();
            cache.retain_keys(&issuer.trusted.issuer, has);
        }
    }

    fn introspected(&self, hash: TokenHash, outcome: Result<Response>, now: UnixTime) {
        let Some(introspection) = &self.introspection else {
            return;
        };
        let read = outcome.and_then(|response| {
            introspection.read(&response, &self.audiences, self.clock_skew, now)
        });
        let mut asked = self.asked.lock();
        // An answer that nobody waits for any more is an old one.
        if asked.remove(&hash).is_none() {
            return;
        }
        let mut cache = self.cache.write();
        match read {
            Ok((token, until)) => cache.insert(hash, Arc::new(token), until, None),
            Err(error) if error.kind() == AuthErrorKind::Unavailable => {
                cache.refuse(hash, Refusal::unavailable(error), now);
            }
            Err(error) => cache.refuse(hash, Refusal::invalid(error), now),
        }
    }

    /// Refuses a token from now on, though it may be valid: where one's own program has learnt that it was revoked. Other
    /// nodes know nothing of that.
    pub fn forget(&self, token: &Secret, now: UnixTime) {
        let claims = Jws::parse(token.expose()).and_then(|jws| Claims::parse(jws.payload()));
        let expires = claims.ok().and_then(|claims| claims.known().exp);
        let until = expires.map_or_else(|| now.plus(REVOKED_FOR), |end| end.plus(self.clock_skew));
        let hash = TokenHash::of(token.expose());
        self.cache.write().revoke(hash, until, now);
    }

    /// The refusal of a token that was [forgotten](Self::forget), for programs that verify tokens by other means.
    #[must_use]
    pub fn revocation(&self, token: &Secret) -> Option<Refusal> {
        self.cache.read().revocation(&TokenHash::of(token.expose()))
    }
}

/// An origin with a slash at its end, or without the one that it has.
fn other_form(audience: &str) -> Option<String> {
    let url = url_rules::parse(audience, "audience").ok()?;
    if url.path() != "/" || url.query().is_some() || url.fragment().is_some() {
        return None;
    }
    let without = audience.strip_suffix('/');
    Some(without.map_or_else(|| format!("{audience}/"), str::to_owned))
}

/// Tokens are not shown, nor whose they are.
impl fmt::Debug for TokenVerifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TokenVerifier")
            .field("audiences", &self.audiences)
            .field("issuers", &self.issuers().collect::<Vec<_>>())
            .finish_non_exhaustive()
    }
}
