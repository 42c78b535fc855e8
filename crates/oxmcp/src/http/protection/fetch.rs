//! Requests for the keys of issuers, and for the introspection of tokens.

use std::{
    collections::HashMap,
    hash::{BuildHasher, RandomState},
    sync::Arc,
    time::Duration,
};

use bytes::BytesMut;
use http::{Request, Response};
use oxmcp_auth::{Body, Secret, server::Fetch};
use tokio::{sync::Notify, time::timeout};
use url::Url;

use crate::{
    error::{Error, Result},
    http::client::{AddressGuard, DefaultClient, DynHttpClient},
};

/// The time within which a request must be sent and its response read.
const TIMEOUT: Duration = Duration::from_secs(10);

/// The maximum number of bytes to read of a response.
const MAX_BYTES: usize = 1 << 20;

/// The number of lists of waiting requests. A fetch for one token wakes only the requests of its list.
const LISTS: usize = 64;

/// The HTTP clients for requests to issuers.
pub(crate) enum Clients {
    /// The user's client.
    Own(Arc<dyn DynHttpClient>),
    /// Clients per issuer, so that requests to one issuer never wait for connections to another.
    Default(HashMap<String, IssuerClients>),
}

/// The HTTP clients for one issuer.
pub(crate) struct IssuerClients {
    /// The client for configured URLs, which may have any address.
    configured: DefaultClient,
    /// The client for URLs from the issuer's metadata, which connects only to addresses that the guard accepts. `None` for an
    /// issuer that introspects tokens and whose name is not a URL: it has no metadata.
    discovered: Option<(AddressGuard, DefaultClient)>,
}

impl IssuerClients {
    fn new(issuer: &str) -> Self {
        let guard = Url::parse(issuer).map(|url| AddressGuard::new(&url, &[]));
        Self {
            configured: DefaultClient::new(),
            discovered: guard
                .ok()
                .map(|guard| (guard.clone(), DefaultClient::guarded(guard))),
        }
    }

    /// Returns the client for a request.
    async fn client(&self, fetch: &Fetch) -> Result<&DefaultClient> {
        if !fetch.is_discovered() {
            return Ok(&self.configured);
        }
        let discovered = self.discovered.as_ref();
        let (guard, client) =
            discovered.ok_or_else(|| Error::internal("the issuer is not a URL"))?;
        guard.check(fetch.request().uri()).await?;
        Ok(client)
    }
}

impl Clients {
    /// Default clients for these issuers.
    pub(crate) fn of<'a>(issuers: impl Iterator<Item = &'a str>) -> Self {
        let clients = issuers.map(|issuer| (issuer.to_owned(), IssuerClients::new(issuer)));
        Self::Default(clients.collect())
    }

    /// Sends a request and reads the response.
    ///
    /// # Errors
    /// The reason, for the log, if there is no response.
    pub(crate) async fn fetch(&self, fetch: &Fetch) -> Result<oxmcp_auth::Response, String> {
        let uri = fetch.request().uri();
        match timeout(TIMEOUT, self.exchange(fetch)).await {
            Ok(Ok(response)) => Ok(response),
            Ok(Err(error)) => Err(format!("request to {uri} failed: {error}")),
            Err(_) => Err(format!("request to {uri} timed out after {TIMEOUT:?}")),
        }
    }

    async fn exchange(&self, fetch: &Fetch) -> Result<oxmcp_auth::Response> {
        let (parts, body) = fetch.request().clone().into_parts();
        let mut request = Request::from_parts(parts, body.into_bytes());
        let client: &dyn DynHttpClient = match self {
            Self::Own(client) => &**client,
            Self::Default(clients) => {
                let uri = request.uri().clone();
                DefaultClient::add_headers(request.headers_mut(), &uri)?;
                let clients = clients.get(fetch.issuer());
                let clients =
                    clients.ok_or_else(|| Error::internal("no HTTP client for this issuer"))?;
                clients.client(fetch).await?
            }
        };
        let (parts, mut body) = client.send_boxed(request).await?.into_parts();
        let mut whole = BytesMut::new();
        while let Some(chunk) = body.chunk().await? {
            whole.extend_from_slice(&chunk);
            if whole.len() > MAX_BYTES {
                // The reader of the body rejects it.
                break;
            }
        }
        Ok(Response::from_parts(parts, Body::from(whole.freeze())))
    }
}

/// The requests that wait for a fetch, in lists by token, because the result of one introspection is irrelevant to most other
/// requests.
pub(crate) struct Waiting {
    lists: [Notify; LISTS],
    hasher: RandomState,
}

impl Waiting {
    pub(crate) fn new() -> Self {
        Self {
            lists: std::array::from_fn(|_| Notify::new()),
            hasher: RandomState::new(),
        }
    }

    /// The list of the requests that wait for a token.
    pub(crate) fn list(&self, token: &Secret) -> &Notify {
        let hash = self.hasher.hash_one(token.expose());
        let [first, ..] = &self.lists;
        let place = usize::try_from(hash % LISTS as u64).unwrap_or_default();
        self.lists.get(place).unwrap_or(first)
    }

    /// Wakes all requests for which the result of a fetch may be relevant.
    pub(crate) fn wake(&self, fetch: &Fetch, token: &Secret) {
        if fetch.is_of_one_token() {
            return self.list(token).notify_waiters();
        }
        for list in &self.lists {
            list.notify_waiters();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use bytes::Bytes;
    use futures_util::stream;
    use oxmcp_auth::{
        UnixTime,
        jose::{Algorithm, SigningKey},
        server::{TokenVerifier, TrustedIssuer, Verification},
    };
    use serde_json::json;

    use super::*;
    use crate::http::client::{HttpBody, HttpClient};

    const ISSUER: &str = "http://127.0.0.1:1";
    const NOW: UnixTime = UnixTime::from_seconds(1_800_000_000);

    /// Returns the next fetch for verifying a token of an issuer: of its metadata, or after these, if they name `keys`, of its
    /// keys.
    fn next_fetch(issuer: &str, keys: Option<&str>) -> Fetch {
        let verifier = TokenVerifier::new(["https://mcp.example.com/mcp"]).unwrap();
        let verifier = verifier.issuer(TrustedIssuer::new(issuer)).unwrap();
        let key = SigningKey::generate(Algorithm::Es256).unwrap();
        let claims = json!({
            "iss": issuer, "aud": "https://mcp.example.com/mcp", "sub": "ann", "client_id": "editor",
            "iat": NOW.seconds(), "exp": NOW.seconds() + 300,
        });
        let token = Secret::new(key.sign("at+jwt", &claims).unwrap());
        let next = || match verifier.verify(&token, NOW) {
            Verification::Fetch(fetch) => fetch,
            other => panic!("{other:?}"),
        };
        let metadata = next();
        let Some(keys) = keys else {
            return metadata;
        };
        let said = json!({"issuer": issuer, "jwks_uri": keys}).to_string();
        verifier.fetched(
            &metadata,
            Ok(Response::new(Body::from(said.into_bytes()))),
            NOW,
        );
        next()
    }

    /// An issuer whose bodies never end, which counts the chunks that are read.
    #[derive(Clone, Default)]
    struct Endless(Arc<AtomicUsize>);

    impl HttpClient for Endless {
        async fn send(&self, _: Request<Bytes>) -> Result<Response<HttpBody>> {
            let read = Arc::clone(&self.0);
            let chunks = stream::repeat_with(move || {
                read.fetch_add(1, Ordering::Relaxed);
                Ok(Bytes::from(vec![b' '; 64 << 10]))
            });
            // Without a bound, the test fails by its last chunk instead of never.
            let chunks = futures_util::StreamExt::take(chunks, 40);
            Ok(Response::new(HttpBody::new(chunks)))
        }
    }

    #[tokio::test]
    async fn reading_an_endless_body_stops_at_its_bound() {
        let endless = Endless::default();
        let clients = Clients::Own(Arc::new(endless.clone()));
        let response = clients.fetch(&next_fetch(ISSUER, None)).await.unwrap();
        assert_eq!(endless.0.load(Ordering::Relaxed), 17);
        assert!(response.body().as_ref().len() > MAX_BYTES);
    }

    // Attack: server-side request forgery.
    #[tokio::test]
    async fn keys_are_fetched_only_from_issuers_network() {
        let clients = Clients::of([ISSUER].into_iter());
        let refusal = "not a public address";
        for (keys, is_refused) in [
            (None, false),
            (Some("http://127.0.0.1:1/keys"), false),
            (Some("http://localhost:1/keys"), false),
            (Some("https://10.0.0.1/keys"), true),
            (Some("https://169.254.169.254/keys"), true),
            (Some("https://[fd00::1]/keys"), true),
        ] {
            let fetch = next_fetch(ISSUER, keys);
            assert_eq!(fetch.is_discovered(), keys.is_some());
            let error = clients.fetch(&fetch).await.unwrap_err();
            assert_eq!(error.contains(refusal), is_refused, "{error}");
        }
    }

    // Attack: server-side request forgery.
    #[tokio::test]
    async fn keys_are_not_fetched_from_private_addresses() {
        // The URL has no IP address: the address is checked when the name is resolved.
        for (issuer, is_refused) in [("https://8.8.8.8", true), (ISSUER, false)] {
            let clients = Clients::of([issuer].into_iter());
            let fetch = next_fetch(issuer, Some("https://localhost:1/keys"));
            let error = clients.fetch(&fetch).await.unwrap_err();
            assert_eq!(
                error.contains("not a public address"),
                is_refused,
                "{error}"
            );
        }
    }
}
