//! Logins against a strict authorization server without sockets.

mod authorizers;
mod begun;
mod caches;
mod clients;
mod fake;
mod flights;
mod log_lines;
mod messages;
mod persons;
mod refreshes;
mod refusals;
mod shared_stores;
mod token_store;
mod traps;

use oxmcp::{
    Client, ClientSession, Error, Result, Revision,
    auth::AuthError,
    http::{Endpoint, HttpClient, Login},
};
use serde_json::json;

use crate::http::client::login::fake::Web;

pub(super) const MCP: &str = "https://mcp.example/mcp";
const REDIRECT: &str = "http://127.0.0.1:4711/callback";

/// The login of a person who agrees to everything at once.
fn agreeing(web: &Web) -> Login {
    let web = web.clone();
    Login::with_redirect(REDIRECT, move |url| {
        let web = web.clone();
        async move { Ok(web.agree(&url)) }
    })
}

async fn connect(web: &(impl HttpClient + Clone), login: Login) -> Result<ClientSession> {
    connect_with(&client(), web, login).await
}

async fn connect_with(
    client: &Client,
    web: &(impl HttpClient + Clone),
    login: Login,
) -> Result<ClientSession> {
    let endpoint = endpoint(web.clone()).login(login.http_client(web.clone()));
    let session = client.connect(endpoint).await?;
    // The requests that belong to connecting are served before this call.
    call(&session, "add").await?;
    Ok(session)
}

fn endpoint(web: impl HttpClient) -> Endpoint {
    // The GET of the standalone stream would log in, too.
    Endpoint::new(MCP).http_client(web).standalone_stream(false)
}

fn client() -> Client {
    Client::new("test", "1").revisions([Revision::V2025_11_25])
}

async fn call(session: &ClientSession, tool: &str) -> Result<()> {
    session.call_tool(tool, json!({})).await.map(drop)
}

/// The number of requests in the log whose entries begin with this name.
fn count(asked: &[String], name: &str) -> usize {
    asked.iter().filter(|it| it.starts_with(name)).count()
}

/// The error of the login in the sources of an error.
fn cause(error: &Error) -> &AuthError {
    let mut source: Option<&(dyn std::error::Error + 'static)> = Some(error);
    while let Some(error) = source {
        if let Some(found) = error.downcast_ref() {
            return found;
        }
        source = error.source();
    }
    panic!("no login failed: {error:#?}");
}
