//! The two sites: the page of the host, and the sandbox. Both are only for the browser of this machine's user.

use std::{convert::Infallible, sync::Arc};

use axum::{
    Json, Router,
    body::{Body, Bytes},
    extract::{DefaultBodyLimit, Path, Request, State},
    http::{StatusCode, header},
    middleware::{Next, from_fn_with_state},
    response::{IntoResponse, Response},
    routing::{get, post},
};
use futures_util::stream;
use oxmcp::protocol::JsonObject;
use oxmcp_apps::{
    ToolUi,
    host::{is_for_model, sandbox_proxy},
};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Shared, view::View};

type Host = State<Arc<Shared>>;

/// The bytes of a message of a view: a little more than its bridge takes.
const MAX_BODY: usize = 11 * 1024 * 1024;

/// The site of the page.
pub(super) fn page(shared: &Arc<Shared>) -> Router {
    let api = Router::new()
        .route("/api/tools", post(tools))
        .route("/api/open", post(open))
        .route("/api/views/{key}/events", post(events))
        .route("/api/views/{key}/message", post(message))
        .route("/api/views/{key}/decide", post(decide))
        .route("/api/views/{key}/close", post(close))
        .layer(DefaultBodyLimit::max(MAX_BODY))
        .layer(from_fn_with_state(Arc::clone(shared), has_token));
    Router::new()
        .route("/", get(index))
        .route("/host.js", get(script))
        .route("/host.css", get(style))
        .merge(api)
        .layer(from_fn_with_state(Arc::clone(shared), is_for_page))
        .with_state(Arc::clone(shared))
}

/// The site of the sandbox, which has another origin.
pub(super) fn sandbox(shared: &Arc<Shared>) -> Router {
    Router::new()
        .route("/{key}", get(proxy))
        .layer(from_fn_with_state(Arc::clone(shared), is_for_sandbox))
        .with_state(Arc::clone(shared))
}

/// Refuses requests by another name than this site's, which a foreign site could give to this machine's address.
async fn is_for_page(State(shared): Host, request: Request, next: Next) -> Response {
    match is_for(&shared.page, &request) {
        true => next.run(request).await,
        false => StatusCode::FORBIDDEN.into_response(),
    }
}

async fn is_for_sandbox(State(shared): Host, request: Request, next: Next) -> Response {
    match is_for(&shared.sandbox, &request) {
        true => next.run(request).await,
        false => StatusCode::FORBIDDEN.into_response(),
    }
}

fn is_for(origin: &str, request: &Request) -> bool {
    let value = |name| request.headers().get(name).map(|it| it.as_bytes());
    let host = origin.strip_prefix("http://").map(str::as_bytes);
    let is_own = value(header::ORIGIN).is_none_or(|it| it == origin.as_bytes());
    value(header::HOST) == host && is_own
}

async fn has_token(State(shared): Host, request: Request, next: Next) -> Response {
    let token = request.headers().get("x-token").map(|it| it.as_bytes());
    if token != Some(shared.token.as_bytes()) {
        return StatusCode::UNAUTHORIZED.into_response();
    }
    next.run(request).await
}

async fn index(State(shared): Host) -> impl IntoResponse {
    let sandbox = &shared.sandbox;
    let policy = format!(
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; frame-src {sandbox}; base-uri 'none'; \
         form-action 'none'; frame-ancestors 'none'"
    );
    let headers = [
        (header::CONTENT_TYPE, "text/html; charset=utf-8".to_owned()),
        (header::CONTENT_SECURITY_POLICY, policy),
        (header::REFERRER_POLICY, "no-referrer".to_owned()),
    ];
    (headers, include_str!("host.html"))
}

async fn script() -> impl IntoResponse {
    let header = [(header::CONTENT_TYPE, "text/javascript; charset=utf-8")];
    (header, include_str!("host.js"))
}

async fn style() -> impl IntoResponse {
    (
        [(header::CONTENT_TYPE, "text/css")],
        include_str!("host.css"),
    )
}

/// The page of the sandbox proxy, with the policy of the app, which the view inherits.
async fn proxy(State(shared): Host, Path(key): Path<String>) -> Response {
    let Some(view) = shared.view(&key) else {
        return StatusCode::NOT_FOUND.into_response();
    };
    let policy = format!("{}; frame-ancestors {}", view.page.policy(), shared.page);
    let headers = [
        (header::CONTENT_TYPE, "text/html; charset=utf-8".to_owned()),
        (header::CONTENT_SECURITY_POLICY, policy),
        (header::CACHE_CONTROL, "no-store".to_owned()),
    ];
    match sandbox_proxy(&shared.page) {
        Ok(page) => (headers, page).into_response(),
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()).into_response(),
    }
}

/// The tools that have an app and that the model could call.
async fn tools(State(shared): Host) -> Json<Value> {
    let tools = shared.tools.iter();
    let shown = tools.filter(|it| is_for_model(it) && ToolUi::of(it).resource_uri.is_some());
    let entries = shown.map(
        |it| json!({"name": it.name, "description": it.description, "schema": it.input_schema}),
    );
    Json(entries.collect())
}

#[derive(Deserialize)]
struct Opened {
    tool: String,
    #[serde(default)]
    arguments: JsonObject,
}

async fn open(State(shared): Host, Json(opened): Json<Opened>) -> Response {
    match shared.open(&opened.tool, opened.arguments).await {
        Ok((key, view)) => {
            let url = format!("{}/{key}", shared.sandbox);
            let allow = view.page.allow();
            let border = view.page.meta.prefers_border;
            Json(json!({"key": key, "url": url, "allow": allow, "border": border})).into_response()
        }
        Err(error) => (StatusCode::BAD_REQUEST, error.to_string()).into_response(),
    }
}

/// Runs `act` with a view, if it is there.
fn with_view(shared: &Shared, key: &str, act: impl FnOnce(&Arc<View>)) -> StatusCode {
    match shared.view(key) {
        Some(view) => {
            act(&view);
            StatusCode::NO_CONTENT
        }
        None => StatusCode::NOT_FOUND,
    }
}

/// The messages for the page, one in each line.
async fn events(State(shared): Host, Path(key): Path<String>) -> Response {
    let Some(messages) = shared.view(&key).and_then(|it| it.messages()) else {
        return StatusCode::NOT_FOUND.into_response();
    };
    let lines = stream::unfold(messages, async |mut messages| {
        let message = messages.recv().await?;
        Some((
            Ok::<_, Infallible>(Bytes::from(format!("{message}\n"))),
            messages,
        ))
    });
    Body::from_stream(lines).into_response()
}

async fn message(State(shared): Host, Path(key): Path<String>, text: String) -> StatusCode {
    with_view(&shared, &key, |view| view.receive(&text))
}

#[derive(Deserialize)]
struct Decision {
    number: u64,
    accept: bool,
}

async fn decide(
    State(shared): Host,
    Path(key): Path<String>,
    Json(it): Json<Decision>,
) -> StatusCode {
    with_view(&shared, &key, |view| view.decide(it.number, it.accept))
}

async fn close(State(shared): Host, Path(key): Path<String>) -> StatusCode {
    with_view(&shared, &key, View::close)
}
