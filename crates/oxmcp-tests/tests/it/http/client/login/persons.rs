//! Tests of logins that wait for a person.

use std::{
    future::pending,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed},
    },
    time::Duration,
};

use ::http::{Request, Response};
use bytes::Bytes;
use oxmcp::http::{HttpBody, Login, MemoryTokenStore};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::Notify,
    task::yield_now,
    time::sleep,
};

use super::*;

/// A person who may be away.
#[derive(Clone, Default)]
struct Person {
    is_away: Arc<AtomicBool>,
    /// How many pages were opened, and how many are open.
    opened: Arc<AtomicUsize>,
    open: Arc<AtomicUsize>,
}

/// An open page of a login, until it is given up.
struct Page(Arc<AtomicUsize>);

impl Drop for Page {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Relaxed);
    }
}

impl Person {
    fn login(&self, web: &Web) -> Login {
        let (person, web) = (self.clone(), web.clone());
        Login::with_redirect(REDIRECT, move |url| {
            let (person, web) = (person.clone(), web.clone());
            async move {
                person.opened.fetch_add(1, Relaxed);
                person.open.fetch_add(1, Relaxed);
                let _page = Page(Arc::clone(&person.open));
                if person.is_away.load(Relaxed) {
                    pending::<()>().await;
                }
                Ok(web.agree(&url))
            }
        })
    }
}

async fn settle() {
    for _ in 0..100 {
        yield_now().await;
    }
}

/// Makes a call that logs in, and gives the call up while the person is away.
async fn give_up(session: &ClientSession, person: &Person) {
    let mut given_up = Box::pin(call(session, "add"));
    while person.open.load(Relaxed) == 0 {
        assert!(futures_util::poll!(&mut given_up).is_pending());
        yield_now().await;
    }
}

#[tokio::test(start_paused = true)]
async fn login_ends_when_no_request_awaits_it() {
    let (web, person) = (Web::new(), Person::default());
    let session = connect(&web, person.login(&web)).await.unwrap();
    web.fake().expire();
    web.fake().revoke();
    person.is_away.store(true, Relaxed);
    give_up(&session, &person).await;
    settle().await;
    assert_eq!(person.open.load(Relaxed), 0, "the page is given up");
    assert_eq!(
        person.opened.load(Relaxed),
        2,
        "and the notification of it opens no other"
    );
    person.is_away.store(false, Relaxed);
    call(&session, "add").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn login_continues_for_other_waiting_requests() {
    let (web, person) = (Web::new(), Person::default());
    let session = connect(&web, person.login(&web)).await.unwrap();
    web.fake().expire();
    web.fake().revoke();
    person.is_away.store(true, Relaxed);
    let other = session.clone();
    let mut other = Box::pin(async move { call(&other, "add").await });
    assert!(futures_util::poll!(&mut other).is_pending());
    give_up(&session, &person).await;
    for _ in 0..100 {
        assert!(futures_util::poll!(&mut other).is_pending());
        yield_now().await;
    }
    assert_eq!(person.open.load(Relaxed), 1);
}

/// A server that waits for a person to log in is not silent, so its era is not guessed.
#[tokio::test(start_paused = true)]
async fn server_is_not_initialized_during_a_login() {
    let web = Web::new();
    let slow = {
        let web = web.clone();
        Login::with_redirect(REDIRECT, move |url| {
            let web = web.clone();
            async move {
                web.fake().log.clear();
                sleep(Duration::from_secs(120)).await;
                let asked = web.asked_of_server();
                assert!(asked.is_empty(), "during the login: {asked:?}");
                Ok(web.agree(&url))
            }
        })
    };
    let client = Client::new("test", "1");
    let session = connect_with(&client, &web, slow).await.unwrap();
    assert_eq!(session.revision(), Revision::V2025_11_25);
}

#[tokio::test(start_paused = true)]
async fn login_times_out_after_ten_minutes() {
    let (web, person) = (Web::new(), Person::default());
    person.is_away.store(true, Relaxed);
    let error = connect(&web, person.login(&web)).await.unwrap_err();
    assert_eq!(
        cause(&error).kind(),
        oxmcp::auth::AuthErrorKind::InteractionRequired
    );
    assert!(error.message().contains("600s"), "{error}");
    assert_eq!(person.open.load(Relaxed), 0);
}

#[tokio::test(start_paused = true)]
async fn server_rejecting_all_tokens_opens_one_page() {
    let (web, person) = (Web::new(), Person::default());
    let session = connect(&web, person.login(&web)).await.unwrap();
    web.fake().refuses_all = true;
    for _ in 0..3 {
        assert!(call(&session, "add").await.unwrap_err().is_unauthorized());
    }
    assert_eq!(person.opened.load(Relaxed), 2);
    // After a while, another login is tried.
    tokio::time::advance(Duration::from_secs(60)).await;
    web.fake().refuses_all = false;
    web.fake().expire();
    call(&session, "add").await.unwrap();
}

/// The HTTP client to the MCP server, through which the first answer to the call of one tool takes long.
#[derive(Clone)]
struct Slow {
    web: Web,
    arrives: Arc<Notify>,
    has_arrived: Arc<AtomicBool>,
}

impl HttpClient for Slow {
    async fn send(&self, request: Request<Bytes>) -> Result<Response<HttpBody>> {
        let is_slow = request.body().windows(6).any(|it| it == b"\"slow\"");
        let answered = self.web.send(request).await;
        if is_slow && !self.has_arrived.swap(true, Relaxed) {
            self.arrives.notified().await;
        }
        answered
    }

    fn authorization(&self) -> Option<String> {
        self.web.authorization()
    }
}

#[tokio::test(start_paused = true)]
async fn token_already_replaced_prompts_no_second_login() {
    let web = Web::new();
    let slow = Slow {
        web: web.clone(),
        arrives: Arc::default(),
        has_arrived: Arc::default(),
    };
    let (asking, arrives) = (web.clone(), Arc::clone(&slow.arrives));
    let login = Login::with_redirect(REDIRECT, move |url| {
        let (web, arrives) = (asking.clone(), Arc::clone(&arrives));
        async move {
            arrives.notify_waiters();
            sleep(Duration::from_secs(1)).await;
            Ok(web.agree(&url))
        }
    });
    let endpoint = endpoint(slow).login(login.http_client(web.clone()));
    let session = client().connect(endpoint).await.unwrap();
    call(&session, "add").await.unwrap();
    web.fake().refuses_all = true;
    web.fake().breaks_state = true;
    web.asked();
    // The refusal of the second call arrives while the page for the first call is open.
    let calls = futures_util::future::join(call(&session, "add"), call(&session, "slow"));
    let (first, second) = calls.await;
    assert!(first.unwrap_err().is_authorization());
    assert!(second.unwrap_err().is_authorization());
    let asked = web.asked();
    assert_eq!(count(&asked, "refresh_token"), 1, "{asked:?}");
    assert_eq!(count(&asked, "authorize "), 1, "{asked:?}");
}

/// A browser on this machine that agrees to everything.
pub(super) fn browsing(web: &Web) -> Login {
    let web = web.clone();
    Login::with_loopback(move |url| {
        let answer = web.agree(&url);
        async move {
            let authority = answer.split('/').nth(2).unwrap().to_owned();
            let mut socket = TcpStream::connect(&authority).await?;
            let (_, path) = answer.split_once("/callback").unwrap();
            let target = format!("/callback{path}");
            let request = format!("GET {target} HTTP/1.1\r\nhost: {authority}\r\n\r\n");
            socket.write_all(request.as_bytes()).await?;
            tokio::spawn(async move {
                let mut page = String::new();
                let _ = socket.read_to_string(&mut page).await;
            });
            Ok(())
        }
    })
}

#[tokio::test]
async fn registered_client_keeps_its_port_or_is_reregistered() {
    let (web, store) = (Web::new(), MemoryTokenStore::new());
    web.fake().redirect = None;
    web.fake().withholds_refresh = true;
    let log_in = async || {
        web.fake().expire();
        let login = browsing(&web).store(store.clone());
        connect(&web, login).await.unwrap();
        count(&web.asked(), "register")
    };
    assert_eq!(log_in().await, 1);
    assert_eq!(log_in().await, 0, "the port is the same");
    let port = port_of(&store).await;
    let taken = TcpListener::bind(("127.0.0.1", port)).await.unwrap();
    assert_eq!(log_in().await, 1, "the port is taken");
    drop(taken);
    assert_ne!(port_of(&store).await, port);
}

/// The port that the client in a store is registered with.
async fn port_of(store: &MemoryTokenStore) -> u16 {
    use oxmcp::http::TokenStore;

    let keys = store.keys("").await.unwrap();
    let text = store.load(&keys[0]).await.unwrap().unwrap();
    let credentials = oxmcp::auth::client::Credentials::from_json(&text).unwrap();
    let client = credentials.client.unwrap();
    let uri = client.redirect_uris().unwrap()[0].clone();
    let port = uri.rsplit(':').next().unwrap().split('/').next();
    port.unwrap().parse().unwrap()
}

/// Connects with the standalone stream.
async fn listen(web: &Web, login: Login) -> ClientSession {
    let endpoint = Endpoint::new(MCP).http_client(web.clone());
    let endpoint = endpoint.login(login.http_client(web.clone()));
    client().connect(endpoint).await.unwrap()
}

#[tokio::test(start_paused = true)]
async fn stream_lacking_a_scope_opens_no_page() {
    let (web, store, person) = (Web::new(), MemoryTokenStore::new(), Person::default());
    let login = agreeing(&web).store(store.clone());
    connect(&web, login).await.unwrap();
    web.fake().get_lacks = true;
    let session = listen(&web, person.login(&web).store(store)).await;
    sleep(Duration::from_secs(600)).await;
    assert!(web.fake().log.contains(&"mcp 403".to_owned()));
    assert_eq!(person.opened.load(Relaxed), 0);
    drop(session);
}

#[tokio::test(start_paused = true)]
async fn ending_a_session_opens_no_page() {
    let (web, store, person) = (Web::new(), MemoryTokenStore::new(), Person::default());
    web.fake().has_sessions = true;
    web.fake().withholds_refresh = true;
    let login = agreeing(&web).store(store.clone());
    connect(&web, login).await.unwrap().close().await.unwrap();
    assert!(web.fake().log.contains(&"mcp DELETE".to_owned()));
    let login = person.login(&web).store(store);
    let session = connect(&web, login).await.unwrap();
    web.fake().expire();
    web.fake().log.clear();
    let _ = session.close().await;
    assert_eq!(web.fake().log, ["mcp 401"]);
    assert_eq!(person.opened.load(Relaxed), 0);
}

#[tokio::test(start_paused = true)]
async fn background_request_refreshes_after_a_transient_failure() {
    let (web, person) = (Web::new(), Person::default());
    web.fake().has_sessions = true;
    let session = connect(&web, person.login(&web)).await.unwrap();
    web.fake().expire();
    web.fake().is_down = true;
    call(&session, "add").await.unwrap_err();
    web.fake().is_down = false;
    web.fake().log.clear();
    session.close().await.unwrap();
    let expected = ["mcp 401", "refresh_token", "mcp DELETE"];
    assert_eq!(web.fake().log, expected);
}
