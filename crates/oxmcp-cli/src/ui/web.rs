//! The two sites: the page with its API, and the sandbox of apps at another origin. Both are only for the browser of this
//! machine's user: requests must name this host, come from this origin, and present the token.

use std::{
    convert::Infallible,
    sync::{Arc, Mutex, PoisonError},
};

use axum::{
    Json, Router,
    body::{Body, Bytes},
    extract::{ConnectInfo, DefaultBodyLimit, Path, Request, State},
    http::{HeaderMap, HeaderName, StatusCode, header},
    middleware::{Next, from_fn_with_state},
    response::{IntoResponse, Response},
    routing::{get, post},
};
use futures_util::stream;
use oxmcp::auth::Secret;
use oxmcp_apps::host::sandbox_proxy;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    task::spawn_blocking,
};

use crate::ui::{
    assets,
    catalog::Obstacle,
    ends::Ends,
    hub::{Connect, Hub},
    operation::Operation,
    questions::UserReply,
};

/// The bytes of a request: a little more than a message of a view may have.
const MAX_BODY: usize = 11 << 20;

/// The pages that receive events at once.
const MAX_STREAMS: usize = 8;

/// The header with the token.
const TOKEN: &str = "x-oxmcp-token";

/// Everything that the sites need.
pub(crate) struct Site {
    pub hub: Arc<Hub>,
    pub token: Secret,
    /// Opens the page once for this user, in place of the token.
    pub code: Mutex<Option<Secret>>,
    /// The origins of the page and of the sandbox.
    pub page: String,
    pub sandbox: String,
    pub streams: Arc<Semaphore>,
}

type Shared = State<Arc<Site>>;

impl Site {
    pub(crate) fn new(hub: Arc<Hub>, token: String, page: String, sandbox: String) -> Arc<Self> {
        Arc::new(Self {
            hub,
            token: Secret::new(token),
            code: Mutex::default(),
            page,
            sandbox,
            streams: Arc::new(Semaphore::new(MAX_STREAMS)),
        })
    }

    /// Lets one page exchange this code for the token.
    pub(crate) fn open_once(&self, code: String) {
        *self.code.lock().unwrap_or_else(PoisonError::into_inner) = Some(Secret::new(code));
    }
}

/// The site of the page.
pub(crate) fn page(site: &Arc<Site>) -> Router {
    let api = Router::new()
        .route("/api/state", post(state))
        .route("/api/events", post(events))
        .route("/api/connect", post(connect))
        .route("/api/disconnect", post(disconnect))
        .route("/api/run", post(run))
        .route("/api/cancel", post(cancel))
        .route("/api/answer", post(answer))
        .route("/api/views/{key}/message", post(message))
        .route("/api/views/{key}/decide", post(decide))
        .route("/api/views/{key}/close", post(close))
        .layer(DefaultBodyLimit::max(MAX_BODY))
        .layer(from_fn_with_state(Arc::clone(site), has_token));
    Router::new()
        .route("/", get(index))
        .route("/{name}", get(file))
        .route("/api/open", post(open))
        .merge(api)
        .layer(from_fn_with_state(Arc::clone(site), is_for_page))
        .with_state(Arc::clone(site))
}

/// The site of the sandbox.
pub(crate) fn sandbox(site: &Arc<Site>) -> Router {
    Router::new()
        .route("/{key}", get(proxy))
        .layer(from_fn_with_state(Arc::clone(site), is_for_sandbox))
        .with_state(Arc::clone(site))
}

async fn is_for_page(State(site): Shared, request: Request, next: Next) -> Response {
    match is_for(&site.page, request.headers()) {
        true => next.run(request).await,
        false => StatusCode::FORBIDDEN.into_response(),
    }
}

async fn is_for_sandbox(State(site): Shared, request: Request, next: Next) -> Response {
    match is_for(&site.sandbox, request.headers()) {
        true => next.run(request).await,
        false => StatusCode::FORBIDDEN.into_response(),
    }
}

/// Whether a request names this site and comes from its own pages. A foreign site could give its name to this machine's address.
fn is_for(origin: &str, headers: &HeaderMap) -> bool {
    let value = |name| headers.get(name).map(|it| it.as_bytes());
    let host = origin.strip_prefix("http://").map(str::as_bytes);
    let is_own = value(header::ORIGIN).is_none_or(|it| it == origin.as_bytes());
    value(header::HOST) == host && is_own
}

async fn has_token(State(site): Shared, request: Request, next: Next) -> Response {
    let token = request.headers().get(TOKEN).and_then(|it| it.to_str().ok());
    if token.is_none_or(|it| Secret::new(it) != site.token) {
        return StatusCode::UNAUTHORIZED.into_response();
    }
    next.run(request).await
}

async fn index(State(site): Shared) -> Response {
    let sandbox = &site.sandbox;
    // Trusted types: the page never makes elements from text.
    let policy = format!(
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' blob:; media-src blob:; \
         frame-src {sandbox}; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; \
         require-trusted-types-for 'script'; trusted-types 'none'"
    );
    let headers = [
        (header::CONTENT_TYPE, "text/html; charset=utf-8".to_owned()),
        (header::CONTENT_SECURITY_POLICY, policy),
        (header::REFERRER_POLICY, "no-referrer".to_owned()),
        (
            HeaderName::from_static("cross-origin-opener-policy"),
            "same-origin".to_owned(),
        ),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff".to_owned()),
        (header::CACHE_CONTROL, "no-store".to_owned()),
    ];
    (headers, assets::INDEX).into_response()
}

async fn file(Path(name): Path<String>) -> Response {
    let Some((kind, text)) = assets::find(&name) else {
        return StatusCode::NOT_FOUND.into_response();
    };
    let headers = [
        (header::CONTENT_TYPE, kind),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::CACHE_CONTROL, "no-store"),
    ];
    (headers, text).into_response()
}

/// The page of the sandbox proxy, with the policy of the app, which the view inherits.
async fn proxy(State(site): Shared, Path(key): Path<String>) -> Response {
    let Some(view) = site.hub.views.get(&key) else {
        return StatusCode::NOT_FOUND.into_response();
    };
    let policy = format!("{}; frame-ancestors {}", view.page.policy(), site.page);
    let headers = [
        (header::CONTENT_TYPE, "text/html; charset=utf-8".to_owned()),
        (header::CONTENT_SECURITY_POLICY, policy),
        (header::REFERRER_POLICY, "no-referrer".to_owned()),
        (header::CACHE_CONTROL, "no-store".to_owned()),
    ];
    match sandbox_proxy(&site.page) {
        Ok(page) => (headers, page).into_response(),
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()).into_response(),
    }
}

#[derive(Deserialize)]
struct Code {
    code: String,
}

/// Gives the token to the first page that presents the code, unless it is in the browser of another user.
async fn open(
    State(site): Shared,
    ConnectInfo(ends): ConnectInfo<Ends>,
    Json(it): Json<Code>,
) -> Response {
    let private = spawn_blocking(move || ends.are_private()).await;
    if !private.unwrap_or(false) {
        return StatusCode::UNAUTHORIZED.into_response();
    }
    let presented = Some(Secret::new(it.code));
    let mut code = site.code.lock().unwrap_or_else(PoisonError::into_inner);
    if *code != presented {
        return StatusCode::UNAUTHORIZED.into_response();
    }
    *code = None;
    let token = json!({"token": site.token.expose()});
    ([(header::CACHE_CONTROL, "no-store")], Json(token)).into_response()
}

async fn state(State(site): Shared) -> Json<Value> {
    let hub = &site.hub;
    let elapsed = u64::try_from(hub.events.elapsed().as_micros()).unwrap_or(u64::MAX);
    let revisions: Vec<&str> = oxmcp::Revision::ALL.iter().map(|it| it.as_str()).collect();
    Json(json!({
        "version": env!("CARGO_PKG_VERSION"),
        "elapsed": elapsed,
        "revisions": revisions,
        "servers": hub.servers(),
        "questions": hub.questions.open(),
        "jobs": hub.jobs(),
    }))
}

#[derive(Deserialize)]
struct After {
    from: u64,
}

/// The events, as a stream in the form of server-sent events.
async fn events(State(site): Shared, Json(After { from }): Json<After>) -> Response {
    let Ok(permit) = Arc::clone(&site.streams).try_acquire_owned() else {
        let reason = format!("{MAX_STREAMS} pages are open; close one");
        return (StatusCode::TOO_MANY_REQUESTS, reason).into_response();
    };
    let begin = (Arc::clone(&site.hub), from, permit);
    let batches = stream::unfold(begin, async |(hub, from, permit): Reader| {
        let batch = hub.events.from(from).await;
        let mut text = String::new();
        if batch.is_gap {
            let first = batch.next - batch.events.len() as u64;
            text.push_str(&format!("event: gap\ndata: {{}}\n\nid: {first}\n\n"));
        }
        for event in &batch.events {
            text.push_str("data: ");
            text.push_str(event);
            text.push_str("\n\n");
        }
        text.push_str(&format!("id: {}\n\n", batch.next));
        let text = Ok::<_, Infallible>(Bytes::from(text));
        Some((text, (hub, batch.next, permit)))
    });
    let headers = [
        (header::CONTENT_TYPE, "text/event-stream"),
        (header::CACHE_CONTROL, "no-store"),
    ];
    (headers, Body::from_stream(batches)).into_response()
}

type Reader = (Arc<Hub>, u64, OwnedSemaphorePermit);

async fn connect(State(site): Shared, Json(asked): Json<Connect>) -> Json<Value> {
    Json(match site.hub.connect(asked) {
        Ok(()) => json!({"ok": true}),
        Err(Obstacle::Consent(command)) => json!({"consent": command}),
        Err(Obstacle::Inputs(inputs)) => json!({"inputs": inputs}),
        Err(Obstacle::Failed(reason)) => json!({"failed": reason}),
    })
}

#[derive(Deserialize)]
struct Which {
    server: usize,
}

async fn disconnect(State(site): Shared, Json(it): Json<Which>) -> StatusCode {
    site.hub.disconnect(it.server).await;
    StatusCode::NO_CONTENT
}

#[derive(Deserialize)]
struct Asked {
    server: usize,
    job: String,
    operation: Operation,
}

async fn run(State(site): Shared, Json(it): Json<Asked>) -> Response {
    match site.hub.run(it.server, it.job, it.operation) {
        Ok(()) => StatusCode::NO_CONTENT.into_response(),
        Err(reason) => (StatusCode::CONFLICT, reason).into_response(),
    }
}

#[derive(Deserialize)]
struct Job {
    job: String,
}

async fn cancel(State(site): Shared, Json(it): Json<Job>) -> StatusCode {
    site.hub.cancel(&it.job);
    StatusCode::NO_CONTENT
}

#[derive(Deserialize)]
struct Answered {
    question: u64,
    reply: UserReply,
}

async fn answer(State(site): Shared, Json(it): Json<Answered>) -> StatusCode {
    match site.hub.questions.answer(it.question, it.reply) {
        true => StatusCode::NO_CONTENT,
        false => StatusCode::NOT_FOUND,
    }
}

async fn message(State(site): Shared, Path(key): Path<String>, text: String) -> StatusCode {
    let Some(view) = site.hub.views.get(&key) else {
        return StatusCode::NOT_FOUND;
    };
    view.receive(&text);
    StatusCode::NO_CONTENT
}

#[derive(Deserialize)]
struct Decision {
    number: u64,
    accept: bool,
}

async fn decide(
    State(site): Shared,
    Path(key): Path<String>,
    Json(it): Json<Decision>,
) -> StatusCode {
    let Some(view) = site.hub.views.get(&key) else {
        return StatusCode::NOT_FOUND;
    };
    view.decide(it.number, it.accept);
    StatusCode::NO_CONTENT
}

async fn close(State(site): Shared, Path(key): Path<String>) -> StatusCode {
    let Some(view) = site.hub.views.get(&key) else {
        return StatusCode::NOT_FOUND;
    };
    view.close();
    StatusCode::NO_CONTENT
}
