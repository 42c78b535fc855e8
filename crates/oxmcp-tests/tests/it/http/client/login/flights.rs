//! Tests of shared requests for tokens, which are sent when tokens are needed, and once for all waiting calls.

use futures_util::future::join_all;
use oxmcp::http::{Login, MemoryTokenStore, TokenStore};

use super::*;

pub(super) const WHOLE: [&str; 5] = [
    "resource metadata",
    "metadata",
    "register",
    "authorize base",
    "authorization_code",
];

#[tokio::test(start_paused = true)]
async fn first_refusal_starts_a_login() {
    let web = Web::new();
    let session = connect(&web, agreeing(&web)).await.unwrap();
    assert_eq!(web.asked(), WHOLE);
    call(&session, "add").await.unwrap();
    assert!(web.asked().is_empty());
}

#[tokio::test(start_paused = true)]
async fn waiting_calls_share_one_refresh() {
    let web = Web::new();
    let session = connect(&web, agreeing(&web)).await.unwrap();
    web.asked();
    for _ in 0..3 {
        web.fake().expire();
        let calls = join_all((0..10).map(|_| call(&session, "add"))).await;
        assert!(calls.iter().all(Result::is_ok), "{calls:?}");
        // The strict server ends all tokens if a refresh token is used twice.
        assert_eq!(web.asked(), ["refresh_token"]);
    }
}

#[tokio::test(start_paused = true)]
async fn expiring_token_is_refreshed_before_use() {
    let web = Web::new();
    web.fake().expires_in = 1;
    let session = connect(&web, agreeing(&web)).await.unwrap();
    web.fake().expires_in = 3600;
    web.fake().log.clear();
    call(&session, "add").await.unwrap();
    let log = web.fake().log.clone();
    assert!(!log.contains(&"mcp 401".to_owned()), "{log:?}");
}

#[tokio::test(start_paused = true)]
async fn unrefreshable_token_is_used_until_it_expires() {
    let web = Web::new();
    web.fake().expires_in = 1;
    let session = connect(&web, agreeing(&web)).await.unwrap();
    web.fake().is_down = true;
    call(&session, "add").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn refused_refresh_logs_in_with_same_client() {
    let web = Web::new();
    let session = connect(&web, agreeing(&web)).await.unwrap();
    web.asked();
    web.fake().expire();
    web.fake().revoke();
    call(&session, "add").await.unwrap();
    let expected = [
        "refresh_token",
        "resource metadata",
        "metadata",
        "authorize base",
        "authorization_code",
    ];
    assert_eq!(web.asked(), expected);
}

#[tokio::test(start_paused = true)]
async fn authorization_server_outage_keeps_users_logged_in() {
    let web = Web::new();
    let session = connect(&web, agreeing(&web)).await.unwrap();
    web.asked();
    web.fake().expire();
    web.fake().is_down = true;
    let error = call(&session, "add").await.unwrap_err();
    assert!(
        error.message().contains("https://as.example/token"),
        "{error}"
    );
    let asked = ["refresh_token", "resource metadata", "metadata"];
    assert_eq!(web.asked(), asked, "nobody is asked to log in");
    web.fake().is_down = false;
    call(&session, "add").await.unwrap();
    assert_eq!(web.asked(), ["refresh_token"]);
}

#[tokio::test(start_paused = true)]
async fn refresh_completes_even_if_abandoned() {
    let web = Web::new();
    let session = connect(&web, agreeing(&web)).await.unwrap();
    web.fake().expire();
    {
        let mut given_up = Box::pin(call(&session, "add"));
        while !web.fake().log.contains(&"refresh_token".to_owned()) {
            let polled = futures_util::poll!(&mut given_up);
            assert!(polled.is_pending());
            tokio::task::yield_now().await;
        }
    }
    web.asked();
    call(&session, "add").await.unwrap();
    let asked = web.asked();
    assert!(
        asked.is_empty(),
        "the token of that refresh is used: {asked:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn scopes_are_added_to_those_already_requested() {
    let web = Web::new();
    web.fake().scoped = vec!["write", "admin"];
    let session = connect(&web, agreeing(&web)).await.unwrap();
    web.asked();
    call(&session, "write").await.unwrap();
    call(&session, "admin").await.unwrap();
    let authorized = web
        .asked()
        .into_iter()
        .filter(|it| it.starts_with("authorize "));
    assert_eq!(
        authorized.collect::<Vec<_>>(),
        ["authorize base write", "authorize base write admin"]
    );
}

#[tokio::test(start_paused = true)]
async fn login_is_stored_for_its_user() {
    let (web, store) = (Web::new(), MemoryTokenStore::new());
    let first = connect(&web, agreeing(&web).user("a").store(store.clone()))
        .await
        .unwrap();
    drop(first);
    web.asked();
    let again = Login::non_interactive().user("a").store(store.clone());
    let session = connect(&web, again).await.unwrap();
    call(&session, "add").await.unwrap();
    assert!(web.asked().is_empty());
    let other = Login::non_interactive().user("b").store(store.clone());
    assert!(connect(&web, other).await.unwrap_err().is_authorization());
    assert!(!format!("{store:?}").contains("hunter"));
}

#[tokio::test(start_paused = true)]
async fn endpoints_of_one_store_share_the_first_tokens() {
    let (web, store) = (Web::new(), MemoryTokenStore::new());
    let one = connect(&web, agreeing(&web).store(store.clone()))
        .await
        .unwrap();
    let other = connect(&web, Login::non_interactive().store(store))
        .await
        .unwrap();
    web.asked();
    web.fake().expire();
    call(&one, "add").await.unwrap();
    call(&other, "add").await.unwrap();
    assert_eq!(web.asked(), ["refresh_token"]);
}

#[tokio::test(start_paused = true)]
async fn login_may_take_longer_than_a_call() {
    let web = Web::new();
    let slow = web.clone();
    let login = Login::with_redirect(REDIRECT, move |url| {
        let web = slow.clone();
        async move {
            tokio::time::sleep(std::time::Duration::from_secs(300)).await;
            Ok(web.agree(&url))
        }
    });
    let session = connect(&web, login).await.unwrap();
    web.fake().expire();
    web.fake().revoke();
    call(&session, "add").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn moved_token_endpoint_leads_to_a_login() {
    let web = Web::new();
    let session = connect(&web, agreeing(&web)).await.unwrap();
    web.fake().expire();
    web.fake().has_moved = true;
    call(&session, "add").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn unreadable_credentials_count_as_missing() {
    let (web, store) = (Web::new(), MemoryTokenStore::new());
    let login = || agreeing(&web).store(store.clone());
    connect(&web, login()).await.unwrap();
    for text in ["", r#"{"version": 1000}"#] {
        for key in store.keys("").await.unwrap() {
            store.save(&key, text.into()).await.unwrap();
        }
        web.asked();
        connect(&web, login()).await.unwrap();
        assert_eq!(web.asked(), WHOLE);
    }
}

#[tokio::test(start_paused = true)]
async fn login_made_by_another_program_is_found() {
    let (web, store) = (Web::new(), MemoryTokenStore::new());
    web.fake().greets_all = true;
    let login = Login::non_interactive().store(store.clone());
    let endpoint = endpoint(web.clone()).login(login.http_client(web.clone()));
    let session = client().connect(endpoint).await.unwrap();
    assert!(call(&session, "add").await.unwrap_err().is_authorization());
    connect(&web, agreeing(&web).store(store)).await.unwrap();
    web.asked();
    call(&session, "add").await.unwrap();
    assert!(web.asked().is_empty());
}
