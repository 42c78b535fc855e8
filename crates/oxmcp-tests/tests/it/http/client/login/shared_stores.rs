//! Tests of a store that other programs use at the same time, or that fails.

use std::sync::{
    Arc, Mutex,
    atomic::{AtomicBool, Ordering::Relaxed},
};

use ::http::{Request, Response};
use bytes::Bytes;
use oxmcp::{
    auth::{Secret, client::CredentialKey},
    http::{HttpBody, Login, MemoryTokenStore, TokenStore, TokenStoreLock},
    keys::StateKey,
};

use super::*;
use crate::http::client::login::fake::TOKEN;

/// A redirect URI that the client of `agreeing` is not registered with.
const ELSEWHERE: &str = "http://127.0.0.1:4712/callback";

/// A store that fails to save once.
#[derive(Clone, Default)]
struct FailingOnce(MemoryTokenStore, Arc<AtomicBool>);

impl TokenStore for FailingOnce {
    async fn load(&self, key: &CredentialKey) -> Result<Option<Secret>> {
        self.0.load(key).await
    }

    async fn save(&self, key: &CredentialKey, text: Secret) -> Result<()> {
        if self.1.swap(false, Relaxed) {
            return Err(Error::internal("the disk is full"));
        }
        self.0.save(key, text).await
    }

    async fn remove(&self, key: &CredentialKey) -> Result<()> {
        self.0.remove(key).await
    }

    async fn lock(&self, key: &CredentialKey) -> Result<TokenStoreLock> {
        self.0.lock(key).await
    }

    async fn keys(&self, user: &str) -> Result<Vec<CredentialKey>> {
        self.0.keys(user).await
    }
}

#[tokio::test(start_paused = true)]
async fn unstored_tokens_take_precedence_over_stored_ones() {
    let (web, store) = (Web::new(), FailingOnce::default());
    let login = agreeing(&web).store(store.clone());
    connect(&web, login).await.unwrap();
    let login = || Login::non_interactive().store(store.clone());
    let session = connect(&web, login()).await.unwrap();
    web.fake().expire();
    store.1.store(true, Relaxed);
    call(&session, "add").await.unwrap_err();
    call(&session, "add").await.unwrap();
    web.asked();
    web.fake().expire();
    call(&session, "add").await.unwrap();
    assert_eq!(web.asked(), ["refresh_token"]);
    web.fake().expire();
    connect(&web, login()).await.unwrap();
    assert_eq!(web.asked(), ["refresh_token"], "and then they are stored");
}

/// A login with another redirect URI, for which the client is registered anew, and which always fails at the page.
fn refusing(store: &MemoryTokenStore) -> Login {
    let login = Login::with_redirect(ELSEWHERE, |_| async {
        Err(Error::internal("the page was closed"))
    });
    login.store(store.clone())
}

#[tokio::test(start_paused = true)]
async fn failed_login_does_not_undo_a_logout() {
    let (web, store) = (Web::new(), MemoryTokenStore::new());
    web.fake().redirect = None;
    let login = agreeing(&web).store(store.clone());
    connect(&web, login).await.unwrap();
    let login = refusing(&store).http_client(web.clone());
    let session = connect(&web, login.clone()).await.unwrap();
    login.logout(MCP).await.unwrap();
    web.fake().needed = Some("more".to_owned());
    web.asked();
    call(&session, "add").await.unwrap_err();
    assert_eq!(count(&web.asked(), "register"), 1);
    assert!(login.credentials().await.unwrap().is_empty());
    call(&session, "add").await.unwrap_err();
    let asked = web.asked();
    assert_eq!(count(&asked, "register"), 0, "the client is kept");
    assert_eq!(count(&asked, "refresh_token"), 0);
}

#[tokio::test(start_paused = true)]
async fn failed_login_keeps_newer_tokens_of_others() {
    let (web, store) = (Web::new(), MemoryTokenStore::new());
    web.fake().redirect = None;
    let login = agreeing(&web).store(store.clone());
    connect(&web, login).await.unwrap();
    let other = Login::non_interactive().store(store.clone());
    let other = connect(&web, other).await.unwrap();
    let (quicker, fake) = (other.clone(), web.clone());
    let login = Login::with_redirect(ELSEWHERE, move |_| {
        let (quicker, web) = (quicker.clone(), fake.clone());
        async move {
            web.fake().needed = None;
            web.fake().expire();
            call(&quicker, "add").await.unwrap();
            Err(Error::internal("the page was closed"))
        }
    });
    let session = connect(&web, login.store(store.clone())).await.unwrap();
    web.fake().needed = Some("more".to_owned());
    call(&session, "add").await.unwrap_err();
    web.asked();
    web.fake().expire();
    call(&other, "add").await.unwrap();
    call(&session, "add").await.unwrap();
    assert_eq!(web.asked(), ["refresh_token"]);
}

#[tokio::test(start_paused = true)]
async fn session_finds_login_at_another_authorization_server() {
    let (web, store) = (Web::new(), MemoryTokenStore::new());
    let key = StateKey::new([7; StateKey::LENGTH]);
    let login = Login::redirect(REDIRECT).keys([key]).store(store);
    let login = login.http_client(web.clone());
    let log_in = async || {
        let attempt = login.begin(MCP).await.unwrap();
        let callback = web.agree(attempt.url());
        login.finish(attempt.sealed(), callback).await.unwrap();
    };
    log_in().await;
    let session = connect(&web, login.clone()).await.unwrap();
    web.fake().has_migrated = true;
    web.fake().expire();
    web.fake().revoke();
    log_in().await;
    web.asked();
    call(&session, "add").await.unwrap();
    assert!(web.asked().is_empty());
}

/// A store whose locks exclude no other holder.
#[derive(Clone, Default)]
struct WithoutLocks(MemoryTokenStore);

impl TokenStore for WithoutLocks {
    async fn load(&self, key: &CredentialKey) -> Result<Option<Secret>> {
        self.0.load(key).await
    }

    async fn save(&self, key: &CredentialKey, text: Secret) -> Result<()> {
        self.0.save(key, text).await
    }

    async fn remove(&self, key: &CredentialKey) -> Result<()> {
        self.0.remove(key).await
    }

    async fn lock(&self, _: &CredentialKey) -> Result<TokenStoreLock> {
        Ok(TokenStoreLock::new(()))
    }

    async fn keys(&self, user: &str) -> Result<Vec<CredentialKey>> {
        self.0.keys(user).await
    }
}

/// The HTTP client to the authorization server, through which another program refreshes first, once.
#[derive(Clone)]
struct Overtaken {
    web: Web,
    quicker: Arc<Mutex<Option<ClientSession>>>,
    /// The body with which the slower refresh is refused.
    refusal: &'static str,
}

impl HttpClient for Overtaken {
    async fn send(&self, request: Request<Bytes>) -> Result<Response<HttpBody>> {
        let quicker = self.quicker.lock().unwrap().take();
        let Some(quicker) = quicker.filter(|_| *request.uri() == TOKEN) else {
            return self.web.send(request).await;
        };
        call(&quicker, "add").await.unwrap();
        self.web.fake().refuses_refresh = Some((400, self.refusal));
        let refused = self.web.send(request).await;
        self.web.fake().refuses_refresh = None;
        refused
    }
}

#[tokio::test(start_paused = true)]
async fn overtaken_refresh_uses_the_other_programs_tokens() {
    for refusal in [
        r#"{"error": "invalid_grant"}"#,
        r#"{"error": "invalid_request"}"#,
    ] {
        let (web, store) = (Web::new(), WithoutLocks::default());
        let login = agreeing(&web).store(store.clone());
        let quicker = connect(&web, login).await.unwrap();
        let overtaken = Overtaken {
            web: web.clone(),
            quicker: Arc::default(),
            refusal,
        };
        let login = Login::non_interactive().store(store.clone());
        let endpoint = endpoint(web.clone()).login(login.clone().http_client(overtaken.clone()));
        let session = client().connect(endpoint).await.unwrap();
        call(&session, "add").await.unwrap();
        web.asked();
        web.fake().expire();
        *overtaken.quicker.lock().unwrap() = Some(quicker);
        call(&session, "add").await.unwrap();
        assert_eq!(web.asked(), ["refresh_token", "refresh_token"]);
        let stored = login.credentials().await.unwrap();
        assert!(stored[0].is_refreshable, "the newer refresh token is kept");
    }
}

#[tokio::test(start_paused = true)]
async fn refused_tokens_of_another_program_are_refreshed() {
    let (web, store) = (Web::new(), MemoryTokenStore::new());
    let login = agreeing(&web).store(store.clone());
    let other = connect(&web, login).await.unwrap();
    let login = Login::non_interactive().store(store);
    let session = connect(&web, login).await.unwrap();
    web.fake().expire();
    call(&other, "add").await.unwrap();
    // The tokens that the other program got are not valid any more, either.
    web.fake().expire();
    web.asked();
    call(&session, "add").await.unwrap();
    assert_eq!(web.asked(), ["refresh_token"]);
}
