//! The behavior of a server at a URL that shows only behind a load balancer or a proxy: sessions that are bound to a node, lost
//! sessions, buffered streams and rejected hosts.

use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use http::{
    HeaderMap, HeaderName, HeaderValue, Method, Request, Response, StatusCode,
    header::{CACHE_CONTROL, CONTENT_TYPE, HOST, USER_AGENT},
};
use oxmcp::{
    ClientSession, Error, FeatureKind,
    http::{DefaultClient, HttpBody, HttpClient},
};

use super::report::{Report, Severity};

const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");
const BUFFERING: HeaderName = HeaderName::from_static("x-accel-buffering");
/// An ID of a session that no server has given.
const UNKNOWN_SESSION: &str = "oxmcp-check-00000000-0000-0000-0000-000000000000";
/// A host that a balancer could send, and that no server knows.
const OTHER_HOST: &str = "mcp.oxmcp-check.example";

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
        let authority = request.uri().authority().map(ToString::to_string);
        if let Some(Ok(host)) = authority.map(|it| HeaderValue::from_str(&it)) {
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
pub(super) async fn check(report: &mut Report, session: &ClientSession, observer: &Observer) {
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
    if request.headers().contains_key(SESSION) {
        sessions(report, &request, observer).await;
    }
    hosts(report, &request, observer).await;
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

async fn sessions(report: &mut Report, request: &Request<Bytes>, observer: &Observer) {
    report.add(
        ("sessions", Severity::Note),
        "endpoint",
        "keeps sessions: behind a balancer, a request that reaches another node finds no session",
        "route by the header `Mcp-Session-Id`, share the sessions between the nodes, or serve revision 2026-07-28, which has none",
    );
    let Some(status) = again(request, observer, SESSION, UNKNOWN_SESSION).await else {
        return;
    };
    if status.is_success() {
        report.add(
            ("unchecked-session", Severity::Note),
            "endpoint",
            "serves requests of a session that it has not opened",
            "answer 404, unless sessions mean nothing to the server",
        );
    } else if status != StatusCode::NOT_FOUND {
        report.add(
            ("lost-session", Severity::Warning),
            "endpoint",
            format!("answers a request of an unknown session with {status}; clients do not open a new session after a node was restarted"),
            "answer 404, as the specification requires",
        );
    }
}

async fn hosts(report: &mut Report, request: &Request<Bytes>, observer: &Observer) {
    let Some(status) = again(request, observer, HOST, OTHER_HOST).await else {
        return;
    };
    if status.is_client_error() {
        report.add(
            ("host-check", Severity::Note),
            "endpoint",
            format!("rejects requests for another host with {status}, which is right, and which a balancer must know"),
            "allow the public host name, and let the balancer pass the `Host` of the client",
        );
    }
}

/// The status of the response to the same request with another header.
async fn again(
    request: &Request<Bytes>,
    observer: &Observer,
    name: HeaderName,
    value: &'static str,
) -> Option<StatusCode> {
    let mut request = request.clone();
    request
        .headers_mut()
        .insert(name, HeaderValue::from_static(value));
    let response = observer.client.send(request).await.ok()?;
    Some(response.status())
}
