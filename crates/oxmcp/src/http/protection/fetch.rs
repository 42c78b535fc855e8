//! Requests for the keys of issuers, and for what an issuer says of a token.

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

use crate::{
    error::{Error, Result},
    http::client::{DefaultClient, DynHttpClient},
};

/// How long a request may take, with its answer.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Bytes of an answer that are read.
const MAX_BYTES: usize = 1 << 20;

/// The lists of requests that wait for tokens. What is fetched for one token wakes those of its list.
const LISTS: usize = 64;

/// The HTTP clients that issuers are asked with.
pub(super) enum Clients {
    /// One of the user's own.
    Own(Arc<dyn DynHttpClient>),
    /// One for each issuer, so that none waits for connections to another.
    Default(HashMap<String, DefaultClient>),
}

impl Clients {
    /// Default clients for these issuers.
    pub(super) fn of<'a>(issuers: impl Iterator<Item = &'a str>) -> Self {
        Self::Default(
            issuers
                .map(|issuer| (issuer.to_owned(), DefaultClient::new()))
                .collect(),
        )
    }

    /// Sends a request, and reads the answer.
    ///
    /// # Errors
    /// A sentence that says why there is no answer, for the log.
    pub(super) async fn fetch(&self, fetch: &Fetch) -> Result<oxmcp_auth::Response, String> {
        let uri = fetch.request().uri();
        match timeout(TIMEOUT, self.exchange(fetch)).await {
            Ok(Ok(response)) => Ok(response),
            Ok(Err(error)) => Err(format!("{uri} cannot be asked: {error}")),
            Err(_) => Err(format!("{uri} has not answered within {TIMEOUT:?}")),
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
                let client = clients.get(fetch.issuer());
                client.ok_or_else(|| Error::internal("there is no client for the issuer"))?
            }
        };
        let (parts, mut body) = client.send_boxed(request).await?.into_parts();
        let mut whole = BytesMut::new();
        while let Some(chunk) = body.chunk().await? {
            whole.extend_from_slice(&chunk);
            if whole.len() > MAX_BYTES {
                // What reads it refuses it.
                break;
            }
        }
        Ok(Response::from_parts(parts, Body::from(whole.freeze())))
    }
}

/// The requests that wait for what is fetched, in lists by their tokens: the answer to one introspection is nothing to most
/// others.
pub(super) struct Waiting {
    lists: [Notify; LISTS],
    hasher: RandomState,
}

impl Waiting {
    pub(super) fn new() -> Self {
        Self {
            lists: std::array::from_fn(|_| Notify::new()),
            hasher: RandomState::new(),
        }
    }

    /// The list of those that wait for a token.
    pub(super) fn list(&self, token: &Secret) -> &Notify {
        let hash = self.hasher.hash_one(token.expose());
        let [first, ..] = &self.lists;
        let place = usize::try_from(hash % LISTS as u64).unwrap_or_default();
        self.lists.get(place).unwrap_or(first)
    }

    /// Wakes all that what was fetched may be for.
    pub(super) fn wake(&self, fetch: &Fetch, token: &Secret) {
        if fetch.is_of_one_token() {
            return self.list(token).notify_waiters();
        }
        for list in &self.lists {
            list.notify_waiters();
        }
    }
}
