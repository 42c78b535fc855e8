//! A server that demands access tokens, and tells clients where to get them; one of its tools needs a scope of its own. The
//! issuer is part of the program, for development: with yours, what is below `main` goes away.
//!
//! `cargo run --example protected_server --features protected_server`
#![expect(clippy::print_stdout, reason = "a program for the terminal")]

use std::{error::Error, time::SystemTime};

use axum::{Json, Router, routing::get};
use oxmcp::{
    Client, RequestContext, Server, Tool,
    auth::{
        UnixTime,
        jose::{Algorithm, SigningKey},
        server::TrustedIssuer,
    },
    http::{Endpoint, Principal, ProtectedResource, StreamableHttp},
};
use serde_json::json;
use tokio::net::TcpListener;

async fn whoami(cx: RequestContext) -> String {
    let token = cx.principal().and_then(Principal::token);
    let subject = token.and_then(|token| token.subject.as_deref());
    subject.unwrap_or("nobody").to_owned()
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let origin = format!("http://{}", listener.local_addr()?);

    // The URL is the one that clients know. Behind a proxy it is the proxy's, and tokens must be for it.
    let resource = ProtectedResource::new(format!("{origin}/mcp"))
        .issuer(TrustedIssuer::new(format!("{origin}/issuer")))
        .scopes("files:read")
        .scope_implies("files:write", "files:read");
    let server = Server::new("files", "1.0.0")
        .tool(Tool::new("whoami", "Say who is calling", whoami))
        .tool(Tool::new("delete", "Delete all", || async { "deleted" }).scopes("files:write"));
    let endpoint = StreamableHttp::from(server).protect(resource.clone());
    let issuer = DevelopmentIssuer::new(&origin)?;
    let app = Router::new()
        .route_service("/mcp", endpoint)
        .merge(issuer.routes())
        .fallback_service(resource.metadata());
    let serving = tokio::spawn(axum::serve(listener, app).into_future());

    let connect = async |token: Option<String>| {
        let endpoint = Endpoint::new(format!("{origin}/mcp"));
        let endpoint = match token {
            Some(token) => endpoint.bearer_token(token),
            None => endpoint,
        };
        Client::new("example", "1.0.0").connect(endpoint).await
    };
    let refused = connect(None).await.err();
    println!("without a token: refused is {}", refused.is_some());

    let reader = connect(Some(issuer.token("files:read")?)).await?;
    let answer = reader.call_tool("whoami", json!({})).await?;
    println!("with files:read: whoami => {}", text(&answer));
    let refused = reader.call_tool("delete", json!({})).await.err();
    println!("with files:read: delete is refused: {}", refused.is_some());
    reader.close().await?;

    let writer = connect(Some(issuer.token("files:write")?)).await?;
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

/// An authorization server that gives everybody every token.
struct DevelopmentIssuer {
    origin: String,
    key: SigningKey,
}

impl DevelopmentIssuer {
    fn new(origin: &str) -> Result<Self, Box<dyn Error>> {
        Ok(Self {
            origin: origin.to_owned(),
            key: SigningKey::generate(Algorithm::Es256)?.with_key_id("development"),
        })
    }

    fn routes(&self) -> Router {
        let origin = &self.origin;
        let metadata =
            json!({"issuer": format!("{origin}/issuer"), "jwks_uri": format!("{origin}/keys")});
        let keys = json!({"keys": [self.key.public_jwk()]});
        Router::new()
            .route(
                "/.well-known/oauth-authorization-server/issuer",
                get(async || Json(metadata)),
            )
            .route("/keys", get(async || Json(keys)))
    }

    fn token(&self, scope: &str) -> Result<String, Box<dyn Error>> {
        let now = UnixTime::from(SystemTime::now()).seconds();
        let claims = json!({
            "iss": format!("{}/issuer", self.origin), "aud": format!("{}/mcp", self.origin), "sub": "ann", "client_id": "example",
            "scope": scope, "iat": now, "exp": now + 60,
        });
        Ok(self.key.sign("at+jwt", &claims)?)
    }
}
