//! Endpoints with bearer tokens of their own, and principals that a middleware sets.

use http::{Method, Request, Response, StatusCode};
use oxmcp::{
    Principal, RequestContext, Server, Tool,
    auth::{AuthError, Challenge, Secret, server::Refusal},
    http::{LegacySse, ProtectedResource, ResponseBody, StreamableHttp},
};
use serde_json::{Value, json};
use tower::{ServiceBuilder, ServiceExt, util::MapRequestLayer};

use super::issuer::{Issuer, bearing, call, files, open};
use crate::http::log_lines::LogLines;
use crate::http::server::peer::{builder, initialize, json, modern_builder, send};
use crate::http::sse_2024::Client;
use crate::support::{modern, request, subscribe, text};

/// The caller of a token such as `ann:files:read,files:write`.
async fn authenticate(token: Secret) -> Result<Principal, Refusal> {
    // The token may be looked up elsewhere.
    tokio::task::yield_now().await;
    match token.expose().split_once("/") {
        Some(("down", _)) => Err(AuthError::unavailable("the secret reason").into()),
        Some((name, scopes)) => Ok(Principal::new(name).scopes(scopes.split('/'))),
        None => Err(AuthError::invalid_token("unknown API key").into()),
    }
}

fn server() -> Server {
    let name = async |cx: RequestContext| {
        let principal = cx.principal().map(Principal::as_str);
        principal.unwrap_or("unknown").to_owned()
    };
    files().tool(Tool::new(
        "name",
        "Say who is calling",
        move |cx: RequestContext| name(cx),
    ))
}

fn tool(name: &str) -> Value {
    json!({"name": name, "arguments": {}})
}

/// The only challenge of a response.
fn challenge(response: &Response<ResponseBody>) -> String {
    let challenges = Challenge::from_headers(response.headers());
    assert!(challenges.len() <= 1);
    challenges
        .first()
        .map(ToString::to_string)
        .unwrap_or_default()
}

const LACKS_WRITE: &str = r#"Bearer error="insufficient_scope", error_description="insufficient scope: this needs files:write; use an access token that grants it", scope="files:write""#;

#[tokio::test]
async fn own_tokens_authenticate_their_callers() {
    let endpoint = StreamableHttp::from(server()).authenticate(authenticate);
    let answer = call(&endpoint, "ann/x", "tools/call", tool("name")).await;
    assert_eq!(text(&json(answer).await), "ann");
    let answer = call(&endpoint, "ann/files:write", "tools/call", tool("write")).await;
    assert_eq!(text(&json(answer).await), "written");
    let refused = call(&endpoint, "ann/files:read", "tools/call", tool("write")).await;
    assert_eq!(refused.status(), StatusCode::FORBIDDEN);
    assert_eq!(challenge(&refused), LACKS_WRITE);
    for (token, status, expected) in [
        ("unknown", 401, "Bearer"),
        ("down/x", 503, ""),
        ("two words", 400, r#"Bearer error="invalid_request""#),
    ] {
        let refused = call(&endpoint, token, "tools/list", json!({})).await;
        assert_eq!(refused.status(), status, "{token}");
        let challenge = challenge(&refused);
        let is_expected = match status {
            400 => challenge.starts_with(expected),
            _ => challenge == expected,
        };
        assert!(is_expected, "{challenge}");
        assert!(!challenge.contains("resource_metadata"));
    }
    let message = modern(1, "tools/list", json!({}));
    let without = modern_builder(&message);
    let other = modern_builder(&message).header("authorization", "DPoP ann/x");
    for request in [without, other] {
        let refused = send(&endpoint, request, message.to_string()).await;
        assert_eq!(
            (refused.status().as_u16(), &*challenge(&refused)),
            (401, "Bearer")
        );
    }
    let metadata = builder("GET").uri("/.well-known/oauth-protected-resource");
    assert_eq!(send(&endpoint, metadata, "").await.status(), 404);
}

#[tokio::test]
async fn own_tokens_are_checked_in_every_revision() {
    let endpoint = StreamableHttp::from(server()).authenticate(authenticate);
    for version in ["2025-03-26", "2025-06-18", "2025-11-25"] {
        let session = open(&endpoint, "ann/files:read", version).await;
        for (token, status) in [
            ("ann/files:write", 200),
            ("ann/files:read", 403),
            ("bob/files:write", 404),
            ("unknown", 401),
        ] {
            let message = request(1, "tools/call", tool("write")).to_string();
            let builder = bearing(session.builder("POST"), token);
            let answer = send(&endpoint, builder, message).await;
            assert_eq!(answer.status(), status, "{version} {token}");
        }
        let deleted = bearing(session.builder("DELETE"), "bob/x");
        assert_eq!(send(&endpoint, deleted, "").await.status(), 404);
    }
}

#[tokio::test]
async fn own_tokens_are_checked_over_2024_transport() {
    let message = || request(1, "tools/call", tool("write")).to_string();
    let service = LegacySse::from(server()).authenticate(authenticate);
    let mut client = Client::open_with(&service, "ann/files:read").await;
    let endpoint = StreamableHttp::from(server()).authenticate(authenticate);
    let mut other = Client::open_with(&endpoint, "ann/files:read").await;
    for (token, status) in [
        ("ann/files:read", 403),
        ("ann/files:write", 202),
        ("bob/files:write", 404),
        ("unknown", 401),
    ] {
        client = client.bearing(token);
        assert_eq!(client.respond(message()).await.status(), status, "{token}");
        other = other.bearing(token);
        assert_eq!(other.respond(message()).await.status(), status, "{token}");
    }
}

#[tokio::test]
async fn scopes_set_by_middleware_are_respected() {
    let by_header = |mut request: Request<_>| {
        let name = request.headers().get("x-user").cloned();
        if let Some(name) = name {
            let principal = Principal::new(name.to_str().unwrap());
            let principal = match name.as_bytes() {
                b"ann" => principal.scopes(["files:write files:read"]),
                b"bob" => principal.scopes(["files:read"]),
                _ => principal,
            };
            request.extensions_mut().insert(principal);
        }
        request
    };
    let endpoint = StreamableHttp::from(server());
    let app = ServiceBuilder::new()
        .layer(MapRequestLayer::new(by_header))
        .service(endpoint);
    for (user, status, expected) in [
        (Some("ann"), 200, ""),
        (Some("bob"), 403, LACKS_WRITE),
        (Some("eve"), 403, ""),
        (None, 403, ""),
    ] {
        let message = modern(1, "tools/call", tool("write"));
        let mut builder = modern_builder(&message);
        if let Some(user) = user {
            builder = builder.header("x-user", user);
        }
        let body = http_body_util::Full::new(bytes::Bytes::from(message.to_string()));
        let answer = app
            .clone()
            .oneshot(builder.body(body).unwrap())
            .await
            .unwrap();
        assert_eq!(answer.status(), status, "{user:?}");
        assert_eq!(challenge(&answer), expected);
        if expected.is_empty() && status == 403 {
            let error = json(answer).await["error"]["message"].clone();
            assert!(
                error
                    .as_str()
                    .unwrap()
                    .contains("the server checks no access tokens"),
                "{error}"
            );
        }
    }
}

#[tokio::test]
async fn serving_names_features_nobody_may_use() {
    let lines = LogLines::default();
    let _guard = subscribe(lines.clone());
    let supporting = |scopes: &str| {
        let resource = Issuer::new().resource();
        StreamableHttp::from(server()).protect(resource.scopes_supported(scopes))
    };
    for (endpoint, is_named) in [
        (StreamableHttp::from(server()), true),
        (supporting("files:read"), true),
        (supporting("files:read files:write files:any"), false),
        (
            StreamableHttp::from(server()).protect(Issuer::new().resource()),
            false,
        ),
        (
            StreamableHttp::from(server()).authenticate(authenticate),
            false,
        ),
    ] {
        drop(endpoint.serve("127.0.0.1:0").await.unwrap());
        let lines = lines.take();
        let warning = lines.iter().any(|it| it.contains("no caller can have"));
        let name = lines.iter().any(|it| it == "name: \"write\"");
        assert_eq!((warning, name), (is_named, is_named), "{lines:?}");
    }
}

#[tokio::test]
async fn both_kinds_of_protection_are_mutually_exclusive() {
    let resource = Issuer::new().resource();
    let protected = StreamableHttp::from(server()).protect(resource.clone());
    let authenticated = StreamableHttp::from(server()).authenticate(authenticate);
    for endpoint in [
        protected.authenticate(authenticate),
        authenticated.protect(resource.clone()),
    ] {
        let error = endpoint.serve("127.0.0.1:0").await.err().unwrap();
        assert!(
            error.message().contains("`protect` and `authenticate`"),
            "{error}"
        );
        let refused = send(&endpoint, bearing(builder("POST"), "ann/x"), "{}").await;
        assert_eq!(refused.status(), StatusCode::INTERNAL_SERVER_ERROR);
    }
    let service = LegacySse::from(server()).protect(resource.clone());
    let service = service.authenticate(authenticate);
    assert!(service.serve("127.0.0.1:0").await.is_err());
    // The last setting of one kind counts.
    let twice = StreamableHttp::from(server())
        .protect(resource.clone())
        .protect(resource);
    assert!(twice.serve("127.0.0.1:0").await.is_ok());
}

#[tokio::test]
async fn initialize_without_a_token_opens_no_session() {
    let endpoint = StreamableHttp::from(server()).authenticate(authenticate);
    let message = initialize("2025-11-25", json!({})).to_string();
    let refused = send(&endpoint, builder("POST"), message).await;
    assert_eq!(
        (refused.status().as_u16(), &*challenge(&refused)),
        (401, "Bearer")
    );
}

#[tokio::test]
async fn metadata_of_several_resources_share_a_fallback() {
    let resource = |url: &str| {
        ProtectedResource::new(url).issuer(oxmcp::auth::server::TrustedIssuer::new(
            "https://as.example",
        ))
    };
    let [files, mail] = ["https://mcp.example/files", "https://mcp.example/mail"].map(resource);
    let get = async |service: oxmcp::http::ProtectedResourceMetadataService, path: &str| {
        let request = Request::builder().method(Method::GET).uri(path);
        let response = service.oneshot(request.body(()).unwrap()).await.unwrap();
        match response.status() {
            StatusCode::OK => json(response).await["resource"]
                .as_str()
                .unwrap()
                .to_owned(),
            status => status.as_str().to_owned(),
        }
    };
    let root = "/.well-known/oauth-protected-resource";
    let both = || files.metadata().and(mail.metadata());
    assert_eq!(
        get(both(), &format!("{root}/files")).await,
        "https://mcp.example/files"
    );
    assert_eq!(
        get(both(), &format!("{root}/mail")).await,
        "https://mcp.example/mail"
    );
    assert_eq!(get(both(), root).await, "404");
    assert_eq!(
        get(files.metadata(), root).await,
        "https://mcp.example/files"
    );
    // A resource whose URL is that of the host stays there.
    let whole = resource("https://mcp.example/");
    let both = whole.metadata().and(mail.metadata());
    assert_eq!(get(both, root).await, "https://mcp.example/");
}
