//! Tests of refresh tokens: the errors that end them, and the choice of the newest token.

use oxmcp::{
    auth::AuthErrorKind,
    http::{Login, MemoryTokenStore},
};

use super::*;

/// Refusals as servers write them, with the words that an error shows.
const REFUSALS: [(u16, &str, &str); 9] = [
    (400, r#"{"error": "invalid_request"}"#, "invalid_request"),
    (400, r#"{"error": "invalid_scope"}"#, "invalid_scope"),
    (400, r#"{"error": "invalid_target"}"#, "invalid_target"),
    (
        400,
        r#"{"error": "odd", "error_description": "too old"}"#,
        "odd: too old",
    ),
    (
        200,
        r#"{"error": "bad_refresh_token", "error_description": "too old"}"#,
        "bad_refresh_token: too old",
    ),
    (200, "<html>Sign in</html>", "not JSON"),
    (401, "<html>Sign in</html>", "401"),
    (403, "too old", "403: too old"),
    (
        400,
        r#"{"error": {"code": "invalid_grant", "message": "too old"}}"#,
        "invalid_grant: too old",
    ),
];

#[tokio::test(start_paused = true)]
async fn refused_refresh_leads_to_a_login() {
    for (status, body, _) in REFUSALS {
        let web = Web::new();
        web.fake().expires_in = 1;
        let session = connect(&web, agreeing(&web)).await.unwrap();
        web.fake().refuses_refresh = Some((status, body));
        web.asked();
        call(&session, "add").await.unwrap();
        let asked = web.asked();
        assert!(count(&asked, "refresh_token") > 0, "{body}");
        assert_eq!(count(&asked, "authorize"), 0, "the token is still valid");
        // Now the access token is not valid any more, either.
        web.fake().expire();
        call(&session, "add").await.unwrap();
        assert_eq!(count(&web.asked(), "authorize"), 1, "{body}");
    }
}

#[tokio::test(start_paused = true)]
async fn non_interactive_error_quotes_the_refresh_refusal() {
    for (status, body, words) in REFUSALS {
        let (web, store) = (Web::new(), MemoryTokenStore::new());
        connect(&web, agreeing(&web).store(store.clone()))
            .await
            .unwrap();
        let service = Login::non_interactive().store(store);
        let session = connect(&web, service).await.unwrap();
        web.fake().refuses_refresh = Some((status, body));
        web.fake().expire();
        web.asked();
        let failed = call(&session, "add").await.unwrap_err();
        assert_eq!(cause(&failed).kind(), AuthErrorKind::InteractionRequired);
        assert!(failed.message().contains(words), "{failed}");
        assert_eq!(count(&web.asked(), "authorize"), 0);
    }
}

#[tokio::test(start_paused = true)]
async fn temporary_refresh_failure_is_not_a_refusal() {
    for (status, body) in [
        (500, r#"{"error": "invalid_grant"}"#),
        (503, "<html>"),
        (429, ""),
        (400, r#"{"error": "temporarily_unavailable"}"#),
        (200, r#"{"error": "server_error"}"#),
    ] {
        let web = Web::new();
        let session = connect(&web, agreeing(&web)).await.unwrap();
        web.fake().refuses_refresh = Some((status, body));
        web.fake().expire();
        web.asked();
        let failed = call(&session, "add").await.unwrap_err();
        assert_eq!(cause(&failed).kind(), AuthErrorKind::Unavailable, "{body}");
        let place = "https://as.example/token";
        assert!(failed.message().contains(place), "{failed}");
        assert_eq!(count(&web.asked(), "authorize"), 0, "{body}");
        web.fake().refuses_refresh = None;
        call(&session, "add").await.unwrap();
        assert_eq!(
            count(&web.asked(), "authorize"),
            0,
            "the refresh token was kept"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn newest_refresh_token_is_used_after_token_expiry() {
    let (web, store) = (Web::new(), MemoryTokenStore::new());
    let one = connect(&web, agreeing(&web).store(store.clone())).await;
    let one = one.unwrap();
    let other = Login::non_interactive().store(store.clone());
    let other = connect(&web, other).await.unwrap();
    web.fake().expire();
    web.fake().expires_in = 1;
    call(&one, "add").await.unwrap();
    web.fake().expires_in = 3600;
    web.fake().expire();
    // The first refresh token of the family is used up.
    call(&other, "add").await.unwrap();
    call(&one, "add").await.unwrap();
    assert_eq!(count(&web.asked(), "authorize"), 1);
}

#[tokio::test(start_paused = true)]
async fn successful_operation_resets_the_step_up_limit() {
    let web = Web::new();
    web.fake().scoped = vec!["scope0", "scope1", "scope2", "scope3", "scope4"];
    let session = connect(&web, agreeing(&web)).await.unwrap();
    for i in 0..5 {
        web.fake().needed = Some(format!("scope{i}"));
        call(&session, "add").await.unwrap();
    }
}
