//! Tools that need additional scopes, and a client that requests each scope only when it calls a tool that needs it. The server,
//! its issuer and the user at the browser are part of the program, for development.
//!
//! `cargo run --example step_up --features authorization`
#![expect(clippy::print_stdout, reason = "a program for the terminal")]

use axum::Router;
use oxmcp::{
    Client, Error, Server, Tool,
    auth::server::TrustedIssuer,
    http::{Endpoint, Login, ProtectedResource, StreamableHttp},
};
use oxmcp_examples::{AnyError, DevelopmentIssuer, browse};
use serde_json::json;
use tokio::net::TcpListener;

#[tokio::main]
async fn main() -> Result<(), AnyError> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let origin = format!("http://{}", listener.local_addr()?);
    let issuer = DevelopmentIssuer::new(&origin)?;
    let url = format!("{origin}/mcp");
    let serving = tokio::spawn(axum::serve(listener, app(&url, &issuer)).into_future());

    // A real program would use `Login::browser()`. Here, a simulated browser agrees.
    let redirect_uri = "http://127.0.0.1:4711/callback";
    let login = Login::with_redirect(redirect_uri, move |page| async move {
        let scopes = page.split('&').find_map(|it| it.strip_prefix("scope="));
        println!("  the user is asked for {}", scopes.unwrap_or_default());
        let answer = browse(&page, "ann", redirect_uri).await;
        answer.map_err(|error| Error::network(error.to_string()))
    });
    let endpoint = Endpoint::new(&url).login(login.clone());
    let session = Client::new("step-up", "1.0.0").connect(endpoint).await?;
    for tool in ["read", "write", "read", "delete"] {
        println!("{tool}:");
        session.call_tool(tool, json!({})).await?;
    }
    for stored in login.credentials().await? {
        println!("granted scopes: {}", stored.scopes);
    }
    session.close().await?;
    serving.abort();
    Ok(())
}

fn app(url: &str, issuer: &DevelopmentIssuer) -> Router {
    let resource = ProtectedResource::new(url)
        .issuer(TrustedIssuer::new(issuer.url()))
        .scopes("read");
    let server = Server::new("files", "1.0.0")
        .tool(Tool::new("read", "Read a file", || async { "read" }))
        .tool(Tool::new("write", "Write a file", || async { "written" }).scopes("write"))
        .tool(Tool::new("delete", "Delete all", || async { "deleted" }).scopes("delete"));
    Router::new()
        .route_service(
            "/mcp",
            StreamableHttp::from(server).protect(resource.clone()),
        )
        .merge(issuer.routes())
        .fallback_service(resource.metadata())
}
