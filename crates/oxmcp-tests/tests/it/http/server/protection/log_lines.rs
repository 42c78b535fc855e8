//! Log lines of a protected endpoint, which contain no token and no secret, at any level.

use std::time::SystemTime;

use http::{Method, StatusCode};
use http_body_util::BodyExt;
use oxmcp::{
    auth::{
        Secret,
        dpop::{Proof, ProofKey, ProofVerifier},
        server::Introspection,
    },
    http::LegacySse,
};
use serde_json::json;

use super::issuer::{ISSUER, Issuer, URL, endpoint, files, whoami};
use crate::http::log_lines::LogLines;
use crate::http::mounts::mounts;
use crate::http::server::peer::{modern_builder, send};
use crate::http::sse_2024::Client;
use crate::support::{modern, request, subscribe};

/// A DPoP proof for a token.
fn proof(key: &ProofKey, token: &str) -> String {
    let token = Secret::new(token);
    let proof = Proof::new(&Method::POST, URL, SystemTime::now().into());
    key.proof(&proof.access_token(&token)).unwrap()
}

// Attack: leaks of secrets.
#[tokio::test]
async fn tokens_never_appear_in_logs() {
    let lines = LogLines::default();
    let _guard = subscribe(lines.clone());
    let issuer = Issuer::new();
    let mut down = Issuer::new();
    down.is_down = true;
    let key = ProofKey::generate().unwrap();
    let mut claims = Issuer::claims("mcp");
    claims["cnf"] = json!({"jkt": key.thumbprint()});
    let bound = issuer.sign(&claims);
    let mut ended = Issuer::claims("mcp");
    ended["exp"] = json!(1);
    let protecting = |issuer: &Issuer| {
        let introspection = Introspection::new(
            "https://opaque.example.com",
            "https://auth.example.com/introspect",
        )
        .basic("files", &Secret::new("hunter-of-the-server"));
        let resource = issuer.resource().dpop(ProofVerifier::new());
        resource.introspection(introspection)
    };
    // The secret, and the start of the id and the secret as they are sent (Base64).
    let mut secrets = vec![
        "hunter-of-the-server".to_owned(),
        "ZmlsZXM6aHVudGVy".to_owned(),
    ];
    for mount in mounts!() {
        let good = mount.serve(&endpoint(&protecting(&issuer))).await;
        let failing = mount.serve(&endpoint(&protecting(&down))).await;
        let tokens = [
            (issuer.token("mcp"), StatusCode::OK),
            ("opaque-hunter".to_owned(), StatusCode::OK),
            (issuer.sign(&ended), StatusCode::UNAUTHORIZED),
            (Issuer::new().token("mcp"), StatusCode::UNAUTHORIZED),
            ("invented-hunter".to_owned(), StatusCode::UNAUTHORIZED),
            ("malformed-hunter,".to_owned(), StatusCode::BAD_REQUEST),
        ];
        for (token, expected) in tokens {
            assert_eq!(whoami(&good, &token).await.0, expected, "{token}");
            whoami(&failing, &token).await;
            secrets.push(token);
        }
        let message = modern(1, "tools/list", json!({}));
        let proofs = [
            proof(&key, &bound),
            proof(&key, "another"),
            "no-proof-hunter".to_owned(),
        ];
        for sent in proofs {
            let request = modern_builder(&message)
                .header("authorization", format!("DPoP {bound}"))
                .header("dpop", &sent);
            let answer = send(&good, request, message.to_string()).await;
            answer.into_body().collect().await.unwrap();
            secrets.push(sent);
        }
        secrets.push(bound.clone());
    }
    let token = issuer.token("files:write");
    let service = LegacySse::from(files()).protect(protecting(&issuer));
    let mut client = Client::opened_with(&service, &token).await;
    client.ask(request(1, "ping", json!({}))).await;
    secrets.push(token);
    let lines = lines.take();
    assert!(
        lines.iter().any(|it| it.contains(ISSUER)),
        "nothing is heard"
    );
    for secret in &secrets {
        let found = lines.iter().find(|it| it.contains(secret));
        assert_eq!(found, None, "{secret:?}");
    }
}
