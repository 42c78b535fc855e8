//! Targets of `oxmcp-auth`.

use std::sync::LazyLock;

use http::{HeaderMap, HeaderValue, Method, header::WWW_AUTHENTICATE};
use oxmcp_auth::{
    Challenge, Response, Secret, UnixTime,
    client::{Conversation, Discovery, DiscoveryOptions},
    dpop::{ProofVerifier, ProvenRequest},
    jose::{Algorithm, Jwk, Jwks, Jws, SigningKey},
    server::{TokenVerifier, TrustedIssuer, Verification},
};

/// Challenges are parsed from any input, and a challenge that is written is parsed as at most one challenge.
pub fn challenge(data: &[u8]) {
    let Ok(value) = HeaderValue::from_bytes(data) else {
        return;
    };
    let read = |value| Challenge::from_headers(&HeaderMap::from_iter([(WWW_AUTHENTICATE, value)]));
    for challenge in read(value) {
        let again = read(challenge.to_header_value());
        assert!(again.len() <= 1, "{challenge}");
    }
}

/// The first line is a key set, the second a token. A token is valid only with the issuer's own signature.
pub fn token(data: &[u8]) {
    static KEY: LazyLock<SigningKey> =
        LazyLock::new(|| SigningKey::generate(Algorithm::Es256).expect("there is randomness"));
    let text = String::from_utf8_lossy(data);
    let (keys, token) = text.split_once('\n').unwrap_or((&text, ""));
    let _ = Jwk::from_json(keys);
    if let (Ok(keys), Ok(token)) = (Jwks::parse(keys.as_bytes()), Jws::parse(token)) {
        let _ = keys.verify(&token);
    }
    let issuer = TrustedIssuer::new("https://auth.example.com");
    let issuer = issuer.keys(Jwks::from(vec![KEY.public_jwk().clone()]));
    let verifier = TokenVerifier::new(["https://mcp.example.com"]);
    let Ok(verifier) = verifier.and_then(|verifier| verifier.issuer(issuer)) else {
        return;
    };
    // The token is verified as it is, and with its claims signed by the right key.
    let now = UnixTime::from_seconds(1_800_000_000);
    let claims: Option<serde_json::Value> = serde_json::from_str(token).ok();
    if let Some(signed) = claims.and_then(|claims| KEY.sign("JWT", &claims).ok()) {
        let _ = verifier.verify(&Secret::new(signed), now);
    }
    let token = Secret::new(token);
    assert!(!matches!(
        verifier.verify(&token, now),
        Verification::Valid(_)
    ));
    if let Ok(proof) = HeaderValue::from_str(token.expose()) {
        let mut headers = HeaderMap::new();
        headers.insert("dpop", proof);
        let request =
            ProvenRequest::new(&Method::POST, "https://mcp.example.com", &headers, &token);
        assert!(ProofVerifier::new().verify(&request, now).is_err());
    }
}

/// Whatever a server responds, its authorization server is rejected, or has an https URL that is exactly in the resource metadata.
pub fn login(data: &[u8]) {
    let now = UnixTime::default();
    let server = "https://mcp.example/mcp";
    let Ok(mut discovery) = Discovery::new(server, None, DiscoveryOptions::default()) else {
        return;
    };
    // Each line is a response.
    for answer in data.split(|byte| *byte == b'\n') {
        let Ok(request) = discovery.request(now) else {
            return;
        };
        assert_eq!(request.uri().scheme_str(), Some("https"));
        match discovery.receive(&Response::new(answer.to_vec().into()), now) {
            Ok(None) => {}
            Ok(Some(found)) => {
                let issuer = &found.server.issuer;
                assert!(issuer.starts_with("https:"), "{issuer}");
                let named = found.resource_metadata.map(|it| it.authorization_servers);
                assert!(named.is_some_and(|named| named.contains(issuer)));
                return;
            }
            Err(_) => return,
        }
    }
}
