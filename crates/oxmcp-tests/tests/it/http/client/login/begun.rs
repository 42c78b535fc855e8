//! Tests of logins in two steps, begin and finish, as in web back ends, and of listing logins and logging out.

use oxmcp::{
    http::{Login, MemoryTokenStore, TokenStore},
    keys::StateKey,
};

use super::*;

/// The login in one process of a web back end.
fn process(web: &Web, store: &MemoryTokenStore) -> Login {
    Login::redirect(REDIRECT)
        .http_client(web.clone())
        .store(store.clone())
        .keys([StateKey::new([7; StateKey::LENGTH])])
}

/// Logs a user in. Returns the sealed attempt, and the callback URL.
async fn log_in(web: &Web, login: &Login) -> (String, String) {
    let attempt = login.begin(MCP).await.unwrap();
    let callback = web.agree(attempt.url());
    login.finish(attempt.sealed(), &callback).await.unwrap();
    (attempt.sealed().to_owned(), callback)
}

async fn refusal(login: &Login, sealed: &str, callback: &str) -> String {
    let error = login.finish(sealed, callback).await.unwrap_err();
    assert!(error.is_authorization(), "{error:?}");
    error.message().to_owned()
}

#[tokio::test(start_paused = true)]
async fn login_can_be_finished_by_another_process() {
    let (web, store) = (Web::new(), MemoryTokenStore::new());
    let attempt = process(&web, &store).user("ann").begin(MCP).await.unwrap();
    assert!(!format!("{attempt:?}").contains("state"));
    let callback = web.agree(attempt.url());
    let (_, query) = callback.split_once('?').unwrap();
    let other = process(&web, &store).user("ann");
    other.finish(attempt.sealed(), query).await.unwrap();
    let asked = [
        "resource metadata",
        "metadata",
        "register",
        "authorize base",
        "authorization_code",
    ];
    assert_eq!(web.asked(), asked);
    let third = process(&web, &store).user("ann");
    connect(&web, third).await.unwrap();
    assert!(web.asked().is_empty());
}

#[tokio::test(start_paused = true)]
async fn key_of_bound_token_travels_with_the_attempt() {
    let (web, store) = (Web::new(), MemoryTokenStore::new());
    let ann = || process(&web, &store).user("ann").dpop();
    let attempt = ann().begin(MCP).await.unwrap();
    assert!(attempt.url().contains("dpop_jkt="));
    let callback = web.agree(attempt.url());
    ann().finish(attempt.sealed(), callback).await.unwrap();
    // The server refuses the token without a proof by that key.
    connect(&web, ann()).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn two_users_share_a_client_but_no_token() {
    let (web, store) = (Web::new(), MemoryTokenStore::new());
    let of = |user: &str| process(&web, &store).user(user);
    let (ann, bob) = (of("ann"), of("bob"));
    log_in(&web, &ann).await;
    let refused = connect(&web, bob.clone()).await.unwrap_err();
    assert!(refused.is_interaction_required(), "{refused:?}");
    log_in(&web, &bob).await;
    let registered = web.asked();
    let registered = registered.iter().filter(|it| *it == "register");
    assert_eq!(registered.count(), 1);
    connect(&web, ann.clone()).await.unwrap();
    connect(&web, bob.clone()).await.unwrap();
    let seen = std::mem::take(&mut web.fake().seen);
    assert!(seen.len() == 2 && seen[0] != seen[1], "{seen:?}");

    ann.logout(MCP).await.unwrap();
    let refused = connect(&web, of("ann")).await.unwrap_err();
    assert!(refused.is_interaction_required());
    connect(&web, of("bob")).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn attempt_is_valid_for_one_user_and_answer() {
    let (web, store) = (Web::new(), MemoryTokenStore::new());
    let (ann, mallory) = (
        process(&web, &store).user("ann"),
        process(&web, &store).user("mallory"),
    );
    let of_ann = ann.begin(MCP).await.unwrap();
    let of_mallory = mallory.begin(MCP).await.unwrap();
    let callback = web.agree(of_ann.url());
    let planted = web.agree(of_mallory.url());
    web.asked();

    // The attempt of another user, and the callback of another user: both would join two users.
    let said = refusal(&mallory, of_ann.sealed(), &callback).await;
    assert!(said.contains("begun for another user"), "{said}");
    let said = refusal(&ann, of_ann.sealed(), &planted).await;
    assert!(said.contains("`state`"), "{said}");
    let keyless = process(&web, &store).user("ann");
    let keyless = keyless.keys([StateKey::new([8; StateKey::LENGTH])]);
    let said = refusal(&keyless, of_ann.sealed(), &callback).await;
    assert!(said.contains("Login::keys"), "{said}");
    assert!(web.asked().is_empty(), "no code is sent");

    ann.finish(of_ann.sealed(), &callback).await.unwrap();
    assert_eq!(web.asked(), ["authorization_code"]);
    let said = refusal(&ann, of_ann.sealed(), &callback).await;
    assert!(said.contains("already finished"), "{said}");
    assert!(web.asked().is_empty(), "a code is sent once");
    // The code is not accepted again, even if nothing is remembered of the login.
    ann.logout(MCP).await.unwrap();
    let said = refusal(&ann, of_ann.sealed(), &callback).await;
    assert!(said.contains("invalid_grant"), "{said}");
}

#[tokio::test(start_paused = true)]
async fn interaction_error_leads_to_begin_and_the_login() {
    let (web, store) = (Web::new(), MemoryTokenStore::new());
    web.fake().greets_all = true;
    web.fake().scoped = vec!["write"];
    let login = process(&web, &store).user("ann");
    let endpoint = endpoint(web.clone()).login(login.clone());
    let session = client().connect(endpoint).await.unwrap();
    // First without a login, and then without a scope: the session continues after each login.
    for (tool, scopes) in [("add", "base"), ("write", "base write")] {
        let refused = call(&session, tool).await.unwrap_err();
        assert!(refused.is_interaction_required(), "{refused:?}");
        assert!(refused.message().contains("Login::begin_after"));
        let again = call(&session, tool).await.unwrap_err();
        assert!(again.is_interaction_required(), "{again:?}");
        web.asked();
        let attempt = login.begin_after(MCP, &refused).await.unwrap();
        let callback = web.agree(attempt.url());
        login.finish(attempt.sealed(), callback).await.unwrap();
        let asked = web.asked();
        assert!(asked.contains(&format!("authorize {scopes}")), "{asked:?}");
        call(&session, tool).await.unwrap();
        assert!(web.asked().is_empty());
    }
}

#[tokio::test(start_paused = true)]
async fn unknown_client_is_reregistered_by_next_login() {
    let (web, store) = (Web::new(), MemoryTokenStore::new());
    let ann = process(&web, &store).user("ann");
    let attempt = ann.begin(MCP).await.unwrap();
    let callback = web.agree(attempt.url());
    web.fake().forget_clients();
    let said = refusal(&ann, attempt.sealed(), &callback).await;
    assert!(said.contains("invalid_client"), "{said}");
    web.asked();
    log_in(&web, &ann).await;
    assert!(web.asked().contains(&"register".to_owned()));
    // The client that was registered for the first user serves the next user.
    log_in(&web, &process(&web, &store).user("bob")).await;
    assert!(!web.asked().contains(&"register".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn client_refused_at_page_is_reregistered_next_time() {
    let (web, store) = (Web::new(), MemoryTokenStore::new());
    let ann = process(&web, &store).user("ann");
    for (error, answers) in [
        (
            "unauthorized_client",
            "error=unauthorized_client&iss=https%3A%2F%2Fas.example",
        ),
        (
            "invalid_scope",
            "error=invalid_scope&iss=https%3A%2F%2Fas.example",
        ),
        (
            "unauthorized_client",
            "error=unauthorized_client&iss=https%3A%2F%2Fas.example",
        ),
    ] {
        web.fake().answers = Some(answers);
        let attempt = ann.begin(MCP).await.unwrap();
        assert!(web.asked().contains(&"register".to_owned()));
        let callback = web.agree(attempt.url());
        let said = refusal(&ann, attempt.sealed(), &callback).await;
        assert!(said.contains(error), "{said}");
    }
}

#[tokio::test(start_paused = true)]
async fn new_authorization_server_gets_no_earlier_scopes() {
    let (web, store) = (Web::new(), MemoryTokenStore::new());
    web.fake().scoped = vec!["write"];
    let ann = process(&web, &store).user("ann");
    log_in(&web, &ann).await;
    let session = connect(&web, ann.clone()).await.unwrap();
    let refused = call(&session, "write").await.unwrap_err();
    let attempt = ann.begin_after(MCP, &refused).await.unwrap();
    let callback = web.agree(attempt.url());
    ann.finish(attempt.sealed(), callback).await.unwrap();
    web.fake().has_migrated = true;
    let attempt = ann.begin(MCP).await.unwrap();
    assert!(attempt.url().ends_with("scope=base"), "{}", attempt.url());
}

#[tokio::test(start_paused = true)]
async fn bound_login_does_not_use_an_unbound_token() {
    let (web, store) = (Web::new(), MemoryTokenStore::new());
    let login = agreeing(&web).store(store.clone());
    connect(&web, login).await.unwrap();
    let stored = || Login::non_interactive().store(store.clone());
    connect(&web, stored()).await.unwrap();
    let refused = connect(&web, stored().dpop()).await.unwrap_err();
    assert!(refused.is_interaction_required(), "{refused:?}");
}

#[tokio::test(start_paused = true)]
async fn only_redirect_logins_can_be_begun() {
    let web = Web::new();
    for login in [Login::browser(), Login::non_interactive(), agreeing(&web)] {
        let error = login.begin(MCP).await.unwrap_err();
        assert!(error.message().contains("Login::redirect"), "{error}");
    }
    let login = Login::redirect(REDIRECT).http_client(web.clone());
    let error = login.begin("mcp.example").await.unwrap_err();
    assert!(error.message().contains("https://"), "{error}");
    assert!(web.asked().is_empty());
}

// Attack: leaks of secrets.
#[tokio::test(start_paused = true)]
async fn logins_are_listed_without_secrets() {
    let (web, store) = (Web::new(), MemoryTokenStore::new());
    let login = process(&web, &store).user("ann");
    let attempt = login.begin(MCP).await.unwrap();
    assert!(login.credentials().await.unwrap().is_empty());
    let callback = web.agree(attempt.url());
    login.finish(attempt.sealed(), callback).await.unwrap();
    let all = login.credentials().await.unwrap();
    assert!(!format!("{all:?}").contains("hunter"), "{all:?}");
    let [stored] = &all[..] else {
        panic!("{all:?}")
    };
    assert_eq!(
        (&*stored.issuer, &*stored.resource),
        ("https://as.example", MCP)
    );
    assert_eq!(stored.client_id.as_deref(), Some("registered-1"));
    assert_eq!(stored.scopes.to_string(), "base");
    assert!(stored.expires_at.is_some() && stored.is_refreshable);
    let nobody = process(&web, &store);
    assert!(nobody.credentials().await.unwrap().is_empty());
}

#[tokio::test(start_paused = true)]
async fn logout_revokes_and_deletes_the_login() {
    for (revokes, asked, is_ok) in [
        (None, &[][..], true),
        (Some(200), &["revoke refresh_token"], true),
        (Some(503), &["revoke refresh_token"], false),
    ] {
        let (web, store) = (Web::new(), MemoryTokenStore::new());
        web.fake().revokes = revokes;
        let login = agreeing(&web).http_client(web.clone()).user("ann");
        let login = login.store(store.clone());
        connect(&web, login.clone()).await.unwrap();
        web.asked();
        let result = login.logout(MCP).await;
        assert_eq!(web.asked(), asked);
        assert_eq!(result.is_ok(), is_ok);
        if let Err(error) = result {
            let text = error.message();
            assert!(
                text.contains("deleted the tokens") && text.contains("503"),
                "{text}"
            );
            assert!(!format!("{error:#?}").contains("hunter"));
        }
        assert!(store.keys("ann").await.unwrap().is_empty());
        // A second logout has nothing left to do.
        login.logout(MCP).await.unwrap();
        assert!(web.asked().is_empty());
    }
}

#[tokio::test(start_paused = true)]
async fn logout_does_not_affect_other_servers() {
    let (web, store) = (Web::new(), MemoryTokenStore::new());
    let login = process(&web, &store).user("ann");
    log_in(&web, &login).await;
    login.logout("https://mcp.example/other").await.unwrap();
    assert_eq!(login.credentials().await.unwrap().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn logged_out_session_is_not_refreshed() {
    let (web, store) = (Web::new(), MemoryTokenStore::new());
    let login = process(&web, &store).user("ann");
    log_in(&web, &login).await;
    let session = connect(&web, login.clone()).await.unwrap();
    login.logout(MCP).await.unwrap();
    web.fake().expire();
    web.asked();
    let refused = call(&session, "add").await.unwrap_err();
    assert!(refused.is_interaction_required(), "{refused:?}");
    let asked = web.asked();
    assert!(!asked.contains(&"refresh_token".to_owned()), "{asked:?}");
    assert!(store.keys("ann").await.unwrap().is_empty());
}

// Attack: credentials that are sent to guessed endpoints.
#[tokio::test(start_paused = true)]
async fn refresh_token_from_unnamed_endpoints_is_not_stored() {
    let (web, store) = (Web::new(), MemoryTokenStore::new());
    web.fake().hides = true;
    let login = process(&web, &store);
    log_in(&web, &login).await;
    let all = login.credentials().await.unwrap();
    assert!(all.len() == 1 && !all[0].is_refreshable, "{all:?}");
}

#[tokio::test(start_paused = true)]
async fn login_at_another_server_replaces_the_previous_one() {
    let (web, store) = (Web::new(), MemoryTokenStore::new());
    let ann = process(&web, &store).user("ann");
    log_in(&web, &ann).await;
    let bob = process(&web, &store).user("bob");
    log_in(&web, &bob).await;
    web.fake().has_migrated = true;
    log_in(&web, &ann).await;
    let issuers = async |user| {
        let keys = store.keys(user).await.unwrap().into_iter();
        keys.map(|it| it.issuer).collect::<Vec<_>>()
    };
    assert_eq!(issuers("ann").await, ["https://as2.example"]);
    assert_eq!(issuers("bob").await, ["https://as.example"]);
}
