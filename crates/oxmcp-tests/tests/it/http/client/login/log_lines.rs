//! Tests that logins put no secret into log lines and errors.

use oxmcp::{
    auth,
    http::{Login, MemoryTokenStore},
    keys::StateKey,
};

use super::*;
use crate::{
    http::{
        client::login::{
            fake::{AS, TOKEN},
            persons::browsing,
        },
        log_lines::LogLines,
    },
    support::subscribe,
};

/// Runs a login, a refresh, a step-up, a refusal, and a login while the authorization server is down. Returns the errors.
async fn use_up(web: &Web, login: Login) -> String {
    web.fake().scoped = vec!["write"];
    let session = connect(web, login).await.unwrap();
    web.fake().expire();
    call(&session, "add").await.unwrap();
    web.fake().needed = Some("write".to_owned());
    call(&session, "add").await.unwrap();
    let mut errors = String::new();
    web.fake().expires_in = 1;
    web.fake().expire();
    call(&session, "add").await.unwrap();
    web.fake().is_down = true;
    web.fake().expire();
    errors += &format!("{:#?}", call(&session, "add").await.unwrap_err());
    web.fake().is_down = false;
    web.fake().revoke();
    web.fake().answers = Some("code=code-hunter&iss=https%3A%2F%2Fevil.example");
    errors += &format!("{:#?}", call(&session, "add").await.unwrap_err());
    errors
}

/// Runs the login of a program with client credentials, whose token is the one that `web` grants. Returns its error.
async fn client_credentials(web: &Web) -> String {
    let own = auth::client::Client::new("id").unwrap().issued_by(AS);
    let own = own.with_secret("hunter-of-the-client");
    let good = web.fake().grant();
    let answer = format!(r#"{{"access_token": "{good}", "token_type": "Bearer"}}"#);
    web.fake().instead.insert(TOKEN, (200, answer));
    connect(web, Login::client_credentials(own.clone()))
        .await
        .unwrap();
    let answer = r#"{"error": "invalid_client"}"#.to_owned();
    web.fake().instead.insert(TOKEN, (401, answer));
    let refused = connect(web, Login::client_credentials(own)).await;
    format!("{:#?}", refused.unwrap_err())
}

/// Runs the login of a web back end. Returns its error.
async fn begun(web: &Web) -> String {
    let login = Login::redirect(REDIRECT).keys([StateKey::new([7; StateKey::LENGTH])]);
    let login = login
        .http_client(web.clone())
        .store(MemoryTokenStore::new());
    let attempt = login.begin(MCP).await.unwrap();
    let callback = web.agree(attempt.url());
    login.finish(attempt.sealed(), &callback).await.unwrap();
    let again = login.finish(attempt.sealed(), &callback).await;
    web.fake().secrets.push(attempt.sealed().to_owned());
    format!("{:#?}", again.unwrap_err())
}

// Attack: leaks of secrets.
#[tokio::test]
async fn no_secret_appears_in_logs_or_errors() {
    let lines = LogLines::default();
    let _guard = subscribe(lines.clone());
    let mut texts = Vec::new();
    let mut secrets = vec!["hunter".to_owned()];
    for is_bound in [false, true] {
        let web = Web::new();
        web.fake().redirect = None;
        let login = browsing(&web);
        let login = if is_bound { login.dpop() } else { login };
        texts.push(use_up(&web, login).await);
        secrets.append(&mut web.fake().secrets);
    }
    let web = Web::new();
    texts.push(client_credentials(&web).await);
    secrets.append(&mut web.fake().secrets);
    let web = Web::new();
    texts.push(begun(&web).await);
    secrets.append(&mut web.fake().secrets);
    texts.append(&mut lines.take());
    assert!(texts.len() > 20 && secrets.len() > 20);
    for secret in &secrets {
        assert!(secret.len() > 5, "{secret:?} may be anything");
        let found = texts.iter().find(|it| it.contains(secret));
        assert_eq!(found, None, "{secret:?}");
    }
}
