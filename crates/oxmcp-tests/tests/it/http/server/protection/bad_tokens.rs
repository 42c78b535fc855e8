//! Table of all kinds of tokens that must be refused.

use std::time::SystemTime;

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD as BASE64};
use oxmcp::{
    auth::{
        UnixTime,
        jose::{Jwks, SigningKey},
        server::TrustedIssuer,
    },
    http::ProtectedResource,
};
use serde_json::{Value, json};
use signatures::{
    hmac,
    rand::SystemRandom,
    signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair},
};

use super::issuer::{ISSUER, Issuer, URL, call, endpoint, refusal};
use crate::http::mounts::mounts;

/// A key whose holder signs any claims, under any header.
pub(super) struct Forger {
    pair: EcdsaKeyPair,
    pub(super) key: SigningKey,
}

impl Forger {
    pub(super) fn new() -> Self {
        let random = SystemRandom::new();
        let algorithm = &ECDSA_P256_SHA256_FIXED_SIGNING;
        let der = EcdsaKeyPair::generate_pkcs8(algorithm, &random).unwrap();
        let pair = EcdsaKeyPair::from_pkcs8(algorithm, der.as_ref(), &random).unwrap();
        let key = SigningKey::from_pkcs8_der(der.as_ref()).unwrap();
        Self {
            pair,
            key: key.with_key_id("one"),
        }
    }

    /// The signed token with this header and these claims, which are not checked to be JSON.
    pub(super) fn sign(&self, header: &str, claims: &str) -> String {
        let signed = unsigned(header, claims);
        let signature = self.pair.sign(&SystemRandom::new(), signed.as_bytes());
        format!("{signed}.{}", BASE64.encode(signature.unwrap()))
    }

    /// The public key, as a header contains it.
    pub(super) fn jwk(&self) -> Value {
        serde_json::to_value(self.key.public_jwk()).unwrap()
    }
}

fn unsigned(header: &str, claims: &str) -> String {
    format!("{}.{}", BASE64.encode(header), BASE64.encode(claims))
}

/// A valid header with these changes; `null` removes a member.
fn header(changes: &Value) -> String {
    changed(
        json!({"alg": "ES256", "typ": "at+jwt", "kid": "one"}),
        changes,
    )
}

fn claims(changes: &Value) -> String {
    changed(Issuer::claims("mcp"), changes)
}

pub(super) fn changed(mut object: Value, changes: &Value) -> String {
    for (name, value) in changes.as_object().unwrap() {
        object[name] = value.clone();
    }
    object
        .as_object_mut()
        .unwrap()
        .retain(|_, it| !it.is_null());
    object.to_string()
}

/// The JSON with its member of that name twice, first with the value `first`.
fn doubled(json: &str, name: &str, first: &Value) -> String {
    let member = format!("\"{name}\":");
    assert!(json.contains(&member));
    json.replacen(&member, &format!("{member}{first},{member}"), 1)
}

/// An issuer with a key for ES256 and one for RS256.
struct Trusted {
    forger: Forger,
    rsa: SigningKey,
}

impl Trusted {
    fn new() -> Self {
        let pem = include_str!("../../../../../../oxmcp-auth/tests/keys/rsa2048.pem");
        Self {
            forger: Forger::new(),
            rsa: SigningKey::from_pem(pem).unwrap().with_key_id("rsa"),
        }
    }

    fn resource(&self) -> ProtectedResource {
        let keys = [&self.forger.key, &self.rsa].map(|key| key.public_jwk().clone());
        let issuer = TrustedIssuer::new(ISSUER).keys(Jwks::from(keys.to_vec()));
        ProtectedResource::new(URL).issuer(issuer)
    }
}

/// Tokens with wrong algorithms, and with signatures by keys that are not secret.
fn algorithms(trusted: &Trusted) -> Vec<(String, String)> {
    let mut all = Vec::new();
    let good = claims(&json!({}));
    for algorithm in [
        "none", "None", "nOnE", "", "HS256", "ES256K", "RS1", "es256",
    ] {
        let header = header(&json!({"alg": algorithm}));
        all.push((
            format!("the algorithm {algorithm:?}"),
            trusted.forger.sign(&header, &good),
        ));
        let unsigned = unsigned(&header, &good);
        all.push((
            format!("{algorithm:?} and no signature"),
            format!("{unsigned}."),
        ));
    }
    for algorithm in ["RS256", "PS256", "ES384", "EdDSA"] {
        for kid in ["one", "rsa"] {
            let header = header(&json!({"alg": algorithm, "kid": kid}));
            let name = format!("{algorithm} in place of ES256, by the key {kid}");
            all.push((name, trusted.forger.sign(&header, &good)));
        }
    }
    let public = serde_json::to_value(trusted.rsa.public_jwk()).unwrap();
    let modulus = BASE64.decode(public["n"].as_str().unwrap()).unwrap();
    for secret in [modulus, public.to_string().into_bytes(), Vec::new()] {
        let signed = unsigned(&header(&json!({"alg": "HS256", "kid": "rsa"})), &good);
        let code = hmac::sign(
            &hmac::Key::new(hmac::HMAC_SHA256, &secret),
            signed.as_bytes(),
        );
        all.push((
            "a public key as the secret of HS256".to_owned(),
            format!("{signed}.{}", BASE64.encode(code)),
        ));
    }
    all.push((
        "no algorithm".to_owned(),
        trusted.forger.sign(&header(&json!({"alg": null})), &good),
    ));
    all
}

/// Tokens whose headers bring keys and demands of their own.
fn headers(trusted: &Trusted) -> Vec<(String, String)> {
    let good = claims(&json!({}));
    let stranger = Forger::new();
    let evil = "https://evil.example.com/keys";
    let by_stranger = [
        json!({}),
        json!({"kid": null}),
        json!({"kid": null, "jwk": stranger.jwk()}),
        json!({"jwk": stranger.jwk()}),
        json!({"jku": evil}),
        json!({"kid": "two", "jku": evil}),
        json!({"x5u": evil}),
        json!({"x5c": ["AAAA"]}),
        json!({"kid": "../../keys/one"}),
        json!({"kid": ""}),
    ];
    let by_issuer = [
        json!({"kid": "two"}),
        json!({"kid": "rsa"}),
        json!({"kid": ["one"]}),
        json!({"crit": ["exp"], "exp": 1}),
        json!({"crit": []}),
        json!({"crit": ["b64"], "b64": false}),
        json!({"typ": "dpop+jwt"}),
        json!({"typ": "logout+jwt"}),
        json!({"typ": "oauth-id-jag+jwt"}),
        json!({"typ": ""}),
        json!({"typ": 1}),
        json!({"alg": ["ES256"]}),
    ];
    let named =
        |who: &'static str| move |changes: &Value| format!("{who}, the header with {changes}");
    let strange = by_stranger.iter().map(|changes| {
        let token = stranger.sign(&header(changes), &good);
        (named("by a stranger")(changes), token)
    });
    let own = by_issuer.iter().map(|changes| {
        let token = trusted.forger.sign(&header(changes), &good);
        (named("by the issuer")(changes), token)
    });
    let mut all: Vec<_> = strange.chain(own).collect();
    for (name, first) in [
        ("alg", json!("none")),
        ("kid", json!("two")),
        ("typ", json!("x")),
    ] {
        let header = doubled(&header(&json!({})), name, &first);
        all.push((format!("{name} twice"), trusted.forger.sign(&header, &good)));
    }
    all
}

/// Tokens whose claims are not for this server, not of this issuer, not valid now, or that two readers would read differently.
fn wrong_claims(trusted: &Trusted) -> Vec<(String, String)> {
    let now = UnixTime::from(SystemTime::now()).seconds();
    let header = header(&json!({}));
    let changes = [
        json!({"aud": null}),
        json!({"aud": ""}),
        json!({"aud": []}),
        json!({"aud": "https://mcp.example.com"}),
        json!({"aud": "https://mcp.example.com/mcp/"}),
        json!({"aud": "https://mcp.example.com/mcp2"}),
        json!({"aud": "HTTPS://MCP.EXAMPLE.COM/mcp"}),
        json!({"aud": ["https://other.example.com"]}),
        json!({"aud": [[URL]]}),
        json!({"aud": [[[[[URL]]]]]}),
        json!({"aud": {"0": URL}}),
        json!({"aud": [URL, 1]}),
        json!({"iss": null}),
        json!({"iss": "https://evil.example.com"}),
        json!({"iss": "https://auth.example.com/"}),
        json!({"iss": [ISSUER]}),
        json!({"exp": null}),
        json!({"exp": 1}),
        json!({"exp": -1}),
        json!({"exp": now - 61}),
        json!({"exp": (now + 300).to_string()}),
        json!({"exp": 1e300}),
        json!({"exp": [now + 300]}),
        json!({"nbf": now + 120}),
        json!({"iat": now + 120}),
        json!({"sub": null, "client_id": null}),
        json!({"sub": ["ann"]}),
        json!({"cnf": {"x5t#S256": "AAAA"}}),
        json!({"cnf": {"jkt": "AAAA"}}),
    ];
    let mut all: Vec<_> = changes
        .iter()
        .map(|it| (it.to_string(), trusted.forger.sign(&header, &claims(it))))
        .collect();
    let good = claims(&json!({}));
    for (name, first) in [
        ("aud", json!("https://other.example.com")),
        ("iss", json!("https://evil.example.com")),
        ("exp", json!(1)),
        ("sub", json!("bob")),
        ("scope", json!("admin")),
    ] {
        let claims = doubled(&good, name, &first);
        all.push((
            format!("{name} twice"),
            trusted.forger.sign(&header, &claims),
        ));
    }
    for claims in ["", "[]", "\"x\"", "null", "{", "{}x"] {
        all.push((
            format!("the claims {claims:?}"),
            trusted.forger.sign(&header, claims),
        ));
    }
    all
}

/// Tokens of another form, or with another signature.
fn forms(trusted: &Trusted) -> Vec<(String, String)> {
    let good = trusted
        .forger
        .sign(&header(&json!({})), &claims(&json!({})));
    let (signed, signature) = good.rsplit_once('.').unwrap();
    let mut bits = BASE64.decode(signature).unwrap();
    let short = BASE64.encode(&bits[..63]);
    let long = BASE64.encode([&bits[..], &[0]].concat());
    let zeros = BASE64.encode([0; 64]);
    bits[40] ^= 1;
    let flipped = BASE64.encode(&bits);
    let other = unsigned(&header(&json!({})), &claims(&json!({"sub": "bob"})));
    let (head, body) = signed.split_once('.').unwrap();
    [
        ("no signature", signed.to_owned()),
        ("an empty signature", format!("{signed}.")),
        ("a bit that is flipped", format!("{signed}.{flipped}")),
        ("a signature of zeros", format!("{signed}.{zeros}")),
        ("a short signature", format!("{signed}.{short}")),
        ("a long signature", format!("{signed}.{long}")),
        (
            "the signature of other claims",
            format!("{other}.{signature}"),
        ),
        ("four parts", format!("{good}.{signature}")),
        ("five parts", format!("{good}.a.b")),
        ("padding", format!("{signed}.{signature}==")),
        (
            "parts that have changed places",
            format!("{body}.{head}.{signature}"),
        ),
        ("no token", "x".to_owned()),
        ("dots", "...".to_owned()),
    ]
    .map(|(name, token)| (name.to_owned(), token))
    .to_vec()
}

// Attack: forged or misdirected tokens.
#[tokio::test]
async fn every_kind_of_bad_token_is_refused() {
    let trusted = Trusted::new();
    let good = trusted
        .forger
        .sign(&header(&json!({})), &claims(&json!({})));
    let table = [
        algorithms(&trusted),
        headers(&trusted),
        wrong_claims(&trusted),
        forms(&trusted),
    ]
    .concat();
    for mount in mounts!() {
        let endpoint = mount.serve(&endpoint(&trusted.resource())).await;
        let mut taken = Vec::new();
        for (name, token) in &table {
            let answer = call(&endpoint, token, "tools/list", json!({})).await;
            if answer.status() == 200 {
                taken.push(name);
                continue;
            }
            let (status, code, _) = refusal(&answer);
            assert_eq!((status, &*code), (401, "invalid_token"), "{name}");
        }
        assert!(taken.is_empty(), "taken: {taken:#?}");
        // A valid token is accepted, so the endpoint does not just refuse all tokens.
        let served = call(&endpoint, &good, "tools/list", json!({})).await;
        assert_eq!(served.status(), 200);
    }
}

#[tokio::test]
async fn token_over_16_kib_is_refused_though_signed() {
    let trusted = Trusted::new();
    let endpoint = endpoint(&trusted.resource());
    for (bytes, status) in [(11_000, 200), (12_500, 401)] {
        let large = claims(&json!({"roles": "x".repeat(bytes)}));
        let token = trusted.forger.sign(&header(&json!({})), &large);
        let answer = call(&endpoint, &token, "tools/list", json!({})).await;
        assert_eq!(answer.status(), status, "{} bytes", token.len());
    }
}
