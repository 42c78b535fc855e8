//! Proofs of possession (DPoP), good and bad, and their nonces.

use std::time::SystemTime;

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD as BASE64};
use http::Response;
use oxmcp::{
    auth::{
        Challenge, UnixTime,
        dpop::{NonceKeys, ProofVerifier},
    },
    http::{ResponseBody, StreamableHttp},
};
use serde_json::{Value, json};
use signatures::digest::{SHA256, digest};

use super::{
    bad_tokens::{Forger, changed},
    issuer::{Issuer, URL, endpoint},
};
use crate::http::server::peer::{header, modern_builder, send};
use crate::support::modern;

/// A client with a key, and the token that is bound to the key.
struct Bound {
    forger: Forger,
    token: String,
}

impl Bound {
    fn new(issuer: &Issuer) -> Self {
        let forger = Forger::new();
        let mut claims = Issuer::claims("mcp");
        claims["cnf"] = json!({"jkt": forger.key.public_jwk().thumbprint()});
        Self {
            token: issuer.sign(&claims),
            forger,
        }
    }

    /// A valid proof with these changes of its header and its claims; `null` removes a member.
    fn proof(&self, headers: &Value, claims: &Value) -> String {
        let header = json!({"typ": "dpop+jwt", "alg": "ES256", "jwk": self.forger.jwk()});
        let now = UnixTime::from(SystemTime::now()).seconds();
        let hash = digest(&SHA256, self.token.as_bytes());
        let id = signatures::rand::generate::<[u8; 16]>(&signatures::rand::SystemRandom::new());
        let right = json!({
            "jti": BASE64.encode(id.unwrap().expose()), "htm": "POST", "htu": URL, "iat": now,
            "ath": BASE64.encode(hash),
        });
        let (header, claims) = (changed(header, headers), changed(right, claims));
        self.forger.sign(&header, &claims)
    }

    fn right(&self) -> String {
        self.proof(&json!({}), &json!({}))
    }

    async fn send(
        &self,
        endpoint: &StreamableHttp,
        scheme: &str,
        proofs: &[&str],
    ) -> Response<ResponseBody> {
        let message = modern(1, "tools/list", json!({}));
        let authorization = format!("{scheme} {}", self.token);
        let request = modern_builder(&message).header("authorization", authorization);
        let add = |request: http::request::Builder, proof: &&str| request.header("dpop", *proof);
        let request = proofs.iter().fold(request, add);
        send(endpoint, request, message.to_string()).await
    }
}

/// The code with which a request was refused, from the DPoP challenge.
fn code(response: &Response<ResponseBody>) -> String {
    assert_eq!(response.status(), 401);
    let challenges = Challenge::from_headers(response.headers());
    let challenge = challenges.iter().find(|it| it.is("DPoP")).unwrap();
    challenge.parameter("error").unwrap_or_default().to_owned()
}

#[tokio::test]
async fn every_kind_of_invalid_proof_is_refused() {
    let issuer = Issuer::new();
    let endpoint = endpoint(&issuer.resource().dpop(ProofVerifier::new()));
    let bound = Bound::new(&issuer);
    let stranger = Forger::new();
    let now = UnixTime::from(SystemTime::now()).seconds();
    let mut private = bound.forger.jwk();
    private["d"] = json!("AAAA");
    let of_header = [
        json!({"typ": "JWT"}),
        json!({"typ": null}),
        json!({"alg": "none"}),
        json!({"alg": "HS256"}),
        json!({"alg": "RS256"}),
        json!({"alg": "ES384"}),
        json!({"jwk": null}),
        json!({"jwk": null, "kid": "one"}),
        json!({"jwk": private}),
        // The proof is signed with one key, and carries another key.
        json!({"jwk": stranger.jwk()}),
        json!({"crit": ["htu"]}),
    ];
    let of_claims = [
        json!({"htm": "GET"}),
        json!({"htm": "post"}),
        json!({"htm": null}),
        json!({"htu": "https://mcp.example.com/other"}),
        json!({"htu": "http://mcp.example.com/mcp"}),
        json!({"htu": "https://evil.example.com/mcp"}),
        json!({"htu": "/mcp"}),
        json!({"htu": null}),
        json!({"ath": null}),
        json!({"ath": "AAAA"}),
        json!({"ath": BASE64.encode(digest(&SHA256, b"another token"))}),
        json!({"iat": now - 310}),
        json!({"iat": now + 310}),
        json!({"iat": null}),
        json!({"iat": now.to_string()}),
        json!({"jti": null}),
        json!({"jti": ""}),
        json!({"jti": "x".repeat(257)}),
    ];
    let nothing = json!({});
    let headers = of_header.iter().map(|it| (it, &nothing));
    let claims = of_claims.iter().map(|it| (&nothing, it));
    let mut taken = Vec::new();
    for (header, claims) in headers.chain(claims) {
        let proof = bound.proof(header, claims);
        let response = bound.send(&endpoint, "DPoP", &[&proof]).await;
        if response.status() == 200 {
            taken.push(format!("{header} {claims}"));
        } else {
            assert_eq!(code(&response), "invalid_dpop_proof", "{header} {claims}");
        }
    }
    assert!(taken.is_empty(), "taken: {taken:#?}");
    let two = [bound.right(), bound.right()];
    for proofs in [&[][..], &["x"], &two.each_ref().map(String::as_str)] {
        let refused = bound.send(&endpoint, "DPoP", proofs).await;
        assert_eq!(code(&refused), "invalid_dpop_proof", "{proofs:?}");
    }
    // The query and the fragment of `htu` do not count.
    for claims in [
        json!({}),
        json!({"htu": format!("{URL}?a=b#c")}),
        json!({"iat": now - 290}),
    ] {
        let proof = bound.proof(&json!({}), &claims);
        let served = bound.send(&endpoint, "DPoP", &[&proof]).await;
        assert_eq!(served.status(), 200, "{claims}");
    }
}

#[tokio::test]
async fn bound_token_is_valid_only_with_its_key() {
    let issuer = Issuer::new();
    let endpoint = endpoint(&issuer.resource().dpop(ProofVerifier::new()));
    let bound = Bound::new(&issuer);
    // The proof itself is valid, but the token was stolen.
    let thief = Bound {
        forger: Forger::new(),
        token: bound.token.clone(),
    };
    let refused = thief.send(&endpoint, "DPoP", &[&thief.right()]).await;
    assert_eq!(code(&refused), "invalid_dpop_proof");
    let right = bound.right();
    for proofs in [&[][..], &[&*right]] {
        let refused = bound.send(&endpoint, "Bearer", proofs).await;
        assert_eq!(code(&refused), "invalid_token", "{proofs:?}");
    }
    let free = Bound {
        forger: Forger::new(),
        token: issuer.token("mcp"),
    };
    let refused = free.send(&endpoint, "DPoP", &[&free.right()]).await;
    assert_eq!(code(&refused), "invalid_token");
    let served = free.send(&endpoint, "Bearer", &[]).await;
    assert_eq!(served.status(), 200);
    let once = bound.right();
    assert_eq!(bound.send(&endpoint, "DPoP", &[&once]).await.status(), 200);
    let again = bound.send(&endpoint, "DPoP", &[&once]).await;
    assert_eq!(code(&again), "invalid_dpop_proof");
}

#[tokio::test]
async fn nonces_are_valid_at_nodes_sharing_keys() {
    let issuer = Issuer::new();
    let node = |keys: NonceKeys| {
        let proofs = ProofVerifier::new().require_nonces(keys);
        endpoint(&issuer.resource().require_dpop(proofs))
    };
    let (old, new) = ([1; 32], [2; 32]);
    let first = node(NonceKeys::new(&old));
    let second = node(NonceKeys::new(&old));
    let rotated = node(NonceKeys::new(&new).also_accept(&old));
    let stranger = node(NonceKeys::new(&[3; 32]));
    let bound = Bound::new(&issuer);
    let with = |nonce: &str| bound.proof(&json!({}), &json!({"nonce": nonce}));
    let refused = bound.send(&first, "DPoP", &[&bound.right()]).await;
    assert_eq!(code(&refused), "use_dpop_nonce");
    let nonce = header(refused.headers(), "dpop-nonce").to_owned();
    assert!(!nonce.is_empty());
    for node in [&first, &second, &rotated] {
        let served = bound.send(node, "DPoP", &[&with(&nonce)]).await;
        assert_eq!(served.status(), 200);
    }
    for (node, nonce) in [(&stranger, &*nonce), (&first, ""), (&first, "AAAA")] {
        let refused = bound.send(node, "DPoP", &[&with(nonce)]).await;
        assert_eq!(code(&refused), "use_dpop_nonce", "{nonce}");
        assert!(refused.headers().contains_key("dpop-nonce"));
    }
}
