//! Tests of the introspection of tokens.

use http::Method;
use oxmcp_auth::{Body, Response, Secret, server::Verification};
use serde_json::json;

use crate::support::{
    ISSUER, NOW, RESOURCE, answered, fetch, introspecting, is_valid, ok, overlaid, refusal, status,
    with,
};

#[test]
fn invalid_tokens_do_not_delay_known_ones() {
    let verifier = introspecting();
    let answer = ok(&json!({"active": true, "aud": RESOURCE, "sub": "ann"}));
    let known = Secret::new("known");
    let question = fetch(verifier.verify(&known, NOW));
    verifier.fetched(&question, answer.clone(), NOW);
    let later = NOW.plus(3_600);
    for i in 0..1_000 {
        fetch(verifier.verify(&Secret::new(format!("invented{i}")), later));
    }
    let new = refusal(verifier.verify(&Secret::new("new"), later));
    assert_eq!(new.status(), 503);
    // The issuer is asked about the known token, again after a failure.
    let question = fetch(verifier.verify(&known, later));
    verifier.fetched(&question, status(503), later);
    assert_eq!(refusal(verifier.verify(&known, later)).status(), 503);
    let later = later.plus(1);
    let question = fetch(verifier.verify(&known, later));
    verifier.fetched(&question, answer, later);
    assert!(is_valid(&verifier.verify(&known, later)));
    // A token that its issuer refuses no longer counts as known.
    let later = later.plus(29);
    for i in 0..1_000 {
        let _ = verifier.verify(&Secret::new(format!("more{i}")), later);
    }
    let later = later.plus(1);
    let question = fetch(verifier.verify(&known, later));
    verifier.fetched(&question, ok(&json!({"active": false})), later);
    let _ = verifier.verify(&Secret::new("one more"), later);
    assert_eq!(
        refusal(verifier.verify(&known, later.plus(1))).status(),
        503
    );
}

#[test]
fn introspections_are_shared_and_renewed() {
    let verifier = introspecting();
    let token = Secret::new("opaque+token");
    let first = fetch(verifier.verify(&token, NOW));
    let request = first.request();
    assert_eq!(request.method(), Method::POST);
    assert_eq!(request.uri(), "https://auth.example.com/introspect");
    assert_eq!(
        request.body().as_ref(),
        b"token=opaque%2Btoken&token_type_hint=access_token"
    );
    // "mcp+server:p%3Ass"
    assert_eq!(
        request.headers()["authorization"],
        "Basic bWNwK3NlcnZlcjpwJTNBc3M="
    );
    assert!(!format!("{first:?}").contains("opaque"));
    assert!(!format!("{verifier:?} {:?}", introspecting()).contains("bWNw"));
    assert!(matches!(verifier.verify(&token, NOW), Verification::Wait));
    let answer = json!({"active": true, "aud": RESOURCE, "sub": "ann", "scope": "mcp:read"});
    verifier.fetched(&first, ok(&answer), NOW);
    let Verification::Valid(verified) = verifier.verify(&token, NOW.plus(29)) else {
        panic!("it is active");
    };
    assert_eq!(
        (verified.issuer.as_str(), verified.subject.as_deref()),
        (ISSUER, Some("ann"))
    );
    // Revoked in the meantime: refused within 30 s.
    let second = fetch(verifier.verify(&token, NOW.plus(30)));
    verifier.fetched(&second, ok(&json!({"active": false})), NOW.plus(30));
    let refusal = refusal(verifier.verify(&token, NOW.plus(30)));
    assert_eq!(refusal.code(), Some("invalid_token"));
    // A refusal is cached for a second.
    assert!(matches!(
        verifier.verify(&token, NOW.plus(31)),
        Verification::Fetch(_)
    ));
}

#[test]
fn introspection_responses_are_checked_like_tokens() {
    let active = json!({"active": true, "aud": RESOURCE, "sub": "ann"});
    check([
        (ok(&active), 200),
        (ok(&with(&json!({"active": true}))), 200),
        (ok(&json!({"active": "true", "aud": RESOURCE})), 503),
        (ok(&json!({"aud": RESOURCE})), 503),
        (ok(&json!({"active": true})), 401),
        (
            ok(&with(
                &json!({"active": true, "aud": "https://other.example.com"}),
            )),
            401,
        ),
        (
            ok(&with(
                &json!({"active": true, "iss": "https://other.example.com"}),
            )),
            401,
        ),
        (ok(&with(&json!({"active": true, "exp": 1}))), 401),
        (ok(&json!("yes")), 503),
        (status(401), 503),
        (status(500), 503),
        (Err("refused".to_owned()), 503),
    ]);
}

#[test]
fn odd_introspection_answers_are_tolerated_if_safe() {
    let active = json!({"active": true, "aud": RESOURCE, "sub": "ann"});
    check([
        (
            ok(&with(&json!({"active": true, "token_type": "bearer"}))),
            200,
        ),
        (
            ok(&with(&json!({"active": true, "token_type": "DPOP"}))),
            200,
        ),
        (
            ok(&with(&json!({"active": true, "token_type": "n_a"}))),
            200,
        ),
        (
            ok(&overlaid(&json!({"active": true, "token_type": null}))),
            200,
        ),
        (
            ok(&with(
                &json!({"active": true, "token_type": "refresh_token"}),
            )),
            401,
        ),
        (
            ok(&with(&json!({"active": true, "token_type": "mac"}))),
            401,
        ),
        (ok(&with(&json!({"active": true, "token_type": ""}))), 401),
        (
            ok(&with(&json!({"active": true, "token_type": ["Bearer"]}))),
            401,
        ),
        (
            ok(&with(&json!({"active": true, "token_use": "access_token"}))),
            200,
        ),
        (
            ok(&with(
                &json!({"active": true, "token_use": "refresh_token"}),
            )),
            401,
        ),
        (
            ok(&overlaid(
                &json!({"active": true, "exp": null, "nbf": null, "scope": null, "cnf": null, "iss": null}),
            )),
            200,
        ),
        (
            ok(&with(
                &json!({"active": true, "exp": "1800000300", "iat": "1800000000.5"}),
            )),
            200,
        ),
        (
            ok(&with(
                &json!({"active": true, "exp": "1800000300", "nbf": "1900000000"}),
            )),
            401,
        ),
        (ok(&with(&json!({"active": true, "exp": "1"}))), 401),
        (ok(&with(&json!({"active": true, "exp": "soon"}))), 401),
        (ok(&overlaid(&json!({"active": true, "aud": null}))), 401),
        (ok(&with(&json!({"active": true, "cnf": []}))), 401),
        (
            Ok(Response::new(Body::from(format!("\u{feff}{active}")))),
            200,
        ),
        (answered(201, &active), 503),
        (answered(500, &active), 503),
        (
            ok(&json!({"active": true, "aud": RESOURCE, "pad": "x".repeat(64 << 10)})),
            503,
        ),
    ]);
}

/// Checks the status with which a token is refused after each answer, or 200 if it is accepted.
#[track_caller]
fn check<const N: usize>(table: [(Result<Response, String>, u16); N]) {
    for (answer, expected) in table {
        let shown = format!(
            "{:?}",
            answer
                .as_ref()
                .map(|it| String::from_utf8_lossy(it.body().as_ref()).into_owned())
        );
        let verifier = introspecting();
        let token = Secret::new("opaque");
        let fetch = fetch(verifier.verify(&token, NOW));
        verifier.fetched(&fetch, answer, NOW);
        let status = match verifier.verify(&token, NOW) {
            Verification::Valid(_) => 200,
            Verification::Refused(refusal) => refusal.status().as_u16(),
            other => panic!("{other:?}"),
        };
        assert_eq!(status, expected, "{shown}");
    }
}

#[test]
fn introspected_token_is_rechecked_before_its_expiry() {
    let verifier = introspecting();
    let token = Secret::new("opaque");
    let first = fetch(verifier.verify(&token, NOW));
    verifier.fetched(&first, ok(&with(&json!({"active": true}))), NOW);
    assert!(is_valid(&verifier.verify(&token, NOW.plus(29))));
    // Its expiry is later, but it may have been revoked.
    fetch(verifier.verify(&token, NOW.plus(30)));
}

#[test]
fn only_the_first_response_to_an_introspection_counts() {
    let (active, inactive) = (with(&json!({"active": true})), json!({"active": false}));
    for (first, late, is_accepted) in [(&active, &inactive, true), (&inactive, &active, false)] {
        let verifier = introspecting();
        let token = Secret::new("opaque");
        let fetch = fetch(verifier.verify(&token, NOW));
        verifier.fetched(&fetch, ok(first), NOW);
        verifier.fetched(&fetch, ok(late), NOW);
        assert_eq!(is_valid(&verifier.verify(&token, NOW)), is_accepted);
    }
}
