//! Tests of the resource server's side.

use http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use oxmcp_auth::{
    Body, Challenge, Response, ScopeSet, Secret, UnixTime,
    dpop::{NonceKeys, Proof, ProofKey, ProofVerifier, ReplayCache},
    jose::{Algorithm, Jwks, SigningKey},
    server::{
        Credentials, Fetch, Introspection, Presented, Refusal, ResourceServer, ScopeHierarchy,
        TokenVerifier, TrustedIssuer, Verification, VerifiedToken,
    },
};
use serde_json::{Value, json};

const RESOURCE: &str = "https://mcp.example.com/mcp";
const ISSUER: &str = "https://auth.example.com/tenant";
const NOW: UnixTime = UnixTime::from_seconds(1_800_000_000);

fn key(id: &str) -> SigningKey {
    SigningKey::generate(Algorithm::Es256)
        .unwrap()
        .with_key_id(id)
}

fn claims() -> Value {
    json!({
        "iss": ISSUER, "aud": RESOURCE, "sub": "ann", "client_id": "editor", "scope": "mcp:read mcp:write",
        "iat": NOW.seconds(), "exp": NOW.seconds() + 300,
    })
}

fn with(changes: &Value) -> Value {
    let mut claims = claims();
    for (name, value) in changes.as_object().unwrap() {
        if value.is_null() {
            claims.as_object_mut().unwrap().remove(name);
        } else {
            claims[name] = value.clone();
        }
    }
    claims
}

fn token(key: &SigningKey, claims: &Value) -> Secret {
    Secret::new(key.sign("at+jwt", claims).unwrap())
}

fn set(keys: &[&SigningKey]) -> Value {
    let keys: Vec<_> = keys.iter().map(|key| key.public_jwk()).collect();
    json!({"keys": keys})
}

/// A verifier that knows the keys of the issuer.
fn fixed(key: &SigningKey) -> TokenVerifier {
    let keys = Jwks::from(vec![key.public_jwk().clone()]);
    let issuer = TrustedIssuer::new(ISSUER).keys(keys);
    TokenVerifier::new([RESOURCE])
        .unwrap()
        .issuer(issuer)
        .unwrap()
}

/// A verifier that fetches them.
fn fetching() -> TokenVerifier {
    let issuer = TrustedIssuer::new(ISSUER).keys_at("https://auth.example.com/keys");
    TokenVerifier::new([RESOURCE])
        .unwrap()
        .issuer(issuer)
        .unwrap()
}

fn ok(body: &Value) -> Result<Response, String> {
    Ok(Response::new(Body::from(body.to_string())))
}

fn status(status: u16) -> Result<Response, String> {
    let mut response = Response::new(Body::default());
    *response.status_mut() = StatusCode::from_u16(status).unwrap();
    Ok(response)
}

#[track_caller]
fn fetch(verification: Verification) -> Fetch {
    match verification {
        Verification::Fetch(fetch) => fetch,
        other => panic!("{other:?}"),
    }
}

#[track_caller]
fn refusal(verification: Verification) -> Refusal {
    match verification {
        Verification::Refused(refusal) => refusal,
        other => panic!("{other:?}"),
    }
}

fn is_valid(verification: &Verification) -> bool {
    matches!(verification, Verification::Valid(_))
}

fn headers(name: &str, values: &[&str]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for value in values {
        let name = header::HeaderName::from_bytes(name.as_bytes()).unwrap();
        headers.append(name, HeaderValue::from_str(value).unwrap());
    }
    headers
}

#[test]
fn the_token_of_a_request_is_found_in_one_place() {
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
fn a_token_stands_for_someone() {
    let key = key("one");
    let verified = match fixed(&key).verify(&token(&key, &claims()), NOW) {
        Verification::Valid(token) => token,
        other => panic!("{other:?}"),
    };
    assert_eq!(verified.issuer, ISSUER);
    assert_eq!(verified.subject.as_deref(), Some("ann"));
    assert_eq!(verified.client_id.as_deref(), Some("editor"));
    assert_eq!(verified.scopes, ScopeSet::parse("mcp:write mcp:read"));
    assert_eq!(verified.expires, Some(NOW.plus(300)));
    let all = verified.claims.as_ref().unwrap();
    assert_eq!(all.get::<String>("sub").as_deref(), Some("ann"));
    assert_eq!(all.get::<u64>("sub"), None);
    assert_eq!(all.get::<String>("name"), None);
    let owner = verified.owner_key().unwrap();
    assert_eq!(owner, format!("{}:{ISSUER}|3:ann|6:editor", ISSUER.len()));
    let shown = format!("{verified:?} {all:?}");
    assert!(
        !shown.contains("ann") && !shown.contains("editor"),
        "{shown}"
    );
}

#[test]
fn names_and_scopes_are_read_as_issuers_write_them() {
    let key = key("one");
    let verified = |changes: &Value| match fixed(&key).verify(&token(&key, &with(changes)), NOW) {
        Verification::Valid(token) => token,
        other => panic!("{other:?}"),
    };
    for name in ["azp", "cid", "appid"] {
        let token = verified(&json!({"client_id": null, name: "other"}));
        assert_eq!(token.client_id.as_deref(), Some("other"));
    }
    let both = ScopeSet::parse("a b");
    assert_eq!(verified(&json!({"scope": ["a", "b"]})).scopes, both);
    assert_eq!(verified(&json!({"scope": null, "scp": "a b"})).scopes, both);
    assert_eq!(
        verified(&json!({"scope": null, "scp": ["a", "b"]})).scopes,
        both
    );
    assert!(verified(&json!({"scope": null})).scopes.is_empty());
    assert_eq!(
        verified(&json!({"aud": ["x", RESOURCE]}))
            .subject
            .as_deref(),
        Some("ann")
    );
    let dates = json!({"exp": 1_800_000_000.5, "nbf": 1_799_999_999.9});
    assert_eq!(verified(&dates).expires, Some(NOW));
}

#[test]
fn attack_20_tokens_that_are_not_for_us_or_not_for_now_are_refused() {
    let signer = key("one");
    let table = [
        (json!({"iss": null}), "another issuer"),
        (
            json!({"iss": "https://auth.example.com/tenant/"}),
            "another issuer",
        ),
        (json!({"iss": "https://evil.example.com"}), "another issuer"),
        (json!({"aud": null}), "not for this server"),
        (json!({"aud": []}), "not for this server"),
        (json!({"aud": ""}), "not for this server"),
        (
            json!({"aud": "https://mcp.example.com"}),
            "not for this server",
        ),
        (
            json!({"aud": "https://mcp.example.com/mcp/"}),
            "not for this server",
        ),
        (
            json!({"aud": "https://mcp.example.com/mcp2"}),
            "not for this server",
        ),
        (json!({"aud": ["a", "b"]}), "not for this server"),
        (json!({"exp": null}), "when it expires"),
        (json!({"exp": 0}), "has expired"),
        (json!({"exp": -1}), "has expired"),
        (json!({"exp": NOW.seconds() - 60}), "has expired"),
        (json!({"exp": "1800000300"}), "cannot be read"),
        (json!({"exp": 1e300}), "cannot be read"),
        (json!({"nbf": NOW.seconds() + 61}), "not valid yet"),
        (json!({"iat": NOW.seconds() + 61}), "not valid yet"),
        (json!({"sub": 1}), "cannot be read"),
        (json!({"aud": {"a": 1}}), "cannot be read"),
        (json!({"cnf": {"x5t#S256": "AAAA"}}), "bound to something"),
    ];
    for (changes, sentence) in table {
        let refusal = refusal(fixed(&signer).verify(&token(&signer, &with(&changes)), NOW));
        assert_eq!(
            (refusal.status().as_u16(), refusal.code()),
            (401, Some("invalid_token"))
        );
        assert!(
            refusal.description().contains(sentence),
            "{changes}: {}",
            refusal.description()
        );
    }
    for changes in [
        json!({"exp": NOW.seconds() - 59}),
        json!({"nbf": NOW.seconds() + 60}),
        json!({"iat": NOW.seconds() + 60}),
    ] {
        assert!(
            is_valid(&fixed(&signer).verify(&token(&signer, &with(&changes)), NOW)),
            "{changes}"
        );
    }
    let twice = claims()
        .to_string()
        .replacen("\"aud\"", "\"aud\":\"x\",\"aud\"", 1);
    let twice: Box<serde_json::value::RawValue> = serde_json::from_str(&twice).unwrap();
    let twice = Secret::new(signer.sign("at+jwt", &twice).unwrap());
    assert!(
        refusal(fixed(&signer).verify(&twice, NOW))
            .description()
            .contains("cannot be read")
    );
    // A stranger's key under the name of the issuer's.
    let refusal = refusal(fixed(&signer).verify(&token(&key("one"), &claims()), NOW));
    assert!(refusal.description().contains("signature"));
}

#[test]
fn attack_20_tokens_of_other_kinds_and_algorithms_are_refused() {
    let key = key("one");
    let keys = Jwks::from(vec![key.public_jwk().clone()]);
    let with = |issuer: TrustedIssuer, typ: &str| {
        let mut verifier = TokenVerifier::new([RESOURCE])
            .unwrap()
            .issuer(issuer)
            .unwrap();
        is_valid(&verifier.verify(&Secret::new(key.sign(typ, &claims()).unwrap()), NOW))
    };
    let issuer = TrustedIssuer::new(ISSUER).keys(keys);
    for (typ, is_taken, is_taken_strictly) in [
        ("at+jwt", true, true),
        ("application/at+jwt", true, true),
        ("AT+JWT", true, true),
        ("JWT", true, false),
        ("dpop+jwt", false, false),
        ("oauth-id-jag+jwt", false, false),
        ("logout+jwt", false, false),
    ] {
        assert_eq!(with(issuer.clone(), typ), is_taken, "{typ}");
        assert_eq!(
            with(issuer.clone().access_tokens_only(), typ),
            is_taken_strictly,
            "{typ}"
        );
    }
    assert!(!with(
        issuer.clone().algorithms([Algorithm::Rs256]),
        "at+jwt"
    ));
    assert!(with(issuer.algorithms([Algorithm::Es256]), "at+jwt"));
}

#[test]
fn an_origin_is_an_audience_with_and_without_a_slash() {
    let key = key("one");
    for (audience, other) in [
        ("https://mcp.example.com", "https://mcp.example.com/"),
        ("https://mcp.example.com/", "https://mcp.example.com"),
    ] {
        let issuer = TrustedIssuer::new(ISSUER).keys(Jwks::from(vec![key.public_jwk().clone()]));
        let mut verifier = TokenVerifier::new([audience])
            .unwrap()
            .issuer(issuer)
            .unwrap();
        for aud in [audience, other] {
            assert!(is_valid(
                &verifier.verify(&token(&key, &with(&json!({"aud": aud}))), NOW)
            ));
        }
    }
}

#[test]
fn a_server_without_audience_or_issuer_does_not_start() {
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
fn keys_are_found_by_the_metadata_of_the_issuer() {
    let key = key("one");
    let token = token(&key, &claims());
    let mut verifier = TokenVerifier::new([RESOURCE])
        .unwrap()
        .issuer(TrustedIssuer::new(ISSUER))
        .unwrap();
    let metadata = json!({"issuer": ISSUER, "jwks_uri": "https://auth.example.com/keys"});
    for (url, answer) in [
        (
            "https://auth.example.com/.well-known/oauth-authorization-server/tenant",
            status(404),
        ),
        (
            "https://auth.example.com/.well-known/openid-configuration/tenant",
            status(404),
        ),
        (
            "https://auth.example.com/tenant/.well-known/openid-configuration",
            ok(&metadata),
        ),
        ("https://auth.example.com/keys", ok(&set(&[&key]))),
    ] {
        let fetch = fetch(verifier.verify(&token, NOW));
        assert_eq!(fetch.request().uri(), url);
        assert_eq!(fetch.request().method(), Method::GET);
        assert!(matches!(verifier.verify(&token, NOW), Verification::Wait));
        verifier.fetched(&fetch, answer, NOW);
    }
    assert!(is_valid(&verifier.verify(&token, NOW)));
}

#[test]
fn metadata_that_must_not_be_believed_are_not() {
    let token = token(&key("one"), &claims());
    let bad = [
        ok(
            &json!({"issuer": "https://auth.example.com/tenant/", "jwks_uri": "https://auth.example.com/keys"}),
        ),
        ok(&json!({"issuer": ISSUER, "jwks_uri": "http://auth.example.com/keys"})),
        ok(&json!({"issuer": ISSUER, "jwks_uri": "http://127.0.0.1/keys"})),
        ok(&json!({"issuer": ISSUER, "jwks_uri": "file:///etc/passwd"})),
        ok(&json!({"issuer": ISSUER})),
        ok(&json!([])),
        status(500),
        status(302),
        Err("no route to host".to_owned()),
    ];
    for answer in bad {
        let mut verifier = TokenVerifier::new([RESOURCE])
            .unwrap()
            .issuer(TrustedIssuer::new(ISSUER))
            .unwrap();
        let fetch = fetch(verifier.verify(&token, NOW));
        verifier.fetched(&fetch, answer, NOW);
        let refusal = refusal(verifier.verify(&token, NOW));
        assert_eq!(refusal.status(), 503);
        // Why is for the log.
        assert!(refusal.error().is_some() && !refusal.description().contains("auth.example.com"));
    }
}

#[test]
fn attack_20_invented_keys_are_no_requests_to_the_issuer() {
    let good = key("one");
    let mut verifier = fetching();
    let first = fetch(verifier.verify(&token(&good, &claims()), NOW));
    verifier.fetched(&first, ok(&set(&[&good])), NOW);
    let mut fetches = 0;
    for i in 0..100 {
        let forged = token(&key(&format!("invented {i}")), &claims());
        if let Verification::Fetch(fetch) = verifier.verify(&forged, NOW.plus(29 + i / 50)) {
            fetches += 1;
            verifier.fetched(&fetch, ok(&set(&[&good])), NOW.plus(30));
        }
    }
    assert_eq!(fetches, 1);
    // Tokens that are refused in any case fetch nothing.
    let expired = token(&key("invented"), &with(&json!({"exp": 1})));
    assert_eq!(
        refusal(verifier.verify(&expired, NOW.plus(999))).code(),
        Some("invalid_token")
    );
}

#[test]
fn a_new_key_is_fetched_once_for_all() {
    let [old, new] = [key("old"), key("new")];
    let mut verifier = fetching();
    let first = fetch(verifier.verify(&token(&old, &claims()), NOW));
    verifier.fetched(&first, ok(&set(&[&old])), NOW);
    let later = NOW.plus(31);
    let second = fetch(verifier.verify(&token(&new, &claims()), later));
    assert!(matches!(
        verifier.verify(&token(&new, &claims()), later),
        Verification::Wait
    ));
    // Those of the old key do not wait for it.
    assert!(is_valid(&verifier.verify(&token(&old, &claims()), later)));
    verifier.fetched(&second, ok(&set(&[&old, &new])), later);
    assert!(is_valid(&verifier.verify(&token(&new, &claims()), later)));
}

#[test]
fn a_fetch_that_is_lost_does_not_lock_the_door() {
    let key = key("one");
    let token = token(&key, &claims());
    let mut verifier = fetching();
    let _lost = fetch(verifier.verify(&token, NOW));
    assert!(matches!(
        verifier.verify(&token, NOW.plus(29)),
        Verification::Wait
    ));
    let again = fetch(verifier.verify(&token, NOW.plus(30)));
    verifier.fetched(&again, ok(&set(&[&key])), NOW.plus(30));
    assert!(is_valid(&verifier.verify(&token, NOW.plus(30))));
}

#[test]
fn keys_grow_old_and_are_used_while_the_issuer_is_down() {
    let day = 24 * 3600;
    let key = key("one");
    let at = |time: UnixTime| {
        let dates = json!({"iat": time.seconds(), "exp": time.seconds() + 9});
        token(&key, &with(&dates))
    };
    let mut verifier = fetching();
    let first = fetch(verifier.verify(&at(NOW), NOW));
    let mut response = ok(&set(&[&key])).unwrap();
    response.headers_mut().insert(
        "cache-control",
        HeaderValue::from_static("public, Max-Age=600"),
    );
    verifier.fetched(&first, Ok(response), NOW);
    assert!(is_valid(
        &verifier.verify(&at(NOW.plus(599)), NOW.plus(599))
    ));
    let old = NOW.plus(600);
    let second = fetch(verifier.verify(&at(old), old));
    assert!(
        is_valid(&verifier.verify(&at(old), old)),
        "others go on with the old keys"
    );
    verifier.fetched(&second, status(500), old);
    assert!(is_valid(&verifier.verify(&at(old.plus(1)), old.plus(1))));
    // Not for ever.
    let end = NOW.plus(600 + day);
    let third = fetch(verifier.verify(&at(end), end));
    verifier.fetched(&third, status(500), end);
    assert_eq!(refusal(verifier.verify(&at(end), end)).status(), 503);
}

#[test]
fn a_withdrawn_key_takes_its_tokens_with_it() {
    let [bad, good] = [key("bad"), key("good")];
    let mut verifier = fetching();
    let victim = token(&bad, &claims());
    let first = fetch(verifier.verify(&victim, NOW));
    verifier.fetched(&first, ok(&set(&[&bad, &good])), NOW);
    assert!(is_valid(&verifier.verify(&victim, NOW)));
    let later = NOW.plus(31);
    let second = fetch(verifier.verify(&token(&key("new"), &claims()), later));
    verifier.fetched(&second, ok(&set(&[&good])), later);
    assert!(verifier.verified(&victim, later).is_none());
    assert_eq!(
        refusal(verifier.verify(&victim, later)).code(),
        Some("invalid_token")
    );
}

#[test]
fn a_verified_token_is_known_until_it_ends() {
    let key = key("one");
    let mut verifier = fixed(&key);
    let token = token(&key, &claims());
    assert!(verifier.verified(&token, NOW).is_none());
    assert!(is_valid(&verifier.verify(&token, NOW)));
    assert!(verifier.verified(&token, NOW.plus(359)).is_some());
    assert!(verifier.verified(&token, NOW.plus(360)).is_none());
    assert!(
        refusal(verifier.verify(&token, NOW.plus(360)))
            .description()
            .contains("expired")
    );
}

#[test]
fn a_token_that_is_forgotten_is_refused_at_once() {
    let key = key("one");
    let mut verifier = fixed(&key);
    let token = token(&key, &claims());
    assert!(is_valid(&verifier.verify(&token, NOW)));
    verifier.forget(&token, NOW);
    assert!(verifier.verified(&token, NOW).is_none());
    assert!(
        refusal(verifier.verify(&token, NOW.plus(1)))
            .description()
            .contains("revoked")
    );
}

#[test]
fn what_strangers_can_make_grow_is_bounded() {
    let key = key("one");
    let mut verifier = fixed(&key);
    let good = token(&key, &claims());
    assert!(is_valid(&verifier.verify(&good, NOW)));
    for i in 0..3_000 {
        let _ = verifier.verify(&Secret::new(format!("garbage{i}")), NOW);
    }
    assert!(
        verifier.verified(&good, NOW).is_some(),
        "refused tokens push out no valid ones"
    );
}

fn introspecting() -> TokenVerifier {
    let introspection = Introspection::new(ISSUER, "https://auth.example.com/introspect")
        .basic("mcp server", &Secret::new("p:ss"));
    TokenVerifier::new([RESOURCE])
        .unwrap()
        .introspection(introspection)
}

#[test]
fn tokens_are_introspected_once_for_all_and_again_in_time() {
    let mut verifier = introspecting();
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
    // Revoked since: known within 30 s.
    let second = fetch(verifier.verify(&token, NOW.plus(30)));
    verifier.fetched(&second, ok(&json!({"active": false})), NOW.plus(30));
    let refusal = refusal(verifier.verify(&token, NOW.plus(30)));
    assert_eq!(refusal.code(), Some("invalid_token"));
    // A refusal holds for a second.
    assert!(matches!(
        verifier.verify(&token, NOW.plus(31)),
        Verification::Fetch(_)
    ));
}

#[test]
fn answers_to_introspections_are_checked_as_tokens_are() {
    let active = json!({"active": true, "aud": RESOURCE, "sub": "ann"});
    let table = [
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
    ];
    for (answer, expected) in table {
        let shown = format!(
            "{:?}",
            answer
                .as_ref()
                .map(|it| String::from_utf8_lossy(it.body().as_ref()).into_owned())
        );
        let mut verifier = introspecting();
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
fn owners_that_differ_are_written_differently() {
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

fn server() -> ResourceServer {
    ResourceServer::new(RESOURCE, [ISSUER])
        .unwrap()
        .scopes(ScopeSet::parse("mcp:read"))
}

#[test]
fn metadata_say_what_a_client_needs() {
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
fn challenges_say_what_to_do() {
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
    let sentence = "the access token does not allow this operation";
    let forbidden = format!(
        "Bearer error=\"insufficient_scope\", error_description=\"{sentence}\", {prm}, scope=\"mcp:read files:write\""
    );
    assert_eq!(answer(&server(), &needed), (403, vec![forbidden]));
    // Both schemes are offered where both are taken, and one where one is.
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
    // What goes on inside is nobody's business.
    let down = refusal_of_a_verifier_that_is_down();
    assert_eq!(answer(&server(), &down), (503, vec![]));
    assert_eq!(server().answer(&down).headers()["retry-after"], "5");
    let body = server().answer(&down).into_body();
    assert!(!String::from_utf8_lossy(body.as_ref()).contains("secret reason"));
}

fn refusal_of_a_verifier_that_is_down() -> Refusal {
    let mut verifier = fetching();
    let token = token(&key("one"), &claims());
    let fetch = fetch(verifier.verify(&token, NOW));
    verifier.fetched(&fetch, Err("secret reason".to_owned()), NOW);
    refusal(verifier.verify(&token, NOW))
}

#[test]
fn challenges_are_read_as_they_are_written() {
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
fn scopes_are_a_hierarchy_and_are_asked_for_all_at_once() {
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
fn tokens_that_are_bound_to_a_key_need_its_proof_once() {
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
    let mut seen = ReplayCache::default();
    let mut check = |server: &ResourceServer, token: &VerifiedToken, scheme: &str, proof: &str| {
        let authorization = headers("authorization", &[&format!("{scheme} token")]);
        let credentials = Credentials::from_headers(&authorization).unwrap();
        let request = headers("dpop", &[proof]);
        let outcome = server.check_possession(
            &Presented::new(&credentials, token, &Method::POST, &request),
            &mut seen,
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
fn a_demanded_nonce_is_in_the_answer() {
    let proof_key = ProofKey::generate().unwrap();
    let secret = Secret::new("token");
    let mut bound = VerifiedToken::new(ISSUER);
    bound.thumbprint = Some(proof_key.thumbprint());
    let proof = Proof::new(&Method::POST, RESOURCE, NOW).access_token(&secret);
    let request = headers("dpop", &[&proof_key.proof(&proof).unwrap()]);
    let server = server().dpop(ProofVerifier::new().require_nonces(NonceKeys::new(&[1; 32])));
    let credentials =
        Credentials::from_headers(&headers("authorization", &["DPoP token"])).unwrap();
    let seen = &mut ReplayCache::default();
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
