//! Tests of requests that are let in or refused, and of the answers to them.

use http::Method;
use oxmcp_auth::{
    Challenge, ScopeSet, Secret,
    dpop::{NonceKeys, Proof, ProofKey, ProofVerifier, ReplayCache},
    server::{
        Credentials, Presented, Refusal, ResourceServer, ScopeHierarchy, TokenVerifier,
        TrustedIssuer, VerifiedToken,
    },
};
use serde_json::{Value, json};

use crate::support::{ISSUER, NOW, RESOURCE, headers, refusal_of_a_verifier_that_is_down, server};

#[test]
fn request_token_is_read_from_one_place() {
    let of = |values: &[&str]| Credentials::from_headers(&headers("authorization", values));
    for value in [
        "Bearer abc",
        "bearer abc",
        "BEARER  abc ",
        "Bearer a-._~+/b==",
        "DPoP abc",
    ] {
        assert!(of(&[value]).is_ok(), "{value}");
    }
    assert_eq!(of(&["Bearer abc"]).unwrap().token().expose(), "abc");
    for values in [&[][..], &["Basic YTpi"], &["abc"], &[""]] {
        let refusal = of(values).unwrap_err();
        assert_eq!(
            (refusal.status().as_u16(), refusal.code()),
            (401, None),
            "{values:?}"
        );
    }
    let malformed = [
        &["Bearer"][..],
        &["Bearer "],
        &["Bearer ="],
        &["Bearer a b"],
        &["Bearer a,b"],
        &["Bearer \"a\""],
        &["Bearer a", "Bearer b"],
    ];
    for values in malformed {
        let refusal = of(values).unwrap_err();
        let expected = (400, Some("invalid_request"));
        assert_eq!(
            (refusal.status().as_u16(), refusal.code()),
            expected,
            "{values:?}"
        );
    }
}

#[test]
fn server_without_audience_or_issuer_does_not_start() {
    assert!(TokenVerifier::new([""; 0]).is_err());
    assert!(TokenVerifier::new([""]).is_err());
    let verifier = || TokenVerifier::new([RESOURCE]).unwrap();
    assert!(
        verifier()
            .issuer(TrustedIssuer::new("http://auth.example.com"))
            .is_err()
    );
    assert!(
        verifier()
            .issuer(TrustedIssuer::new("http://127.0.0.1:9"))
            .is_ok()
    );
    let twice = verifier().issuer(TrustedIssuer::new(ISSUER)).unwrap();
    assert!(twice.issuer(TrustedIssuer::new(ISSUER)).is_err());
    assert!(ResourceServer::new(RESOURCE, [""; 0]).is_err());
    for resource in [
        "mcp.example.com",
        "http://mcp.example.com",
        "https://mcp.example.com/#a",
        "",
    ] {
        assert!(
            ResourceServer::new(resource, [ISSUER]).is_err(),
            "{resource}"
        );
    }
}

#[test]
fn distinct_owners_have_distinct_keys() {
    let of = |issuer: &str, subject: Option<&str>, client: Option<&str>| {
        let mut token = VerifiedToken::new(issuer);
        token.subject = subject.map(str::to_owned);
        token.client_id = client.map(str::to_owned);
        token
    };
    let tokens = [
        of("a", Some("b"), Some("c")),
        of("a", Some("b"), None),
        of("a", None, Some("b")),
        of("a", Some("b|1:c"), None),
        of("a", Some("-"), Some("c")),
        of("a", None, Some("c")),
        of("a|1:b", None, Some("c")),
        of("x", Some("b"), Some("c")),
    ];
    let mut keys: Vec<_> = tokens
        .iter()
        .map(|token| token.owner_key().unwrap())
        .collect();
    keys.sort();
    keys.dedup();
    assert_eq!(keys.len(), tokens.len());
    assert!(of("a", None, None).owner_key().is_err());
    let own = |client| {
        of("a", Some("b"), Some(client))
            .owned_without_client()
            .owner_key()
            .unwrap()
    };
    assert_eq!(own("c"), own("d"));
    assert!(
        of("a", None, Some("c"))
            .owned_without_client()
            .owner_key()
            .is_ok()
    );
}

#[test]
fn metadata_contains_everything_a_client_needs() {
    let metadata: Value = serde_json::from_str(&server().metadata().to_json()).unwrap();
    assert_eq!(
        metadata,
        json!({
            "resource": RESOURCE, "authorization_servers": [ISSUER], "scopes_supported": ["mcp:read"],
            "bearer_methods_supported": ["header"],
        })
    );
    let all = ScopeSet::parse("mcp:read mcp:write");
    let server = server()
        .scopes_supported(&all)
        .require_dpop(ProofVerifier::new())
        .name("Files");
    let metadata: Value = serde_json::from_str(&server.metadata().to_json()).unwrap();
    assert_eq!(
        metadata["scopes_supported"],
        json!(["mcp:read", "mcp:write"])
    );
    assert_eq!(metadata["dpop_bound_access_tokens_required"], true);
    assert_eq!(
        metadata["dpop_signing_alg_values_supported"],
        json!(["ES256", "EdDSA", "ES384"])
    );
    assert_eq!(metadata["resource_name"], "Files");
}

#[test]
fn challenges_tell_the_client_how_to_proceed() {
    let prm =
        "resource_metadata=\"https://mcp.example.com/.well-known/oauth-protected-resource/mcp\"";
    let answer = |server: &ResourceServer, refusal: &Refusal| {
        let answer = server.answer(refusal);
        let challenges = answer.headers().get_all("www-authenticate").iter();
        let challenges: Vec<_> = challenges
            .map(|it| it.to_str().unwrap().to_owned())
            .collect();
        assert_eq!(answer.headers()["content-type"], "application/json");
        assert!(serde_json::from_slice::<Value>(answer.body().as_ref()).is_ok());
        (answer.status().as_u16(), challenges)
    };
    let missing = format!("Bearer {prm}, scope=\"mcp:read\"");
    assert_eq!(answer(&server(), &Refusal::missing()), (401, vec![missing]));
    let needed = Refusal::insufficient_scope(ScopeSet::parse("mcp:read files:write"));
    let sentence =
        "insufficient scope: this needs mcp:read files:write; use an access token that grants it";
    let forbidden = format!(
        "Bearer error=\"insufficient_scope\", error_description=\"{sentence}\", {prm}, scope=\"mcp:read files:write\""
    );
    assert_eq!(answer(&server(), &needed), (403, vec![forbidden]));
    // The challenges offer the accepted schemes.
    let both = server().dpop(ProofVerifier::new());
    let (_, challenges) = answer(&both, &Refusal::missing());
    assert!(challenges[0].starts_with("Bearer ") && challenges[1].starts_with("DPoP "));
    assert!(
        challenges[1].ends_with("algs=\"ES256 EdDSA ES384\""),
        "{challenges:?}"
    );
    let only = server().require_dpop(ProofVerifier::new());
    let (_, challenges) = answer(&only, &Refusal::missing());
    assert!(challenges.len() == 1 && challenges[0].starts_with("DPoP "));
    // Internal errors are not disclosed.
    let down = refusal_of_a_verifier_that_is_down();
    assert_eq!(answer(&server(), &down), (503, vec![]));
    assert_eq!(server().answer(&down).headers()["retry-after"], "5");
    let body = server().answer(&down).into_body();
    assert!(!String::from_utf8_lossy(body.as_ref()).contains("secret reason"));
}

#[test]
fn challenges_round_trip() {
    let answer = server().answer(&Refusal::insufficient_scope(ScopeSet::parse("a b")));
    let challenges = Challenge::from_headers(answer.headers());
    assert_eq!(challenges[0].error(), Some("insufficient_scope"));
    assert_eq!(challenges[0].scope(), Some(ScopeSet::parse("a b")));
    assert_eq!(
        challenges[0].resource_metadata(),
        Some(server().metadata_url())
    );
}

#[test]
fn scopes_form_hierarchy_and_are_requested_together() {
    let server = server().hierarchy(
        ScopeHierarchy::new()
            .implies("admin", ["files:write", "mcp:read"])
            .implies("files:write", ["files:read"])
            .implies("files:read", ["admin"]),
    );
    let token = |scopes: &str| {
        let mut token = VerifiedToken::new(ISSUER);
        token.scopes = ScopeSet::parse(scopes);
        token
    };
    let write = ScopeSet::parse("files:write");
    assert!(server.check_scopes(&token("mcp:read")).is_ok());
    assert!(server.check_scopes(&token("admin")).is_ok());
    assert!(
        server
            .check_operation(&token("mcp:read files:write"), &write)
            .is_ok()
    );
    assert!(server.check_operation(&token("admin"), &write).is_ok());
    let refusal = server
        .check_operation(&token("mcp:write"), &write)
        .unwrap_err();
    assert_eq!(refusal.status(), 403);
    assert_eq!(
        refusal.needed_scopes(),
        Some(&ScopeSet::parse("mcp:read files:write"))
    );
    assert!(server.check_scopes(&token("")).is_err());
}

#[test]
fn key_bound_tokens_need_a_fresh_proof() {
    let proof_key = ProofKey::generate().unwrap();
    let secret = Secret::new("token");
    let mut bound = VerifiedToken::new(ISSUER);
    bound.thumbprint = Some(proof_key.thumbprint());
    let free = VerifiedToken::new(ISSUER);
    let proof = |key: &ProofKey, nonce: &str| {
        let proof = Proof::new(&Method::POST, RESOURCE, NOW).access_token(&secret);
        key.proof(&if nonce.is_empty() {
            proof
        } else {
            proof.nonce(nonce)
        })
        .unwrap()
    };
    let nonces = NonceKeys::new(&[1; 32]);
    let seen = ReplayCache::default();
    let check = |server: &ResourceServer, token: &VerifiedToken, scheme: &str, proof: &str| {
        let authorization = headers("authorization", &[&format!("{scheme} token")]);
        let credentials = Credentials::from_headers(&authorization).unwrap();
        let request = headers("dpop", &[proof]);
        let outcome = server.check_possession(
            &Presented::new(&credentials, token, &Method::POST, &request),
            &seen,
            NOW,
        );
        outcome.map_err(|refusal| refusal.code().unwrap().to_owned())
    };
    let invalid = |code: &str| Err(code.to_owned());
    let (off, on) = (server(), server().dpop(ProofVerifier::new()));
    let only = server().require_dpop(ProofVerifier::new());
    let own = || proof(&proof_key, "");
    assert_eq!(check(&off, &free, "Bearer", ""), Ok(()));
    assert_eq!(check(&on, &free, "Bearer", ""), Ok(()));
    assert_eq!(check(&only, &free, "Bearer", ""), invalid("invalid_token"));
    assert_eq!(check(&on, &free, "DPoP", &own()), invalid("invalid_token"));
    assert_eq!(
        check(&off, &bound, "DPoP", &own()),
        invalid("invalid_token")
    );
    assert_eq!(
        check(&off, &bound, "Bearer", &own()),
        invalid("invalid_token")
    );
    assert_eq!(
        check(&on, &bound, "Bearer", &own()),
        invalid("invalid_token")
    );
    assert_eq!(
        check(&on, &bound, "DPoP", "garbage"),
        invalid("invalid_dpop_proof")
    );
    let stranger = ProofKey::generate().unwrap();
    assert_eq!(
        check(&on, &bound, "DPoP", &proof(&stranger, "")),
        invalid("invalid_dpop_proof")
    );
    let once = own();
    assert_eq!(check(&on, &bound, "DPoP", &once), Ok(()));
    assert_eq!(
        check(&on, &bound, "DPoP", &once),
        invalid("invalid_dpop_proof")
    );
    assert_eq!(check(&only, &bound, "DPoP", &own()), Ok(()));
    let strict = server().dpop(ProofVerifier::new().require_nonces(nonces.clone()));
    assert_eq!(
        check(&strict, &bound, "DPoP", &own()),
        invalid("use_dpop_nonce")
    );
    assert_eq!(
        check(
            &strict,
            &bound,
            "DPoP",
            &proof(&proof_key, &nonces.make(NOW))
        ),
        Ok(())
    );
}

#[test]
fn required_nonce_is_in_the_response() {
    let proof_key = ProofKey::generate().unwrap();
    let secret = Secret::new("token");
    let mut bound = VerifiedToken::new(ISSUER);
    bound.thumbprint = Some(proof_key.thumbprint());
    let proof = Proof::new(&Method::POST, RESOURCE, NOW).access_token(&secret);
    let request = headers("dpop", &[&proof_key.proof(&proof).unwrap()]);
    let server = server().dpop(ProofVerifier::new().require_nonces(NonceKeys::new(&[1; 32])));
    let credentials =
        Credentials::from_headers(&headers("authorization", &["DPoP token"])).unwrap();
    let seen = &ReplayCache::default();
    let refusal = server
        .check_possession(
            &Presented::new(&credentials, &bound, &Method::POST, &request),
            seen,
            NOW,
        )
        .unwrap_err();
    let answer = server.answer(&refusal);
    assert_eq!(answer.status(), 401);
    let nonce = answer.headers()["dpop-nonce"].to_str().unwrap();
    assert!(NonceKeys::new(&[1; 32]).is_current(nonce, NOW));
    let challenge = answer.headers()["www-authenticate"].to_str().unwrap();
    assert!(
        challenge.starts_with("DPoP error=\"use_dpop_nonce\""),
        "{challenge}"
    );
}
