//! Tests of credentials that are kept.

use super::*;
use crate::{
    client::{Client, CredentialKey, Credentials, TokenType, Tokens},
    error::AuthErrorKind,
    scope::ScopeSet,
    secret::Secret,
};

#[test]
fn credentials_are_kept_whole() {
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

#[test]
fn what_cannot_be_read_says_so_and_shows_nothing() {
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
fn keys_differ_by_each_of_the_three() {
    let key = CredentialKey::new("u", AS, MCP);
    for other in [
        CredentialKey::new("v", AS, MCP),
        CredentialKey::new("u", "x", MCP),
        CredentialKey::new("u", AS, "x"),
    ] {
        assert_ne!(key, other);
    }
}
