//! Tests of the authorization request, and of the responses that are accepted.

use super::*;
use crate::{
    client::{Authorization, AuthorizationAttempt, Client},
    error::AuthErrorKind,
    scope::ScopeSet,
};

const REDIRECT: &str = "http://127.0.0.1:4711/callback";

fn attempt(change: impl FnOnce(&mut AuthorizationServerMetadata)) -> AuthorizationAttempt {
    let mut server = server();
    change(&mut server);
    let discovered = discovered(server);
    let client = Client::new("me").unwrap();
    let authorization = Authorization::new(&discovered, &client, REDIRECT);
    authorization
        .scopes(ScopeSet::parse("a b"))
        .begin()
        .unwrap()
}

fn query(attempt: &AuthorizationAttempt) -> Vec<(String, String)> {
    parameters(attempt.url().split_once('?').unwrap().1)
}

#[test]
fn request_has_all_required_parameters() {
    let attempt = attempt(|_| {});
    let query = query(&attempt);
    for (name, expected) in [
        ("response_type", "code"),
        ("client_id", "me"),
        ("redirect_uri", REDIRECT),
        ("code_challenge_method", "S256"),
        ("resource", MCP),
        ("scope", "a b"),
    ] {
        assert_eq!(value(&query, name), Some(expected));
    }
    assert_eq!(value(&query, "state"), Some(attempt.state().expose()));
    let digest = ring::digest::digest(
        &ring::digest::SHA256,
        attempt.verifier().expose().as_bytes(),
    );
    use base64::Engine as _;
    let challenge = base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(digest);
    assert_eq!(value(&query, "code_challenge"), Some(challenge.as_str()));
    assert_eq!(attempt.verifier().expose().len(), 43);
}

#[test]
fn attempts_never_share_state_or_verifier() {
    let (a, b) = (attempt(|_| {}), attempt(|_| {}));
    assert_ne!(a.state(), b.state());
    assert_ne!(a.verifier(), b.verifier());
    assert_ne!(a.state(), a.verifier());
}

#[test]
fn endpoint_query_is_preserved() {
    let attempt = attempt(|it| {
        it.authorization_endpoint = Some("https://as.example/authorize?tenant=1".to_owned());
    });
    assert!(
        attempt
            .url()
            .starts_with("https://as.example/authorize?tenant=1&response_type=code")
    );
}

#[test]
fn extra_parameters_are_added_without_overriding() {
    let discovered = Discovered {
        resource: None,
        ..discovered(server())
    };
    let client = Client::new("me").unwrap();
    let attempt = Authorization::new(&discovered, &client, REDIRECT)
        .parameter("login_hint", "a@b.example")
        .parameter("state", "mine")
        .parameter("resource", "https://other.example")
        .begin()
        .unwrap();
    let query = query(&attempt);
    assert_eq!(value(&query, "login_hint"), Some("a@b.example"));
    assert_eq!(value(&query, "resource"), None);
    assert_eq!(value(&query, "scope"), None);
    assert_ne!(value(&query, "state"), Some("mine"));
}

#[test]
fn offline_access_scope_prompts_for_consent() {
    let discovered = discovered(server());
    let client = Client::new("me").unwrap();
    let scopes = ScopeSet::parse("a offline_access");
    let attempt = Authorization::new(&discovered, &client, REDIRECT)
        .scopes(scopes)
        .begin()
        .unwrap();
    assert_eq!(value(&query(&attempt), "prompt"), Some("consent"));
}

#[test]
fn redirects_anyone_could_intercept_are_refused() {
    let discovered = discovered(server());
    let client = Client::new("me").unwrap();
    for bad in [
        "http://app.example/callback",
        "myapp:/callback",
        "https://app.example/#x",
        "callback",
        "javascript:alert(1)",
    ] {
        assert!(
            Authorization::new(&discovered, &client, bad)
                .begin()
                .is_err(),
            "{bad}"
        );
    }
    for good in [
        "https://app.example/callback",
        "http://localhost/",
        "http://[::1]:1/",
        "com.example.app:/callback",
    ] {
        assert!(
            Authorization::new(&discovered, &client, good)
                .begin()
                .is_ok(),
            "{good}"
        );
    }
}

#[test]
fn client_of_another_server_is_not_sent() {
    let client = Client::new("me")
        .unwrap()
        .issued_by("https://other.example");
    let error = Authorization::new(&discovered(server()), &client, REDIRECT)
        .begin()
        .unwrap_err();
    assert_eq!(error.kind(), AuthErrorKind::Untrusted);
}

// Attack: mix-up of authorization servers.
#[test]
fn response_without_matching_state_is_ignored() {
    let attempt = attempt(|_| {});
    let state = attempt.state().expose();
    let good = format!("{REDIRECT}?code=abc&state={state}");
    assert_eq!(attempt.finish(&good).unwrap().0.expose(), "abc");
    assert!(
        attempt.finish(&format!("code=abc&state={state}")).is_ok(),
        "only a query"
    );
    for bad in [
        format!("{REDIRECT}?code=abc"),
        format!("{REDIRECT}?code=abc&state="),
        format!("{REDIRECT}?code=abc&state={state}x"),
        format!("{REDIRECT}?code=abc&state=x&state={state}"),
        format!("{REDIRECT}?code=abc#state={state}"),
        format!("{REDIRECT}?error=access_denied"),
    ] {
        let error = attempt.finish(&bad).unwrap_err();
        assert_eq!(error.kind(), AuthErrorKind::Untrusted, "{bad}");
    }
    for twice in [
        "code=abc&code=abc",
        "code=abc&iss=https://as.example&iss=https://as.example",
    ] {
        assert!(
            attempt
                .finish(&format!("{REDIRECT}?{twice}&state={state}"))
                .is_err()
        );
    }
    assert!(
        attempt
            .finish(&format!("{REDIRECT}?state={state}"))
            .is_err()
    );
    assert!(
        attempt
            .finish(&format!("{REDIRECT}?code=&state={state}"))
            .is_err()
    );
    assert!(attempt.finish(&"x".repeat(20_000)).is_err());
}

// Attack: mix-up of authorization servers.
#[test]
fn response_issuer_is_compared_exactly() {
    let right = "iss=https%3A%2F%2Fas.example";
    let table = [
        // Advertised, received, and whether it is accepted.
        (true, right, true),
        (true, "", false),
        (true, "iss=", false),
        (true, "iss=https%3A%2F%2Fas.example%2F", false),
        (true, "iss=https%3A%2F%2FAS.example", false),
        (true, "iss=https%3A%2F%2Fas.example%3A443", false),
        (true, "iss=https%3A%2F%2Fevil.example.com", false),
        (false, right, true),
        (false, "", true),
        (false, "iss=https%3A%2F%2Fas.example%2F", false),
        (false, "iss=https%3A%2F%2Fevil.example.com", false),
    ];
    for (is_advertised, iss, is_good) in table {
        let attempt =
            attempt(|it| it.authorization_response_iss_parameter_supported = is_advertised);
        let state = attempt.state().expose();
        let result = attempt.finish(&format!("{REDIRECT}?code=abc&state={state}&{iss}"));
        assert_eq!(result.is_ok(), is_good, "{is_advertised} {iss}");
        // The same for errors, whose content is not shown if they come from another issuer.
        let denied = "error=access_denied&error_description=call+0900+now";
        let error = attempt
            .finish(&format!("{REDIRECT}?{denied}&state={state}&{iss}"))
            .unwrap_err();
        assert_eq!(error.message().contains("0900"), is_good, "{error}");
        assert_eq!(error.oauth_error() == Some("access_denied"), is_good);
    }
}

#[test]
fn attempt_can_be_finished_in_another_process() {
    let attempt = attempt(|_| {});
    let json = attempt.to_json();
    let other = AuthorizationAttempt::from_json(&json).unwrap();
    assert!(
        other
            .finish(&format!("code=abc&state={}", attempt.state().expose()))
            .is_ok()
    );
    assert_eq!(other.scopes(), ScopeSet::parse("a b"));
    assert!(AuthorizationAttempt::from_json(&"{}".into()).is_err());
    for text in [format!("{attempt:?}"), format!("{other:?}")] {
        assert!(!text.contains(attempt.verifier().expose()));
    }
}
