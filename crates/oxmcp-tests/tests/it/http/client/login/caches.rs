//! Tests of the cache, which gives the answers for one login to no other login.

use oxmcp::http::MemoryTokenStore;

use super::*;

async fn tools(session: &ClientSession) -> String {
    let tools = session.tools().all().await.unwrap();
    tools[0].name.to_string()
}

#[tokio::test(start_paused = true)]
async fn mid_session_login_does_not_see_earlier_cache() {
    let web = Web::new();
    let session = connect(&web, agreeing(&web)).await.unwrap();
    let first = tools(&session).await;
    assert_eq!(tools(&session).await, first);
    assert_eq!(count(&web.fake().log, "mcp list"), 1, "it is cached");
    // A refresh belongs to the same login.
    web.fake().expire();
    call(&session, "add").await.unwrap();
    assert_eq!(tools(&session).await, first);
    web.fake().expire();
    web.fake().revoke();
    call(&session, "add").await.unwrap();
    assert_ne!(
        tools(&session).await,
        first,
        "somebody else may have logged in"
    );
    assert_eq!(count(&web.fake().log, "mcp list"), 2);
}

// Attack: private cached answers of another caller.
#[tokio::test(start_paused = true)]
async fn cached_answer_belongs_to_its_login() {
    let web = Web::new();
    let session = connect(&web, agreeing(&web)).await.unwrap();
    web.fake().expire();
    web.fake().revoke();
    // The list is requested with one login, and answered for the next.
    let list = tools(&session).await;
    assert_eq!(tools(&session).await, list);
    assert_eq!(
        count(&web.fake().log, "mcp list"),
        2,
        "{:?}",
        web.fake().log
    );
    assert_eq!(tools(&session).await, list);
    assert_eq!(count(&web.fake().log, "mcp list"), 2);
}

// Attack: private cached answers of another caller.
#[tokio::test(start_paused = true)]
async fn sessions_share_answers_only_within_one_login() {
    let (web, store) = (Web::new(), MemoryTokenStore::new());
    let ours = client();
    let connect = async |user: &str| {
        let login = agreeing(&web).user(user).store(store.clone());
        connect_with(&ours, &web, login).await.unwrap()
    };
    let ann = tools(&connect("ann").await).await;
    assert_eq!(tools(&connect("ann").await).await, ann);
    assert_eq!(count(&web.fake().log, "mcp list"), 1);
    assert_ne!(tools(&connect("bob").await).await, ann);
}

#[tokio::test(start_paused = true)]
async fn answer_to_next_login_skips_previous_logins_cache() {
    let (web, store) = (Web::new(), MemoryTokenStore::new());
    let ours = client();
    let connect = async || {
        let login = agreeing(&web).store(store.clone());
        connect_with(&ours, &web, login).await.unwrap()
    };
    let (quicker, other) = (connect().await, connect().await);
    web.fake().expire();
    web.fake().revoke();
    tools(&quicker).await;
    // This session does not know yet that another session has logged in anew.
    tools(&other).await;
    assert_eq!(count(&web.fake().log, "mcp list"), 2);
}

#[tokio::test(start_paused = true)]
async fn answer_after_a_refresh_is_cached() {
    let web = Web::new();
    let session = connect(&web, agreeing(&web)).await.unwrap();
    web.fake().expire();
    let list = tools(&session).await;
    assert_eq!(tools(&session).await, list);
    assert_eq!(count(&web.fake().log, "mcp list"), 1);
}
