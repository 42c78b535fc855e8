//! The sender of a login's requests: guarded, and bounded in time and size.

use std::{
    collections::HashSet,
    sync::{Arc, OnceLock},
    time::{Duration, SystemTime},
};

use bytes::Bytes;
use http::{Method, header::LOCATION};
use oxmcp_auth::{
    Body, Request, Response, Tolerated, UnixTime, UrlRules, client::Conversation,
    internal::shown_url,
};
use oxmcp_protocol::lenient::Leniency;
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
    logged::Logged,
    sync::Mutex,
    transport::mirror::HeaderMirror,
};

/// The time limit for a response.
const TIMEOUT: Duration = Duration::from_secs(10);
/// The maximum length of a response, in bytes.
const MAX_BODY: usize = 1 << 20;
/// The maximum number of redirects of metadata.
const MAX_REDIRECTS: usize = 3;
/// The maximum number of warnings about odd documents.
const MAX_WARNINGS: usize = 100;

/// The sender of a login's requests to other servers.
pub(crate) struct Fetch {
    /// The user's client, which adds its own headers.
    own: Option<Arc<dyn DynHttpClient>>,
    /// The client for URLs that a server has named, which connects only to checked addresses.
    guarded: DefaultClient,
    /// The client for URLs that the user has configured.
    unguarded: OnceLock<DefaultClient>,
    guard: AddressGuard,
    rules: UrlRules,
    /// The documents and members of which warnings were logged.
    warned: Mutex<HashSet<(String, String)>>,
    /// The handle to the tolerance of the client that connects. A login before that tolerates all.
    pub(crate) mirror: HeaderMirror,
}

impl Fetch {
    /// Creates a sender that uses the user's client, or else one that connects only to checked addresses.
    pub(crate) fn new(
        server: &Url,
        trusted_hosts: &[String],
        own: Option<Arc<dyn DynHttpClient>>,
    ) -> Result<Self> {
        let guard = AddressGuard::new(server, trusted_hosts);
        Ok(Self {
            own,
            guarded: DefaultClient::guarded(guard.clone()),
            unguarded: OnceLock::new(),
            guard,
            rules: UrlRules::for_server(server.as_str())?,
            warned: Mutex::default(),
            mirror: HeaderMirror::new(),
        })
    }

    /// Runs a conversation to its result, at URLs that a server has named.
    pub(crate) async fn converse<C: Conversation>(&self, conversation: C) -> Result<C::Output> {
        self.run(conversation, true).await
    }

    /// Runs a conversation to its result, at URLs that the user has configured: these may lead to any address.
    pub(crate) async fn converse_as_configured<C: Conversation>(
        &self,
        conversation: C,
    ) -> Result<C::Output> {
        self.run(conversation, false).await
    }

    async fn run<C: Conversation>(
        &self,
        mut conversation: C,
        is_guarded: bool,
    ) -> Result<C::Output> {
        loop {
            let request = conversation.request(now())?;
            let response = self.send(request, is_guarded).await?;
            let received = conversation.receive(&response, now());
            let tolerated = conversation.tolerated();
            if let Some(odd) = tolerated.first()
                && !self.mirror.tolerates(Leniency::Metadata, true)
            {
                return Err(Error::decode(format!(
                    "the {} does not follow the specification: {:?} is not valid",
                    odd.document, odd.member
                )));
            }
            self.warn(&tolerated);
            if let Some(result) = received? {
                return Ok(result);
            }
        }
    }

    /// Logs what was tolerated in the documents of servers, once for each document and member.
    fn warn(&self, tolerated: &[Tolerated]) {
        for it in tolerated {
            let mut warned = self.warned.lock();
            if warned.len() < MAX_WARNINGS
                && warned.insert((it.document.clone(), it.member.clone()))
            {
                tracing::warn!(
                    document = %Logged(&it.document),
                    member = %Logged(&it.member),
                    read_as = it.read_as,
                    "tolerated an authorization document that does not follow the specification"
                );
            }
        }
    }

    async fn send(&self, mut request: Request, is_guarded: bool) -> Result<Response> {
        let first = request.uri().to_string();
        for _ in 0..=MAX_REDIRECTS {
            let url = request.uri().to_string();
            let again = (request.method() == Method::GET).then(|| request.headers().clone());
            let sent = timeout(TIMEOUT, self.send_once(request, is_guarded));
            let late = |_| Err(Error::network(format!("no response within {TIMEOUT:?}")));
            let response = sent.await.unwrap_or_else(late);
            let response = response.map_err(|error| {
                let text = format!("request to {} failed: {}", shown_url(&url), error.message());
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
            let place = shown_url(&url);
            self.rules
                .check(&to, &format!("URL that {place} redirects to"))?;
            request = Request::new(Body::default());
            *request.headers_mut() = headers;
            *request.uri_mut() = to
                .parse()
                .map_err(|_| Error::network(format!("{place} redirects to an invalid URL")))?;
        }
        let text = format!(
            "{} redirects more than {MAX_REDIRECTS} times in a row",
            shown_url(&first)
        );
        Err(Error::failed_login(text.clone(), Error::limit(text)))
    }

    async fn send_once(&self, request: Request, is_guarded: bool) -> Result<Response> {
        if is_guarded {
            self.guard.check(request.uri()).await?;
        }
        let (head, body) = request.into_parts();
        let mut request = http::Request::from_parts(head, body.into_bytes());
        let uri = request.uri().clone();
        let client: &dyn DynHttpClient = match &self.own {
            Some(own) => &**own,
            None => {
                DefaultClient::add_headers(request.headers_mut(), &uri)?;
                if is_guarded {
                    &self.guarded
                } else {
                    self.unguarded.get_or_init(DefaultClient::new)
                }
            }
        };
        let response: http::Response<HttpBody> = client.send_boxed(request).await?;
        let (head, mut body) = response.into_parts();
        let body: Option<Bytes> = read_body(&mut body, MAX_BODY).await?;
        let body = body.ok_or_else(|| {
            Error::limit(format!(
                "the response from {} exceeds the limit of {MAX_BODY} bytes",
                shown_url(&uri.to_string())
            ))
        })?;
        Ok(Response::from_parts(head, body.into()))
    }
}

/// The time of the system clock.
pub(crate) fn now() -> UnixTime {
    UnixTime::from(SystemTime::now())
}
