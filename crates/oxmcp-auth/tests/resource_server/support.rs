//! Helpers of these tests: a scripted issuer and its responses.

use http::{HeaderMap, HeaderValue, StatusCode, header};
use oxmcp_auth::{
    Body, Response, ScopeSet, Secret, UnixTime,
    jose::{Algorithm, Jwks, SigningKey},
    server::{
        Fetch, Introspection, Refusal, ResourceServer, TokenVerifier, TrustedIssuer, Verification,
    },
};
use serde_json::{Value, json};

pub(crate) const RESOURCE: &str = "https://mcp.example.com/mcp";
pub(crate) const ISSUER: &str = "https://auth.example.com/tenant";
pub(crate) const NOW: UnixTime = UnixTime::from_seconds(1_800_000_000);

pub(crate) fn key(id: &str) -> SigningKey {
    SigningKey::generate(Algorithm::Es256)
        .unwrap()
        .with_key_id(id)
}

pub(crate) fn claims() -> Value {
    json!({
        "iss": ISSUER, "aud": RESOURCE, "sub": "ann", "client_id": "editor", "scope": "mcp:read mcp:write",
        "iat": NOW.seconds(), "exp": NOW.seconds() + 300,
    })
}

pub(crate) fn with(changes: &Value) -> Value {
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

/// The claims with these changes; members that are null stay so.
pub(crate) fn overlaid(changes: &Value) -> Value {
    let mut all = claims();
    let changes = changes.as_object().unwrap();
    all.as_object_mut().unwrap().extend(changes.clone());
    all
}

pub(crate) fn token(key: &SigningKey, claims: &Value) -> Secret {
    Secret::new(key.sign("at+jwt", claims).unwrap())
}

pub(crate) fn set(keys: &[&SigningKey]) -> Value {
    let keys: Vec<_> = keys.iter().map(|key| key.public_jwk()).collect();
    json!({"keys": keys})
}

/// A verifier that knows the keys of the issuer.
pub(crate) fn fixed(key: &SigningKey) -> TokenVerifier {
    let keys = Jwks::from(vec![key.public_jwk().clone()]);
    let issuer = TrustedIssuer::new(ISSUER).keys(keys);
    TokenVerifier::new([RESOURCE])
        .unwrap()
        .issuer(issuer)
        .unwrap()
}

/// A verifier that fetches them.
pub(crate) fn fetching() -> TokenVerifier {
    let issuer = TrustedIssuer::new(ISSUER).keys_at("https://auth.example.com/keys");
    TokenVerifier::new([RESOURCE])
        .unwrap()
        .issuer(issuer)
        .unwrap()
}

pub(crate) fn ok(body: &Value) -> Result<Response, String> {
    Ok(Response::new(Body::from(body.to_string())))
}

pub(crate) fn status(status: u16) -> Result<Response, String> {
    let mut response = Response::new(Body::default());
    *response.status_mut() = StatusCode::from_u16(status).unwrap();
    Ok(response)
}

pub(crate) fn answered(status: u16, body: &Value) -> Result<Response, String> {
    let mut response = ok(body)?;
    *response.status_mut() = StatusCode::from_u16(status).unwrap();
    Ok(response)
}

#[track_caller]
pub(crate) fn fetch(verification: Verification) -> Fetch {
    match verification {
        Verification::Fetch(fetch) => fetch,
        other => panic!("{other:?}"),
    }
}

#[track_caller]
pub(crate) fn refusal(verification: Verification) -> Refusal {
    match verification {
        Verification::Refused(refusal) => refusal,
        other => panic!("{other:?}"),
    }
}

pub(crate) fn is_valid(verification: &Verification) -> bool {
    matches!(verification, Verification::Valid(_))
}

pub(crate) fn headers(name: &str, values: &[&str]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for value in values {
        let name = header::HeaderName::from_bytes(name.as_bytes()).unwrap();
        headers.append(name, HeaderValue::from_str(value).unwrap());
    }
    headers
}

pub(crate) fn introspecting() -> TokenVerifier {
    let introspection = Introspection::new(ISSUER, "https://auth.example.com/introspect")
        .basic("mcp server", &Secret::new("p:ss"));
    TokenVerifier::new([RESOURCE])
        .unwrap()
        .introspection(introspection)
}

pub(crate) fn server() -> ResourceServer {
    ResourceServer::new(RESOURCE, [ISSUER])
        .unwrap()
        .scopes(ScopeSet::parse("mcp:read"))
}

pub(crate) fn refusal_of_a_verifier_that_is_down() -> Refusal {
    let verifier = fetching();
    let token = token(&key("one"), &claims());
    let fetch = fetch(verifier.verify(&token, NOW));
    verifier.fetched(&fetch, Err("secret reason".to_owned()), NOW);
    refusal(verifier.verify(&token, NOW))
}
