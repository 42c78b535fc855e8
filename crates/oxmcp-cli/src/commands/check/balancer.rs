//! The behavior of a server at a URL that shows only behind a load balancer or a proxy: sessions that are bound to a node, lost
//! sessions, buffered streams and rejected hosts.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use bytes::Bytes;
use http::{
    HeaderMap, HeaderName, HeaderValue, Method, Request, Response, StatusCode,
    header::{ACCEPT, CACHE_CONTROL, CONTENT_LENGTH, CONTENT_TYPE, HOST, USER_AGENT},
};
use oxmcp::{
    ClientSession, Error, FeatureKind,
    http::{DefaultClient, HttpBody, HttpClient},
};
use serde_json::Value;
use tokio::time::timeout;

use super::report::{Report, Severity};

const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");
const BUFFERING: HeaderName = HeaderName::from_static("x-accel-buffering");
/// An ID of a session that no server has given.
const UNKNOWN_SESSION: &str = "oxmcp-check-00000000-0000-0000-0000-000000000000";
/// A host that a balancer could send, and that no server knows.
const OTHER_HOST: &str = "mcp.oxmcp-check.example";
/// The first ID of the requests that are sent again, which is above those of the session.
const FIRST_ID: u64 = 1_000_000_001;

/// An HTTP client that keeps what a check needs of the requests and responses.
#[derive(Clone)]
pub(super) struct Observer {
    client: Arc<DefaultClient>,
    seen: Arc<Mutex<Seen>>,
}

#[derive(Default)]
struct Seen {
    /// A request with the credentials of the connection, to be sent again with other headers.
    request: Option<Request<Bytes>>,
    status: StatusCode,
    redirect: Option<StatusCode>,
    /// The headers of an event stream.
    stream: Option<HeaderMap>,
}

impl Observer {
    pub(super) fn new() -> Self {
        Self {
            client: Arc::new(DefaultClient::new()),
            seen: Arc::default(),
        }
    }

    fn with<T>(&self, change: impl FnOnce(&mut Seen) -> T) -> T {
        change(&mut self.seen.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl HttpClient for Observer {
    async fn send(&self, mut request: Request<Bytes>) -> Result<Response<HttpBody>, Error> {
        let authority = request.uri().authority().map(|it| it.as_str());
        let host = authority.and_then(|it| it.rsplit('@').next());
        if let Some(Ok(host)) = host.map(HeaderValue::from_str) {
            request.headers_mut().entry(HOST).or_insert(host);
        }
        let name = HeaderValue::from_static(concat!("oxmcp/", env!("CARGO_PKG_VERSION")));
        request.headers_mut().entry(USER_AGENT).or_insert(name);
        let is_list = request.method() == Method::POST && contains(request.body(), b"/list\"");
        let copy = is_list.then(|| request.clone());
        let response = self.client.send(request).await?;
        let status = response.status();
        self.with(|seen| {
            if let Some(request) = copy {
                seen.request = Some(request);
                seen.status = status;
            }
            if matches!(status.as_u16(), 301..=303) {
                seen.redirect = Some(status);
            }
            let is_stream = response
                .headers()
                .get(CONTENT_TYPE)
                .is_some_and(|it| it.as_bytes().starts_with(b"text/event-stream"));
            if is_stream {
                seen.stream = Some(response.headers().clone());
            }
        });
        Ok(response)
    }
}

fn contains(text: &[u8], part: &[u8]) -> bool {
    text.windows(part.len()).any(|it| it == part)
}

/// Makes a request in the session, so that the observer has seen one, and checks the answers.
pub(super) async fn check(
    report: &mut Report,
    session: &ClientSession,
    observer: &Observer,
    limit: Duration,
) {
    // A failure was reported by the checks before.
    let _ = match session.offers(FeatureKind::Tools).await {
        Ok(true) => session.tools().next().await.map(|it| it.map(drop)),
        _ => session.resources().next().await.map(|it| it.map(drop)),
    };
    let (request, status, redirect, stream) = observer.with(|seen| {
        (
            seen.request.take(),
            seen.status,
            seen.redirect,
            seen.stream.take(),
        )
    });
    if let Some(status) = redirect {
        report.add(
            ("redirect", Severity::Warning),
            "endpoint",
            format!("redirects requests with {status}; clients that follow it as browsers do lose the request"),
            "use the final URL, or redirect with 307 or 308",
        );
    }
    if let Some(headers) = stream {
        streams(report, &headers);
    }
    let Some(request) = request.filter(|_| status.is_success()) else {
        return;
    };
    let probe = Probe {
        request,
        observer,
        limit,
    };
    if probe.request.headers().contains_key(SESSION) {
        sessions(report, &probe).await;
    }
    hosts(report, &probe).await;
}

fn streams(report: &mut Report, headers: &HeaderMap) {
    let is_unbuffered = headers.get(BUFFERING).is_some_and(|it| it == "no");
    if !is_unbuffered {
        report.add(
            ("buffered-stream", Severity::Note),
            "event streams",
            "nginx buffers the events, so that progress and questions arrive late or never",
            "send the header `X-Accel-Buffering: no`, or set `proxy_buffering off`",
        );
    }
    let control = headers.get(CACHE_CONTROL).and_then(|it| it.to_str().ok());
    let is_uncached = control.is_some_and(|it| it.contains("no-cache") || it.contains("no-store"));
    if !is_uncached {
        report.add(
            ("cached-stream", Severity::Note),
            "event streams",
            "proxies may cache or change the events",
            "send the header `Cache-Control: no-cache`",
        );
    }
}

async fn sessions(report: &mut Report, probe: &Probe<'_>) {
    report.add(
        ("sessions", Severity::Note),
        "endpoint",
        "keeps sessions: behind a balancer, a request that reaches another node finds no session",
        "route by the header `Mcp-Session-Id`, share the sessions between the nodes, or serve revision 2026-07-28, which has none",
    );
    let Some(status) = probe
        .again(FIRST_ID, (SESSION, UNKNOWN_SESSION), |_| true)
        .await
    else {
        return;
    };
    if status.is_success() {
        report.add(
            ("unchecked-session", Severity::Note),
            "endpoint",
            "serves requests of a session that it has not opened",
            "answer 404, unless sessions mean nothing to the server",
        );
    } else if !says_nothing(status) && status != StatusCode::NOT_FOUND {
        report.add(
            ("lost-session", Severity::Warning),
            "endpoint",
            format!("answers a request of an unknown session with {status}; clients do not open a new session after a node was restarted"),
            "answer 404, as the specification requires",
        );
    }
}

/// Whether the status has other reasons than the session or the host: credentials, limits, and failures of the server.
fn says_nothing(status: StatusCode) -> bool {
    matches!(status.as_u16(), 401 | 403 | 429) || status.is_server_error()
}

async fn hosts(report: &mut Report, probe: &Probe<'_>) {
    // Behind a proxy, the request can reach another server: it gets no credentials.
    let is_kept = |name: &HeaderName| {
        let plain = [ACCEPT, CONTENT_TYPE, HOST, USER_AGENT];
        plain.contains(name) || name.as_str().starts_with("mcp-")
    };
    let has_credentials = !probe.request.headers().keys().all(is_kept);
    let again = probe.again(FIRST_ID + 1, (HOST, OTHER_HOST), is_kept).await;
    let Some(status) = again.filter(|it| it.is_client_error()) else {
        return;
    };
    let is_of_host = match status {
        StatusCode::UNAUTHORIZED | StatusCode::TOO_MANY_REQUESTS => false,
        StatusCode::FORBIDDEN => !has_credentials,
        _ => true,
    };
    if is_of_host {
        report.add(
            ("host-check", Severity::Note),
            "endpoint",
            format!("rejects requests for another host with {status}, which is right, and which a balancer must know"),
            "allow the public host name, and let the balancer pass the `Host` of the client",
        );
    }
}

/// A request that is sent again with another header.
struct Probe<'a> {
    request: Request<Bytes>,
    observer: &'a Observer,
    limit: Duration,
}

impl Probe<'_> {
    /// The status of the response to the same request with another ID and another header, and only with the headers that are kept.
    async fn again(
        &self,
        id: u64,
        (name, value): (HeaderName, &'static str),
        is_kept: impl Fn(&HeaderName) -> bool,
    ) -> Option<StatusCode> {
        let mut request = self.request.clone();
        let mut message: Value = serde_json::from_slice(request.body()).ok()?;
        message.as_object_mut()?.insert("id".to_owned(), id.into());
        *request.body_mut() = Bytes::from(message.to_string());
        let headers = std::mem::take(request.headers_mut());
        // The text has another length now.
        let kept = headers
            .iter()
            .filter(|(name, _)| *name != CONTENT_LENGTH && is_kept(name));
        for (name, value) in kept {
            request.headers_mut().append(name, value.clone());
        }
        request
            .headers_mut()
            .insert(name, HeaderValue::from_static(value));
        let sent = timeout(self.limit, self.observer.client.send(request)).await;
        Some(sent.ok()?.ok()?.status())
    }
}
