//! Cache of the keys of an issuer, with bounds on their age and on the frequency of fetches.

use std::sync::Arc;

use http::{HeaderMap, Method, header};

use crate::{
    error::{AuthError, Result},
    exchange::{Body, Request, Response},
    jose::Jwks,
    metadata::{
        authorization_server::AuthorizationServerMetadata, document::Tolerated,
        well_known::authorization_server_metadata_urls,
    },
    time::UnixTime,
    url_rules::{UrlRules, is_same_issuer},
};

/// Seconds for which keys are fresh if the issuer sends no `max-age`. Its own value is kept between the bounds below.
const FRESH: u64 = 3600;
const MIN_FRESH: u64 = 300;
const MAX_FRESH: u64 = 24 * 3600;

/// Seconds for which stale keys are used while none can be fetched. A key that the issuer has withdrawn must not be used
/// forever, and an issuer that is down for a night must not make the server unusable.
const MAX_STALE: u64 = 24 * 3600;

/// The least seconds between fetches: tokens with invented key ids must not each cause a request to the issuer.
const MIN_INTERVAL: u64 = 30;

/// Seconds after which a fetch counts as lost, for example because its request was dropped.
const LOST: u64 = 30;

/// The source of an issuer's keys.
#[derive(Clone, Debug)]
pub(crate) enum KeySource {
    /// A fixed key set.
    Fixed(Arc<Jwks>),
    /// The key set at this URL.
    Url(String),
    /// The key set at the URL that the issuer's metadata names.
    Discovery,
}

/// The keys of one issuer.
#[derive(Debug)]
pub(crate) struct KeyCache {
    issuer: String,
    source: KeySource,
    /// The URL of the keys in the issuer's metadata, once it was read.
    found: Option<String>,
    /// The issuer as its metadata spells it, which may differ in the slash after the host.
    spelled: Option<String>,
    /// The index of the metadata URL that is tried next.
    place: usize,
    keys: Option<Kept>,
    in_flight: Option<UnixTime>,
    /// The earliest time of the next fetch.
    not_before: UnixTime,
    error: Option<AuthError>,
}

#[derive(Debug)]
struct Kept {
    keys: Arc<Jwks>,
    fresh_until: UnixTime,
}

/// The result of the attempt to begin a fetch.
pub(crate) enum Refresh {
    /// Send this request, and pass the outcome to [`KeyCache::fetched`].
    Fetch {
        request: Box<Request>,
        /// Whether the URL comes from the issuer's metadata, and not from the configuration.
        is_discovered: bool,
    },
    /// A fetch is in flight.
    InFlight,
    /// No fetch is allowed yet, or the key set is fixed.
    TooEarly,
}

impl KeyCache {
    pub(crate) fn new(issuer: String, source: KeySource) -> Self {
        Self {
            issuer,
            source,
            found: None,
            spelled: None,
            place: 0,
            keys: None,
            in_flight: None,
            not_before: UnixTime::default(),
            error: None,
        }
    }

    /// The keys that can be used, and whether they are fresh.
    pub(crate) fn keys(&self, now: UnixTime) -> Option<(&Arc<Jwks>, bool)> {
        if let KeySource::Fixed(keys) = &self.source {
            return Some((keys, true));
        }
        let kept = self.keys.as_ref()?;
        let is_usable = now < kept.fresh_until.plus(MAX_STALE);
        is_usable.then_some((&kept.keys, now < kept.fresh_until))
    }

    /// Whether tokens with this `iss` may be the issuer's. Until the metadata is read, the slash after the host is optional;
    /// afterwards, or without metadata, the match is exact.
    pub(crate) fn is_issuer(&self, name: &str) -> bool {
        match (&self.source, &self.spelled) {
            (KeySource::Discovery, Some(spelled)) => spelled == name,
            (KeySource::Discovery, None) => is_same_issuer(&self.issuer, name),
            _ => self.issuer == name,
        }
    }

    /// Whether these are the keys that are in use.
    pub(crate) fn are_current(&self, keys: &Arc<Jwks>, now: UnixTime) -> bool {
        let current = self.keys(now).map(|(current, _)| current);
        current.is_some_and(|current| Arc::ptr_eq(current, keys))
    }

    /// The error that says why there are no keys.
    pub(crate) fn error(&self) -> AuthError {
        let why = self
            .error
            .as_ref()
            .map_or("they have expired", AuthError::message);
        AuthError::unavailable(format!("no keys of the issuer {}: {why}", self.issuer))
    }

    /// The error that says why newer keys could not be fetched, if the last attempt failed.
    pub(crate) fn failure(&self) -> Option<AuthError> {
        let error = self.error.as_ref()?;
        let why = error.message();
        Some(AuthError::unavailable(format!(
            "could not fetch the keys of the issuer {}: {why}",
            self.issuer
        )))
    }

    /// Begins to fetch the keys, unless a fetch is in flight or was made just now.
    pub(crate) fn refresh(&mut self, now: UnixTime) -> Refresh {
        if matches!(self.source, KeySource::Fixed(_)) {
            return Refresh::TooEarly;
        }
        let is_under_way = |since: &UnixTime| now < since.plus(LOST);
        if self.in_flight.as_ref().is_some_and(is_under_way) {
            return Refresh::InFlight;
        }
        if now < self.not_before {
            return Refresh::TooEarly;
        }
        match self.request() {
            Ok(request) => {
                self.in_flight = Some(now);
                Refresh::Fetch {
                    request: Box::new(request),
                    is_discovered: self.found.is_some(),
                }
            }
            Err(error) => {
                self.failed(error, now);
                Refresh::TooEarly
            }
        }
    }

    fn request(&self) -> Result<Request> {
        let url = match (&self.source, &self.found) {
            (KeySource::Url(url), _) | (_, Some(url)) => url.clone(),
            _ => {
                let places = authorization_server_metadata_urls(&self.issuer)?;
                let place = places.into_iter().nth(self.place);
                place.ok_or_else(|| AuthError::unavailable("its metadata was not found"))?
            }
        };
        let request = http::Request::builder()
            .method(Method::GET)
            .uri(&url)
            .header(header::ACCEPT, "application/json")
            .body(Body::default());
        request.map_err(|_| AuthError::malformed(format!("invalid URL of the keys: {url:?}")))
    }

    /// Receives the outcome of the last fetch. Another one may be needed at once, since metadata only names the URL of the keys.
    /// Returns the tolerated deviations of metadata.
    pub(crate) fn fetched(
        &mut self,
        outcome: Result<Response, AuthError>,
        now: UnixTime,
    ) -> Vec<Tolerated> {
        let mut tolerated = Vec::new();
        if self.in_flight.take().is_none() {
            return tolerated;
        }
        let asked_metadata = matches!(self.source, KeySource::Discovery) && self.found.is_none();
        let outcome = match outcome {
            Ok(response) if asked_metadata => self.take_metadata(&response, &mut tolerated),
            Ok(response) => self.take_keys(&response, now),
            Err(error) => Err(error),
        };
        if let Err(error) = outcome {
            self.failed(error, now);
        }
        tolerated
    }

    fn take_metadata(&mut self, response: &Response, tolerated: &mut Vec<Tolerated>) -> Result<()> {
        if response.status().is_client_error() {
            let place = self.place + 1;
            if authorization_server_metadata_urls(&self.issuer)?.len() > place {
                self.place = place;
                return Ok(());
            }
        }
        let body = success(response, "metadata")?;
        let metadata = AuthorizationServerMetadata::parse_noting(body, tolerated)?;
        metadata.check(&self.issuer, UrlRules::for_server(&self.issuer)?)?;
        let Some(url) = metadata.jwks_uri else {
            return Err(AuthError::unsupported(format!(
                "authorization server {:?} has no `jwks_uri` in its metadata; configure the URL of its keys, or introspection",
                self.issuer
            )));
        };
        self.found = Some(url);
        self.spelled = Some(metadata.issuer);
        Ok(())
    }

    fn take_keys(&mut self, response: &Response, now: UnixTime) -> Result<()> {
        let keys = Jwks::parse(success(response, "keys")?)?;
        if keys.keys().is_empty() {
            return Err(AuthError::unsupported(format!(
                "issuer {} publishes no supported signing key",
                self.issuer
            )));
        }
        let fresh = max_age(response.headers()).unwrap_or(FRESH);
        self.keys = Some(Kept {
            keys: Arc::new(keys),
            fresh_until: now.plus(fresh.clamp(MIN_FRESH, MAX_FRESH)),
        });
        self.not_before = now.plus(MIN_INTERVAL);
        self.error = None;
        Ok(())
    }

    /// Notes that a fetch failed. The present keys stay in use. The metadata is fetched again the next time, since the issuer
    /// may have moved its keys.
    fn failed(&mut self, error: AuthError, now: UnixTime) {
        self.error = Some(error);
        self.found = None;
        self.place = 0;
        self.not_before = now.plus(MIN_INTERVAL);
    }
}

fn success<'a>(response: &'a Response, what: &str) -> Result<&'a [u8]> {
    if !response.status().is_success() {
        let status = response.status();
        return Err(AuthError::unavailable(format!(
            "request for {what} failed with {status}"
        )));
    }
    Ok(response.body().as_ref())
}

fn max_age(headers: &HeaderMap) -> Option<u64> {
    let values = headers.get_all(header::CACHE_CONTROL).iter();
    let mut directives = values
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','));
    directives.find_map(|directive| {
        let (name, seconds) = directive.split_once('=')?;
        let is_max_age = name.trim().eq_ignore_ascii_case("max-age");
        is_max_age
            .then(|| seconds.trim().trim_matches('"').parse().ok())
            .flatten()
    })
}
