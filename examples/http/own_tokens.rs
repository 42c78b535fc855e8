//! Your own bearer tokens, such as API keys, with scopes: a function that finds the caller of a token, and middleware that has
//! already authenticated the caller.
//!
//! `cargo run --example own_tokens --features authorization`
#![expect(clippy::print_stdout, reason = "a program for the terminal")]

use axum::{
    Router,
    extract::Request,
    middleware::{Next, from_fn},
    response::Response,
};
use oxmcp::{
    Client, Principal, RequestContext, Server, Tool,
    auth::{AuthError, Secret, server::Refusal},
    http::{Endpoint, StreamableHttp},
};
use oxmcp_examples::AnyError;
use serde_json::json;
use tokio::net::TcpListener;

async fn whoami(cx: RequestContext) -> String {
    let caller = cx.principal().map(Principal::as_str);
    caller.unwrap_or("unknown").to_owned()
}

/// Finds the caller of an API key. A real server would query its database.
async fn find_caller(key: Secret) -> Result<Principal, Refusal> {
    match key.expose() {
        "key-of-ann" => Ok(Principal::new("ann").scopes(["files:write"])),
        "key-of-bob" => Ok(Principal::new("bob").scopes(["files:read"])),
        _ => Err(AuthError::invalid_token("unknown API key").into()),
    }
}

/// Middleware that identifies the caller by other means, such as a certificate verified by a proxy.
async fn by_proxy(mut request: Request, next: Next) -> Response {
    let carol = Principal::new("carol").scopes(["files:write"]);
    request.extensions_mut().insert(carol);
    next.run(request).await
}

#[tokio::main]
async fn main() -> Result<(), AnyError> {
    let server = Server::new("files", "1.0.0")
        .tool(Tool::new("whoami", "Say who is calling", whoami))
        .tool(Tool::new("delete", "Delete all", || async { "deleted" }).scopes("files:write"));
    let inside = Router::new()
        .route_service("/inside", StreamableHttp::from(server.clone()))
        .layer(from_fn(by_proxy));
    let app = Router::new()
        .route_service(
            "/mcp",
            StreamableHttp::from(server).authenticate(find_caller),
        )
        .merge(inside);
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let origin = format!("http://{}", listener.local_addr()?);
    let serving = tokio::spawn(axum::serve(listener, app).into_future());

    for (path, key) in [
        ("/mcp", Some("key-of-ann")),
        ("/mcp", Some("key-of-bob")),
        ("/mcp", None),
        ("/inside", None),
    ] {
        let endpoint = Endpoint::new(format!("{origin}{path}"));
        let endpoint = key.into_iter().fold(endpoint, Endpoint::bearer_token);
        let session = match Client::new("example", "1.0.0").connect(endpoint).await {
            Ok(session) => session,
            Err(error) => {
                println!("{path}: refused with {:?}", error.http_status());
                continue;
            }
        };
        let answer = session.call_tool("whoami", json!({})).await?;
        let name = answer.content.first().and_then(|it| it.as_text());
        let is_deleted = session.call_tool("delete", json!({})).await.is_ok();
        println!("{path}: {name:?} may delete: {is_deleted}");
        session.close().await?;
    }
    serving.abort();
    Ok(())
}
