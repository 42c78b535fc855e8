//! Tests of proofs of possession.

#![expect(
    clippy::unwrap_used,
    reason = "helpers of tests fail like tests; clippy excuses only functions with #[test]"
)]

use http::{HeaderMap, HeaderValue, Method};
use oxmcp_auth::{
    Secret, UnixTime,
    dpop::{
        NonceKeys, Proof, ProofError, ProofKey, ProofVerifier, Proven, ProvenRequest, ReplayCache,
    },
    jose::{Algorithm, SigningKey},
};
use serde_json::{Value, json};

const URL: &str = "https://mcp.example.com/mcp";
const NOW: UnixTime = UnixTime::from_seconds(1_800_000_000);

fn headers(proofs: &[&str]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for proof in proofs {
        headers.append("dpop", HeaderValue::from_str(proof).unwrap());
    }
    headers
}

fn verify(verifier: &ProofVerifier, proof: &str) -> Result<Proven, ProofError> {
    let token = Secret::new("token");
    verifier.verify(
        &ProvenRequest::new(&Method::POST, URL, &headers(&[proof]), &token),
        NOW,
    )
}

/// A proof with members of header and claims changed, signed by the key that it names.
fn changed(header: &Value, claims: &Value) -> String {
    use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD as BASE64};
    use ring::{
        rand::SystemRandom,
        signature::{Ed25519KeyPair, KeyPair as _},
    };

    let pair = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new()).unwrap();
    let pair = Ed25519KeyPair::from_pkcs8(pair.as_ref()).unwrap();
    let jwk = json!({"kty": "OKP", "crv": "Ed25519", "x": BASE64.encode(pair.public_key())});
    let ath = ring::digest::digest(&ring::digest::SHA256, b"token");
    let mut all = [
        json!({"typ": "dpop+jwt", "alg": "EdDSA", "jwk": jwk}),
        json!({"jti": "1", "htm": "POST", "htu": URL, "iat": NOW.seconds(), "ath": BASE64.encode(ath)}),
    ];
    for (part, change) in all.iter_mut().zip([header, claims]) {
        for (name, value) in change.as_object().unwrap() {
            part[name] = value.clone();
        }
    }
    let signed = all.map(|part| BASE64.encode(part.to_string())).join(".");
    let signature = BASE64.encode(pair.sign(signed.as_bytes()));
    format!("{signed}.{signature}")
}

#[test]
fn example_of_the_standard_verifies() {
    // RFC 9449, section 7.1.
    let proof = "eyJ0eXAiOiJkcG9wK2p3dCIsImFsZyI6IkVTMjU2IiwiandrIjp7Imt0eSI6IkVDIiwieCI6Imw4dEZyaHgtMzR0VjNoUklDUkRZOXpDa0RscEJ\
                 oRjQyVVFVZldWQVdCRnMiLCJ5IjoiOVZFNGpmX09rX282NHpiVFRsY3VOSmFqSG10NnY5VERWclUwQ2R2R1JEQSIsImNydiI6IlAtMjU2In19.\
                 eyJqdGkiOiJlMWozVl9iS2ljOC1MQUVCIiwiaHRtIjoiR0VUIiwiaHR1IjoiaHR0cHM6Ly9yZXNvdXJjZS5leGFtcGxlLm9yZy9wcm90ZWN0ZWR\
                 yZXNvdXJjZSIsImlhdCI6MTU2MjI2MjYxOCwiYXRoIjoiZlVIeU8ycjJaM0RaNTNFc05yV0JiMHhXWG9hTnk1OUlpS0NBcWtzbVFFbyJ9.\
                 2oW9RP35yRqzhrtNP86L-Ey71EOptxRimPPToA1plemAgR6pxHF8y6-yqyVnmcw6Fy1dqd-jfxSYoMxhAJpLjA";
    let request = (
        headers(&[proof]),
        Secret::new("Kz~8mXK1EalYznwH-LC-1fBAo.4Ljp~zsPE_NeO.gxU"),
    );
    let url = "https://resource.example.org/protectedresource";
    let request = ProvenRequest::new(&Method::GET, url, &request.0, &request.1);
    let proven = ProofVerifier::new().verify(&request, UnixTime::from_seconds(1_562_262_618));
    assert_eq!(
        proven.unwrap().thumbprint,
        "0ZcOCORZNYy-DWpqq30jZyJGHTN0d2HglBV3uiguA4I"
    );
}

#[test]
fn proof_is_verified_and_used_once() {
    let key = ProofKey::generate().unwrap();
    let token = Secret::new("token");
    // Query and fragment are not in a proof.
    let url = format!("{URL}?a=b#c");
    let proof = Proof::new(&Method::POST, &url, NOW).access_token(&token);
    let first = key.proof(&proof).unwrap();
    let proven = verify(&ProofVerifier::new(), &first).unwrap();
    assert_eq!(proven.thumbprint, key.thumbprint());

    let seen = ReplayCache::default();
    assert!(seen.insert(proven.id, proven.until, NOW));
    assert!(!seen.insert(proven.id, proven.until, proven.until));
    let second = verify(&ProofVerifier::new(), &key.proof(&proof).unwrap()).unwrap();
    assert!(seen.insert(second.id, second.until, NOW));
    // A proof that is too old to be valid is no longer stored.
    assert!(seen.insert(proven.id, proven.until, proven.until.plus(1)));
}

#[test]
fn proof_is_single_use_even_at_capacity() {
    let seen = ReplayCache::default();
    let until = NOW.plus(60);
    let id = |number: u32| {
        let mut id = [0; 32];
        id[..4].copy_from_slice(&number.to_be_bytes());
        id
    };
    for number in 0..100_000 {
        assert!(seen.insert(id(number), until, NOW));
    }
    assert!(!seen.insert(id(0), until, NOW));
    // One more evicts only the oldest.
    assert!(seen.insert(id(100_000), until, NOW));
    assert!(!seen.insert(id(1), until, NOW));
    // Expired proofs are forgotten.
    assert!(seen.insert(id(1), until, until.plus(1)));
}

#[test]
fn invalid_proofs_are_refused() {
    let none = json!({});
    assert!(verify(&ProofVerifier::new(), &changed(&none, &none)).is_ok());
    let private = json!({"kty": "OKP", "crv": "Ed25519", "x": "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo", "d": "AA"});
    let other = SigningKey::generate(Algorithm::EdDsa).unwrap();
    let table = [
        (json!({"typ": "JWT"}), none.clone()),
        (json!({"typ": null}), none.clone()),
        (json!({"alg": "none"}), none.clone()),
        (json!({"alg": "ES256"}), none.clone()),
        (json!({"alg": "RS256"}), none.clone()),
        (json!({"jwk": null}), none.clone()),
        (json!({"jwk": private}), none.clone()),
        (json!({"jwk": other.public_jwk()}), none.clone()),
        (json!({"crit": ["b64"]}), none.clone()),
        (none.clone(), json!({"jti": ""})),
        (none.clone(), json!({"jti": null})),
        (none.clone(), json!({"jti": "a".repeat(257)})),
        (none.clone(), json!({"htm": "GET"})),
        (none.clone(), json!({"htm": "post"})),
        (
            none.clone(),
            json!({"htu": "https://mcp.example.com/other"}),
        ),
        (none.clone(), json!({"htu": "https://evil.example.com/mcp"})),
        (none.clone(), json!({"htu": "http://mcp.example.com/mcp"})),
        (
            none.clone(),
            json!({"htu": "https://mcp.example.com:8443/mcp"}),
        ),
        (none.clone(), json!({"htu": "/mcp"})),
        (none.clone(), json!({"iat": NOW.seconds() - 301})),
        (none.clone(), json!({"iat": NOW.seconds() + 301})),
        (none.clone(), json!({"iat": -1})),
        (none.clone(), json!({"iat": 1e300})),
        (none.clone(), json!({"ath": null})),
        (
            none.clone(),
            json!({"ath": "fUHyO2r2Z3DZ53EsNrWBb0xWXoaNy59IiKCAqksmQEo"}),
        ),
    ];
    for (header, claims) in table {
        let outcome = verify(&ProofVerifier::new(), &changed(&header, &claims));
        assert!(
            matches!(outcome, Err(ProofError::Invalid(_))),
            "{header} {claims}"
        );
    }
    let fine = [
        json!({"htu": "HTTPS://MCP.example.com:443/mcp?a=b#c"}),
        json!({"iat": NOW.seconds() - 300}),
        json!({"iat": NOW.seconds() + 300}),
    ];
    for claims in fine {
        assert!(
            verify(&ProofVerifier::new(), &changed(&none, &claims)).is_ok(),
            "{claims}"
        );
    }
    let proof = changed(&none, &none);
    for proofs in [&[][..], &[proof.as_str(), proof.as_str()]] {
        let (headers, token) = (headers(proofs), Secret::new("token"));
        let request = ProvenRequest::new(&Method::POST, URL, &headers, &token);
        let outcome = ProofVerifier::new().verify(&request, NOW);
        assert!(matches!(outcome, Err(ProofError::Invalid(_))));
    }
}

#[test]
fn nonces_are_demanded_and_checked() {
    let keys = NonceKeys::new(&[1; 32]);
    let verifier = ProofVerifier::new().require_nonces(keys.clone());
    let with = |nonce: &str| verify(&verifier, &changed(&json!({}), &json!({"nonce": nonce})));
    let Err(ProofError::Nonce(fresh)) = verify(&verifier, &changed(&json!({}), &json!({}))) else {
        panic!("a proof without a nonce is refused with one");
    };
    assert!(with(&fresh).is_ok());
    let before = UnixTime::from_seconds(NOW.seconds() - 301);
    let foreign = NonceKeys::new(&[2; 32]);
    let shortened = fresh.get(..fresh.len() - 4).unwrap();
    for nonce in [
        &keys.make(before),
        &foreign.make(NOW),
        &keys.make(NOW.plus(301)),
        shortened,
        "",
        "é",
    ] {
        assert!(matches!(with(nonce), Err(ProofError::Nonce(_))), "{nonce}");
    }
    // Rotation: nonces of the old key are accepted as well as those of the new one.
    let both = NonceKeys::new(&[2; 32]).also_accept(&[1; 32]);
    let verifier = ProofVerifier::new().require_nonces(both);
    let proof = changed(&json!({}), &json!({"nonce": fresh}));
    assert!(verify(&verifier, &proof).is_ok());
}
