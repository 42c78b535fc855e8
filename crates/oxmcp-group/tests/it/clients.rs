//! Clients of a gateway are kept apart: their states, sessions and shares of the limits.

use std::{
    future::ready,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use oxmcp::{
    Accept, CallOutcome, Client, ClientSession, CompletionInput, Error, Limits, Prompt, Reply,
    RequestContext, Resource, Result, Revision, Server, ServerSession, Tool, ToolError,
    http::{Endpoint, StreamableHttp},
    in_memory,
    keys::StateKey,
    protocol::{
        CallToolResult, CompleteParams, CompletionReference, ElicitFormParams, ElicitParams,
        InputRequest, InputRequiredResult, InputResponse, Meta,
    },
    transport::{BoxReadHalf, BoxTransport, BoxWriteHalf, Frame, ReadHalf, Transport, boxed},
};
use oxmcp_group::{Gateway, GatewaySession, Upstream};
use serde_json::json;
use tokio::{runtime::Handle, time::sleep};

use crate::{
    gateway_support::{REVISIONS, connect, connect_as, gateway, host, pairs, start, text},
    support::{Name, Remote, server},
};

fn modern() -> Client {
    host().revisions([Revision::V2026_07_28])
}

fn legacy() -> Client {
    host().revisions([Revision::V2025_11_25])
}

/// A server that returns whatever state comes back to it.
fn trusting() -> Server {
    let round = |cx: RequestContext| async move {
        match cx.request_state() {
            Some(state) => Ok::<_, Error>(Reply::Complete(format!("back: {state}"))),
            None => {
                let asked = InputRequiredResult::new().with_request_state("round 2");
                Ok(Reply::InputRequired(asked))
            }
        }
    };
    Server::new("trusting", "1.0.0")
        .tool(Tool::new("one", "Needs two rounds", round))
        .tool(Tool::new("two", "Needs two rounds", round))
        .prompt(Prompt::new("one", "Needs two rounds", round))
        .revisions([Revision::V2026_07_28])
}

/// A node of a gateway whose nodes share a key.
async fn node(key: u8) -> GatewaySession {
    let front = Server::new("all", "1.0.0").state_keys([StateKey::new([key; StateKey::LENGTH])]);
    let gateway = gateway().mount("a", trusting()).mount("b", trusting());
    gateway.start(front).await.unwrap()
}

async fn state_of(session: &ClientSession, tool: &str) -> String {
    match session.call_tool(tool, ()).manual().await.unwrap() {
        CallOutcome::InputRequired(asked) => {
            let server = asked.meta.get(Meta::SERVER_INFO).cloned();
            assert_eq!(server.unwrap()["name"], "all");
            asked.request_state.unwrap()
        }
        other => panic!("{other:?}"),
    }
}

async fn go_on(session: &ClientSession, tool: &str, state: &str) -> Result<String> {
    let call = session.call_tool(tool, ()).request_state(state);
    match call.manual().await? {
        CallOutcome::Complete(result) => Ok(text(&result).to_owned()),
        other => panic!("{other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn upstream_state_belongs_to_client_and_target() {
    let (first, second, other) = (node(1).await, node(1).await, node(2).await);
    let ann = connect_as(&first, modern(), "ann").await;
    let state = state_of(&ann, "a_one").await;
    assert!(!state.contains("round"), "{state}");
    let mut changed = state.clone();
    let last = changed.pop().unwrap();
    changed.push(if last == 'A' { 'B' } else { 'A' });
    let bob = connect_as(&first, modern(), "bob").await;
    let nobody = connect(&first, modern()).await;
    let on_other = connect_as(&other, modern(), "ann").await;
    for (session, tool, state) in [
        (&bob, "a_one", state.as_str()),
        (&nobody, "a_one", &state),
        (&on_other, "a_one", &state),
        (&ann, "a_two", &state),
        (&ann, "b_one", &state),
        (&ann, "a_one", &changed),
        (&ann, "a_one", "round 2"),
        (&ann, "a_one", "state:round 2"),
        (&ann, "a_one", ""),
    ] {
        let error = go_on(session, tool, state).await.unwrap_err();
        assert_eq!(error.message(), "Invalid or expired requestState", "{tool}");
    }
    let prompt = ann.get_prompt("a_one", ()).request_state(state.as_str());
    let error = prompt.manual().await.unwrap_err();
    assert_eq!(error.message(), "Invalid or expired requestState");
    for node in [&first, &second] {
        let ann = connect_as(node, modern(), "ann").await;
        assert_eq!(go_on(&ann, "a_one", &state).await.unwrap(), "back: round 2");
    }
    // A client without rounds does not see the state.
    let old = connect(&first, legacy()).await;
    let result = old.call_tool("b_two", ()).await.unwrap();
    assert_eq!(text(&result), "back: round 2");
}

/// A server that asks for a name.
fn asking() -> Server {
    let greet = |cx: RequestContext| async move {
        let name: Name = cx.ask("name", "Your name?").await?;
        Ok::<_, Error>(format!("hello {}", name.name))
    };
    Server::new("asking", "1.0.0")
        .tool(Tool::new("greet", "Asks for a name", greet))
        .revisions([Revision::V2025_11_25])
}

async fn asked(session: &ClientSession) -> Result<String> {
    match session.call_tool("a_greet", ()).manual().await? {
        CallOutcome::InputRequired(asked) => Ok(asked.request_state.unwrap()),
        other => panic!("{other:?}"),
    }
}

/// The answer of a user to the question for a name.
fn accepted(name: &str) -> InputResponse {
    InputResponse::new(&json!({"action": "accept", "content": {"name": name}})).unwrap()
}

#[tokio::test(start_paused = true)]
async fn one_client_has_a_share_of_the_waiting_calls() {
    let able = || {
        modern().on_elicit(|_: ElicitFormParams| async {
            Accept(Name {
                name: String::new(),
            })
        })
    };
    let gateway = start(gateway().mount("a", asking()).max_calls(8)).await;
    let ann = connect_as(&gateway, able(), "ann").await;
    let ann_again = connect_as(&gateway, able(), "ann").await;
    let first = asked(&ann).await.unwrap();
    asked(&ann_again).await.unwrap();
    let error = asked(&ann).await.unwrap_err();
    assert!(
        error.message().contains("2 waiting calls of the 8"),
        "{error}"
    );
    // Clients without a principal count by their connections.
    for other in [
        connect_as(&gateway, able(), "bob").await,
        connect(&gateway, able()).await,
        connect(&gateway, able()).await,
    ] {
        asked(&other).await.unwrap();
    }
    // A call that has ended does not count.
    let answered = ann.call_tool("a_greet", ()).request_state(first);
    let answered = answered.input_responses([("question-0".to_owned(), accepted("Ada"))]);
    answered.manual().await.unwrap();
    asked(&ann).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn one_client_has_a_share_of_the_sessions() {
    let stuck = Tool::new("wait", "Waits", std::future::pending::<String>);
    let upstream = server("a", &["x"]).tool(stuck);
    let upstream = upstream.revisions([Revision::V2025_11_25]);
    for client in [legacy, modern] {
        let gateway = gateway().mount("a", upstream.clone()).max_sessions(8);
        let gateway = start(gateway).await;
        let mut open = Vec::new();
        for principal in ["ann", "bob"] {
            for _ in 0..2 {
                let session = connect_as(&gateway, client(), principal).await;
                open.push(tokio::spawn(session.call_tool("a_wait", ()).into_future()));
                sleep(Duration::from_millis(10)).await;
            }
            let session = connect_as(&gateway, client(), principal).await;
            let error = session.call_tool("a_x", ()).await.unwrap_err();
            let expected = "2 of the 8 sessions of `Gateway::max_sessions`";
            assert!(error.message().contains(expected), "{error}");
        }
        for _ in 0..3 {
            let session = connect(&gateway, client()).await;
            session.call_tool("a_x", ()).await.unwrap();
            open.push(tokio::spawn(session.call_tool("a_wait", ()).into_future()));
            sleep(Duration::from_millis(10)).await;
        }
        assert!(open.iter().all(|call| !call.is_finished()));
    }
}

/// An upstream with a session for each client, which tells the name of its client.
struct ByName {
    /// The names of the clients for which sessions were opened.
    opened: Arc<Mutex<Vec<String>>>,
    /// The names of the clients that have watched the resource.
    watching: Arc<Mutex<Vec<String>>>,
    /// The newest sessions, by the names of their clients.
    remotes: Arc<Mutex<Vec<(String, Remote)>>>,
}

impl ByName {
    fn new() -> Self {
        Self {
            opened: Arc::default(),
            watching: Arc::default(),
            remotes: Arc::default(),
        }
    }

    fn upstream(&self, revision: Revision) -> Upstream {
        let (opened, remotes) = (Arc::clone(&self.opened), Arc::clone(&self.remotes));
        let watching = Arc::clone(&self.watching);
        Upstream::for_client(move |client| {
            let principal = client.and_then(|it| it.principal());
            let name = principal.map_or("gateway", |it| it.as_str()).to_owned();
            let (own, completing) = (name.clone(), name.clone());
            let watching = Arc::clone(&watching);
            let greet = Prompt::new("greet", "Greets", |Name { name }: Name| async move { name });
            let server = Server::new("by name", "1.0.0")
                .resource(Resource::text("app://status", "status", "fine"))
                .prompt(greet.complete("name", move |_: CompletionInput| {
                    ready(vec![completing.clone()])
                }))
                .on_subscribe(
                    move |_: RequestContext, _| {
                        watching.lock().unwrap().push(own.clone());
                        ready(Ok(()))
                    },
                    |_: ServerSession, _| async {},
                )
                .revisions([revision]);
            let remote = Remote::new(server);
            remotes.lock().unwrap().push((name.clone(), remote.clone()));
            opened.lock().unwrap().push(name);
            remote
        })
    }
}

#[tokio::test(start_paused = true)]
async fn watches_of_clients_are_kept_apart() {
    for (front, upstream) in pairs(REVISIONS) {
        let by_name = ByName::new();
        let gateway = start(gateway().mount("a", by_name.upstream(upstream))).await;
        let mut open = Vec::new();
        for principal in ["ann", "bob"] {
            let session = connect_as(&gateway, host().revisions([front]), principal).await;
            let watch = session.watch_resource("app://status").await.unwrap();
            open.push((session, watch));
        }
        let watching = || by_name.watching.lock().unwrap().clone();
        assert_eq!(watching(), ["ann", "bob"], "{front} {upstream}");
        // The watch is not continued in the gateway's own session.
        let remotes = by_name.remotes.lock().unwrap().clone();
        let (_, remote) = remotes.iter().find(|(name, _)| name == "ann").unwrap();
        remote.kill().await;
        sleep(Duration::from_secs(3600)).await;
        assert_eq!(watching(), ["ann", "bob"], "{front} {upstream}");
    }
}

#[tokio::test(start_paused = true)]
async fn completion_is_that_of_the_client() {
    for (front, upstream) in pairs(REVISIONS) {
        let by_name = ByName::new();
        let gateway = start(gateway().mount("a", by_name.upstream(upstream))).await;
        for principal in ["ann", "bob"] {
            let session = connect_as(&gateway, host().revisions([front]), principal).await;
            let reference = CompletionReference::prompt("a_greet");
            let params = CompleteParams::new(reference, "name", "");
            let completed = session.complete(params).await.unwrap();
            assert_eq!(
                completed.completion.values,
                [principal],
                "{front} {upstream}"
            );
        }
    }
}

#[tokio::test(start_paused = true)]
async fn lost_watch_is_tried_again_less_and_less() {
    let attempts = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&attempts);
    let server = Server::new("a", "1.0.0")
        .resource(Resource::text("app://status", "status", "fine"))
        .on_subscribe(
            move |_: RequestContext, _| {
                let is_first = counter.fetch_add(1, Ordering::Relaxed) == 0;
                ready(match is_first {
                    true => Ok(()),
                    false => Err(Error::internal("no")),
                })
            },
            |_: ServerSession, _| async {},
        )
        .revisions([Revision::V2025_11_25]);
    let remote = Remote::new(server);
    let transport = remote.clone();
    let upstream = Upstream::new(move || transport.clone());
    let gateway = start(gateway().mount("a", upstream)).await;
    let session = connect(&gateway, modern()).await;
    let _watch = session.watch_resource("app://status").await.unwrap();
    remote.kill().await;
    sleep(Duration::from_secs(3600)).await;
    let attempts = attempts.load(Ordering::Relaxed);
    assert!(
        (5..=30).contains(&attempts),
        "{attempts} attempts in an hour"
    );
}

/// A server that counts the calls of each session.
fn counting(revision: Revision) -> Server {
    let counts: Arc<Mutex<Vec<(ServerSession, usize)>>> = Arc::default();
    let count = move |cx: RequestContext| {
        let session = cx.server_session().unwrap();
        let mut counts = counts.lock().unwrap();
        let count = match counts.iter_mut().find(|(it, _)| *it == session) {
            Some((_, count)) => {
                *count += 1;
                *count
            }
            None => {
                counts.push((session, 1));
                1
            }
        };
        ready(format!("{count}"))
    };
    Server::new("counting", "1.0.0")
        .tool(Tool::new("count", "Counts the calls of the session", count))
        .revisions([revision])
}

#[tokio::test(start_paused = true)]
async fn session_of_a_downgraded_upstream_is_not_shared() {
    let opened = AtomicUsize::new(0);
    let (new, old) = (
        Remote::new(counting(Revision::V2026_07_28)),
        Remote::new(counting(Revision::V2025_11_25)),
    );
    let upstream = Upstream::new(move || match opened.fetch_add(1, Ordering::Relaxed) {
        0 => new.clone(),
        _ => old.clone(),
    });
    let gateway = start(gateway().mount("a", upstream)).await;
    for _ in 0..3 {
        let session = connect(&gateway, modern()).await;
        let result = session.call_tool("a_count", ()).await.unwrap();
        assert_eq!(text(&result), "1");
    }
}

#[tokio::test(start_paused = true)]
async fn end_of_a_client_is_awaited_once() {
    let metrics = Handle::current().metrics();
    let remote = Remote::new(server("a", &["x"]).revisions([Revision::V2025_11_25]));
    let transport = remote.clone();
    let upstream = Upstream::new(move || transport.clone());
    let gateway = start(gateway().mount("a", upstream)).await;
    let session = connect(&gateway, legacy()).await;
    let mut settled = 0;
    for round in 0..60 {
        session.call_tool("a_x", ()).await.unwrap();
        // The client's session is the newest.
        remote.kill().await;
        sleep(Duration::from_secs(10)).await;
        if round == 10 {
            settled = metrics.num_alive_tasks();
        }
    }
    let left = metrics.num_alive_tasks();
    assert!(left <= settled + 4, "{settled} tasks, then {left}");
}

/// A transport that ends after its first message.
struct Brief(Server);

impl Transport for Brief {
    type Read = OneMessage;
    type Write = BoxWriteHalf;

    async fn connect(&mut self, limits: &Limits) -> Result<(OneMessage, BoxWriteHalf)> {
        let (near, far) = in_memory();
        self.0.connect(far).await?;
        let mut near: BoxTransport = boxed(near);
        let (read, write) = near.connect(limits).await?;
        Ok((OneMessage(read, false), write))
    }
}

struct OneMessage(BoxReadHalf, bool);

impl ReadHalf for OneMessage {
    async fn read(&mut self) -> Result<Option<Frame<'_>>> {
        match self.1 {
            true => Ok(None),
            false => {
                let read = self.0.read().await?;
                self.1 = true;
                Ok(read)
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn session_that_ends_at_once_is_opened_twice() {
    let opened = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&opened);
    let modern_server = server("a", &["x"]).revisions([Revision::V2026_07_28]);
    let upstream = Upstream::for_client(move |_| {
        let server = modern_server.clone();
        match counter.fetch_add(1, Ordering::Relaxed) {
            0 => boxed(Remote::new(server)),
            _ => boxed(Brief(server)),
        }
    });
    let gateway: Gateway = gateway().mount("a", upstream);
    let gateway = start(gateway).await;
    let session = connect(&gateway, legacy()).await;
    let call = tokio::time::timeout(
        Duration::from_secs(600),
        session.call_tool("a_x", ()).into_future(),
    );
    let error = call.await.unwrap().unwrap_err();
    assert!(
        error.message().contains("ends its sessions at once"),
        "{error}"
    );
    assert_eq!(
        opened.load(Ordering::Relaxed),
        3,
        "one is the gateway's own"
    );
}

/// A server that asks for two names, each under the name of its caller.
fn asking_twice() -> Server {
    let ask = |cx: RequestContext, Name { name }: Name| async move {
        let first: Name = cx.ask("first", format!("{name} 1")).await?;
        let second: Name = cx.ask("second", format!("{name} 2")).await?;
        Ok::<_, ToolError>(format!("{} {}", first.name, second.name))
    };
    server("a", &["x"])
        .tool(Tool::new("ask", "Asks for two names", ask))
        .revisions([Revision::V2025_11_25])
}

#[tokio::test(start_paused = true)]
async fn calls_of_one_connection_share_a_session_that_asks() {
    let upstream = asking_twice();
    let gateway = start(gateway().mount("a", upstream.clone())).await;
    for client in [legacy(), modern()] {
        let client = client.on_elicit(|form: ElicitFormParams| async move {
            Accept(Name {
                name: form.message.trim_start_matches("a: ").to_owned(),
            })
        });
        let session = connect(&gateway, client).await;
        let calls = ["p", "q", "r"].map(|name| {
            let call = session.call_tool("a_ask", json!({"name": name}));
            tokio::spawn(call.into_future())
        });
        for (call, expected) in calls.into_iter().zip(["p 1 p 2", "q 1 q 2", "r 1 r 2"]) {
            let result = call.await.unwrap().unwrap();
            assert_eq!(text(&result), expected, "{}", session.revision());
        }
        assert_eq!(upstream.sessions().count(), 2, "one is the gateway's own");
        session.close().await.unwrap();
        sleep(Duration::from_secs(1)).await;
        assert_eq!(upstream.sessions().count(), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn call_that_waits_gets_no_questions_of_others() {
    let gateway = start(gateway().mount("a", asking_twice())).await;
    let client = modern().on_elicit(|_: ElicitFormParams| async {
        Accept(Name {
            name: String::new(),
        })
    });
    let session = connect(&gateway, client).await;
    let ask = |name: &str| session.call_tool("a_ask", json!({"name": name})).manual();
    let (first, waiting) = (asked_by(ask("p").await), asked_by(ask("q").await));
    assert_eq!(waiting.1, ["a: q 1"]);
    let answered = session.call_tool("a_ask", json!({"name": "p"}));
    let answered = answered
        .request_state(first.0)
        .input_responses([("question-0".to_owned(), accepted("Ada"))]);
    assert_eq!(asked_by(answered.manual().await).1, ["a: p 2"]);
}

/// The state and the questions of an outcome.
fn asked_by(outcome: Result<CallOutcome<CallToolResult>>) -> (String, Vec<String>) {
    let CallOutcome::InputRequired(asked) = outcome.unwrap() else {
        panic!("it asks nothing");
    };
    let questions = asked.input_requests.unwrap();
    let message = |request: &InputRequest| match request {
        InputRequest::Elicit(ElicitParams::Form(form)) => form.message.clone(),
        other => panic!("{other:?}"),
    };
    let messages = questions.values().map(message).collect();
    (asked.request_state.unwrap(), messages)
}

#[tokio::test]
async fn requests_over_http_without_a_session_have_nothing_in_common() {
    let gateway = start(gateway().mount("a", counting(Revision::V2025_11_25))).await;
    let endpoint = StreamableHttp::from(gateway.server());
    let endpoint = endpoint.serve("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", endpoint.local_addr());
    for (client, expected) in [(legacy(), ["1", "2"]), (modern(), ["1", "1"])] {
        let session = client.connect(Endpoint::new(&url)).await.unwrap();
        for expected in expected {
            let result = session.call_tool("a_count", ()).await.unwrap();
            assert_eq!(text(&result), expected, "{}", session.revision());
        }
        session.close().await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn resource_is_watched_in_the_session_that_is_used() {
    let used: Arc<Mutex<Vec<ServerSession>>> = Arc::default();
    let (called, watched) = (Arc::clone(&used), Arc::clone(&used));
    let note = |used: &Mutex<Vec<ServerSession>>, cx: RequestContext| {
        used.lock().unwrap().push(cx.server_session().unwrap());
        Ok::<_, Error>(())
    };
    let call = move |cx: RequestContext| ready(note(&called, cx).map(|()| "done"));
    let upstream = Server::new("a", "1.0.0")
        .tool(Tool::new("use", "Uses the session", call))
        .resource(Resource::text("app://status", "status", "fine"))
        .on_subscribe(
            move |cx: RequestContext, _| ready(note(&watched, cx)),
            |_: ServerSession, _| async {},
        )
        .revisions([Revision::V2025_11_25]);
    let gateway = start(gateway().mount("a", upstream)).await;
    for client in [legacy(), modern()] {
        let session = connect(&gateway, client).await;
        session.call_tool("a_use", ()).await.unwrap();
        let _watch = session.watch_resource("app://status").await.unwrap();
        let used = std::mem::take(&mut *used.lock().unwrap());
        assert_eq!(used.len(), 2);
        assert!(used[0] == used[1], "{}", session.revision());
    }
}
