//! A program that logs in as itself, with a client secret: no user, no browser. The server and its issuer are part of the program,
//! for development.
//!
//! `cargo run --example machine_to_machine --features authorization`
#![expect(clippy::print_stdout, reason = "a program for the terminal")]

use axum::Router;
use oxmcp::{
    Client, Principal, RequestContext, Server, Tool,
    auth::{self, server::TrustedIssuer},
    http::{Endpoint, Login, ProtectedResource, StreamableHttp},
};
use oxmcp_examples::{AnyError, DevelopmentIssuer};
use serde_json::json;
use tokio::net::TcpListener;

#[tokio::main]
async fn main() -> Result<(), AnyError> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let origin = format!("http://{}", listener.local_addr()?);
    let issuer = DevelopmentIssuer::new(&origin)?;
    let url = format!("{origin}/mcp");
    let serving = tokio::spawn(axum::serve(listener, app(&url, &issuer)).into_future());

    // The client sends the secret only to this issuer, even if the MCP server names another.
    let client = auth::client::Client::new("nightly-report")?
        .with_secret("hunter2") // a real program reads this from a secret store
        .issued_by(issuer.url());
    let endpoint = Endpoint::new(&url).login(Login::client_credentials(client));
    let session = Client::new("nightly-report", "1.0.0")
        .connect(endpoint)
        .await?;
    let answer = session.call_tool("whoami", json!({})).await?;
    let answer = answer.content.first().and_then(|it| it.as_text());
    println!("{}", answer.unwrap_or_default());
    session.close().await?;
    serving.abort();
    Ok(())
}

async fn whoami(cx: RequestContext) -> String {
    let token = cx.principal().and_then(Principal::token);
    token.map_or_else(String::new, |token| {
        let subject = token.subject.as_deref().unwrap_or("unknown");
        format!("{subject}, with scopes {}", token.scopes)
    })
}

fn app(url: &str, issuer: &DevelopmentIssuer) -> Router {
    let resource = ProtectedResource::new(url)
        .issuer(TrustedIssuer::new(issuer.url()))
        .scopes("reports:write");
    let server = Server::new("reports", "1.0.0");
    let server = server.tool(Tool::new("whoami", "Say who is calling", whoami));
    Router::new()
        .route_service(
            "/mcp",
            StreamableHttp::from(server).protect(resource.clone()),
        )
        .merge(issuer.routes())
        .fallback_service(resource.metadata())
}
