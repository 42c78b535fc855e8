//! Tests of refresh tokens: the errors that end them, and the choice of the newest token.

use oxmcp::http::{Login, MemoryTokenStore};

use super::*;

#[tokio::test(start_paused = true)]
async fn only_a_grant_that_is_not_valid_ends_a_refresh_token() {
    for error in ["invalid_request", "invalid_scope", "invalid_target", "odd"] {
        let web = Web::new();
        web.fake().expires_in = 1;
        let session = connect(&web, agreeing(&web)).await.unwrap();
        web.fake().refuses_refresh = Some(error);
        web.asked();
        call(&session, "add").await.unwrap();
        assert!(count(&web.asked(), "refresh_token") > 0);
        // The access token is not valid any more, either.
        web.fake().expire();
        let failed = call(&session, "add").await.unwrap_err();
        assert_eq!(cause(&failed).oauth_error(), Some(error));
        let place = "https://as.example/token";
        assert!(failed.message().contains(place), "{failed}");
        assert_eq!(count(&web.asked(), "authorize"), 0, "nobody is asked");
        web.fake().refuses_refresh = None;
        call(&session, "add").await.unwrap();
        assert_eq!(count(&web.asked(), "authorize"), 0, "it was kept");
    }
}

#[tokio::test(start_paused = true)]
async fn the_newest_refresh_token_is_used_although_its_access_token_has_ended() {
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
async fn an_operation_that_was_served_may_ask_for_more_again() {
    let web = Web::new();
    web.fake().scoped = vec!["scope0", "scope1", "scope2", "scope3", "scope4"];
    let session = connect(&web, agreeing(&web)).await.unwrap();
    for i in 0..5 {
        web.fake().needed = Some(format!("scope{i}"));
        call(&session, "add").await.unwrap();
    }
}
