//! Traps of authorization servers that other clients have fallen into.

use oxmcp::{
    auth::AuthErrorKind,
    http::{Login, MemoryTokenStore},
};

use super::*;
use crate::http::client::login::fake::AS;

/// The issuer as some servers spell it in one place and not in the other.
const OTHERWISE: &str = "https://as.example/";

#[tokio::test(start_paused = true)]
async fn issuer_mismatch_error_names_both_issuers() {
    let web = Web::new();
    let other = "https://as.example/x";
    web.fake().issuer = Some((other, other));
    let error = connect(&web, agreeing(&web)).await.unwrap_err();
    assert_eq!(cause(&error).kind(), AuthErrorKind::Untrusted);
    for said in [
        format!("{AS:?}"),
        format!("{other:?}"),
        "configure the issuer".to_owned(),
    ] {
        assert!(error.message().contains(&said), "{error}");
    }
    assert!(!web.asked().contains(&"register".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn issuer_may_differ_by_slash_after_host() {
    for (named, is_taken) in [(OTHERWISE, true), (AS, false)] {
        let web = Web::new();
        web.fake().issuer = Some((OTHERWISE, named));
        let store = MemoryTokenStore::new();
        let login = agreeing(&web).store(store.clone());
        let connected = connect(&web, login.clone()).await;
        assert_eq!(connected.is_ok(), is_taken, "{named}");
        let Ok(session) = connected else {
            assert!(!web.asked().contains(&"authorization_code".to_owned()));
            continue;
        };
        // Refresh, and a new login that reuses the client, find the server again.
        web.fake().expire();
        call(&session, "add").await.unwrap();
        web.fake().revoke();
        web.fake().expire();
        call(&session, "add").await.unwrap();
        assert_eq!(count(&web.asked(), "register"), 1);
        assert_eq!(login.credentials().await.unwrap()[0].issuer, OTHERWISE);
    }
}

#[tokio::test(start_paused = true)]
async fn response_issuer_is_compared_with_the_pinned_one() {
    for (named, is_taken) in [(OTHERWISE, true), (AS, false)] {
        let web = Web::new();
        web.fake().issuer = Some((OTHERWISE, named));
        let connected = connect(&web, agreeing(&web).issuer(OTHERWISE)).await;
        assert_eq!(connected.is_ok(), is_taken, "{named}");
        if let Err(error) = connected {
            assert!(
                error.message().contains("authorization response is from"),
                "{error}"
            );
        }
        let tokens = web.asked().contains(&"authorization_code".to_owned());
        assert_eq!(tokens, is_taken, "{named}");
    }
}

#[tokio::test(start_paused = true)]
async fn requested_resource_is_configurable() {
    type Set = fn(Login) -> Login;
    let set: [(&str, Set); 3] = [
        (MCP, |login| login),
        ("api://other", |login| login.resource("api://other")),
        ("", Login::without_resource),
    ];
    for (resource, set) in set {
        let web = Web::new();
        // The fake servers panic if another resource is requested, on the page of the login or for a token.
        web.fake().resource = resource;
        let session = connect(&web, set(agreeing(&web))).await.unwrap();
        web.fake().expire();
        call(&session, "add").await.unwrap();
        let asked = web.asked();
        assert!(asked.ends_with(&["refresh_token".to_owned()]), "{asked:?}");
    }
}
