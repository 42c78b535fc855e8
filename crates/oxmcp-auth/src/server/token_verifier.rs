//! Verifier of access tokens: a state machine without I/O, which decides whether a token is valid, or returns the request whose
//! response it needs to decide.

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
    jose::{Jwk, Jwks, Jws, KeyError},
    jwt::{Claims, Expected},
    metadata::document::Tolerated,
    secret::Secret,
    time::UnixTime,
    url_rules,
};

/// The default number of seconds by which clocks may differ.
const CLOCK_SKEW: u64 = 60;

/// The most introspections in flight of tokens that were never found valid; one more is refused as unavailable. Introspecting a
/// token again does not count, since these are bounded by the size of the cache.
const MAX_INTROSPECTIONS: usize = 1_000;

/// Seconds after which an introspection request counts as lost.
const LOST: u64 = 30;

/// Seconds for which a revoked token is refused if its expiry is unknown: most tokens expire within a day.
const REVOKED_FOR: u64 = 24 * 3600;

/// Verifies access tokens, by the keys of issuers or by introspection. Results are cached, so that verifying a token again
/// costs a hash and a lookup.
///
/// The verifier is a state machine and does no I/O: [`verify`](Self::verify) returns a request if it needs more information,
/// [`fetched`](Self::fetched) receives the response, and then the token is verified again. If several callers need the same
/// information, one gets the request, and the others wait. Many threads may use the verifier at once: no lock is held during
/// slow operations.
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
    /// The tokens whose introspection is in flight, and the time at which it began.
    asked: Mutex<HashMap<TokenHash, UnixTime>>,
    /// If several locks are held, this one is locked after the keys of an issuer, and after `asked`.
    cache: RwLock<TokenCache>,
}

/// A trusted issuer, and its cached keys.
struct KnownIssuer {
    trusted: TrustedIssuer,
    keys: RwLock<KeyCache>,
}

/// The result of verifying a token.
#[derive(Debug)]
#[non_exhaustive]
pub enum Verification {
    /// The token is valid.
    Valid(Arc<VerifiedToken>),
    /// The token is not valid, or its validity cannot be determined.
    Refused(Refusal),
    /// More information is needed: send [`Fetch::request`], pass the outcome to [`TokenVerifier::fetched`], and verify the
    /// token again.
    Fetch(Fetch),
    /// Another caller is fetching the information that is needed: verify the token again once it has arrived.
    Wait,
}

/// A request whose response is needed to verify a token. Do not follow redirects.
#[derive(Debug)]
pub struct Fetch {
    request: Box<Request>,
    issuer: String,
    is_discovered: bool,
    of: Of,
}

#[derive(Clone, Copy, Debug)]
enum Of {
    /// Keys or metadata of the issuer at this index of the list.
    Issuer(usize),
    Token(TokenHash),
}

impl Fetch {
    /// Returns the request to send.
    #[must_use]
    pub fn request(&self) -> &Request {
        &self.request
    }

    /// Returns the issuer that introspects the token, or whose keys are fetched. A slow issuer should not delay the others.
    #[must_use]
    pub fn issuer(&self) -> &str {
        &self.issuer
    }

    /// Returns whether the URL comes from the issuer's metadata, and not from the configuration. If so, it must not lead into
    /// the internal network of the server that sends the request.
    #[must_use]
    pub fn is_discovered(&self) -> bool {
        self.is_discovered
    }

    /// Returns whether only the token that was verified needs the response.
    #[must_use]
    pub fn is_of_one_token(&self) -> bool {
        matches!(self.of, Of::Token(_))
    }
}

impl TokenVerifier {
    /// Creates a verifier that accepts tokens for these audiences: the URL of the MCP server, as clients name it (`resource`),
    /// and other audiences that its issuers use for it. A URL without a path is accepted with and without a slash at its end,
    /// since many clients always add one.
    ///
    /// # Errors
    ///
    /// If there is none, or one is empty: without an audience, stolen tokens for other servers would be accepted.
    pub fn new<S: Into<String>>(audiences: impl IntoIterator<Item = S>) -> Result<Self> {
        let mut all: Vec<String> = audiences.into_iter().map(Into::into).collect();
        if all.is_empty() || all.iter().any(String::is_empty) {
            return Err(AuthError::configuration(
                "missing or empty audience; pass the URL by which clients reach this server",
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

    /// Also accepts tokens of this issuer.
    ///
    /// # Errors
    ///
    /// If the issuer is not an https URL (or http on loopback), was added already, or has an empty audience.
    pub fn issuer(mut self, trusted: TrustedIssuer) -> Result<Self> {
        let name = trusted.issuer.clone();
        url_rules::UrlRules::https_or_loopback().check(&name, "issuer")?;
        if self.issuers.iter().any(|it| it.trusted.issuer == name) {
            return Err(AuthError::configuration(format!(
                "duplicate issuer {name:?}"
            )));
        }
        if trusted.audiences.iter().any(String::is_empty) {
            return Err(AuthError::configuration(format!(
                "empty audience for the issuer {name:?}"
            )));
        }
        let keys = RwLock::new(KeyCache::new(name, trusted.source.clone()));
        self.issuers.push(KnownIssuer { trusted, keys });
        Ok(self)
    }

    /// Introspects tokens that are not JSON Web Tokens of a trusted issuer.
    #[must_use]
    pub fn introspection(mut self, introspection: Introspection) -> Self {
        self.introspection = Some(introspection);
        self
    }

    /// Sets the number of seconds by which clocks may differ, 60 by default.
    #[must_use]
    pub fn clock_skew(mut self, seconds: u64) -> Self {
        self.clock_skew = seconds;
        self
    }

    /// Returns the issuers whose tokens are accepted, for the metadata of the server.
    pub fn issuers(&self) -> impl Iterator<Item = &str> {
        let trusted = self.issuers.iter().map(|it| it.trusted.issuer.as_str());
        let asked = self.introspection.iter().map(|it| it.issuer.as_str());
        let is_new = |it: &&str| !self.issuers.iter().any(|known| known.trusted.issuer == *it);
        trusted.chain(asked.filter(is_new))
    }

    /// Looks up a token that was found valid before, which is all that most requests need.
    #[must_use]
    pub fn verified(&self, token: &Secret, now: UnixTime) -> Option<Arc<VerifiedToken>> {
        self.verified_hash(&WholeHash::of(token.expose().as_bytes()), now)
    }

    /// Looks up the token of a request, like [`verified`](Self::verified), without copying it.
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

    /// Verifies a token. The check of a signature that was not checked before takes up to half a millisecond.
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
        let error = signed
            .err()
            .unwrap_or_else(|| AuthError::invalid_token("token is from an untrusted issuer"));
        Verification::Refused(Refusal::invalid(error))
    }

    /// The issuer of a token, and its index in the list.
    fn issuer_of(&self, claims: &Claims) -> Option<(usize, &KnownIssuer)> {
        let name = claims.known().iss.as_deref()?;
        let find = |is_exact| {
            let mut issuers = self.issuers.iter().enumerate();
            issuers.find(|(_, it)| {
                (it.trusted.issuer == name) == is_exact && it.keys.read().is_issuer(name)
            })
        };
        find(true).or_else(|| find(false))
    }

    /// Verifies a signed token. Checks that need no key come first, so that a token that fails them causes no fetch.
    fn verify_signed(
        &self,
        (index, issuer): (usize, &KnownIssuer),
        (jws, claims): (Jws, Claims),
        hash: TokenHash,
        now: UnixTime,
    ) -> Verification {
        let refuse = |error| Verification::Refused(Refusal::invalid(error));
        let name = claims.known().iss.clone().unwrap_or_default();
        let (is_issuer, kept) = {
            let keys = issuer.keys.read();
            let kept = keys.keys(now);
            let kept = kept.map(|(keys, fresh)| (Arc::clone(keys), fresh));
            (keys.is_issuer(&name), kept)
        };
        let expected = Expected {
            // The metadata may have been read since the issuer was found by this name.
            issuer: if is_issuer {
                &name
            } else {
                &issuer.trusted.issuer
            },
            audiences: &self.audiences,
            own_audiences: &issuer.trusted.audiences,
            clock_skew: self.clock_skew,
            now,
        };
        if let Err(error) = issuer.trusted.check(&jws, &claims, &expected) {
            return refuse(error);
        }
        // No lock is held here: other threads would wait for each signature.
        let found = kept.as_ref().map(|(keys, is_fresh)| {
            let key = keys.verify(&jws).map(Jwk::thumbprint);
            (key, *is_fresh)
        });
        // Stale keys are used until there are new ones: one caller fetches these, and the others continue.
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
                if let Some((keys, _)) = &kept {
                    let verified = (hash, Arc::clone(&token), until, key);
                    self.cache_signed(issuer, keys, verified, now);
                }
                Verification::Valid(token)
            }
            (None | Some((Err(KeyError::Unknown), _)), Refresh::InFlight) => Verification::Wait,
            (None, Refresh::TooEarly) => {
                let error = issuer.keys.read().error();
                Verification::Refused(Refusal::unavailable(error))
            }
            (Some((Err(KeyError::Unknown), _)), Refresh::TooEarly) => {
                // If the last fetch failed, the key may be a new one, and the token valid.
                let failure = issuer.keys.read().failure();
                failure.map_or_else(
                    || {
                        refuse(AuthError::invalid_token(
                            "token is signed with a key that its issuer does not publish",
                        ))
                    },
                    |error| Verification::Refused(Refusal::unavailable(error)),
                )
            }
            (Some((Err(KeyError::Signature), _)), _) => {
                refuse(AuthError::invalid_token("invalid token signature"))
            }
        }
    }

    /// Caches a token that one of these keys has signed, unless the keys were replaced in the meantime: tokens that a withdrawn
    /// key has signed are no longer valid.
    fn cache_signed(
        &self,
        issuer: &KnownIssuer,
        keys: &Arc<Jwks>,
        (hash, token, until, key): (TokenHash, Arc<VerifiedToken>, UnixTime, String),
        now: UnixTime,
    ) {
        let current = issuer.keys.read();
        if current.are_current(keys, now) {
            let mut cache = self.cache.write();
            cache.insert(hash, token, until, Some(key));
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
        // The response may have arrived since the token was looked up.
        if let Some(known) = self.known(&hash, now) {
            return known;
        }
        let is_under_way = |since: &UnixTime| now < since.plus(LOST);
        if asked.get(&hash).is_some_and(is_under_way) {
            return Verification::Wait;
        }
        // Invalid tokens can come from anyone and in any number, so introspections of new tokens are bounded.
        let is_new = !self.cache.read().was_valid(&hash);
        if is_new && asked.len() >= MAX_INTROSPECTIONS {
            asked.retain(|_, since| is_under_way(since));
        }
        if is_new && asked.len() >= MAX_INTROSPECTIONS {
            return Verification::Refused(Refusal::unavailable(AuthError::unavailable(
                "too many introspection requests in flight",
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

    /// Receives the outcome of a request: the response, or a message that says why there is none. The body need not be read
    /// beyond 1 MiB. Returns the tolerated deviations of the metadata, for a log.
    pub fn fetched(
        &self,
        fetch: &Fetch,
        outcome: Result<Response, String>,
        now: UnixTime,
    ) -> Vec<Tolerated> {
        let outcome = outcome.map_err(AuthError::unavailable);
        match fetch.of {
            Of::Issuer(index) => {
                let issuer = self.issuers.get(index);
                issuer.map_or_else(Vec::new, |issuer| self.keys_fetched(issuer, outcome, now))
            }
            Of::Token(hash) => {
                self.introspected(hash, outcome, now);
                Vec::new()
            }
        }
    }

    fn keys_fetched(
        &self,
        issuer: &KnownIssuer,
        outcome: Result<Response>,
        now: UnixTime,
    ) -> Vec<Tolerated> {
        let mut keys = issuer.keys.write();
        let tolerated = keys.fetched(outcome, now);
        if let Some((keys, true)) = keys.keys(now) {
            let published: Vec<_> = keys.keys().iter().map(Jwk::thumbprint).collect();
            let has = |key: &str| published.iter().any(|it| it == key);
            let mut cache = self.cache.write();
            cache.retain_keys(&issuer.trusted.issuer, has);
        }
        tolerated
    }

    fn introspected(&self, hash: TokenHash, outcome: Result<Response>, now: UnixTime) {
        let Some(introspection) = &self.introspection else {
            return;
        };
        let read = outcome.and_then(|response| {
            introspection.read(&response, &self.audiences, self.clock_skew, now)
        });
        let mut asked = self.asked.lock();
        // A response that no caller is waiting for is outdated.
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

    /// Refuses a token from now on, even if it is valid otherwise, for programs that know that it was revoked. Other nodes are
    /// not notified.
    pub fn reject_token(&self, token: &Secret, now: UnixTime) {
        let claims = Jws::parse(token.expose()).and_then(|jws| Claims::parse(jws.payload()));
        let expires = claims.ok().and_then(|claims| claims.known().exp);
        let until = expires.map_or_else(|| now.plus(REVOKED_FOR), |end| end.plus(self.clock_skew));
        let hash = TokenHash::of(token.expose());
        self.cache.write().revoke(hash, until, now);
    }

    /// Returns the refusal of a token that was [rejected](Self::reject_token), for programs that verify tokens by other means.
    #[must_use]
    pub fn revocation(&self, token: &Secret) -> Option<Refusal> {
        self.cache.read().revocation(&TokenHash::of(token.expose()))
    }
}

/// The other spelling of an origin: with a slash at its end, or without the one that it has.
fn other_form(audience: &str) -> Option<String> {
    let url = url_rules::parse(audience, "audience").ok()?;
    if url.path() != "/" || url.query().is_some() || url.fragment().is_some() {
        return None;
    }
    let without = audience.strip_suffix('/');
    Some(without.map_or_else(|| format!("{audience}/"), str::to_owned))
}

/// Shows neither tokens nor their owners.
impl fmt::Debug for TokenVerifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TokenVerifier")
            .field("audiences", &self.audiences)
            .field("issuers", &self.issuers().collect::<Vec<_>>())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::jose::{Algorithm, SigningKey};

    const NOW: UnixTime = UnixTime::from_seconds(1_800_000_000);

    #[test]
    fn oddities_of_metadata_are_returned() {
        let verifier = TokenVerifier::new(["https://mcp.example"]).unwrap();
        let verifier = verifier
            .issuer(TrustedIssuer::new("https://as.example"))
            .unwrap();
        let issuer = &verifier.issuers[0];
        let odd = json!({"issuer": "https://as.example", "jwks_uri": "https://as.example/keys", "scopes_supported": 5});
        assert!(matches!(
            issuer.keys.write().refresh(NOW),
            Refresh::Fetch { .. }
        ));
        let response = Response::new(odd.to_string().into_bytes().into());
        let tolerated = verifier.keys_fetched(issuer, Ok(response), NOW);
        let members: Vec<_> = tolerated.iter().map(|it| it.member.as_str()).collect();
        assert_eq!(members, ["scopes_supported"]);
    }

    #[test]
    fn token_of_withdrawn_key_is_not_cached() {
        let sets = ["old", "new"].map(|id| {
            let key = SigningKey::generate(Algorithm::Es256).unwrap();
            Arc::new(Jwks::from(vec![key.with_key_id(id).public_jwk().clone()]))
        });
        let body = |keys: &Jwks| json!({"keys": keys.keys()}).to_string().into_bytes();
        let issuer = TrustedIssuer::new("https://as.example").keys_at("https://as.example/keys");
        let verifier = TokenVerifier::new(["https://mcp.example"]).unwrap();
        let verifier = verifier.issuer(issuer).unwrap();
        let issuer = &verifier.issuers[0];
        let publish = |keys: &Jwks, at: UnixTime| {
            let mut cache = issuer.keys.write();
            assert!(matches!(cache.refresh(at), Refresh::Fetch { .. }));
            cache.fetched(Ok(Response::new(body(keys).into())), at);
            Arc::clone(cache.keys(at).unwrap().0)
        };
        let cached = |keys: &Arc<Jwks>, name: &str, at: UnixTime| {
            let hash = TokenHash::of(name);
            let token = Arc::new(VerifiedToken::new("https://as.example"));
            let verified = (hash, token, at.plus(600), keys.keys()[0].thumbprint());
            verifier.cache_signed(issuer, keys, verified, at);
            verifier.known(&hash, at).is_some()
        };
        let old = publish(&sets[0], NOW);
        assert!(cached(&old, "one", NOW));
        let later = NOW.plus(31);
        let new = publish(&sets[1], later);
        assert!(!cached(&old, "two", later), "its key was withdrawn");
        assert!(cached(&new, "three", later));
    }
}
