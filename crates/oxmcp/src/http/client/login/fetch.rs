//! The sender of what a login asks: guarded, and bounded in time and size.

use std::{
    sync::Arc,
    time::{Duration, SystemTime},
};

use bytes::Bytes;
use http::{Method, header::LOCATION};
use oxmcp_auth::{Body, Request, Response, UnixTime, UrlRules, client::Conversation};
use tokio::time::timeout;
use url::Url;

use crate::{
    error::{Error, Result},
    http::client::{
        exchange::response::read_body,
        transport::{
            address_guard::AddressGuard,
            default_client::DefaultClient,
            http_client::{DynHttpClient, HttpBody},
        },
    },
};

/// How long a response may take.
const TIMEOUT: Duration = Duration::from_secs(10);
/// How many bytes of it are read.
const MAX_BODY: usize = 1 << 20;
/// How many redirects of metadata are followed.
const MAX_REDIRECTS: usize = 3;

/// The sender of requests whose URLs a server has named.
pub(super) struct Fetch {
    client: Arc<dyn DynHttpClient>,
    /// Whether the client is the user's, which adds what headers it wants.
    is_own: bool,
    guard: AddressGuard,
    rules: UrlRules,
}

impl Fetch {
    /// Sends by the user's client, or by one that connects to checked addresses alone.
    pub(super) fn new(
        server: &Url,
        trusted_hosts: &[String],
        own: Option<Arc<dyn DynHttpClient>>,
    ) -> Result<Self> {
        let guard = AddressGuard::new(server, trusted_hosts);
        let is_own = own.is_some();
        let client = own.unwrap_or_else(|| Arc::new(DefaultClient::guarded(guard.clone())));
        Ok(Self {
            client,
            is_own,
            guard,
            rules: UrlRules::for_server(server.as_str())?,
        })
    }

    /// Runs a conversation to its result.
    pub(super) async fn converse<C: Conversation>(&self, mut conversation: C) -> Result<C::Output> {
        loop {
            let request = conversation.request(now())?;
            let response = self.send(request).await?;
            if let Some(result) = conversation.receive(&response, now())? {
                return Ok(result);
            }
        }
    }

    async fn send(&self, mut request: Request) -> Result<Response> {
        for _ in 0..=MAX_REDIRECTS {
            let url = request.uri().to_string();
            let again = (request.method() == Method::GET).then(|| request.headers().clone());
            let sent = timeout(TIMEOUT, self.send_once(request));
            let late = |_| Err(Error::network(format!("no answer within {TIMEOUT:?}")));
            let response = sent.await.unwrap_or_else(late);
            let response = response.map_err(|error| {
                let text = format!("{url} could not be asked: {}", error.message());
                Error::failed_login(text, error)
            })?;
            let location = response.headers().get(LOCATION);
            let (Some(headers), true, Some(location)) =
                (again, response.status().is_redirection(), location)
            else {
                return Ok(response);
            };
            let base = Url::parse(&url).ok();
            let to = location.to_str().ok();
            let to = base.zip(to).and_then(|(base, to)| base.join(to).ok());
            let to = to.map(String::from).unwrap_or_default();
            self.rules
                .check(&to, &format!("URL that {url} redirects to"))?;
            request = Request::new(Body::default());
            *request.headers_mut() = headers;
            *request.uri_mut() = to
                .parse()
                .map_err(|_| Error::network(format!("{url} redirects to what is no URL")))?;
        }
        Err(Error::limit(format!(
            "metadata redirects more than {MAX_REDIRECTS} times in a row"
        )))
    }

    async fn send_once(&self, request: Request) -> Result<Response> {
        self.guard.check(request.uri())?;
        let (head, body) = request.into_parts();
        let mut request = http::Request::from_parts(head, body.into_bytes());
        let uri = request.uri().clone();
        if !self.is_own {
            DefaultClient::add_headers(request.headers_mut(), &uri)?;
        }
        let response: http::Response<HttpBody> = self.client.send_boxed(request).await?;
        let (head, mut body) = response.into_parts();
        let body: Option<Bytes> = read_body(&mut body, MAX_BODY).await?;
        let body = body.ok_or_else(|| {
            Error::limit(format!(
                "the answer of {uri} is longer than {MAX_BODY} bytes"
            ))
        })?;
        Ok(Response::from_parts(head, body.into()))
    }
}

/// The time of this machine's clock.
pub(super) fn now() -> UnixTime {
    UnixTime::from(SystemTime::now())
}
