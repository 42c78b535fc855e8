//! Tests of the cache, which gives the answers for one login to no other login.

use oxmcp::http::MemoryTokenStore;

use super::*;

async fn tools(session: &ClientSession) -> String {
    let tools = session.tools().all().await.unwrap();
    tools[0].name.to_string()
}

#[tokio::test(start_paused = true)]
async fn a_login_in_mid_session_leaves_what_the_one_before_was_told() {
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

#[tokio::test(start_paused = true)]
async fn attack_23_an_answer_belongs_to_the_login_that_it_came_for() {
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

#[tokio::test(start_paused = true)]
async fn attack_23_sessions_share_answers_within_one_login_alone() {
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
async fn an_answer_to_the_next_login_is_not_kept_for_the_one_before() {
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
async fn an_answer_that_a_refresh_was_needed_for_is_kept() {
    let web = Web::new();
    let session = connect(&web, agreeing(&web)).await.unwrap();
    web.fake().expire();
    let list = tools(&session).await;
    assert_eq!(tools(&session).await, list);
    assert_eq!(count(&web.fake().log, "mcp list"), 1);
}
