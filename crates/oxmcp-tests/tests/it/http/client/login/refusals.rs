//! Logins that fail: at once, with a clear message, and not for ever.

use oxmcp::{auth::AuthErrorKind, http::Login};

use super::*;
use crate::http::client::login::{
    fake::AS,
    messages::{METADATA, PLACE, instead},
};

#[tokio::test(start_paused = true)]
async fn a_login_that_nobody_can_make_fails_at_once() {
    let web = Web::new();
    let error = connect(&web, Login::non_interactive()).await.unwrap_err();
    assert!(error.is_authorization());
    assert_eq!(cause(&error).kind(), AuthErrorKind::InteractionRequired);
    assert!(
        error
            .message()
            .contains("log in by a program that can show a browser"),
        "{error}"
    );
    assert!(web.asked().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_server_that_refuses_every_token_is_given_up() {
    let web = Web::new();
    web.fake().refuses_all = true;
    let error = connect(&web, agreeing(&web)).await.unwrap_err();
    assert!(error.is_unauthorized());
    assert_eq!(
        error.www_authenticate(),
        Some(r#"Bearer scope="base", error="invalid_token""#)
    );
    let logins = web
        .asked()
        .into_iter()
        .filter(|it| it == "authorization_code");
    assert_eq!(logins.count(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_refusal_without_a_login_says_what_the_server_wants() {
    let web = Web::new();
    let endpoint = Endpoint::new(MCP).http_client(web.clone());
    let error = client().connect(endpoint).await.unwrap_err();
    assert!(error.is_unauthorized() && !error.is_authorization());
    assert_eq!(
        error.www_authenticate(),
        Some(r#"Bearer scope="base", error="invalid_token""#)
    );
}

#[tokio::test(start_paused = true)]
async fn want_of_scopes_says_so_without_a_login() {
    let web = Web::new();
    web.fake().needed = Some("write".to_owned());
    let token = web.fake().grant();
    let endpoint = Endpoint::new(MCP).http_client(web.clone());
    let endpoint = endpoint.bearer_token(token).standalone_stream(false);
    let session = client().connect(endpoint).await.unwrap();
    let error = call(&session, "add").await.unwrap_err();
    assert_eq!(error.http_status(), Some(403));
    assert_eq!(
        error.www_authenticate(),
        Some(r#"Bearer error="insufficient_scope", scope="write""#)
    );
}

#[tokio::test(start_paused = true)]
async fn attack_10_an_answer_to_another_request_gets_no_token() {
    let web = Web::new();
    web.fake().breaks_state = true;
    let error = connect(&web, agreeing(&web)).await.unwrap_err();
    assert_eq!(cause(&error).kind(), AuthErrorKind::Untrusted);
    assert!(!web.asked().contains(&"authorization_code".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn attack_9_nothing_that_a_server_names_leads_into_this_network() {
    for host in ["10.0.0.1", "127.0.0.1", "169.254.169.254", "[fd00::1]"] {
        let place = format!("https://{host}/x");
        let resource = json!({"resource": MCP, "authorization_servers": [place]});
        let server = |name: &str| {
            let mut metadata = json!({
                "issuer": AS,
                "authorization_endpoint": "https://as.example/authorize",
                "token_endpoint": "https://as.example/token",
                "registration_endpoint": "https://as.example/register",
                "code_challenge_methods_supported": ["S256"],
                "token_endpoint_auth_methods_supported": ["none"],
                "authorization_response_iss_parameter_supported": true,
            });
            metadata[name] = json!(place);
            metadata.to_string()
        };
        for (url, status, body) in [
            (PLACE, 200, resource.to_string()),
            (PLACE, 302, place.clone()),
            (METADATA, 302, place.clone()),
            (METADATA, 200, server("registration_endpoint")),
            (METADATA, 200, server("token_endpoint")),
        ] {
            let web = Web::new();
            // The fake servers panic if a request goes to a place other than their own.
            instead(&mut web.fake(), url, status, &body);
            let error = connect(&web, agreeing(&web)).await.unwrap_err();
            assert!(
                error.message().contains("no public address"),
                "{body}: {error}"
            );
        }
    }
}

#[tokio::test(start_paused = true)]
async fn attack_11_no_token_of_a_login_goes_to_another_origin() {
    let web = Web::new();
    let session = connect(&web, agreeing(&web)).await.unwrap();
    for to in ["https://evil.example/mcp", "http://mcp.example/mcp"] {
        // The fake servers panic if a request goes there.
        instead(&mut web.fake(), MCP, 307, to);
        let error = call(&session, "add").await.unwrap_err();
        assert!(error.message().contains("another origin"), "{error}");
    }
}

#[tokio::test(start_paused = true)]
async fn all_that_wait_for_a_login_that_fails_fail_with_it() {
    let web = Web::new();
    let session = connect(&web, agreeing(&web)).await.unwrap();
    web.fake().expire();
    web.fake().revoke();
    web.fake().breaks_state = true;
    web.asked();
    let calls = futures_util::future::join_all((0..5).map(|_| call(&session, "add"))).await;
    assert!(
        calls
            .iter()
            .all(|it| it.as_ref().is_err_and(Error::is_authorization)),
        "{calls:?}"
    );
    let logins = web
        .asked()
        .into_iter()
        .filter(|it| it.starts_with("authorize "));
    assert_eq!(logins.count(), 1, "one person is asked once");
}

#[tokio::test(start_paused = true)]
async fn scopes_that_are_not_granted_are_not_asked_for_for_ever() {
    let web = Web::new();
    web.fake().scoped = vec!["write"];
    web.fake().withholds = true;
    let session = connect(&web, agreeing(&web)).await.unwrap();
    web.asked();
    let error = call(&session, "write").await.unwrap_err();
    assert_eq!(error.http_status(), Some(403));
    assert_eq!(cause(&error).oauth_error(), Some("insufficient_scope"));
    let logins = web
        .asked()
        .into_iter()
        .filter(|it| it.starts_with("authorize "));
    assert_eq!(logins.collect::<Vec<_>>(), ["authorize base write"]);
}

#[tokio::test(start_paused = true)]
async fn attack_21_secrets_are_in_no_error_and_no_debug() {
    let web = Web::new();
    let session = connect(&web, agreeing(&web)).await.unwrap();
    web.fake().expire();
    web.fake().is_down = true;
    let error = call(&session, "add").await.unwrap_err();
    for text in [
        format!("{error:#?}"),
        format!("{:?}", agreeing(&web)),
        format!("{session:?}"),
    ] {
        assert!(!text.contains("hunter"), "{text}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_dead_refresh_token_is_tried_once_and_opens_one_browser() {
    let web = Web::new();
    web.fake().expires_in = 1;
    let session = connect(&web, agreeing(&web)).await.unwrap();
    web.fake().revoke();
    web.fake().breaks_state = true;
    web.asked();
    call(&session, "add").await.unwrap_err();
    let login = ["resource metadata", "metadata", "authorize base"];
    assert_eq!(web.asked(), [&["refresh_token"], &login[..]].concat());
    call(&session, "add").await.unwrap_err();
    assert_eq!(web.asked(), login);
}

#[tokio::test(start_paused = true)]
async fn logins_for_more_scopes_that_fail_are_not_counted() {
    let web = Web::new();
    web.fake().scoped = vec!["write"];
    let session = connect(&web, agreeing(&web)).await.unwrap();
    web.fake().breaks_state = true;
    for _ in 0..3 {
        let error = call(&session, "write").await.unwrap_err();
        assert_eq!(cause(&error).kind(), AuthErrorKind::Untrusted);
    }
    web.fake().breaks_state = false;
    call(&session, "write").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn attack_12_a_client_with_a_secret_goes_to_no_server_that_nobody_has_named() {
    let web = Web::new();
    let secret = || {
        oxmcp::auth::client::Client::new("id")
            .unwrap()
            .with_secret("hunter2")
    };
    let error = connect(&web, Login::client_credentials(secret()))
        .await
        .unwrap_err();
    assert!(error.message().contains("issued_by"), "{error}");
    assert!(web.asked().is_empty());
    let login = Login::client_credentials(secret().issued_by("https://other.example"));
    let error = connect(&web, login).await.unwrap_err();
    assert_eq!(cause(&error).kind(), AuthErrorKind::Untrusted);
    assert!(!web.asked().contains(&"client_credentials".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn one_source_of_tokens_is_enough() {
    let web = Web::new();
    let token = || async { Ok("token".to_owned()) };
    for endpoint in [
        Endpoint::new(MCP)
            .login(agreeing(&web))
            .bearer_token_from(token),
        Endpoint::new(MCP)
            .bearer_token_from(token)
            .login(agreeing(&web)),
    ] {
        let error = client()
            .connect(endpoint.http_client(web.clone()))
            .await
            .unwrap_err();
        assert!(error.message().contains("bearer_token_from"), "{error}");
        assert!(web.asked().is_empty());
    }
}

#[tokio::test(start_paused = true)]
async fn a_client_is_registered_once_although_logins_fail() {
    let web = Web::new();
    web.fake().breaks_state = true;
    let store = oxmcp::http::MemoryTokenStore::new();
    for expected in [1, 0] {
        let login = agreeing(&web).store(store.clone());
        connect(&web, login).await.unwrap_err();
        let asked = web.asked().into_iter();
        assert_eq!(asked.filter(|it| it == "register").count(), expected);
    }
}
