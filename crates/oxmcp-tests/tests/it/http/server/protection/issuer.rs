//! Hand-written issuer, endpoints that accept its tokens, and requests to these endpoints.

use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::SystemTime,
};

use bytes::Bytes;
use http::{Request, Response, StatusCode, request::Builder};
use http_body_util::BodyExt;
use oxmcp::{
    Error, Principal, Prompt, RequestContext, Resource, ResourceTemplate, Result, Server, Tool,
    auth::{
        Challenge, UnixTime,
        jose::{Algorithm, SigningKey},
        server::TrustedIssuer,
    },
    http::{HttpBody, HttpClient, ProtectedResource, StreamableHttp},
};
use serde_json::{Value, json};

use crate::http::mounts::Target;
use crate::http::server::peer::{Session, builder, header, modern_builder, send};
use crate::support::{add, modern};

pub(super) const URL: &str = "https://mcp.example.com/mcp";
pub(super) const ISSUER: &str = "https://auth.example.com";
pub(super) const METADATA: &str = "/.well-known/oauth-protected-resource/mcp";

/// An authorization server as a resource server sees it: its metadata, its keys, and its introspection of tokens.
#[derive(Clone)]
pub(super) struct Issuer {
    pub(super) key: Arc<SigningKey>,
    pub(super) requests: Arc<AtomicUsize>,
    pub(super) is_down: bool,
}

impl Issuer {
    pub(super) fn new() -> Self {
        let key = SigningKey::generate(Algorithm::Es256).unwrap();
        Self {
            key: Arc::new(key.with_key_id("one")),
            requests: Arc::default(),
            is_down: false,
        }
    }

    pub(super) fn resource(&self) -> ProtectedResource {
        ProtectedResource::new(URL)
            .issuer(TrustedIssuer::new(ISSUER))
            .http_client(self.clone())
    }

    pub(super) fn claims(scope: &str) -> Value {
        let now = UnixTime::from(SystemTime::now()).seconds();
        json!({
            "iss": ISSUER, "aud": URL, "sub": "ann", "client_id": "editor", "scope": scope,
            "iat": now, "exp": now + 300,
        })
    }

    /// A token that expires after this many seconds.
    pub(super) fn ending(&self, seconds: u64) -> String {
        let mut claims = Self::claims("mcp");
        claims["exp"] = json!(claims["iat"].as_u64().unwrap() + seconds);
        self.sign(&claims)
    }

    pub(super) fn sign(&self, claims: &Value) -> String {
        self.key.sign("at+jwt", claims).unwrap()
    }

    pub(super) fn token(&self, scope: &str) -> String {
        self.sign(&Self::claims(scope))
    }
}

impl HttpClient for Issuer {
    async fn send(&self, request: Request<Bytes>) -> Result<Response<HttpBody>> {
        self.requests.fetch_add(1, Ordering::Relaxed);
        // Other requests are handled meanwhile.
        tokio::task::yield_now().await;
        if self.is_down {
            return Err(Error::unreachable("the secret reason"));
        }
        let body = match request.uri().path() {
            "/.well-known/oauth-authorization-server" => {
                json!({"issuer": ISSUER, "jwks_uri": "https://auth.example.com/keys"})
            }
            "/keys" => json!({"keys": [self.key.public_jwk()]}),
            "/introspect" => {
                let is_active = request.body().starts_with(b"token=opaque");
                let mut answer =
                    json!({"active": is_active, "aud": URL, "sub": "ann", "scope": "mcp"});
                if request.body().starts_with(b"token=opaque-day") {
                    let now = UnixTime::from(SystemTime::now()).seconds();
                    answer["exp"] = json!(now + 24 * 3600);
                }
                answer
            }
            _ => return Ok(with_status(StatusCode::NOT_FOUND, json!({}))),
        };
        Ok(with_status(StatusCode::OK, body))
    }
}

#[expect(clippy::needless_pass_by_value, reason = "it reads better in a call")]
fn with_status(status: StatusCode, body: Value) -> Response<HttpBody> {
    let mut response = Response::new(HttpBody::from(Bytes::from(body.to_string())));
    *response.status_mut() = status;
    response
}

/// A server with a tool that returns its caller, and with a feature of each kind that needs a scope.
pub(super) fn files() -> Server {
    let whoami = Tool::new(
        "whoami",
        "Say who is calling",
        |cx: RequestContext| async move {
            let token = cx.principal().and_then(Principal::token);
            token.map_or_else(
                || "nobody".to_owned(),
                |token| {
                    format!(
                        "{} may {}",
                        token.subject.as_deref().unwrap_or("?"),
                        token.scopes
                    )
                },
            )
        },
    );
    Server::new("files", "1.0.0")
        .tool(add())
        .tool(whoami)
        .tool(Tool::new("write", "Write", || async { "written" }).scopes("files:write"))
        .prompt(Prompt::new("review", "Review", || async { "look" }).scopes("files:read"))
        .resource(Resource::text("file:///open", "open", "open"))
        .resource(Resource::text("file:///shut", "shut", "shut").scopes("files:read"))
        .resource_template(
            ResourceTemplate::new(
                "file:///{name}",
                "any",
                |_: HashMap<String, String>| async { "any" },
            )
            .scopes("files:any"),
        )
        .subscriptions()
}

pub(super) fn endpoint(resource: &ProtectedResource) -> StreamableHttp {
    StreamableHttp::from(files()).protect(resource.clone())
}

pub(super) fn bearing(request: Builder, token: &str) -> Builder {
    request.header("authorization", format!("Bearer {token}"))
}

pub(super) async fn call(
    endpoint: &impl Target,
    token: &str,
    method: &str,
    params: Value,
) -> Response<oxmcp::http::ResponseBody> {
    let message = modern(1, method, params);
    let request = bearing(modern_builder(&message), token);
    send(endpoint, request, message.to_string()).await
}

pub(super) async fn whoami(endpoint: &impl Target, token: &str) -> (StatusCode, String) {
    let params = json!({"name": "whoami", "arguments": {}});
    let response = call(endpoint, token, "tools/call", params).await;
    let status = response.status();
    let body = response.into_body().collect().await.unwrap().to_bytes();
    let body: Value = serde_json::from_slice(&body).unwrap();
    let said = body
        .pointer("/result/content/0/text")
        .and_then(Value::as_str);
    (status, said.unwrap_or_default().to_owned())
}

/// The status, the code and the scopes of a refusal.
pub(super) fn refusal(response: &Response<oxmcp::http::ResponseBody>) -> (u16, String, String) {
    let challenges = Challenge::from_headers(response.headers());
    let challenge = challenges.first().unwrap();
    let metadata = format!("https://mcp.example.com{METADATA}");
    assert_eq!(challenge.resource_metadata(), Some(&*metadata));
    let text = |name| challenge.parameter(name).unwrap_or_default().to_owned();
    (response.status().as_u16(), text("error"), text("scope"))
}

/// A session in a revision. The requests of `Session` always name the newest legacy revision, so only its id is of use.
pub(super) async fn open<T: Target>(endpoint: &T, token: &str, version: &str) -> Session<T> {
    let initialize = crate::http::server::peer::initialize(version, json!({}));
    let request = bearing(builder("POST"), token);
    let opened = send(endpoint, request, initialize.to_string()).await;
    assert_eq!(opened.status(), StatusCode::OK);
    Session {
        endpoint: endpoint.clone(),
        id: header(opened.headers(), "mcp-session-id").to_owned(),
    }
}

pub(super) async fn read_to_end(mut body: oxmcp::http::ResponseBody) -> String {
    let mut text = String::new();
    while let Some(frame) = body.frame().await {
        let data = frame.unwrap().into_data().unwrap();
        text.push_str(std::str::from_utf8(&data).unwrap());
    }
    text
}
