//! Tests of the verification of tokens.

use http::{HeaderValue, Method};
use oxmcp_auth::{
    Body, Response, ScopeSet, Secret, UnixTime,
    jose::{Algorithm, Jwks, SigningKey},
    server::{Credentials, TokenVerifier, TrustedIssuer, Verification},
};
use serde_json::{Value, json};

use crate::support::{
    ISSUER, NOW, RESOURCE, claims, fetch, fetching, fixed, headers, introspecting, is_valid, key,
    ok, overlaid, refusal, set, status, token, with,
};

#[test]
fn token_identifies_its_principal() {
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
fn names_and_scopes_follow_issuers_spellings() {
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

// Attack: forged or misdirected tokens.
#[test]
fn forged_or_misdirected_tokens_are_refused() {
    let signer = key("one");
    let table = [
        (json!({"iss": null}), "untrusted issuer"),
        (
            json!({"iss": "https://auth.example.com/tenant/"}),
            "untrusted issuer",
        ),
        (
            json!({"iss": "https://evil.example.com"}),
            "untrusted issuer",
        ),
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
        (json!({"exp": null}), "no expiry"),
        (json!({"exp": 0}), "has expired"),
        (json!({"exp": -1}), "has expired"),
        (json!({"exp": NOW.seconds() - 60}), "has expired"),
        (json!({"exp": "1800000300"}), "invalid claims"),
        (json!({"exp": 1e300}), "invalid claims"),
        (json!({"nbf": NOW.seconds() + 61}), "not valid yet"),
        (json!({"iat": NOW.seconds() + 61}), "not valid yet"),
        (json!({"sub": 1}), "invalid claims"),
        (json!({"aud": {"a": 1}}), "invalid claims"),
        (json!({"cnf": {"x5t#S256": "AAAA"}}), "unsupported binding"),
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
            .contains("invalid claims")
    );
    // An attacker's key with the `kid` of the issuer's.
    let refusal = refusal(fixed(&signer).verify(&token(&key("one"), &claims()), NOW));
    assert!(refusal.description().contains("signature"));
}

// Attack: forged or misdirected tokens.
#[test]
fn tokens_of_other_types_or_algorithms_are_refused() {
    let key = key("one");
    let keys = Jwks::from(vec![key.public_jwk().clone()]);
    let with = |issuer: TrustedIssuer, typ: &str| {
        let verifier = TokenVerifier::new([RESOURCE])
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
fn origin_audience_matches_with_and_without_slash() {
    let key = key("one");
    for (audience, other) in [
        ("https://mcp.example.com", "https://mcp.example.com/"),
        ("https://mcp.example.com/", "https://mcp.example.com"),
    ] {
        let issuer = TrustedIssuer::new(ISSUER).keys(Jwks::from(vec![key.public_jwk().clone()]));
        let verifier = TokenVerifier::new([audience])
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
fn audience_is_valid_only_for_its_issuer() {
    const OTHER: &str = "https://other.example.com";
    let (key, other_key) = (key("one"), key("two"));
    let issuer = |name: &str, key: &SigningKey| {
        TrustedIssuer::new(name).keys(Jwks::from(vec![key.public_jwk().clone()]))
    };
    let verifier = TokenVerifier::new([RESOURCE])
        .unwrap()
        .issuer(issuer(ISSUER, &key).audience("1234"))
        .unwrap()
        .issuer(issuer(OTHER, &other_key))
        .unwrap();
    for (key, iss, aud, is_taken) in [
        (&key, ISSUER, "1234", true),
        (&key, ISSUER, RESOURCE, true),
        (&other_key, OTHER, RESOURCE, true),
        (&other_key, OTHER, "1234", false),
    ] {
        let token = token(key, &with(&json!({"iss": iss, "aud": aud})));
        assert_eq!(
            is_valid(&verifier.verify(&token, NOW)),
            is_taken,
            "{iss} {aud}"
        );
    }
}

#[test]
fn keys_are_found_by_issuer_metadata() {
    let key = key("one");
    let token = token(&key, &claims());
    let verifier = TokenVerifier::new([RESOURCE])
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
fn untrustworthy_metadata_is_refused() {
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
        let verifier = TokenVerifier::new([RESOURCE])
            .unwrap()
            .issuer(TrustedIssuer::new(ISSUER))
            .unwrap();
        let fetch = fetch(verifier.verify(&token, NOW));
        verifier.fetched(&fetch, answer, NOW);
        let refusal = refusal(verifier.verify(&token, NOW));
        assert_eq!(refusal.status(), 503);
        // The reason is only for the log.
        assert!(refusal.error().is_some() && !refusal.description().contains("auth.example.com"));
    }
}

// Attack: forged or misdirected tokens.
#[test]
fn unknown_keys_do_not_trigger_issuer_requests() {
    let good = key("one");
    let verifier = fetching();
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
    // Tokens that are refused anyway cause no fetch.
    let expired = token(&key("invented"), &with(&json!({"exp": 1})));
    assert_eq!(
        refusal(verifier.verify(&expired, NOW.plus(999))).code(),
        Some("invalid_token")
    );
}

#[test]
fn new_key_is_fetched_once_for_all() {
    let [old, new] = [key("old"), key("new")];
    let verifier = fetching();
    let first = fetch(verifier.verify(&token(&old, &claims()), NOW));
    verifier.fetched(&first, ok(&set(&[&old])), NOW);
    let later = NOW.plus(31);
    let second = fetch(verifier.verify(&token(&new, &claims()), later));
    assert!(matches!(
        verifier.verify(&token(&new, &claims()), later),
        Verification::Wait
    ));
    // Tokens of the old key do not wait for the fetch.
    assert!(is_valid(&verifier.verify(&token(&old, &claims()), later)));
    verifier.fetched(&second, ok(&set(&[&old, &new])), later);
    assert!(is_valid(&verifier.verify(&token(&new, &claims()), later)));
}

#[test]
fn new_key_during_issuer_outage_is_not_refused() {
    let [old, new] = [key("old"), key("new")];
    let verifier = fetching();
    let first = fetch(verifier.verify(&token(&old, &claims()), NOW));
    verifier.fetched(&first, ok(&set(&[&old])), NOW);
    let later = NOW.plus(31);
    let second = fetch(verifier.verify(&token(&new, &claims()), later));
    verifier.fetched(&second, status(500), later);
    let refused = refusal(verifier.verify(&token(&new, &claims()), later));
    assert_eq!(refused.status().as_u16(), 503);
    assert!(is_valid(&verifier.verify(&token(&old, &claims()), later)));
}

#[test]
fn lost_fetch_does_not_block_later_ones() {
    let key = key("one");
    let token = token(&key, &claims());
    let verifier = fetching();
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
fn stale_keys_are_used_while_issuer_is_down() {
    let day = 24 * 3600;
    let key = key("one");
    let at = |time: UnixTime| {
        let dates = json!({"iat": time.seconds(), "exp": time.seconds() + 9});
        token(&key, &with(&dates))
    };
    let verifier = fetching();
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
        "others continue with the old keys"
    );
    verifier.fetched(&second, status(500), old);
    assert!(is_valid(&verifier.verify(&at(old.plus(1)), old.plus(1))));
    // Not forever.
    let end = NOW.plus(600 + day);
    let third = fetch(verifier.verify(&at(end), end));
    verifier.fetched(&third, status(500), end);
    assert_eq!(refusal(verifier.verify(&at(end), end)).status(), 503);
}

#[test]
fn withdrawn_key_invalidates_its_tokens() {
    let [bad, good] = [key("bad"), key("good")];
    let verifier = fetching();
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
fn verified_token_is_cached_until_expiry() {
    let key = key("one");
    let verifier = fixed(&key);
    let token = token(&key, &claims());
    let request = headers("authorization", &[&format!("DPoP  {} ", token.expose())]);
    let credentials = Credentials::from_headers(&request).unwrap();
    assert!(!format!("{credentials:?}").contains(token.expose()));
    assert_eq!(credentials.token(), token);
    let is_known = |at: UnixTime| {
        let is_known = verifier.verified(&token, at).is_some();
        let of_request = verifier.verified_credentials(&credentials, at);
        assert_eq!(of_request.is_some(), is_known);
        is_known
    };
    assert!(!is_known(NOW));
    assert!(is_valid(&verifier.verify(&token, NOW)));
    assert!(is_known(NOW.plus(359)) && !is_known(NOW.plus(360)));
    assert!(
        refusal(verifier.verify(&token, NOW.plus(360)))
            .description()
            .contains("expired")
    );
}

#[test]
fn forgotten_token_is_refused_at_once() {
    let key = key("one");
    let verifier = fixed(&key);
    let token = token(&key, &claims());
    assert!(is_valid(&verifier.verify(&token, NOW)));
    verifier.reject_token(&token, NOW);
    assert!(verifier.verified(&token, NOW).is_none());
    assert!(
        refusal(verifier.verify(&token, NOW.plus(1)))
            .description()
            .contains("revoked")
    );
}

#[test]
fn token_forgotten_during_verification_is_refused() {
    let verifier = introspecting();
    let token = Secret::new("opaque");
    let question = fetch(verifier.verify(&token, NOW));
    verifier.reject_token(&token, NOW);
    let active = json!({"active": true, "aud": RESOURCE, "sub": "ann"});
    verifier.fetched(&question, ok(&active), NOW);
    assert!(verifier.verified(&token, NOW).is_none());
    let refusal = refusal(verifier.verify(&token, NOW));
    assert!(refusal.description().contains("revoked"));
}

/// The same token with the other valid signature: `(r, n - s)`.
fn with_other_signature(token: &Secret) -> Secret {
    use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD as BASE64};
    const ORDER: [u8; 32] = [
        0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xbc,
        0xe6, 0xfa, 0xad, 0xa7, 0x17, 0x9e, 0x84, 0xf3, 0xb9, 0xca, 0xc2, 0xfc, 0x63, 0x25, 0x51,
    ];
    let (signed, signature) = token.expose().rsplit_once('.').unwrap();
    let mut signature = BASE64.decode(signature).unwrap();
    let mut borrow = 0;
    for (byte, order) in signature[32..].iter_mut().zip(ORDER).rev() {
        let difference = i16::from(order) - i16::from(*byte) - borrow;
        borrow = i16::from(difference < 0);
        *byte = u8::try_from(difference.rem_euclid(256)).unwrap();
    }
    Secret::new(format!("{signed}.{}", BASE64.encode(signature)))
}

#[test]
fn forgotten_token_with_another_signature_stays_refused() {
    let key = key("one");
    let token = token(&key, &claims());
    let other = with_other_signature(&token);
    assert_ne!(token.expose(), other.expose());
    assert!(is_valid(&fixed(&key).verify(&other, NOW)));
    for is_known in [true, false] {
        let verifier = fixed(&key);
        if is_known {
            assert!(is_valid(&verifier.verify(&other, NOW)));
        }
        verifier.reject_token(&token, NOW);
        assert!(verifier.verified(&other, NOW).is_none());
        let refusal = refusal(verifier.verify(&other, NOW));
        assert!(refusal.description().contains("revoked"));
    }
}

#[test]
fn tokens_resembling_a_forgotten_one_stay_valid() {
    let verifier = introspecting();
    verifier.reject_token(&Secret::new("v4.local.ann"), NOW);
    let other = Secret::new("v4.local.bob");
    assert!(matches!(
        verifier.verify(&other, NOW),
        Verification::Fetch(_)
    ));
}

#[test]
fn memory_used_by_invalid_tokens_is_bounded() {
    let key = key("one");
    let verifier = fixed(&key);
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

#[test]
fn only_the_oldest_refusal_is_evicted() {
    let verifier = introspecting();
    let tokens: Vec<_> = (0..=1_000)
        .map(|i| Secret::new(format!("opaque{i}")))
        .collect();
    for token in &tokens {
        let question = fetch(verifier.verify(token, NOW));
        verifier.fetched(&question, ok(&json!({"active": false})), NOW);
    }
    for token in &tokens[1..] {
        refusal(verifier.verify(token, NOW));
    }
    fetch(verifier.verify(&tokens[0], NOW));
}

#[test]
fn unrequested_keys_are_ignored() {
    let (one, two) = (key("one"), key("two"));
    let verifier = fetching();
    let first = fetch(verifier.verify(&token(&one, &claims()), NOW));
    verifier.fetched(&first, ok(&set(&[&one])), NOW);
    verifier.fetched(&first, ok(&set(&[&one, &two])), NOW);
    assert!(is_valid(&verifier.verify(&token(&one, &claims()), NOW)));
    let refusal = refusal(verifier.verify(&token(&two, &claims()), NOW));
    assert_eq!(refusal.status(), 401);
}

/// The most revoked tokens that a verifier remembers.
const MAX_REVOKED: usize = 10_000;

#[test]
fn forgotten_token_is_refused_within_clock_skew() {
    let key = key("one");
    let verifier = fixed(&key);
    let token = token(&key, &claims());
    let end = 300 + 59;
    assert!(is_valid(&fixed(&key).verify(&token, NOW.plus(end))));
    verifier.reject_token(&token, NOW);
    let other = with(&json!({"exp": NOW.seconds() + 40}));
    verifier.reject_token(&self::token(&key, &other), NOW);
    // Beyond the limit, only expired revocations are removed.
    for index in 0..MAX_REVOKED - 1 {
        verifier.reject_token(&Secret::new(format!("opaque{index}")), NOW.plus(end));
    }
    assert_eq!(
        refusal(verifier.verify(&token, NOW.plus(end))).status(),
        401
    );
}

#[test]
fn issuer_metadata_matches_except_host_slash() {
    let key = key("one");
    let (without, with_slash) = ("https://auth.example.com", "https://auth.example.com/");
    for (configured, published) in [(without, with_slash), (with_slash, without)] {
        let verifier = TokenVerifier::new([RESOURCE]).unwrap();
        let verifier = verifier.issuer(TrustedIssuer::new(configured)).unwrap();
        let [good, bad] =
            [published, configured].map(|iss| token(&key, &with(&json!({"iss": iss}))));
        let metadata = json!({"issuer": published, "jwks_uri": "https://auth.example.com/keys"});
        let first = fetch(verifier.verify(&bad, NOW));
        verifier.fetched(&first, ok(&metadata), NOW);
        // Now the spelling is known, and the other one causes no fetch.
        assert_eq!(refusal(verifier.verify(&bad, NOW)).status(), 401);
        let second = fetch(verifier.verify(&good, NOW));
        verifier.fetched(&second, ok(&set(&[&key])), NOW);
        let Verification::Valid(verified) = verifier.verify(&good, NOW) else {
            panic!("{published}");
        };
        assert_eq!(verified.issuer, configured);
        assert_eq!(refusal(verifier.verify(&bad, NOW)).status(), 401);
        let other = token(&key, &with(&json!({"iss": format!("{without}//")})));
        assert_eq!(refusal(verifier.verify(&other, NOW)).status(), 401);
    }
    // Without metadata the match is exact.
    for source in [
        TrustedIssuer::new(without).keys(Jwks::parse(set(&[&key]).to_string().as_bytes()).unwrap()),
        TrustedIssuer::new(without).keys_at("https://auth.example.com/keys"),
    ] {
        let verifier = TokenVerifier::new([RESOURCE]).unwrap();
        let verifier = verifier.issuer(source).unwrap();
        let other = token(&key, &with(&json!({"iss": with_slash})));
        assert_eq!(refusal(verifier.verify(&other, NOW)).status(), 401);
    }
}

#[test]
fn odd_key_does_not_invalidate_the_others() {
    let key = key("one");
    let mut keys = json!([
        null, 5, [], {}, "key", {"kty": null}, {"kty": "RSA", "n": 5, "e": []}, {"kty": "EC", "crv": null},
    ]);
    let mut good = set(&[&key])["keys"][0].clone();
    for name in ["use", "key_ops", "alg", "d"] {
        good[name] = Value::Null;
    }
    keys.as_array_mut().unwrap().push(good);
    let verifier = fetching();
    let token = token(&key, &claims());
    let fetch = fetch(verifier.verify(&token, NOW));
    let body = format!("\u{feff}{}", json!({"keys": keys, "other": null}));
    verifier.fetched(&fetch, Ok(Response::new(Body::from(body))), NOW);
    assert!(is_valid(&verifier.verify(&token, NOW)));
}

#[test]
fn null_claims_are_absent() {
    let key = key("one");
    let verdict =
        |changes: &Value| is_valid(&fixed(&key).verify(&token(&key, &overlaid(changes)), NOW));
    assert!(verdict(
        &json!({"nbf": null, "scope": null, "scp": null, "cnf": null, "azp": null})
    ));
    for refused in [
        json!({"exp": null}),
        json!({"exp": "1700000000"}),
        json!({"exp": "soon"}),
        json!({"exp": "inf"}),
        json!({"exp": "NaN"}),
        json!({"exp": ""}),
        json!({"nbf": "1900000000"}),
        json!({"nbf": {}}),
        json!({"aud": null}),
        json!({"iss": null}),
        json!({"cnf": []}),
        json!({"cnf": "x"}),
    ] {
        assert!(!verdict(&refused), "{refused}");
    }
}
