//! Tests of keys, key sets and signatures.

#![expect(
    clippy::unwrap_used,
    reason = "helpers of tests fail like tests; clippy excuses only functions with #[test]"
)]

use oxmcp_auth::{
    AuthErrorKind,
    jose::{Algorithm, Jwk, Jwks, Jws, KeyError, SigningKey},
};
use serde_json::{Value, json};

const P256: &str = include_str!("keys/p256.pem");
const P384: &str = include_str!("keys/p384.pem");
const ED25519: &str = include_str!("keys/ed25519.pem");
const RSA: &str = include_str!("keys/rsa2048.pem");
const RSA_PKCS1: &str = include_str!("keys/rsa2048_pkcs1.pem");

fn jwk(json: &Value) -> Jwk {
    Jwk::from_json(&json.to_string()).unwrap()
}

fn base64url(bytes: &[u8]) -> String {
    use base64::Engine as _;
    base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(bytes)
}

#[test]
fn examples_of_the_standards_verify() {
    // RFC 7638, section 3.1.
    let rsa = jwk(&json!({
        "kty": "RSA", "e": "AQAB", "alg": "RS256", "kid": "2011-04-29",
        "n": "0vx7agoebGcQSuuPiLJXZptN9nndrQmbXEps2aiAFbWhM78LhWx4cbbfAAtVT86zwu1RK7aPFFxuhDR1L6tSoc_BJECPebWKRXjBZCiFV4n3okn\
              jhMstn64tZ_2W-5JsGY4Hc5n9yBXArwl93lqt7_RN5w6Cf0h4QyQ5v-65YGjQR0_FDW2QvzqY368QQMicAtaSqzs8KJZgnYb9c7d0zgdAZHzu6qMQvR\
              L5hajrn1n91CbOpbISD08qNLyrdkt-bFTWhAI4vMQFh6WeZu0fM4lFd2NcRwr3XPksINHaQ-G_xBniIqbw0Ls1jF44-csFCur-kEgU8awapJzKnqDKgw",
    }));
    assert_eq!(
        rsa.thumbprint(),
        "NzbLsXh8uDCcd-6MNwXF4W_7noWXFZAfHkxZsRGC9Xs"
    );
    // RFC 8037, appendix A.
    let ed = jwk(
        &json!({"kty": "OKP", "crv": "Ed25519", "x": "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}),
    );
    assert_eq!(
        ed.thumbprint(),
        "kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k"
    );
    let token = "eyJhbGciOiJFZERTQSJ9.RXhhbXBsZSBvZiBFZDI1NTE5IHNpZ25pbmc.\
                 hgyY0il_MGCjP0JzlnLWG1PPOt7-09PGcvMg3AIbQR6dWbhijcNR4ki4iylGjg5BhVsPt9g7sVvpAr_MuM0KAg";
    let token = Jws::parse(token).unwrap();
    assert!(token.is_signed_by(&ed));
    assert_eq!(token.payload(), b"Example of Ed25519 signing");
    // RFC 7515, appendix A.3.
    let ec = jwk(&json!({
        "kty": "EC", "crv": "P-256",
        "x": "f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU",
        "y": "x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0",
    }));
    let token = "eyJhbGciOiJFUzI1NiJ9.\
                 eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0cnVlfQ.\
                 DtEhU3ljbEg8L38VWAfUAqOyKAM6-Xx-F4GawxaepmXFCgfTjDxw5djxLa8ISlSApmWQxfKTUJqPP3-Kg6NU1Q";
    assert!(Jws::parse(token).unwrap().is_signed_by(&ec));
}

#[test]
fn keys_of_every_kind_are_read_and_sign() {
    let rsa = |algorithm| {
        SigningKey::from_pem(RSA)
            .unwrap()
            .with_algorithm(algorithm)
            .unwrap()
    };
    let keys = [
        SigningKey::from_pem(P256).unwrap(),
        SigningKey::from_pem(P384).unwrap(),
        SigningKey::from_pem(ED25519).unwrap(),
        SigningKey::from_pem(RSA_PKCS1).unwrap(),
        rsa(Algorithm::Rs384),
        rsa(Algorithm::Rs512),
        rsa(Algorithm::Ps256),
        rsa(Algorithm::Ps384),
        rsa(Algorithm::Ps512),
        SigningKey::generate(Algorithm::Es256).unwrap(),
        SigningKey::generate(Algorithm::Es384).unwrap(),
        SigningKey::generate(Algorithm::EdDsa).unwrap(),
    ];
    for key in &keys {
        let token = key.sign("JWT", &json!({"sub": "ann"})).unwrap();
        let read = Jws::parse(&token).unwrap();
        assert_eq!(read.algorithm(), key.algorithm());
        assert_eq!(read.payload(), br#"{"sub":"ann"}"#);
        let published = serde_json::to_string(key.public_jwk()).unwrap();
        let public = Jwk::from_json(&published).unwrap();
        assert_eq!(&public, key.public_jwk());
        assert!(read.is_signed_by(&public), "{}", key.algorithm());
        // One bit of the signature, of the claims, of the header.
        for part in 0..3 {
            let mut parts: Vec<String> = token.split('.').map(str::to_owned).collect();
            let last = parts[part].pop().unwrap();
            parts[part].push(if last == 'A' { 'Q' } else { 'A' });
            let changed = Jws::parse(&parts.join("."));
            assert!(!changed.is_ok_and(|it| it.is_signed_by(&public)));
        }
        let others = keys.iter().filter(|other| {
            other.public_jwk().thumbprint() != key.public_jwk().thumbprint()
                || other.algorithm() != key.algorithm()
        });
        for other in others {
            assert!(!read.is_signed_by(other.public_jwk()));
        }
    }
}

#[test]
fn unusable_key_error_has_a_remedy() {
    let table = [
        (include_str!("keys/p256_encrypted.pem"), "openssl pkcs8 -in"),
        (include_str!("keys/p256_sec1.pem"), "openssl pkcs8 -topk8"),
        (include_str!("keys/p521.pem"), "P-256 or P-384"),
        (
            include_str!("keys/rsa1024.pem"),
            "RSA with at least 2048 bits",
        ),
        ("", "BEGIN PRIVATE KEY"),
        (
            "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n",
            "unsupported private key",
        ),
    ];
    for (pem, hint) in table {
        let error = SigningKey::from_pem(pem).unwrap_err();
        assert_eq!(error.kind(), AuthErrorKind::Configuration);
        assert!(error.message().contains(hint), "{error}");
    }
    assert!(SigningKey::generate(Algorithm::Rs256).is_err());
    let key = SigningKey::from_pem(P256).unwrap();
    assert!(key.with_algorithm(Algorithm::Rs256).is_err());
    let key = SigningKey::from_pem(RSA).unwrap();
    assert!(key.with_algorithm(Algorithm::Es256).is_err());
}

// Attack: leaks of secrets.
#[test]
fn private_keys_are_hidden_in_debug() {
    for pem in [P256, ED25519, RSA] {
        let key = SigningKey::from_pem(pem).unwrap().with_key_id("one");
        let text = format!("{key:?}");
        assert!(
            text.starts_with("SigningKey { algorithm: ") && text.len() < 70,
            "{text}"
        );
    }
    let token = SigningKey::from_pem(P256)
        .unwrap()
        .sign("JWT", &json!({"sub": "ann"}))
        .unwrap();
    let text = format!("{:?}", Jws::parse(&token).unwrap());
    for part in token.split('.') {
        assert!(!text.contains(part));
    }
}

// Attack: forged or misdirected tokens.
#[test]
fn invalid_public_keys_are_refused() {
    let x = "f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU";
    let good = json!({"kty": "EC", "crv": "P-256", "x": x, "y": x});
    assert!(Jwk::from_json(&good.to_string()).is_ok());
    let changes = [
        json!({"kty": "oct", "k": "c2VjcmV0"}),
        json!({"crv": "P-521"}),
        json!({"crv": "secp256k1"}),
        json!({"crv": null}),
        json!({"d": x}),
        json!({"use": "enc"}),
        json!({"key_ops": ["encrypt"]}),
        json!({"alg": "HS256"}),
        json!({"alg": "none"}),
        json!({"alg": "RS256"}),
        json!({"x": "AAAA"}),
        json!({"x": format!("{x}=")}),
        json!({"y": null}),
        json!({"kty": "RSA", "n": "AQAB", "e": "AQAB"}),
        json!({"kty": "RSA", "n": base64url(&[255; 1025]), "e": "AQAB"}),
        json!({"kty": "OKP", "crv": "Ed25519", "x": "AAAA"}),
        json!({"kty": "OKP", "crv": "X25519"}),
    ];
    for change in changes {
        let mut key = good.clone();
        for (name, value) in change.as_object().unwrap() {
            key[name] = value.clone();
        }
        assert!(Jwk::from_json(&key.to_string()).is_err(), "{key}");
    }
    let twice = format!(r#"{{"kty":"EC","kty":"EC","crv":"P-256","x":"{x}","y":"{x}"}}"#);
    assert!(Jwk::from_json(&twice).is_err());
}

// Attack: forged or misdirected tokens.
#[test]
fn malformed_tokens_are_refused() {
    let with_header =
        |header: &str| format!("{}.{}.AAAA", base64url(header.as_bytes()), base64url(b"{}"));
    let table = [
        String::new(),
        "..".to_owned(),
        "a.b".to_owned(),
        "a.b.c.d".to_owned(),
        with_header("[]"),
        with_header("{}"),
        with_header("not JSON"),
        with_header(r#"{"alg":"none"}"#),
        with_header(r#"{"alg":"None"}"#),
        with_header(r#"{"alg":"HS256"}"#),
        with_header(r#"{"alg":"es256"}"#),
        with_header(r#"{"alg":"ES256K"}"#),
        with_header(r#"{"alg":["ES256"]}"#),
        with_header(r#"{"alg":"ES256","alg":"ES256"}"#),
        with_header(r#"{"alg":"ES256","crit":["exp"]}"#),
        with_header(r#"{"alg":"ES256","b64":false,"crit":["b64"]}"#),
        with_header(r#"{"alg":"ES256"}"#) + "=",
        with_header(r#"{"alg":"ES256"}"#) + " ",
        with_header(r#"{"alg":"ES256"}"#) + &"A".repeat(16 * 1024),
    ];
    for token in table {
        let error = Jws::parse(&token).unwrap_err();
        assert_eq!(error.kind(), AuthErrorKind::InvalidToken, "{token}");
    }
    assert!(Jws::parse(&with_header(r#"{"alg":"ES256"}"#)).is_ok());
}

// Attack: forged or misdirected tokens.
/// The secret of a forged HS256 token would be the public key, and an embedded key the forger's own.
#[test]
fn symmetric_and_embedded_keys_are_refused() {
    let key = SigningKey::from_pem(RSA).unwrap().with_key_id("one");
    let keys = Jwks::from(vec![key.public_jwk().clone()]);
    let public = serde_json::to_string(key.public_jwk()).unwrap();
    let header = base64url(br#"{"alg":"HS256","kid":"one"}"#);
    let signed = format!("{header}.{}", base64url(br#"{"sub":"root"}"#));
    let secret = ring::hmac::Key::new(ring::hmac::HMAC_SHA256, public.as_bytes());
    let forged = ring::hmac::sign(&secret, signed.as_bytes());
    assert!(Jws::parse(&format!("{signed}.{}", base64url(forged.as_ref()))).is_err());

    // As in a DPoP proof: signed by the embedded key.
    let own = oxmcp_auth::dpop::ProofKey::generate().unwrap();
    let now = oxmcp_auth::UnixTime::from_seconds(1);
    let proof = oxmcp_auth::dpop::Proof::new(&http::Method::GET, "https://a.example", now);
    let forged = Jws::parse(&own.proof(&proof).unwrap()).unwrap();
    assert_eq!(keys.verify(&forged).unwrap_err(), KeyError::Unknown);
}

#[test]
fn keys_are_found_by_name_kind_and_algorithm() {
    let [first, second, unnamed] = [Some("one"), Some("two"), None].map(|name| {
        let key = SigningKey::generate(Algorithm::Es256).unwrap();
        match name {
            Some(name) => key.with_key_id(name),
            None => key,
        }
    });
    let set = json!({"keys": [
        first.public_jwk(),
        second.public_jwk(),
        {"kty": "oct", "k": "c2VjcmV0"},
        {"kty": "EC", "crv": "secp256k1", "x": "AA", "y": "AA"},
    ]});
    let keys = Jwks::parse(set.to_string().as_bytes()).unwrap();
    assert_eq!(keys.keys().len(), 2);
    let verify = |key: &SigningKey, keys: &Jwks| {
        let token = key.sign("JWT", &json!({})).unwrap();
        keys.verify(&Jws::parse(&token).unwrap())
            .map(|key| key.thumbprint())
    };
    assert_eq!(verify(&second, &keys), Ok(second.public_jwk().thumbprint()));
    // A new key of an issuer, with and without a `kid`.
    assert_eq!(verify(&unnamed, &keys), Err(KeyError::Unknown));
    let new = SigningKey::generate(Algorithm::Es256)
        .unwrap()
        .with_key_id("three");
    assert_eq!(verify(&new, &keys), Err(KeyError::Unknown));
    // An attacker's key with a known `kid`.
    let forged = SigningKey::generate(Algorithm::Es256)
        .unwrap()
        .with_key_id("one");
    assert_eq!(verify(&forged, &keys), Err(KeyError::Signature));
    // The `kid` of a key of another type.
    let other = SigningKey::generate(Algorithm::EdDsa)
        .unwrap()
        .with_key_id("one");
    assert_eq!(verify(&other, &keys), Err(KeyError::Unknown));
    // Without a `kid`, each key is tried.
    let keys = Jwks::from(vec![
        first.public_jwk().clone(),
        unnamed.public_jwk().clone(),
    ]);
    assert!(verify(&unnamed, &keys).is_ok());
}

#[test]
fn key_sets_are_bounded() {
    let key = SigningKey::generate(Algorithm::Es256).unwrap();
    let set = |count| json!({"keys": vec![key.public_jwk(); count]}).to_string();
    assert!(Jwks::parse(set(100).as_bytes()).is_ok());
    let error = Jwks::parse(set(101).as_bytes()).unwrap_err();
    assert_eq!(error.kind(), AuthErrorKind::Limit);
    let padded = format!("{}{}", set(1), " ".repeat(256 * 1024));
    assert_eq!(
        Jwks::parse(padded.as_bytes()).unwrap_err().kind(),
        AuthErrorKind::Limit
    );
    for wrong in ["", "[]", "{}", r#"{"keys":{}}"#, "<html>"] {
        assert_eq!(
            Jwks::parse(wrong.as_bytes()).unwrap_err().kind(),
            AuthErrorKind::Malformed
        );
    }
}
