//! Tests of the identity of the client: registered, forgotten, configured.

use oxmcp::{
    auth::{self, AuthErrorKind},
    http::Login,
};

use super::*;
use crate::http::client::login::fake::AS;

#[tokio::test(start_paused = true)]
async fn forgotten_client_is_reregistered_once() {
    for withholds_refresh in [false, true] {
        let web = Web::new();
        web.fake().withholds_refresh = withholds_refresh;
        let session = connect(&web, agreeing(&web)).await.unwrap();
        web.asked();
        web.fake().expire();
        web.fake().forget_clients();
        call(&session, "add").await.unwrap();
        let asked = web.asked();
        assert_eq!(count(&asked, "register"), 1, "{asked:?}");
        let grants = count(&asked, "refresh_token") + count(&asked, "authorization_code");
        assert_eq!(grants, 2, "{asked:?}");
        call(&session, "add").await.unwrap();
        assert!(web.asked().is_empty());
    }
}

#[tokio::test(start_paused = true)]
async fn immediately_refused_client_is_not_reregistered_repeatedly() {
    let web = Web::new();
    let forgetting = web.clone();
    let login = Login::with_redirect(REDIRECT, move |url| {
        let web = forgetting.clone();
        async move {
            web.fake().forget_clients();
            Ok(web.agree(&url))
        }
    });
    let error = connect(&web, login).await.unwrap_err();
    assert_eq!(cause(&error).oauth_error(), Some("invalid_client"));
    assert_eq!(count(&web.asked(), "register"), 1);
}

#[tokio::test(start_paused = true)]
async fn client_with_too_few_scopes_is_reregistered_once() {
    let web = Web::new();
    web.fake().refuses_scopes = true;
    let session = connect(&web, agreeing(&web)).await.unwrap();
    web.asked();
    // The metadata do not name this scope.
    web.fake().needed = Some("write".to_owned());
    call(&session, "add").await.unwrap();
    let authorized = "authorize base write";
    let asked = [authorized, "register", authorized, "authorization_code"];
    let logged = web.asked();
    let mut logged = logged.iter().filter(|it| !it.contains("metadata"));
    assert!(
        asked
            .iter()
            .all(|it| logged.next().is_some_and(|logged| logged == it))
    );
    assert_eq!(logged.next(), None);
}

#[tokio::test(start_paused = true)]
async fn scope_refused_to_new_client_is_not_rerequested() {
    let web = Web::new();
    let session = connect(&web, agreeing(&web)).await.unwrap();
    web.asked();
    web.fake().needed = Some("write".to_owned());
    web.fake().answers = Some("error=invalid_scope&iss=https%3A%2F%2Fas.example");
    web.fake().forget_clients();
    let error = call(&session, "add").await.unwrap_err();
    assert_eq!(cause(&error).oauth_error(), Some("invalid_scope"));
    assert_eq!(count(&web.asked(), "register"), 1);
}

#[tokio::test(start_paused = true)]
async fn unknown_configured_client_is_named() {
    let web = Web::new();
    let own = auth::client::Client::new("configured")
        .unwrap()
        .issued_by(AS);
    let error = connect(&web, agreeing(&web).client(own)).await.unwrap_err();
    assert_eq!(cause(&error).oauth_error(), Some("invalid_client"));
    for part in [
        "https://as.example/token",
        r#""configured""#,
        "check its ID",
    ] {
        assert!(error.message().contains(part), "{error}");
    }
    assert_eq!(count(&web.asked(), "register"), 0);
}

#[tokio::test(start_paused = true)]
async fn authorization_page_error_is_explained() {
    for (refusal, what_to_do) in [
        ("unauthorized_client", "check its ID"),
        ("invalid_scope", "Login::scopes"),
    ] {
        let web = Web::new();
        let own = auth::client::Client::new("configured")
            .unwrap()
            .issued_by(AS);
        let login = Login::with_redirect(REDIRECT, move |url| async move {
            let state = url.split_once("&state=").unwrap().1;
            let state = state.split('&').next().unwrap();
            Ok(format!("{REDIRECT}?error={refusal}&state={state}&iss={AS}"))
        });
        let error = connect(&web, login.client(own)).await.unwrap_err();
        assert_eq!(cause(&error).oauth_error(), Some(refusal));
        for part in [r#""configured""#, what_to_do] {
            assert!(error.message().contains(part), "{error}");
        }
        assert_eq!(count(&web.asked(), "register"), 0);
    }
}

#[tokio::test(start_paused = true)]
async fn login_that_cannot_begin_fails_every_time() {
    use oxmcp::{Limits, transport::Transport};

    let own = auth::client::Client::new("id")
        .unwrap()
        .with_secret("hunter2");
    let endpoint = Endpoint::new(MCP).http_client(Web::new());
    let mut endpoint = endpoint.login(Login::client_credentials(own));
    for _ in 0..2 {
        let error = endpoint.connect(&Limits::default()).await.err().unwrap();
        assert!(error.message().contains("issued_by"), "{error}");
    }
}

// Attack: credentials that are sent to guessed endpoints.
#[tokio::test(start_paused = true)]
async fn stored_credentials_are_not_sent_to_unnamed_endpoints() {
    let web = Web::new();
    web.fake().hides = true;
    let session = connect(&web, agreeing(&web)).await.unwrap();
    let fresh = ["register", "authorize base", "authorization_code"];
    assert_eq!(web.asked(), fresh);
    web.fake().expire();
    call(&session, "add").await.unwrap();
    assert_eq!(
        web.asked(),
        fresh,
        "neither the client nor the refresh token"
    );
}

// Attack: credentials that are sent to guessed endpoints.
#[tokio::test(start_paused = true)]
async fn client_secret_is_not_sent_to_unnamed_endpoints() {
    let web = Web::new();
    web.fake().hides = true;
    let own = auth::client::Client::new("id")
        .unwrap()
        .with_secret("hunter2");
    let login = Login::client_credentials(own.issued_by("https://mcp.example"));
    let error = connect(&web, login).await.unwrap_err();
    assert_eq!(cause(&error).kind(), AuthErrorKind::InteractionRequired);
    assert!(error.message().contains("Login::issuer"), "{error}");
    assert!(web.asked().is_empty());
}

// Attack: mix-up of authorization servers.
#[tokio::test(start_paused = true)]
async fn new_authorization_server_gets_no_earlier_credentials() {
    let web = Web::new();
    let store = oxmcp::http::MemoryTokenStore::new();
    let login = agreeing(&web).store(store.clone());
    let session = connect(&web, login).await.unwrap();
    web.asked();
    web.fake().expire();
    web.fake().forget_clients();
    web.fake().has_migrated = true;
    // The former authorization server is gone: requests to its token endpoint fail.
    let gone = (503, String::new());
    web.fake().instead.insert("https://as.example/token", gone);
    call(&session, "add").await.unwrap();
    let asked = web.asked();
    assert_eq!(count(&asked, "refresh_token"), 0, "{asked:?}");
    let fresh = ["register", "authorize base", "authorization_code"];
    assert_eq!(asked[asked.len() - 3..], fresh);
    let keys = oxmcp::http::TokenStore::keys(&store, "").await.unwrap();
    let issuers: Vec<_> = keys.iter().map(|it| it.issuer.as_str()).collect();
    assert_eq!(issuers, ["https://as2.example"]);
}

#[tokio::test]
async fn login_uses_its_own_http_client() {
    // Nothing listens at this address, and the endpoint's HTTP client answers for it.
    let web = Web::new();
    let mcp = "http://127.0.0.1:1/mcp";
    let answer = (401, String::new());
    web.fake().instead.insert(mcp, answer);
    let endpoint = Endpoint::new(mcp).http_client(web.clone());
    let endpoint = endpoint.login(agreeing(&web));
    let error = client().connect(endpoint).await.unwrap_err();
    assert!(error.is_authorization(), "{error}");
    let place = "request to http://127.0.0.1:1/.well-known/oauth-protected-resource/mcp failed";
    assert!(error.message().contains(place), "{error}");
}
