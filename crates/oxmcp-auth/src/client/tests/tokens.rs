//! Tests of token requests, and of the responses to them.

use std::sync::Arc;

use super::*;
use crate::{
    client::{
        Authorization, Client, Refusal, Revocation, SubjectToken, TokenExchange, TokenRequest,
        TokenType, Tokens,
    },
    dpop::ProofKey,
    error::AuthErrorKind,
    jose::{Algorithm, SigningKey},
    scope::ScopeSet,
    secret::Secret,
};

const BEARER: &str = r#"{"access_token": "at", "token_type": "bearer", "expires_in": 60, "refresh_token": "rt", "scope": "a"}"#;

fn scopes() -> ScopeSet {
    ScopeSet::parse("a b")
}

fn client() -> Client {
    Client::new("me").unwrap()
}

fn offering(methods: &[&str]) -> AuthorizationServerMetadata {
    let mut server = server();
    let methods = methods.iter().map(|it| (*it).to_owned());
    server.token_endpoint_auth_methods_supported = Some(methods.collect());
    server
}

fn refresh(server: &AuthorizationServerMetadata, client: &Client) -> TokenRequest {
    TokenRequest::refresh(server, client, &"old".into(), Some(MCP), scopes()).unwrap()
}

#[test]
fn code_exchange_sends_verifier_redirect_and_resource() {
    let discovered = discovered(server());
    let client = client();
    let attempt = Authorization::new(&discovered, &client, "http://127.0.0.1:1/cb")
        .scopes(scopes())
        .begin()
        .unwrap();
    let code = attempt
        .finish(&format!("code=abc&state={}", attempt.state().expose()))
        .unwrap();
    let mut request =
        TokenRequest::authorization_code(&discovered.server, &client, &attempt, code.clone())
            .unwrap();
    let (asked, tokens) = run(&mut request, |_| {
        response(200, r#"{"access_token": "at", "token_type": "Bearer"}"#)
    });
    assert_eq!(asked[0].uri(), "https://as.example/token");
    assert_eq!(asked[0].method(), "POST");
    let sent = form(&asked[0]);
    let expected = [
        ("grant_type", "authorization_code"),
        ("code", "abc"),
        ("redirect_uri", "http://127.0.0.1:1/cb"),
        ("code_verifier", attempt.verifier().expose()),
        ("resource", MCP),
        ("client_id", "me"),
    ];
    assert_eq!(sent, expected.map(|(a, b)| (a.to_owned(), b.to_owned())));
    let tokens = tokens.unwrap();
    assert_eq!(
        tokens.scopes,
        scopes(),
        "what was asked for, where nothing is said"
    );
    assert_eq!(tokens.expires_at, None);

    let mut other = server();
    other.issuer = "https://other.example".to_owned();
    let refused = |server: &_, client: &_, code| {
        let request = TokenRequest::authorization_code(server, client, &attempt, code);
        request.unwrap_err().to_string()
    };
    let error = refused(&other, &client, code.clone());
    assert!(error.contains("it was issued by \"https://"), "{error}");
    let another = Client::new("you").unwrap();
    let error = refused(&discovered.server, &another, code);
    assert!(
        error.contains("as the client \"you\": it was issued to \"me\""),
        "{error}"
    );
}

#[test]
fn refresh_names_the_resource_and_no_scope() {
    let (asked, tokens) = run(&mut refresh(&server(), &client()), |_| {
        response(200, BEARER)
    });
    let sent = form(&asked[0]);
    assert_eq!(value(&sent, "resource"), Some(MCP));
    assert_eq!(value(&sent, "scope"), None);
    assert_eq!(value(&sent, "refresh_token"), Some("old"));
    let tokens = tokens.unwrap();
    assert_eq!(tokens.scopes, ScopeSet::parse("a"));
    assert_eq!(tokens.expires_at, Some(NOW.plus(60)));
    assert!(tokens.expires_within(60, NOW) && !tokens.expires_within(59, NOW));
    let newer = Tokens {
        refresh_token: None,
        ..tokens.clone()
    };
    assert_eq!(tokens.refreshed(newer).refresh_token, Some("rt".into()));
}

#[test]
fn time_is_counted_from_the_question() {
    let mut request = refresh(&server(), &client());
    request.request(NOW).unwrap();
    let tokens = request
        .receive(&response(200, BEARER), NOW.plus(50))
        .unwrap()
        .unwrap();
    assert_eq!(tokens.expires_at, Some(NOW.plus(60)));
}

#[test]
fn client_secret_is_sent_by_the_servers_method() {
    let secret = client().with_secret("h:u&n ü");
    let sent = |methods: &[&str]| refresh(&offering(methods), &secret).request(NOW).unwrap();
    let basic = sent(&["client_secret_post", "client_secret_basic"]);
    use base64::Engine as _;
    let expected = base64::engine::general_purpose::STANDARD.encode("me:h%3Au%26n+%C3%BC");
    assert_eq!(
        basic.headers()["authorization"],
        format!("Basic {expected}")
    );
    assert!(basic.headers()["authorization"].is_sensitive());
    assert_eq!(value(&form(&basic), "client_id"), None);
    let post = sent(&["client_secret_post"]);
    assert_eq!(value(&form(&post), "client_secret"), Some("h:u&n ü"));
    assert!(!post.headers().contains_key("authorization"));
    let none = sent(&["none"]);
    assert_eq!(value(&form(&none), "client_secret"), None);
    assert_eq!(value(&form(&none), "client_id"), Some("me"));
    for request in [basic, post] {
        assert!(!format!("{request:?}").contains("h:u"), "{request:?}");
    }
}

#[test]
fn assertion_is_issuer_bound_and_fresh_each_time() {
    let key = Arc::new(SigningKey::generate(Algorithm::Es256).unwrap());
    let client = client().with_key(Arc::clone(&key));
    let server = offering(&["private_key_jwt"]);
    let mut request =
        TokenRequest::client_credentials(&server, &client, Some(MCP), scopes()).unwrap();
    let mut seen = Vec::new();
    for _ in 0..2 {
        let sent = form(&request.request(NOW).unwrap());
        assert_eq!(value(&sent, "grant_type"), Some("client_credentials"));
        assert_eq!(
            value(&sent, "client_assertion_type"),
            Some("urn:ietf:params:oauth:client-assertion-type:jwt-bearer")
        );
        assert_eq!(value(&sent, "scope"), Some("a b"));
        assert_eq!(value(&sent, "client_id"), None);
        let claims = claims(value(&sent, "client_assertion").unwrap());
        assert_eq!(
            (&claims["iss"], &claims["sub"], &claims["aud"]),
            (&"me".into(), &"me".into(), &AS.into())
        );
        assert_eq!(
            claims["exp"].as_u64().unwrap() - claims["iat"].as_u64().unwrap(),
            120
        );
        seen.push(claims["jti"].to_string());
    }
    assert_ne!(seen[0], seen[1]);
    let mut server = server;
    server.token_endpoint_auth_signing_alg_values_supported = Some(vec!["RS256".to_owned()]);
    let error = refresh(&server, &client).request(NOW).unwrap_err();
    assert!(error.message().contains("RS256") && error.message().contains("ES256"));
}

fn claims(token: &str) -> serde_json::Value {
    use base64::Engine as _;
    let payload = token.split('.').nth(1).unwrap();
    let payload = base64::engine::general_purpose::URL_SAFE_NO_PAD
        .decode(payload)
        .unwrap();
    serde_json::from_slice(&payload).unwrap()
}

#[test]
fn client_of_another_server_sends_nothing() {
    let client = client().with_secret("x").issued_by("https://other.example");
    let error = TokenRequest::client_credentials(&server(), &client, None, scopes()).unwrap_err();
    assert_eq!(error.kind(), AuthErrorKind::Untrusted);
}

#[test]
fn workload_sends_its_assertion_and_no_client() {
    let mut request =
        TokenRequest::jwt_bearer(&server(), None, &"a.b.c".into(), Some(MCP), ScopeSet::new())
            .unwrap();
    let sent = form(&request.request(NOW).unwrap());
    let expected = [
        ("grant_type", "urn:ietf:params:oauth:grant-type:jwt-bearer"),
        ("assertion", "a.b.c"),
        ("resource", MCP),
    ];
    assert_eq!(sent, expected.map(|(a, b)| (a.to_owned(), b.to_owned())));
}

#[test]
fn identity_is_exchanged_for_a_grant() {
    let subject = SubjectToken::id_token("id");
    let exchange = || {
        let exchange =
            TokenExchange::id_jag(&server(), &client(), &subject, "https://mas.example/");
        exchange.unwrap().resource(MCP).scopes(&scopes())
    };
    let good = r#"{"issued_token_type": "urn:ietf:params:oauth:token-type:id-jag", "access_token": "jag", "token_type": "N_A"}"#;
    let (asked, grant) = run(&mut exchange(), |_| response(200, good));
    let sent = form(&asked[0]);
    for (name, expected) in [
        (
            "grant_type",
            "urn:ietf:params:oauth:grant-type:token-exchange",
        ),
        (
            "requested_token_type",
            "urn:ietf:params:oauth:token-type:id-jag",
        ),
        ("audience", "https://mas.example/"),
        ("resource", MCP),
        ("subject_token", "id"),
        (
            "subject_token_type",
            "urn:ietf:params:oauth:token-type:id_token",
        ),
        ("scope", "a b"),
    ] {
        assert_eq!(value(&sent, name), Some(expected));
    }
    assert_eq!(grant.unwrap(), Secret::new("jag"));
    let (_, other) = run(&mut exchange(), |_| response(200, BEARER));
    assert!(other.is_err(), "an access token is not a grant");
}

#[test]
fn unusable_response_error_hides_its_tokens() {
    let long = format!(
        r#"{{"access_token": "hunter2{}", "token_type": "Bearer"}}"#,
        "x".repeat(70_000)
    );
    for bad in [
        "",
        "hunter2",
        "{}",
        r#"{"access_token": "hunter2"}"#,
        r#"{"access_token": "", "token_type": "Bearer"}"#,
        r#"{"access_token": "hunter2\r\nX: y", "token_type": "Bearer"}"#,
        r#"{"access_token": "hunter2", "token_type": "mac"}"#,
        r#"{"access_token": "hunter2", "token_type": "DPoP"}"#,
        r#"{"access_token": ["hunter2"], "token_type": "Bearer"}"#,
        long.as_str(),
    ] {
        let (_, result) = run(&mut refresh(&server(), &client()), |_| response(200, bad));
        let error = result.unwrap_err();
        assert!(!error.message().contains("hunter2"), "{error}");
    }
}

#[test]
fn lifetimes_are_read_as_servers_write_them() {
    for (written, expected) in [
        ("3600", Some(3600)),
        ("3600.9", Some(3600)),
        ("\"3600\"", Some(3600)),
        ("-5", Some(0)),
        ("1e300", Some(u64::MAX)),
        ("\" 3600.5 \"", Some(3600)),
        ("\"-1\"", Some(0)),
        ("\"nan\"", None),
        ("\"\"", None),
        ("null", None),
        ("\"soon\"", None),
        ("[]", None),
    ] {
        let body =
            format!(r#"{{"access_token": "at", "token_type": "Bearer", "expires_in": {written}}}"#);
        let (_, tokens) = run(&mut refresh(&server(), &client()), |_| response(200, &body));
        let expires_at = tokens.unwrap().expires_at;
        assert_eq!(expires_at, expected.map(|it| NOW.plus(it)), "{written}");
    }
}

#[test]
fn odd_token_answers_are_read() {
    for (rest, expected) in [
        (r#""refresh_token": """#, (None, "a")),
        (
            r#""refresh_token": null, "scope": null, "expires_in": null"#,
            (None, "a"),
        ),
        (
            r#""refresh_token": "rt", "scope": ["b", "c"]"#,
            (Some("rt"), "b c"),
        ),
        (r#""refresh_token": {}, "scope": []"#, (None, "")),
        (
            r#""refresh_token": "rt", "scope": {"a": 1}, "error": null"#,
            (Some("rt"), "a"),
        ),
        (r#""issued_token_type": 5, "id_token": null"#, (None, "a")),
    ] {
        let body =
            format!("\u{feff}{{\"access_token\": \"at\", \"token_type\": \"bearer\", {rest}}}");
        let mut request = TokenRequest::refresh(
            &server(),
            &client(),
            &"rt".into(),
            None,
            ScopeSet::parse("a"),
        );
        let (_, tokens) = run(request.as_mut().unwrap(), |_| response(200, &body));
        let tokens = tokens.unwrap();
        let refresh_token = tokens.refresh_token.as_ref().map(Secret::expose);
        assert_eq!(
            (refresh_token, tokens.scopes),
            (expected.0, ScopeSet::parse(expected.1)),
            "{rest}"
        );
    }
}

#[test]
fn refusals_are_read_as_servers_write_them() {
    let table: &[(u16, &str, Option<&str>, &str)] = &[
        (
            200,
            r#"{"error": "bad_refresh_token", "error_description": "it is late"}"#,
            Some("bad_refresh_token"),
            "it is late",
        ),
        (
            200,
            r#"{"error": "invalid_grant", "access_token": null}"#,
            Some("invalid_grant"),
            "200",
        ),
        (
            400,
            r#"{"error": "invalid_request", "error_description": ["x"]}"#,
            Some("invalid_request"),
            "400",
        ),
        (
            400,
            r#"{"error": {"code": "invalid_grant", "message": "it is late"}}"#,
            Some("invalid_grant"),
            "it is late",
        ),
        (
            400,
            r#"{"error": {"code": 400, "status": "INVALID_ARGUMENT", "message": "it is late"}}"#,
            Some("INVALID_ARGUMENT"),
            "it is late",
        ),
        (
            400,
            r#"{"error": null, "message": "it is late"}"#,
            None,
            "it is late",
        ),
        (401, r#"{"detail": "it is late"}"#, None, "it is late"),
        (401, "<html><body>Sign in</body></html>", None, "401"),
        (
            403,
            "token is old, it is not\n",
            None,
            "token is …, it is not",
        ),
        (
            400,
            "\u{feff}{\"error\": \"invalid_grant\"}",
            Some("invalid_grant"),
            "400",
        ),
        (400, "[]", None, "400"),
        (400, "", None, "400"),
    ];
    for (status, body, code, part) in table {
        let (_, result) = run(&mut refresh(&server(), &client()), |_| {
            response(*status, body)
        });
        let error = result.unwrap_err();
        assert_eq!(error.kind(), AuthErrorKind::Refused, "{body}");
        assert_eq!(error.oauth_error(), *code, "{body}");
        assert!(error.message().contains(part), "{error}");
        assert!(!error.message().contains('<'), "{error}");
    }
    for (status, body) in [
        (500, r#"{"error": "invalid_grant"}"#),
        (503, ""),
        (429, ""),
        (200, r#"{"error": "temporarily_unavailable"}"#),
        (400, r#"{"error": {"code": "server_error"}}"#),
    ] {
        let (_, result) = run(&mut refresh(&server(), &client()), |_| {
            response(status, body)
        });
        assert_eq!(
            result.unwrap_err().kind(),
            AuthErrorKind::Unavailable,
            "{status} {body}"
        );
    }
}

#[test]
fn error_quoting_the_request_hides_client_secrets() {
    let client = client().with_secret("hunter2");
    for methods in ["client_secret_post", "client_secret_basic"] {
        let mut request = refresh(&offering(&[methods]), &client);
        request.request(NOW).unwrap();
        let echo = r#"{"error": "invalid_client", "error_description": "hunter2 is wrong"}"#;
        let mut response = Response::new(echo.into());
        *response.status_mut() = StatusCode::UNAUTHORIZED;
        let error = request.receive(&response, NOW).unwrap_err();
        let said = error.to_string();
        assert!(said.contains("… is wrong"), "{said}");
    }
}

// Attack: leaks of secrets.
#[test]
fn error_quoting_the_request_hides_all_secrets() {
    let client = client().with_secret("hunter/2");
    let key = Arc::new(ProofKey::generate().unwrap());
    for methods in ["client_secret_post", "client_secret_basic"] {
        let mut request = refresh(&offering(&[methods]), &client).proof_key(Arc::clone(&key));
        let sent = request.request(NOW).unwrap();
        // Everything that the server received.
        let quoted = format!("{:?}", String::from_utf8_lossy(sent.body().as_ref()));
        let headers = ["authorization", "dpop"].map(|name| sent.headers().get(name));
        let headers: Vec<_> = headers.into_iter().flatten().collect();
        let headers: Vec<_> = headers.iter().map(|it| it.to_str().unwrap()).collect();
        let quoted = format!(
            "{} {} hunter/2",
            headers.join(" "),
            quoted.trim_matches('"')
        );
        let mut response = Response::new(
            serde_json::json!({"error": "old", "error_description": quoted})
                .to_string()
                .into(),
        );
        *response.status_mut() = StatusCode::BAD_REQUEST;
        let error = request.receive(&response, NOW).unwrap_err();
        let said = error.to_string();
        for secret in headers.iter().flat_map(|it| it.rsplit(' ').next()) {
            assert!(!said.contains(secret), "{said}");
        }
        assert!(!said.contains("hunter") && !said.contains("=old"), "{said}");
        assert!(said.contains("grant_type=refresh_token"), "{said}");
        assert_eq!(error.oauth_error(), Some("…"));
    }
}

#[test]
fn errors_name_endpoint_and_code_without_secrets() {
    let (_, result) = run(&mut refresh(&server(), &client()), |_| {
        response(
            400,
            r#"{"error": "invalid_grant", "error_description": "no grant for old\u0007!"}"#,
        )
    });
    let error = result.unwrap_err();
    assert_eq!(error.oauth_error(), Some("invalid_grant"));
    assert_eq!(
        error.message(),
        "token request to \"https://as.example/token\" failed with 400, invalid_grant: no grant for … !"
    );
    for status in [429, 500, 503] {
        let (_, result) = run(&mut refresh(&server(), &client()), |_| {
            response(status, "<html>")
        });
        assert_eq!(result.unwrap_err().kind(), AuthErrorKind::Unavailable);
    }
    let (_, result) = run(&mut refresh(&server(), &client()), |_| response(302, ""));
    assert_eq!(result.unwrap_err().kind(), AuthErrorKind::Refused);
}

fn challenge_nonce() -> Response {
    let mut response = response(400, r#"{"error": "use_dpop_nonce"}"#);
    response
        .headers_mut()
        .insert("dpop-nonce", "n1".parse().unwrap());
    response
}

#[test]
fn nonce_is_retried_once_with_a_new_proof() {
    let key = Arc::new(ProofKey::generate().unwrap());
    let mut request = refresh(&server(), &client()).proof_key(Arc::clone(&key));
    let bound = r#"{"access_token": "at", "token_type": "DPoP"}"#;
    let (asked, tokens) = run(&mut request, |request| {
        let proof = claims(request.headers()["dpop"].to_str().unwrap());
        assert_eq!(
            (&proof["htm"], &proof["htu"]),
            (&"POST".into(), &"https://as.example/token".into())
        );
        if proof["nonce"].is_null() {
            challenge_nonce()
        } else {
            response(200, bound)
        }
    });
    assert_eq!(asked.len(), 2);
    let id = |i: usize| claims(asked[i].headers()["dpop"].to_str().unwrap())["jti"].to_string();
    assert_ne!(id(0), id(1));
    assert_eq!(form(&asked[0]), form(&asked[1]));
    let tokens = tokens.unwrap();
    assert_eq!(tokens.token_type, TokenType::DPoP);

    let url = "https://mcp.example/mcp?x=1";
    let headers = tokens
        .headers(&http::Method::GET, url, Some((&key, Some("n2"))), NOW)
        .unwrap();
    assert_eq!(headers["authorization"], "DPoP at");
    assert!(headers["authorization"].is_sensitive());
    let proof = claims(headers["dpop"].to_str().unwrap());
    assert_eq!(
        (&proof["htu"], &proof["nonce"]),
        (&MCP.into(), &"n2".into())
    );
    assert!(proof["ath"].is_string());
    assert!(tokens.headers(&http::Method::GET, url, None, NOW).is_err());

    // A server that always demands a nonce gets two requests.
    let mut request = refresh(&server(), &client()).proof_key(Arc::clone(&key));
    let (asked, result) = run(&mut request, |_| challenge_nonce());
    assert_eq!(asked.len(), 2);
    assert_eq!(result.unwrap_err().oauth_error(), Some("use_dpop_nonce"));
    // A bearer token was not requested.
    let mut request = refresh(&server(), &client()).proof_key(key);
    let (_, result) = run(&mut request, |_| response(200, BEARER));
    assert_eq!(result.unwrap_err().kind(), AuthErrorKind::Unsupported);
}

#[test]
fn bearer_token_is_sent_in_one_header() {
    let (_, tokens) = run(&mut refresh(&server(), &client()), |_| {
        response(200, BEARER)
    });
    let tokens = tokens.unwrap();
    let headers = tokens.headers(&http::Method::POST, MCP, None, NOW).unwrap();
    assert_eq!(headers.len(), 1);
    assert_eq!(headers["authorization"], "Bearer at");
    assert!(
        !format!("{headers:?} {tokens:?}").contains("at\""),
        "{headers:?} {tokens:?}"
    );
}

#[test]
fn logout_revokes_the_refresh_token() {
    let (_, tokens) = run(&mut refresh(&server(), &client()), |_| {
        response(200, BEARER)
    });
    let tokens = tokens.unwrap();
    let mut revocation = Revocation::new(&server(), &client(), &tokens).unwrap();
    let (asked, result) = run(&mut revocation, |_| response(200, ""));
    result.unwrap();
    assert_eq!(asked[0].uri(), "https://as.example/revoke");
    let sent = form(&asked[0]);
    assert_eq!(value(&sent, "token"), Some("rt"));
    assert_eq!(value(&sent, "token_type_hint"), Some("refresh_token"));
    let (_, result) = run(&mut revocation, |_| response(503, ""));
    assert!(result.is_err());
    let without = AuthorizationServerMetadata {
        revocation_endpoint: None,
        ..server()
    };
    assert!(Revocation::new(&without, &client(), &tokens).is_none());
}

#[test]
fn mcp_server_refusals_are_distinguished() {
    let read = |status: u16, challenge: &str, nonce: &str| {
        let mut headers = http::HeaderMap::new();
        headers.insert("www-authenticate", challenge.parse().unwrap());
        headers.insert("dpop-nonce", nonce.parse().unwrap());
        Refusal::read(StatusCode::from_u16(status).unwrap(), &headers)
    };
    assert!(matches!(
        read(401, "", "x"),
        Some(Refusal::Unauthorized { challenge: None })
    ));
    assert!(matches!(
        read(401, "Bearer", "x"),
        Some(Refusal::Unauthorized { challenge: Some(_) })
    ));
    assert!(matches!(
        read(401, "DPoP resource_metadata=\"x\"", "x"),
        Some(Refusal::Unauthorized { challenge: Some(_) })
    ));
    let wants = "Bearer, DPoP error=\"use_dpop_nonce\"";
    assert!(
        matches!(read(401, wants, "n"), Some(Refusal::NonceRequired { nonce, .. }) if nonce == "n")
    );
    assert!(matches!(
        read(401, wants, "a b"),
        Some(Refusal::Unauthorized { .. })
    ));
    let lacks = "Bearer error=\"insufficient_scope\", scope=\"a\"";
    assert!(matches!(
        read(403, lacks, "x"),
        Some(Refusal::InsufficientScope { .. })
    ));
    assert_eq!(read(403, "Bearer", "x"), None);
    assert_eq!(read(403, "", "x"), None);
    assert_eq!(read(200, lacks, "x"), None);
    assert_eq!(read(500, lacks, "x"), None);
}
