//! Tests of stored credentials.

use std::sync::Arc;

use super::*;
use crate::{
    client::{Client, CredentialKey, Credentials, TokenType, Tokens},
    dpop::ProofKey,
    error::AuthErrorKind,
    jose::{Algorithm, SigningKey},
    scope::ScopeSet,
    secret::Secret,
};

#[test]
fn stored_credentials_round_trip() {
    let client = Client::new("me")
        .unwrap()
        .with_secret("hunter2")
        .issued_by(AS);
    let mut credentials = Credentials::new(server(), Some(client), Some(MCP.to_owned())).unwrap();
    credentials.requested = ScopeSet::parse("a b");
    credentials.tokens = Some(Tokens {
        access_token: "at-hunter2".into(),
        token_type: TokenType::Bearer,
        expires_at: Some(NOW),
        refresh_token: Some("rt-hunter2".into()),
        scopes: ScopeSet::parse("a"),
    });
    assert!(!format!("{credentials:?}").contains("hunter2"));
    let read = Credentials::from_json(&credentials.to_json()).unwrap();
    assert_eq!(read.tokens, credentials.tokens);
    assert_eq!(read.server, credentials.server);
    assert_eq!(
        (read.login, read.requested),
        (credentials.login.clone(), credentials.requested.clone())
    );
    let client = read.client.unwrap();
    assert_eq!((client.id(), client.issuer()), ("me", Some(AS)));
    assert_eq!(format!("{:?}", client.authentication()), "secret");
    let other = Credentials::new(server(), None, None).unwrap();
    assert_ne!(other.login, credentials.login);
}

fn bound(key: ProofKey) -> Credentials {
    let mut credentials = Credentials::new(server(), None, None).unwrap();
    credentials.proof_key = Some(Arc::new(key));
    credentials.tokens = Some(Tokens {
        access_token: "at-hunter2".into(),
        token_type: TokenType::DPoP,
        expires_at: None,
        refresh_token: None,
        scopes: ScopeSet::new(),
    });
    credentials
}

#[test]
fn key_of_bound_tokens_is_stored_with_them() {
    let credentials = bound(ProofKey::generate().unwrap());
    let text = credentials.to_json();
    let stored: serde_json::Value = serde_json::from_str(text.expose()).unwrap();
    let key = stored["proof_key"].as_str().unwrap();
    assert!(!format!("{credentials:?}").contains(key));
    let read = Credentials::from_json(&text).unwrap();
    assert_eq!(read.tokens, credentials.tokens);
    let thumbprint = |it: &Credentials| it.proof_key.as_ref().unwrap().thumbprint();
    assert_eq!(thumbprint(&read), thumbprint(&credentials));
    assert_eq!(read.to_json(), text);
    for damaged in ["", "hunter2", key.get(4..).unwrap()] {
        let text = text.expose().replace(key, damaged);
        let error = Credentials::from_json(&text.into()).unwrap_err();
        assert_eq!(error.kind(), AuthErrorKind::Malformed);
        assert!(!error.message().contains("hunter2"), "{error}");
    }
}

#[test]
fn bound_tokens_are_not_stored_without_their_key() {
    let own = SigningKey::generate(Algorithm::Es256).unwrap();
    let read = Credentials::from_json(&bound(ProofKey::new(own)).to_json()).unwrap();
    assert!(read.tokens.is_none() && read.proof_key.is_none());
    let text = bound(ProofKey::generate().unwrap()).to_json();
    let mut stored: serde_json::Value = serde_json::from_str(text.expose()).unwrap();
    stored.as_object_mut().unwrap().remove("proof_key");
    let read = Credentials::from_json(&stored.to_string().into()).unwrap();
    assert!(read.tokens.is_none());
}

#[test]
fn unreadable_credentials_error_shows_no_content() {
    for text in [
        "",
        "{}",
        "hunter2",
        r#"{"version": 1, "login": "hunter2"}"#,
        r#"{"version": "hunter2"}"#,
    ] {
        let error = Credentials::from_json(&Secret::new(text)).unwrap_err();
        assert_eq!(error.kind(), AuthErrorKind::Malformed);
        assert!(!error.message().contains("hunter2"), "{error}");
    }
    let error = Credentials::from_json(&Secret::new(r#"{"version": 2}"#)).unwrap_err();
    assert_eq!(error.kind(), AuthErrorKind::Configuration);
}

#[test]
fn storage_keys_differ_in_each_component() {
    let key = CredentialKey::new("u", AS, MCP);
    for other in [
        CredentialKey::new("v", AS, MCP),
        CredentialKey::new("u", "x", MCP),
        CredentialKey::new("u", AS, "x"),
    ] {
        assert_ne!(key, other);
    }
}
