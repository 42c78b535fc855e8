//! A web app whose users log in to an MCP server, each with their own account. The MCP server, its issuer and the users' browsers
//! are part of the program, for development.
//!
//! `cargo run --example web_login --features authorization`
#![expect(clippy::print_stdout, reason = "a program for the terminal")]

use std::{collections::HashMap, sync::Arc};

use axum::{
    Router,
    extract::{RawQuery, State},
    http::{HeaderMap, StatusCode, header},
    response::{IntoResponse, Redirect, Response},
    routing::get,
};
use oxmcp::{
    Client, Principal, RequestContext, Server, Tool,
    auth::server::TrustedIssuer,
    http::{Endpoint, Login, MemoryTokenStore, ProtectedResource, StreamableHttp},
};
use oxmcp_examples::{AnyError, DevelopmentIssuer, browse};
use serde_json::json;
use tokio::{net::TcpListener, sync::Mutex};

/// The app. It can run in several processes that share the store, the keys (`Login::keys`) and the attempts.
struct App {
    mcp: String,
    login: Login,
    /// The login attempts in progress, by user. They are sealed.
    attempts: Mutex<HashMap<String, String>>,
}

/// The user of a request. A real app has its own sessions.
fn user(headers: &HeaderMap) -> String {
    let cookie = headers.get(header::COOKIE).and_then(|it| it.to_str().ok());
    cookie.unwrap_or_default().replace("user=", "")
}

/// Calls a tool for the user, or redirects to the login if it is needed.
async fn whoami(State(app): State<Arc<App>>, headers: HeaderMap) -> Result<Response, StatusCode> {
    let user = user(&headers);
    let login = app.login.clone().user(&user);
    let endpoint = Endpoint::new(&app.mcp).login(login.clone());
    let asked = async {
        let session = Client::new("app", "1.0.0").connect(endpoint).await?;
        let answer: String = session.call_tool("whoami", json!({})).structured().await?;
        session.close().await?;
        Ok(answer)
    };
    match asked.await {
        Ok(name) => {
            println!("{user} is logged in as {name}");
            Ok(name.into_response())
        }
        Err(error) if oxmcp::Error::is_interaction_required(&error) => {
            println!("{user} must log in");
            let attempt = login.begin_after(&app.mcp, &error).await;
            let attempt = attempt.map_err(|_| StatusCode::BAD_GATEWAY)?;
            let mut attempts = app.attempts.lock().await;
            attempts.insert(user, attempt.sealed().to_owned());
            Ok(Redirect::to(attempt.url()).into_response())
        }
        Err(_) => Err(StatusCode::BAD_GATEWAY),
    }
}

/// The handler of the redirect URI, which finishes the login.
async fn callback(
    State(app): State<Arc<App>>,
    headers: HeaderMap,
    RawQuery(query): RawQuery,
) -> Result<Redirect, StatusCode> {
    let user = user(&headers);
    let sealed = app.attempts.lock().await.remove(&user);
    let sealed = sealed.ok_or(StatusCode::BAD_REQUEST)?;
    let login = app.login.clone().user(user);
    match login.finish(sealed, query.unwrap_or_default()).await {
        Ok(()) => Ok(Redirect::to("/whoami")),
        Err(_) => Err(StatusCode::BAD_REQUEST),
    }
}

#[tokio::main]
async fn main() -> Result<(), AnyError> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let origin = format!("http://{}", listener.local_addr()?);
    let issuer = DevelopmentIssuer::new(&origin)?;
    let app = App {
        mcp: format!("{origin}/mcp"),
        login: Login::redirect(format!("{origin}/callback")).store(MemoryTokenStore::new()),
        attempts: Mutex::default(),
    };
    let server = mcp_server(&app.mcp, &issuer);
    let routes = Router::new()
        .route("/whoami", get(whoami))
        .route("/callback", get(callback))
        .with_state(Arc::new(app));
    let serving = tokio::spawn(axum::serve(listener, routes.merge(server)).into_future());

    for name in ["ann", "bob", "ann"] {
        browse(&format!("{origin}/whoami"), name, "nowhere").await?;
    }
    serving.abort();
    Ok(())
}

fn mcp_server(url: &str, issuer: &DevelopmentIssuer) -> Router {
    let whoami = |cx: RequestContext| async move {
        let token = cx.principal().and_then(Principal::token);
        token.and_then(|it| it.subject.clone()).unwrap_or_default()
    };
    let resource = ProtectedResource::new(url).issuer(TrustedIssuer::new(issuer.url()));
    let tool = Tool::new("whoami", "Say who is calling", whoami);
    let server = Server::new("accounts", "1.0.0").tool(tool);
    let endpoint = StreamableHttp::from(server).protect(resource.clone());
    Router::new()
        .route_service("/mcp", endpoint)
        .merge(issuer.routes())
        .fallback_service(resource.metadata())
}
