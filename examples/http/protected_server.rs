//! A server that requires access tokens, and tells clients where to get them. One of its tools needs an additional scope. The
//! issuer is part of the program, for development; remove its lines if you have your own.
//!
//! `cargo run --example protected_server --features authorization`; with `-- serve`, it waits for clients such as `login`.
#![expect(clippy::print_stdout, reason = "a program for the terminal")]

use std::env;

use axum::Router;
use oxmcp::{
    Client, Principal, RequestContext, Server, Tool,
    auth::server::TrustedIssuer,
    http::{Endpoint, ProtectedResource, StreamableHttp},
};
use oxmcp_examples::{AnyError, DevelopmentIssuer};
use serde_json::json;
use tokio::net::TcpListener;

async fn whoami(cx: RequestContext) -> String {
    let token = cx.principal().and_then(Principal::token);
    let subject = token.and_then(|token| token.subject.as_deref());
    subject.unwrap_or("unknown").to_owned()
}

#[tokio::main]
async fn main() -> Result<(), AnyError> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let origin = format!("http://{}", listener.local_addr()?);
    let issuer = DevelopmentIssuer::new(&origin)?;

    // The public URL of the server, which must be the audience of tokens. Behind a proxy, it is the URL of the proxy.
    let url = format!("{origin}/mcp");
    let resource = ProtectedResource::new(&url)
        .issuer(TrustedIssuer::new(issuer.url()))
        .scopes("files:read")
        .scope_implies("files:write", "files:read");
    let server = Server::new("files", "1.0.0")
        .tool(Tool::new("whoami", "Say who is calling", whoami))
        .tool(Tool::new("delete", "Delete all", || async { "deleted" }).scopes("files:write"));
    let endpoint = StreamableHttp::from(server).protect(resource.clone());
    let app = Router::new()
        .route_service("/mcp", endpoint)
        .merge(issuer.routes())
        .fallback_service(resource.metadata());
    if env::args().nth(1).as_deref() == Some("serve") {
        println!("{url}");
        return Ok(axum::serve(listener, app).await?);
    }
    let serving = tokio::spawn(axum::serve(listener, app).into_future());

    let connect = async |token: Option<String>| {
        let endpoint = Endpoint::new(&url);
        let endpoint = match token {
            Some(token) => endpoint.bearer_token(token),
            None => endpoint,
        };
        Client::new("example", "1.0.0").connect(endpoint).await
    };
    let refused = connect(None).await.err();
    println!("without a token: refused: {}", refused.is_some());

    let reader = connect(Some(issuer.token(&url, "ann", "files:read")?)).await?;
    let answer = reader.call_tool("whoami", json!({})).await?;
    println!("with files:read: whoami => {}", text(&answer));
    let refused = reader.call_tool("delete", json!({})).await.err();
    println!("with files:read: delete refused: {}", refused.is_some());
    reader.close().await?;

    let writer = connect(Some(issuer.token(&url, "ann", "files:write")?)).await?;
    let answer = writer.call_tool("delete", json!({})).await?;
    println!("with files:write: delete => {}", text(&answer));
    writer.close().await?;

    serving.abort();
    Ok(())
}

fn text(answer: &oxmcp::protocol::CallToolResult) -> &str {
    answer
        .content
        .first()
        .and_then(|block| block.as_text())
        .unwrap_or_default()
}
