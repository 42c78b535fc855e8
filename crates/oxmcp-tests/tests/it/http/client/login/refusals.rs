//! Logins that fail: at once, with a clear message, and not for ever.

use oxmcp::{auth::AuthErrorKind, http::Login};

use super::*;
use crate::http::client::login::{
    fake::AS,
    messages::{METADATA, PLACE, instead},
};

#[tokio::test(start_paused = true)]
async fn impossible_login_fails_at_once() {
    let web = Web::new();
    let error = connect(&web, Login::non_interactive()).await.unwrap_err();
    assert!(error.is_authorization());
    assert_eq!(cause(&error).kind(), AuthErrorKind::InteractionRequired);
    assert!(
        error
            .message()
            .contains("log in with a program that can open a browser"),
        "{error}"
    );
    assert!(web.asked().is_empty());
}

#[tokio::test(start_paused = true)]
async fn rejected_new_token_starts_no_second_login() {
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
async fn refusal_without_login_reports_the_challenge() {
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
async fn missing_scopes_are_reported_without_a_login() {
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

// Attack: mix-up of authorization servers.
#[tokio::test(start_paused = true)]
async fn response_to_another_request_gets_no_token() {
    let web = Web::new();
    web.fake().breaks_state = true;
    let error = connect(&web, agreeing(&web)).await.unwrap_err();
    assert_eq!(cause(&error).kind(), AuthErrorKind::Untrusted);
    assert!(!web.asked().contains(&"authorization_code".to_owned()));
}

// Attack: server-side request forgery.
#[tokio::test(start_paused = true)]
async fn server_named_urls_cannot_reach_the_local_network() {
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
                error.message().contains("not a public address"),
                "{body}: {error}"
            );
        }
    }
}

// Attack: credentials that are sent to another origin.
#[tokio::test(start_paused = true)]
async fn login_token_never_goes_to_another_origin() {
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
async fn waiting_calls_fail_with_the_login() {
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
async fn ungranted_scopes_are_not_requested_endlessly() {
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

// Attack: leaks of secrets.
#[tokio::test(start_paused = true)]
async fn login_errors_and_debug_hide_secrets() {
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
async fn dead_refresh_token_is_tried_once() {
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
async fn failed_step_up_logins_are_not_counted() {
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

// Attack: credentials that are sent to guessed endpoints.
#[tokio::test(start_paused = true)]
async fn client_with_secret_uses_no_unnamed_server() {
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
async fn second_token_source_is_refused() {
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
async fn client_is_registered_once_although_logins_fail() {
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

#[tokio::test(start_paused = true)]
async fn odd_metadata_is_refused_by_strict_clients() {
    for (client, is_read) in [(client(), true), (client().strict(), false)] {
        let web = Web::new();
        let odd = json!({
            "issuer": AS,
            "authorization_endpoint": format!("{AS}/authorize"),
            "token_endpoint": format!("{AS}/token"),
            "registration_endpoint": format!("{AS}/register"),
            "code_challenge_methods_supported": "S256",
            "scopes_supported": null,
        });
        web.fake().instead.insert(METADATA, (200, odd.to_string()));
        let connected = connect_with(&client, &web, agreeing(&web)).await;
        assert_eq!(connected.is_ok(), is_read, "{connected:?}");
        match connected {
            Ok(session) => {
                let record = session.tolerated();
                let names: Vec<_> = record.iter().map(|it| it.leniency.name()).collect();
                assert_eq!(names, ["authorization-metadata"]);
            }
            Err(error) => {
                let message = error.to_string();
                assert!(
                    message.contains("code_challenge_methods_supported"),
                    "{message}"
                );
            }
        }
    }
}
