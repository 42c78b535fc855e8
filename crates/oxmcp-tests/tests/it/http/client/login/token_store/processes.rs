//! Processes that share a folder of logins, and are killed.

use std::{io::stdin, os::unix::process::ExitStatusExt, process::Stdio, sync::Arc};

use ::http::{Request, Response};
use axum::{Router, body::to_bytes, extract::Request as AxumRequest};
use bytes::Bytes;
use futures_util::future::join_all;
use oxmcp::{
    auth::Secret,
    http::{DefaultClient, HttpBody, HttpClient, TokenStore},
};
use rustix::process::{Resource, Rlimit, Signal, getpid, kill_process, setrlimit};
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines},
    net::TcpListener,
    process::{Child, ChildStdout, Command},
};

use super::*;
use crate::{child, http::client::login::fake::TOKEN};

/// The environment variable with the task of the child.
const ROLE: &str = "OXMCP_TEST_LOGINS";
const FOLDER: &str = "OXMCP_TEST_LOGINS_FOLDER";
const SERVER: &str = "OXMCP_TEST_LOGINS_SERVER";
/// The header with the original URL of a request.
const URL: &str = "x-url";
/// The length of the texts that are written until the process is killed, long enough for a kill in the middle of a write.
const LONG: usize = 1 << 20;
/// The number of bytes of a file that a process may write until the kernel ends it.
const CUT: u64 = 1 << 19;

/// The HTTP client of a process to the two servers, which run in another process.
#[derive(Clone)]
struct Remote {
    /// The address of the process with the servers.
    address: String,
    client: Arc<DefaultClient>,
    /// Whether the process kills itself when it has received tokens.
    dies: bool,
}

impl HttpClient for Remote {
    async fn send(&self, mut request: Request<Bytes>) -> Result<Response<HttpBody>> {
        let url = request.uri().to_string();
        request.headers_mut().insert(URL, url.parse().unwrap());
        *request.uri_mut() = self.address.parse().unwrap();
        let response = self.client.send(request).await?;
        if self.dies && url == TOKEN {
            kill_process(getpid(), Signal::KILL).unwrap();
        }
        Ok(response)
    }
}

/// Serves both servers to other processes. Returns the address.
async fn serve(web: &Web) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}/", listener.local_addr().unwrap());
    let web = web.clone();
    let answer = move |request: AxumRequest| async move {
        let (mut head, body) = request.into_parts();
        let url = head.headers.remove(URL).unwrap();
        head.uri = url.to_str().unwrap().parse().unwrap();
        let body = to_bytes(body, usize::MAX).await.unwrap();
        web.answer(&Request::from_parts(head, body))
            .map(axum::body::Body::from)
    };
    tokio::spawn(axum::serve(listener, Router::new().fallback(answer)).into_future());
    address
}

/// The child processes: each prints a line for each of its steps, and continues when it gets a line.
#[tokio::test]
#[ignore = "the process that the other tests start"]
async fn child() {
    let Some(role) = child::role(ROLE) else {
        return;
    };
    let store = FileTokenStore::at(env::var(FOLDER).unwrap());
    if role == "cut" {
        let cut = Rlimit {
            current: Some(CUT),
            maximum: Some(CUT),
        };
        setrlimit(Resource::Fsize, cut).unwrap();
        let text = Secret::new("b".repeat(LONG));
        store.save(&key("a"), text).await.unwrap();
        println!("saved");
        return;
    }
    if role == "write" {
        for letter in ["a", "b"].into_iter().cycle() {
            store
                .save(&key("a"), Secret::new(letter.repeat(LONG)))
                .await
                .unwrap();
            println!("saved");
        }
    }
    let web = Remote {
        address: env::var(SERVER).unwrap(),
        client: DefaultClient::new().into(),
        dies: role == "die",
    };
    let session = connect(&web, Login::non_interactive().store(store))
        .await
        .unwrap();
    println!("logged in");
    stdin().read_line(&mut String::new()).unwrap();
    call(&session, "add").await.unwrap();
    println!("called");
}

struct Started {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

fn start(role: &str, folder: &Folder, server: &str) -> Started {
    let name = "http::client::login::token_store::processes::child";
    let mut command = Command::from(child::command(name, ROLE, role));
    command.env(FOLDER, folder.path()).env(SERVER, server);
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .kill_on_drop(true);
    let mut child = command.spawn().unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    Started { child, lines }
}

impl Started {
    /// Waits until the process prints this line. Returns false if the process ends before.
    async fn says(&mut self, expected: &str) -> bool {
        while let Some(line) = self.lines.next_line().await.unwrap() {
            if line.ends_with(expected) {
                return true;
            }
        }
        false
    }

    async fn go_on(&mut self) {
        self.child
            .stdin
            .as_mut()
            .unwrap()
            .write_all(b"\n")
            .await
            .unwrap();
    }
}

#[tokio::test]
async fn ten_processes_with_expired_tokens_refresh_once() {
    let (folder, web) = (Folder::new(), Web::new());
    connect(&web, agreeing(&web).store(folder.store()))
        .await
        .unwrap();
    let server = serve(&web).await;
    let mut processes: Vec<_> = (0..10).map(|_| start("share", &folder, &server)).collect();
    for process in &mut processes {
        assert!(process.says("logged in").await);
    }
    web.asked();
    web.fake().expire();
    for process in &mut processes {
        process.go_on().await;
    }
    let called = join_all(processes.iter_mut().map(|it| it.says("called"))).await;
    assert_eq!(called, [true; 10], "nobody is logged out");
    // The strict server ends all tokens if a refresh token is used twice.
    assert_eq!(web.asked(), ["refresh_token"]);
    connect(&web, Login::non_interactive().store(folder.store()))
        .await
        .unwrap();
    assert!(web.asked().is_empty());
}

#[tokio::test]
async fn process_killed_with_unsaved_tokens_requires_a_login() {
    let (folder, web) = (Folder::new(), Web::new());
    connect(&web, agreeing(&web).store(folder.store()))
        .await
        .unwrap();
    let server = serve(&web).await;
    let mut process = start("die", &folder, &server);
    assert!(process.says("logged in").await);
    web.asked();
    web.fake().expire();
    process.go_on().await;
    assert!(!process.says("called").await);
    assert_eq!(web.asked(), ["refresh_token"]);
    // The lock was released with the process.
    let error = connect(&web, Login::non_interactive().store(folder.store()))
        .await
        .unwrap_err();
    assert!(error.is_authorization(), "{error}");
    connect(&web, agreeing(&web).store(folder.store()))
        .await
        .unwrap();
    web.asked();
    connect(&web, Login::non_interactive().store(folder.store()))
        .await
        .unwrap();
    assert!(web.asked().is_empty());
}

#[tokio::test]
async fn interrupted_write_keeps_the_previous_file() {
    let folder = Folder::new();
    let store = folder.store();
    let old = Secret::new("a".repeat(LONG));
    store.save(&key("a"), old.clone()).await.unwrap();
    let mut process = start("cut", &folder, "");
    assert!(!process.says("saved").await);
    let status = process.child.wait().await.unwrap();
    assert_eq!(status.signal(), Some(Signal::XFSZ.as_raw()));
    let new = fs::metadata(folder.path().join("new.tmp")).unwrap();
    assert_eq!(new.len(), CUT, "it was in the middle");
    assert_eq!(store.load(&key("a")).await.unwrap(), Some(old));
    store.save(&key("a"), "{}".into()).await.unwrap();
    assert_eq!(store.load(&key("a")).await.unwrap(), Some("{}".into()));
}

#[tokio::test]
async fn process_killed_while_writing_leaves_a_complete_file() {
    let folder = Folder::new();
    let store = folder.store();
    for saves in 1..=3 {
        let mut process = start("write", &folder, "");
        for _ in 0..saves {
            assert!(process.says("saved").await);
        }
        process.child.kill().await.unwrap();
        let text = store.load(&key("a")).await.unwrap().unwrap();
        let (first, text) = (text.expose().chars().next(), text.expose());
        assert_eq!(text.len(), LONG);
        assert!(text.chars().all(|it| Some(it) == first));
        assert_eq!(store.keys("a").await.unwrap(), [key("a")]);
        let names = names(&folder.path());
        let others = names
            .iter()
            .filter(|it| !it.ends_with(".json") && *it != "write.lock");
        assert!(others.into_iter().all(|it| it == "new.tmp"), "{names:?}");
    }
    store.save(&key("a"), "{}".into()).await.unwrap();
    assert_eq!(names(&folder.path()).len(), 2);
}
