//! Requests to endpoints that demand access tokens.

use std::{sync::atomic::Ordering, time::SystemTime};

use bytes::Bytes;
use http::{Method, Request, StatusCode};
use http_body_util::Full;
use oxmcp::{
    Principal, Revision,
    auth::{
        AuthError, ScopeSet, Secret,
        dpop::{Proof, ProofKey, ProofVerifier},
        server::{Introspection, TrustedIssuer, VerifiedToken},
    },
    http::{LegacySse, ProtectedResource, StreamableHttp},
};
use serde_json::{Value, json};
use tower::ServiceExt;

use super::issuer::{
    ISSUER, Issuer, METADATA, URL, bearing, call, endpoint, files, open, refusal, whoami,
};
use crate::http::mounts::mounts;
use crate::http::server::peer::{builder, header, json, modern_builder, send};
use crate::http::sse_2024::Client;
use crate::support::{modern, request};

#[tokio::test]
async fn client_without_token_learns_where_to_get_one() {
    let endpoint = endpoint(&Issuer::new().resource().scopes("mcp"));
    let refused = send(&endpoint, builder("POST"), "{}").await;
    assert_eq!(refusal(&refused), (401, String::new(), "mcp".to_owned()));
    // The metadata are served for any `Host`.
    let request = Request::get(METADATA).header("host", "evil.example.com");
    let metadata = send(&endpoint, request, "").await;
    assert_eq!(metadata.status(), StatusCode::OK);
    assert_eq!(
        header(metadata.headers(), "access-control-allow-origin"),
        "*"
    );
    let metadata = json(metadata).await;
    assert_eq!(metadata["resource"], URL);
    assert_eq!(metadata["authorization_servers"], json!([ISSUER]));
    assert_eq!(metadata["scopes_supported"], json!(["mcp"]));
}

#[tokio::test]
async fn metadata_is_served_separately() {
    let resource = Issuer::new().resource();
    let get = async |method: Method, path: &str| {
        let request = Request::builder()
            .method(method)
            .uri(path)
            .body(())
            .unwrap();
        let response = resource.metadata().oneshot(request).await.unwrap();
        (response.status(), response.headers().clone())
    };
    for path in resource.metadata_paths() {
        assert_eq!(get(Method::GET, &path).await.0, StatusCode::OK);
        let (status, headers) = get(Method::OPTIONS, &path).await;
        assert_eq!(status, StatusCode::NO_CONTENT);
        assert_eq!(header(&headers, "access-control-allow-origin"), "*");
        assert_eq!(
            get(Method::POST, &path).await.0,
            StatusCode::METHOD_NOT_ALLOWED
        );
    }
    let other = "/.well-known/oauth-protected-resource/other";
    assert_eq!(get(Method::GET, other).await.0, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn handler_sees_the_authenticated_caller() {
    let issuer = Issuer::new();
    let endpoint = endpoint(&issuer.resource());
    let (status, said) = whoami(&endpoint, &issuer.token("mcp files:read")).await;
    assert_eq!((status, &*said), (StatusCode::OK, "ann may mcp files:read"));
    // The metadata and the keys are fetched once.
    let (_, said) = whoami(&endpoint, &issuer.token("other")).await;
    assert_eq!(said, "ann may other");
    assert_eq!(issuer.requests.load(Ordering::Relaxed), 2);
}

#[tokio::test]
async fn concurrent_requests_wait_for_one_fetch() {
    let issuer = Issuer::new();
    let endpoint = endpoint(&issuer.resource());
    let tokens: Vec<_> = (0..50)
        .map(|i| issuer.token(&format!("mcp s{i}")))
        .collect();
    let all = tokens.iter().map(|token| whoami(&endpoint, token));
    for (status, _) in futures_util::future::join_all(all).await {
        assert_eq!(status, StatusCode::OK);
    }
    assert_eq!(issuer.requests.load(Ordering::Relaxed), 2);
}

// Attack: forged or misdirected tokens.
#[tokio::test]
async fn tokens_of_other_audiences_or_issuers_are_refused() {
    let issuer = Issuer::new();
    for mount in mounts!() {
        let endpoint = mount.serve(&endpoint(&issuer.resource())).await;
        let with = |name: &str, value: Value| {
            let mut claims = Issuer::claims("mcp");
            claims[name] = value;
            issuer.sign(&claims)
        };
        let table = [
            with("aud", json!("https://mcp.example.com")),
            with("aud", json!(["https://other.example.com"])),
            with("iss", json!("https://evil.example.com")),
            with("exp", json!(1)),
            with("nbf", json!(9_999_999_999_u64)),
            Issuer::new().token("mcp"),
            "not-a-token".to_owned(),
        ];
        for token in table {
            let refused = call(&endpoint, &token, "tools/list", json!({})).await;
            let (status, code, _) = refusal(&refused);
            assert_eq!((status, &*code), (401, "invalid_token"), "{token}");
        }
        let message = modern(1, "tools/list", json!({}));
        let token = issuer.token("mcp");
        // Tokens in the URL are ignored.
        let uri = format!("/mcp?access_token={token}");
        let refused = send(
            &endpoint,
            modern_builder(&message).uri(uri),
            message.to_string(),
        )
        .await;
        assert_eq!(refused.status(), StatusCode::UNAUTHORIZED);
        let twice = bearing(bearing(modern_builder(&message), &token), &token);
        let refused = send(&endpoint, twice, message.to_string()).await;
        assert_eq!(refusal(&refused).1, "invalid_request");
    }
}

// Attack: DNS rebinding.
#[tokio::test]
async fn host_and_origin_are_checked_before_the_token() {
    let issuer = Issuer::new();
    for mount in mounts!() {
        let endpoint = mount.serve(&endpoint(&issuer.resource())).await;
        for (name, value) in [
            ("host", "evil.example.com"),
            ("origin", "https://evil.example.com"),
        ] {
            let request = Request::post("/mcp").header("content-type", "application/json");
            let request = if name == "host" {
                request
            } else {
                request.header("host", "localhost")
            };
            let refused = send(&endpoint, request.header(name, value), "{}").await;
            assert_eq!(refused.status(), StatusCode::FORBIDDEN);
            assert!(!refused.headers().contains_key("www-authenticate"));
        }
    }
}

#[tokio::test]
async fn preflight_requests_need_no_token() {
    let app = "https://app.example.com";
    let endpoint = endpoint(&Issuer::new().resource()).allowed_origins([app]);
    let preflight = builder("OPTIONS")
        .header("origin", app)
        .header("access-control-request-method", "POST");
    let answer = send(&endpoint, preflight, "").await;
    assert_eq!(answer.status(), StatusCode::NO_CONTENT);
    let refused = send(&endpoint, builder("POST").header("origin", app), "{}").await;
    assert_eq!(refused.status(), StatusCode::UNAUTHORIZED);
    let exposed = header(refused.headers(), "access-control-expose-headers");
    assert!(exposed.contains("WWW-Authenticate"), "{exposed}");
}

#[tokio::test]
async fn issuer_outage_is_not_a_client_error() {
    let mut issuer = Issuer::new();
    issuer.is_down = true;
    let endpoint = endpoint(&issuer.resource());
    let refused = call(&endpoint, &issuer.token("mcp"), "tools/list", json!({})).await;
    assert_eq!(refused.status(), StatusCode::SERVICE_UNAVAILABLE);
    assert!(refused.headers().contains_key("retry-after"));
    let body = json(refused).await.to_string();
    assert!(
        !body.contains("secret") && !body.contains("auth.example.com"),
        "{body}"
    );
}

#[tokio::test]
async fn named_features_may_need_more_scopes() {
    let issuer = Issuer::new();
    let resource = issuer
        .resource()
        .scopes("mcp")
        .scope_implies("admin", "files:write mcp");
    let endpoint = endpoint(&resource);
    let completion = json!({"ref": {"type": "ref/prompt", "name": "review"}, "argument": {"name": "a", "value": ""}});
    let listen = json!({"notifications": {"resourceSubscriptions": ["file:///shut", "file:///x"]}});
    let table = [
        (
            "tools/call",
            json!({"name": "write", "arguments": {}}),
            "mcp files:write",
        ),
        ("prompts/get", json!({"name": "review"}), "mcp files:read"),
        (
            "resources/read",
            json!({"uri": "file:///shut"}),
            "mcp files:read",
        ),
        (
            "resources/read",
            json!({"uri": "file:///other"}),
            "mcp files:any",
        ),
        ("completion/complete", completion, "mcp files:read"),
        ("subscriptions/listen", listen, "mcp files:read files:any"),
    ];
    let all = issuer.token("mcp files:write files:read files:any");
    for (method, params, needed) in table {
        let refused = call(&endpoint, &issuer.token("mcp"), method, params.clone()).await;
        let expected = (403, "insufficient_scope".to_owned(), needed.to_owned());
        assert_eq!(refusal(&refused), expected, "{method}");
        let served = call(&endpoint, &all, method, params).await;
        assert_ne!(served.status(), StatusCode::FORBIDDEN, "{method}");
    }
    // Features without scopes are free, and listings show all features.
    for (method, params) in [
        ("resources/read", json!({"uri": "file:///open"})),
        (
            "tools/call",
            json!({"name": "add", "arguments": {"a": 1, "b": 2}}),
        ),
    ] {
        let served = call(&endpoint, &issuer.token("mcp"), method, params).await;
        assert_eq!(served.status(), StatusCode::OK, "{method}");
    }
    let listed = json(call(&endpoint, &issuer.token("mcp"), "tools/list", json!({})).await).await;
    assert!(listed.to_string().contains("\"write\""));
    // A scope can imply others; a missing scope that all requests need is reported first.
    let write = json!({"name": "write", "arguments": {}});
    let served = call(
        &endpoint,
        &issuer.token("admin"),
        "tools/call",
        write.clone(),
    )
    .await;
    assert_eq!(
        json(served).await["result"]["content"][0]["text"],
        "written"
    );
    let refused = call(&endpoint, &issuer.token("files:write"), "tools/call", write).await;
    assert_eq!(refusal(&refused).2, "mcp");
}

#[tokio::test]
async fn session_messages_and_batches_need_all_scopes() {
    let issuer = Issuer::new();
    let endpoint = endpoint(&issuer.resource());
    let session = open(&endpoint, &issuer.token("mcp"), "2025-03-26").await;
    let post = async |token: &str, body: &Value| {
        let request = bearing(session.builder("POST"), token);
        send(&endpoint, request, body.to_string()).await
    };
    let write = request(1, "tools/call", json!({"name": "write", "arguments": {}}));
    let read = request(2, "resources/subscribe", json!({"uri": "file:///shut"}));
    let ping = request(3, "ping", json!({}));
    assert_eq!(
        refusal(&post(&issuer.token("mcp"), &write).await).2,
        "files:write"
    );
    let batch = json!([ping, write, read]);
    let refused = post(&issuer.token("mcp"), &batch).await;
    assert_eq!(refusal(&refused).2, "files:write files:read");
    let served = post(&issuer.token("files:read files:write"), &batch).await;
    assert_eq!(served.status(), StatusCode::OK);
    let served = post(&issuer.token("mcp"), &json!([ping])).await;
    assert_eq!(served.status(), StatusCode::OK);
}

// Attack: session hijacking.
#[tokio::test]
async fn session_belongs_to_its_owner_not_its_token() {
    let issuer = Issuer::new();
    for mount in mounts!() {
        let endpoint = mount.serve(&endpoint(&issuer.resource())).await;
        let session = open(&endpoint, &issuer.token("mcp"), "2025-11-25").await;
        let ping = request(1, "ping", json!({})).to_string();
        let status = async |token: &str| {
            let request = bearing(session.builder("POST"), token);
            send(&endpoint, request, ping.clone()).await.status()
        };
        assert_eq!(status(&issuer.token("mcp other")).await, StatusCode::OK);
        for (name, value) in [("sub", "bob"), ("client_id", "other")] {
            let mut claims = Issuer::claims("mcp");
            claims[name] = json!(value);
            assert_eq!(
                status(&issuer.sign(&claims)).await,
                StatusCode::NOT_FOUND,
                "{name}"
            );
        }
        // The session id alone is not enough.
        let refused = send(&endpoint, session.builder("POST"), ping.clone()).await;
        assert_eq!(refused.status(), StatusCode::UNAUTHORIZED);
    }
}

#[tokio::test]
async fn session_stream_and_delete_require_a_token() {
    let issuer = Issuer::new();
    let endpoint = endpoint(&issuer.resource());
    let good = issuer.token("mcp");
    let mut other = Issuer::claims("mcp");
    other["sub"] = json!("bob");
    let other = issuer.sign(&other);
    for version in ["2025-03-26", "2025-06-18", "2025-11-25"] {
        let session = open(&endpoint, &good, version).await;
        for method in ["GET", "DELETE"] {
            let status = async |token: Option<&str>| {
                let request = builder(method)
                    .header("mcp-session-id", &session.id)
                    .header("mcp-protocol-version", version);
                let request = token.into_iter().fold(request, bearing);
                send(&endpoint, request, "").await.status()
            };
            assert_eq!(
                status(None).await,
                StatusCode::UNAUTHORIZED,
                "{method} {version}"
            );
            let invented = status(Some("invented")).await;
            assert_eq!(invented, StatusCode::UNAUTHORIZED, "{method} {version}");
            let others = status(Some(&other)).await;
            assert_eq!(others, StatusCode::NOT_FOUND, "{method} {version}");
            assert!(status(Some(&good)).await.is_success(), "{method} {version}");
        }
        let ended = bearing(session.builder("GET"), &good);
        let ended = send(&endpoint, ended, "").await.status();
        assert_eq!(ended, StatusCode::NOT_FOUND, "{version}");
    }
}

#[tokio::test]
async fn session_methods_require_token_even_without_sessions() {
    let issuer = Issuer::new();
    let resource = issuer.resource();
    let modern = files().revisions([Revision::LATEST]);
    for endpoint in [
        StreamableHttp::from(modern).protect(resource.clone()),
        endpoint(&resource).stateless(),
        endpoint(&resource).json_only(),
        endpoint(&resource),
    ] {
        for (method, version) in [
            ("GET", Some("2026-07-28")),
            ("DELETE", Some("2026-07-28")),
            ("GET", Some("2025-11-25")),
            ("DELETE", Some("2025-11-25")),
            ("GET", None),
            ("DELETE", None),
            ("PUT", None),
        ] {
            let ask = async |token: Option<&str>| {
                let request = builder(method);
                let versions = version.into_iter();
                let request = versions.fold(request, |request, version| {
                    request.header("mcp-protocol-version", version)
                });
                let request = token.into_iter().fold(request, bearing);
                send(&endpoint, request, "").await
            };
            let refused = ask(None).await;
            assert_eq!(refusal(&refused).0, 401, "{method} {version:?}");
            let refused = ask(Some("invented")).await;
            assert_eq!(refusal(&refused).1, "invalid_token", "{method} {version:?}");
            // A request with a token gets the endpoint's own answer instead.
            let answered = ask(Some(&issuer.token("mcp"))).await;
            assert_ne!(answered.status(), 401, "{method} {version:?}");
        }
    }
}

#[tokio::test]
async fn user_with_many_clients_can_be_one_owner() {
    let issuer = Issuer::new();
    let endpoint = endpoint(&issuer.resource().owner_without_client());
    let session = open(&endpoint, &issuer.token("mcp"), "2025-11-25").await;
    let mut claims = Issuer::claims("mcp");
    claims["client_id"] = json!("other");
    let request = bearing(session.builder("POST"), &issuer.sign(&claims));
    let ping = crate::support::request(1, "ping", json!({})).to_string();
    assert_eq!(
        send(&endpoint, request, ping).await.status(),
        StatusCode::OK
    );
}

/// A request as peers write it that do not follow the specification to the letter. Servers tolerate all of these.
fn odd_spellings(request: &Value) -> [String; 4] {
    let with = |name: &str, value: Value| {
        let mut odd = request.clone();
        odd[name] = value;
        odd.to_string()
    };
    [
        format!("\u{feff}{request}"),
        with("result", Value::Null),
        with("error", Value::Null),
        with("id", json!(1.0)),
    ]
}

#[tokio::test]
async fn odd_messages_need_the_same_scopes() {
    let issuer = Issuer::new();
    let endpoint = endpoint(&issuer.resource());
    let session = open(&endpoint, &issuer.token("mcp"), "2025-03-26").await;
    let write = request(1, "tools/call", json!({"name": "write", "arguments": {}}));
    for odd in odd_spellings(&write) {
        let batch = match odd.strip_prefix('\u{feff}') {
            Some(plain) => format!("\u{feff}[{plain}]"),
            None => format!("[{odd}]"),
        };
        for body in [odd, batch] {
            let post = async |token: &str| {
                let request = bearing(session.builder("POST"), token);
                send(&endpoint, request, body.clone()).await
            };
            let refused = post(&issuer.token("mcp")).await;
            assert_eq!(refusal(&refused).2, "files:write", "{body}");
            let served = post(&issuer.token("mcp files:write")).await;
            assert_eq!(served.status(), StatusCode::OK, "{body}");
        }
    }
}

#[tokio::test]
async fn transport_of_2024_requires_the_same_tokens() {
    let issuer = Issuer::new();
    let service = LegacySse::from(files()).protect(issuer.resource());
    let opening = Request::get("/sse").header("host", "localhost");
    let opening = opening.body(Full::<Bytes>::default()).unwrap();
    let refused = service.clone().oneshot(opening).await.unwrap();
    assert_eq!(refusal(&refused).0, 401);
    let mut client = Client::opened_with(&service, &issuer.token("mcp")).await;
    let write = |id| request(id, "tools/call", json!({"name": "write", "arguments": {}}));
    let refused = client.respond(write(1).to_string()).await;
    let expected = (
        403,
        "insufficient_scope".to_owned(),
        "files:write".to_owned(),
    );
    assert_eq!(refusal(&refused), expected);
    for odd in odd_spellings(&write(1)) {
        let refused = client.respond(odd.clone()).await;
        assert_eq!(refusal(&refused), expected, "{odd}");
    }
    client = client.bearing("invented");
    let refused = client.respond(write(1).to_string()).await;
    assert_eq!(refused.status(), StatusCode::UNAUTHORIZED);
    client = client.bearing(&issuer.token("files:write"));
    // The stream carries nothing about the refused requests.
    assert_eq!(client.ask(write(2)).await["id"], 2);
}

#[tokio::test]
async fn tools_with_scopes_are_refused_on_unprotected_endpoints() {
    let endpoint = StreamableHttp::from(files());
    let write = modern(1, "tools/call", json!({"name": "write", "arguments": {}}));
    let refused = send(&endpoint, modern_builder(&write), write.to_string()).await;
    assert_eq!(refused.status(), StatusCode::FORBIDDEN);
    assert!(
        json(refused).await["error"]["message"]
            .as_str()
            .unwrap()
            .contains("files:write")
    );
    // Scopes are not demanded in one process, as over stdio.
    let call = crate::support::call(&files(), Revision::LATEST, "write", json!({})).await;
    assert_eq!(crate::support::text(&call), "written");
}

#[tokio::test]
async fn opaque_tokens_are_introspected() {
    let issuer = Issuer::new();
    let introspection = Introspection::new(ISSUER, "https://auth.example.com/introspect")
        .basic("files", &Secret::new("hunter2"));
    let resource = ProtectedResource::new(URL)
        .introspection(introspection)
        .http_client(issuer.clone());
    let endpoint = endpoint(&resource);
    for _ in 0..3 {
        assert_eq!(
            whoami(&endpoint, "opaque").await,
            (StatusCode::OK, "ann may mcp".to_owned())
        );
    }
    assert_eq!(issuer.requests.load(Ordering::Relaxed), 1);
    assert_eq!(
        whoami(&endpoint, "revoked").await.0,
        StatusCode::UNAUTHORIZED
    );
}

#[tokio::test]
async fn custom_verifier_decides() {
    let resource = ProtectedResource::new(URL).verify_with([ISSUER], |token: Secret| async move {
        match token.expose() {
            "good" => {
                let mut token = VerifiedToken::new(ISSUER);
                token.subject = Some("bob".to_owned());
                token.scopes = ScopeSet::parse("mcp");
                Ok(token)
            }
            "nobody" => Ok(VerifiedToken::new(ISSUER)),
            "later" => Err(AuthError::unavailable("the database is down")),
            _ => Err(AuthError::invalid_token("the token is unknown")),
        }
    });
    let endpoint = endpoint(&resource);
    assert_eq!(
        whoami(&endpoint, "good").await,
        (StatusCode::OK, "bob may mcp".to_owned())
    );
    // All tokens without a subject and a client would own the same things.
    assert_eq!(
        whoami(&endpoint, "nobody").await.0,
        StatusCode::UNAUTHORIZED
    );
    assert_eq!(whoami(&endpoint, "bad").await.0, StatusCode::UNAUTHORIZED);
    assert_eq!(
        whoami(&endpoint, "later").await.0,
        StatusCode::SERVICE_UNAVAILABLE
    );
    resource.reject_token(&Secret::new("good")).unwrap();
    assert_eq!(whoami(&endpoint, "good").await.0, StatusCode::UNAUTHORIZED);
}

#[tokio::test]
async fn forgotten_token_is_refused_at_once() {
    let issuer = Issuer::new();
    let resource = issuer.resource();
    let endpoint = endpoint(&resource);
    let token = issuer.token("mcp");
    assert_eq!(whoami(&endpoint, &token).await.0, StatusCode::OK);
    resource.reject_token(&Secret::new(token.clone())).unwrap();
    assert_eq!(whoami(&endpoint, &token).await.0, StatusCode::UNAUTHORIZED);
}

#[tokio::test]
async fn key_bound_tokens_need_proof_for_each_request() {
    let issuer = Issuer::new();
    let endpoint = endpoint(&issuer.resource().dpop(ProofVerifier::new()));
    let key = ProofKey::generate().unwrap();
    let mut claims = Issuer::claims("mcp");
    claims["cnf"] = json!({"jkt": key.thumbprint()});
    let token = Secret::new(issuer.sign(&claims));
    let message = modern(1, "tools/list", json!({}));
    let send_with = async |scheme: &str, proof: &str| {
        let request = modern_builder(&message)
            .header("authorization", format!("{scheme} {}", token.expose()))
            .header("dpop", proof);
        send(&endpoint, request, message.to_string()).await.status()
    };
    let proof = || {
        let now = SystemTime::now().into();
        let proof = Proof::new(&Method::POST, URL, now).access_token(&token);
        key.proof(&proof).unwrap()
    };
    let once = proof();
    assert_eq!(send_with("DPoP", &once).await, StatusCode::OK);
    assert_eq!(send_with("DPoP", &once).await, StatusCode::UNAUTHORIZED);
    assert_eq!(
        send_with("Bearer", &proof()).await,
        StatusCode::UNAUTHORIZED
    );
    assert_eq!(send_with("DPoP", &proof()).await, StatusCode::OK);
}

#[tokio::test]
async fn misconfigured_protected_endpoint_refuses_all_requests() {
    let issuer = Issuer::new();
    let wrong = [
        ProtectedResource::new(URL),
        ProtectedResource::new("http://mcp.example.com/mcp").issuer(TrustedIssuer::new(ISSUER)),
        ProtectedResource::new("mcp.example.com").issuer(TrustedIssuer::new(ISSUER)),
        issuer.resource().issuer(TrustedIssuer::new(ISSUER)),
        issuer.resource().scopes("read,\"write\""),
        issuer.resource().scopes_supported("read\nwrite"),
    ];
    for resource in wrong {
        assert!(resource.check().is_err());
        let endpoint = endpoint(&resource);
        assert!(endpoint.serve("127.0.0.1:0").await.is_err());
        let token = issuer.token("mcp");
        assert_eq!(
            whoami(&endpoint, &token).await.0,
            StatusCode::INTERNAL_SERVER_ERROR
        );
    }
    assert!(issuer.resource().check().is_ok());
}

// Attack: leaks of secrets.
#[tokio::test]
async fn tokens_are_hidden_in_debug_and_responses() {
    let issuer = Issuer::new();
    let resource = issuer.resource();
    let token = issuer.token("mcp");
    let shown = format!(
        "{resource:?} {:?} {:?}",
        endpoint(&resource),
        Principal::new("https://a|ann")
    );
    assert!(!shown.contains(&token) && !shown.contains("ann"), "{shown}");
    for mount in mounts!() {
        let endpoint = mount.serve(&endpoint(&resource)).await;
        assert_eq!(whoami(&endpoint, &token).await.0, StatusCode::OK);
        let refused = call(&endpoint, "s3cr3t", "tools/list", json!({})).await;
        let challenge = header(refused.headers(), "www-authenticate").to_owned();
        let body = json(refused).await.to_string();
        assert!(!challenge.contains("s3cr3t") && !body.contains("s3cr3t"));
    }
}
