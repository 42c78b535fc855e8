//! Tasks of 2025-11-25 over HTTP: their owners, the streams of their requests and their progress, and several nodes.

use std::{collections::HashSet, sync::Arc, time::Duration};

use http::request::Builder;
use oxmcp::{
    JsonSchema, Principal, RequestContext, Server, Tool,
    http::StreamableHttp,
    protocol::Meta,
    store::MemoryBus,
    tasks::{ID, MemoryTaskStore, TaskPolicy, TaskTool, Tasks},
};
use serde_json::{Value, json};
use tokio::{sync::watch, time::sleep};

use super::{
    legacy::endpoint,
    peer::{Events, LEGACY, Session, builder, header, initialize, json, modern_builder, send},
    shared_stores::{SharedEvents, SharedSessions},
};
use crate::{
    extension::tasks::leases::Stalling,
    http::mounts::{Mount, Target},
    support::{modern, request},
};

#[derive(serde::Deserialize, JsonSchema)]
struct Confirm {
    sure: bool,
}

/// A server with tools that take long, elicit input, and report progress.
fn office(tasks: &Tasks) -> Server {
    let waits = Tool::new("wait", "Wait", std::future::pending::<String>);
    let asks = Tool::new("delete", "Delete", |cx: RequestContext| async move {
        let Confirm { sure } = cx.ask("sure", "Sure?").await?;
        cx.progress(1).await;
        Ok::<_, oxmcp::Error>(sure.to_string())
    });
    Server::new("office", "1.0.0")
        .extension(tasks.extension())
        .tool(waits.task(TaskPolicy::Always))
        .tool(asks.task(TaskPolicy::Always))
}

fn of(builder: Builder, who: Option<&str>) -> Builder {
    match who {
        Some(who) => builder.extension(Principal::new(who)),
        None => builder,
    }
}

/// A session of a principal, or of an anonymous client.
struct Client<T> {
    session: Session<T>,
    who: Option<&'static str>,
    capabilities: Value,
}

impl<T: Target> Client<T> {
    async fn open(endpoint: &T, who: Option<&'static str>) -> Self {
        let open = initialize(LEGACY, json!({"elicitation": {}}));
        let opened = send(endpoint, of(builder("POST"), who), open.to_string()).await;
        let id = header(opened.headers(), "mcp-session-id").to_owned();
        let capabilities = json(opened).await["result"]["capabilities"].clone();
        let session = Session {
            endpoint: endpoint.clone(),
            id,
        };
        let client = Self {
            session,
            who,
            capabilities,
        };
        let ready = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        client.send(&ready).await;
        client
    }

    async fn send(&self, message: &Value) -> http::Response<oxmcp::http::ResponseBody> {
        let builder = of(self.session.builder("POST"), self.who);
        send(&self.session.endpoint, builder, message.to_string()).await
    }

    async fn ask(&self, method: &str, params: Value) -> Value {
        json(self.send(&request(7, method, params)).await).await
    }

    async fn begin(&self, tool: &str) -> String {
        let params = json!({"name": tool, "task": {}, "_meta": {"progressToken": 9}});
        let created = self.ask("tools/call", params).await;
        let id = created["result"]["task"]["taskId"].as_str();
        id.unwrap_or_else(|| panic!("{created}")).to_owned()
    }
}

/// Sends a modern request that declares the tasks extension, as `who`.
async fn ask_modern(
    endpoint: &impl Target,
    who: Option<&str>,
    method: &str,
    params: Value,
) -> Value {
    let mut message = modern(1, method, params);
    message["params"]["_meta"][Meta::CLIENT_CAPABILITIES] = json!({"extensions": {ID: {}}});
    let mut request = modern_builder(&message);
    if let Some(id) = message["params"]["taskId"].as_str() {
        request = request.header("mcp-name", id);
    }
    json(send(endpoint, of(request, who), message.to_string()).await).await
}

#[tokio::test(start_paused = true)]
async fn task_header_is_optional_but_must_match() {
    for is_strict in [false, true] {
        let (_open, gate) = watch::channel(false);
        let server = Server::new("office", "1.0.0").extension(Tasks::in_memory().extension());
        let server = server.tool(gated(&gate, true));
        let server = if is_strict { server.strict() } else { server };
        header_of_a_task(&StreamableHttp::from(server), is_strict).await;
    }
}

async fn header_of_a_task(endpoint: &StreamableHttp, is_strict: bool) {
    let id = begin_modern(endpoint).await;
    let twice = format!("{id}, {id}");
    for (method, more) in [
        ("tasks/get", json!({})),
        ("tasks/update", json!({"inputResponses": {}})),
        ("tasks/cancel", json!({})),
    ] {
        for (headers, is_taken) in [
            (vec![], !is_strict),
            (vec![&*id], true),
            (vec!["another"], false),
            (vec![""], false),
            (vec![&*id, &*id], false),
            (vec![&*twice], false),
        ] {
            let mut params = more.clone();
            params["taskId"] = json!(id);
            let mut message = modern(1, method, params);
            message["params"]["_meta"][Meta::CLIENT_CAPABILITIES] = json!({"extensions": {ID: {}}});
            let mut request = modern_builder(&message);
            for header in &headers {
                request = request.header("mcp-name", *header);
            }
            let answer = json(send(endpoint, request, message.to_string()).await).await;
            let code = answer["error"]["code"].as_i64();
            let expected = (!is_taken).then_some(-32020);
            assert_eq!(code, expected, "{method} {headers:?} {answer}");
        }
    }
}

/// The ids, among `ids`, of the tasks whose changes `who` is granted a subscription to.
async fn granted(endpoint: &impl Target, who: Option<&str>, ids: Value) -> Value {
    let filter = json!({"notifications": {"taskIds": ids}});
    let mut listen = modern(1, "subscriptions/listen", filter);
    listen["params"]["_meta"][Meta::CLIENT_CAPABILITIES] = json!({"extensions": {ID: {}}});
    let builder = of(modern_builder(&listen), who);
    let mut events = Events::of(send(endpoint, builder, listen.to_string()).await);
    loop {
        let event = events.next().await.unwrap().data;
        if event["method"] == "notifications/subscriptions/acknowledged" {
            return event["params"]["notifications"]["taskIds"].clone();
        }
    }
}

/// A tool that completes when the test opens the gate, but never on nodes where `is_done` is false.
fn gated(gate: &watch::Receiver<bool>, is_done: bool) -> Tool {
    let gate = gate.clone();
    let tool = Tool::new("work", "Work", move || {
        let mut gate = gate.clone();
        async move {
            gate.wait_for(|open| *open && is_done).await.unwrap();
            "done"
        }
    });
    tool.task(TaskPolicy::Required)
}

async fn begin_modern(endpoint: &impl Target) -> String {
    let call = json!({"name": "work", "arguments": {}});
    let made = ask_modern(endpoint, None, "tools/call", call).await;
    made["result"]["taskId"].as_str().unwrap().to_owned()
}

async fn status(endpoint: &impl Target, id: &str) -> Value {
    let state = ask_modern(endpoint, None, "tasks/get", json!({"taskId": id})).await;
    state["result"]["status"].clone()
}

#[tokio::test(start_paused = true)]
async fn closing_endpoint_hands_over_its_tasks() {
    // The store outlives the process, or not.
    for outlives in [true, false] {
        let store = Arc::new(MemoryTaskStore::new());
        let (_stall, stalls) = watch::channel(false);
        let (open, gate) = watch::channel(false);
        let node = |is_done| {
            let tasks = if outlives {
                Tasks::new(Stalling(Arc::clone(&store), stalls.clone()))
            } else {
                Tasks::new(Arc::clone(&store))
            };
            let server = Server::new("office", "1.0.0").extension(tasks.extension());
            StreamableHttp::from(server.tool(gated(&gate, is_done)))
        };
        let (first, second) = (node(false), node(true));
        let id = begin_modern(&first).await;
        assert_eq!(status(&second, &id).await, "working");
        sleep(Duration::from_secs(1)).await;
        first.close().await;
        open.send(true).unwrap();
        sleep(Duration::from_secs(6)).await;
        let expected = if outlives { "completed" } else { "working" };
        assert_eq!(status(&second, &id).await, expected);
    }
}

#[tokio::test(start_paused = true)]
async fn task_is_pushed_by_other_nodes() {
    let (store, bus) = (Arc::new(MemoryTaskStore::new()), Arc::new(MemoryBus::new()));
    let (open, gate) = watch::channel(false);
    let node = || {
        let tasks = Tasks::new(Arc::clone(&store));
        let server = Server::new("office", "1.0.0").extension(tasks.extension());
        StreamableHttp::from(server.tool(gated(&gate, true))).bus(Arc::clone(&bus))
    };
    let (one, other) = (node(), node());
    let id = begin_modern(&one).await;
    let filter = json!({"notifications": {"taskIds": [id]}});
    let mut listen = modern(1, "subscriptions/listen", filter);
    listen["params"]["_meta"][Meta::CLIENT_CAPABILITIES] = json!({"extensions": {ID: {}}});
    let builder = modern_builder(&listen);
    let mut events = Events::of(send(&other, builder, listen.to_string()).await);
    events.next().await.unwrap();
    open.send(true).unwrap();
    let told = events.next().await.unwrap().data;
    assert_eq!(told["method"], "notifications/tasks");
    assert_eq!(told["params"]["status"], "completed", "{told}");
    assert_eq!(told["params"]["taskId"], id);
}

#[tokio::test]
async fn task_belongs_to_its_owner_in_every_method() {
    let endpoint = StreamableHttp::from(office(&Tasks::in_memory()));
    let callers = [None, Some("ann"), Some("bob"), Some("")];
    let mut tasks = Vec::new();
    for who in callers {
        let client = Client::open(&endpoint, who).await;
        let old = client.begin("wait").await;
        let call = json!({"name": "wait", "arguments": {}});
        let new = ask_modern(&endpoint, who, "tools/call", call).await;
        let new = new["result"]["taskId"].as_str().unwrap().to_owned();
        tasks.push((client, old, new));
    }
    let unknown = "A".repeat(32);
    let answer = tasks[0]
        .0
        .ask("tasks/get", json!({"taskId": unknown}))
        .await;
    let one = &answer["error"];
    assert_eq!(one["code"], -32602);
    for (client, old, new) in &tasks {
        let who = client.who;
        for (_, foreign, foreign_new) in tasks.iter().filter(|(other, ..)| other.who != who) {
            for method in ["tasks/get", "tasks/result", "tasks/cancel"] {
                let refused = client.ask(method, json!({"taskId": foreign})).await;
                assert_eq!(refused["error"], *one, "{who:?} {method}");
            }
            for method in ["tasks/get", "tasks/update", "tasks/cancel"] {
                let params = json!({"taskId": foreign_new, "inputResponses": {}});
                let refused = ask_modern(&endpoint, who, method, params).await;
                assert_eq!(refused["error"], *one, "{who:?} {method}");
            }
        }
        // No caller is granted a subscription to them either.
        let ids: Vec<_> = tasks.iter().map(|(_, _, new)| new).collect();
        assert_eq!(granted(&endpoint, who, json!(ids)).await, json!([new]));
        let own = client.ask("tasks/get", json!({"taskId": old})).await;
        assert_eq!(own["result"]["status"], "working");
        let own = ask_modern(&endpoint, who, "tasks/get", json!({"taskId": new})).await;
        assert_eq!(own["result"]["status"], "working");
        let listed = client.ask("tasks/list", json!({})).await;
        if who.is_none() {
            assert!(client.capabilities["tasks"].get("list").is_none());
            assert_eq!(listed["error"]["code"], -32601, "{listed}");
            continue;
        }
        // A caller with an identity lists its own tasks of this era.
        assert_eq!(client.capabilities["tasks"]["list"], json!({}));
        let listed = listed["result"]["tasks"].as_array().unwrap();
        assert_eq!(listed.len(), 1, "{who:?}: {listed:?}");
        assert_eq!(listed[0]["taskId"], **old);
    }
}

#[tokio::test]
async fn tasks_are_listed_in_pages() {
    let store = MemoryTaskStore::new();
    let endpoint = StreamableHttp::from(office(&Tasks::new(store)));
    let ann = Client::open(&endpoint, Some("ann")).await;
    let bob = Client::open(&endpoint, Some("bob")).await;
    let mut begun = HashSet::new();
    for number in 0..201 {
        begun.insert(ann.begin("wait").await);
        if number % 10 == 0 {
            bob.begin("wait").await;
        }
    }
    let mut listed = Vec::new();
    let mut pages = Vec::new();
    let mut params = json!({});
    loop {
        let page = ann.ask("tasks/list", params).await;
        let tasks = page["result"]["tasks"].as_array().unwrap().clone();
        pages.push(tasks.len());
        listed.extend(
            tasks
                .iter()
                .map(|it| it["taskId"].as_str().unwrap().to_owned()),
        );
        let Some(next) = page["result"].get("nextCursor") else {
            break;
        };
        params = json!({"cursor": next});
    }
    assert_eq!(pages, [100, 100, 1]);
    assert_eq!(listed.len(), begun.len());
    assert_eq!(listed.into_iter().collect::<HashSet<_>>(), begun);
    // An empty cursor is none.
    let first = ann.ask("tasks/list", json!({})).await;
    assert_eq!(ann.ask("tasks/list", json!({"cursor": ""})).await, first);
    for cursor in ["7", "%%%", &"A".repeat(33)] {
        let refused = ann.ask("tasks/list", json!({"cursor": cursor})).await;
        assert_eq!(refused["error"]["code"], -32602, "{cursor}: {refused}");
    }
}

/// The messages of a stream up to and including the answer to request 7.
async fn until_answer(events: &mut Events) -> Vec<Value> {
    let mut messages = Vec::new();
    loop {
        let event = events.next().await.unwrap();
        if event.data.is_null() {
            continue;
        }
        let is_answer = event.data["id"] == 7 && event.data.get("method").is_none();
        messages.push(event.data);
        if is_answer {
            return messages;
        }
    }
}

#[tokio::test]
async fn question_arrives_on_the_tasks_result_stream() {
    for mount in [
        Mount::Http1,
        Mount::Http2,
        Mount::AxumHttp1,
        Mount::AxumHttp2,
    ] {
        let server = office(&Tasks::in_memory());
        let endpoint = mount.serve(&StreamableHttp::from(server)).await;
        // No layer names a principal in front of the SDK's own server.
        let who = mount.is_axum().then_some("ann");
        let client = Client::open(&endpoint, who).await;
        let get = of(client.session.builder("GET"), client.who);
        let mut standing = Events::of(send(&endpoint, get, "").await);
        let id = client.begin("delete").await;
        let result = request(7, "tasks/result", json!({"taskId": id}));
        let mut events = Events::of(client.send(&result).await);
        let mut asked = events.next().await.unwrap().data;
        while asked["method"] != "elicitation/create" {
            asked = events.next().await.unwrap().data;
        }
        let related = json!({Meta::RELATED_TASK: {"taskId": id}});
        assert_eq!(asked["params"]["_meta"], related, "{mount:?}: {asked}");
        let yes = json!({"action": "accept", "content": {"sure": true}});
        let reply = json!({"jsonrpc": "2.0", "id": asked["id"], "result": yes});
        client.send(&reply).await;
        let done = until_answer(&mut events).await.pop().unwrap();
        assert_eq!(done["result"]["content"][0]["text"], "true", "{done}");
        assert_eq!(done["result"]["_meta"], related);
        // The notifications of the task belong to no request.
        let mut told = Vec::new();
        while told.last() != Some(&json!("completed")) {
            let event = standing.next().await.unwrap().data;
            let params = &event["params"];
            told.extend(
                params
                    .get("status")
                    .or_else(|| params.get("progress"))
                    .cloned(),
            );
        }
        assert_eq!(
            told.iter().filter(|it| it.is_number()).count(),
            1,
            "{mount:?}: {told:?}"
        );
    }
}

#[tokio::test]
async fn task_is_polled_at_another_node() {
    let (events, sessions) = (SharedEvents::default(), SharedSessions::default());
    let store = Arc::new(MemoryTaskStore::new());
    let node = || {
        endpoint(&office(&Tasks::new(Arc::clone(&store))))
            .event_store(events.clone())
            .session_store(sessions.clone())
    };
    let client = Client::open(&node(), Some("ann")).await;
    let id = client.begin("delete").await;
    let moved = Client {
        session: client.session.at(&node()),
        who: client.who,
        capabilities: Value::Null,
    };
    let result = request(7, "tasks/result", json!({"taskId": id}));
    let mut stream = Events::of(moved.send(&result).await);
    let mut event = stream.next().await.unwrap();
    let mut seen = event.id.clone();
    while event.data["method"] != "elicitation/create" {
        event = stream.next().await.unwrap();
        seen = event.id.clone().or(seen);
    }
    // The stream breaks, and the client resumes it.
    drop(stream);
    let yes = json!({"action": "accept", "content": {"sure": true}});
    let reply = json!({"jsonrpc": "2.0", "id": event.data["id"], "result": yes});
    moved.send(&reply).await;
    let resume = of(moved.session.builder("GET"), moved.who);
    let resume = resume.header("last-event-id", seen.unwrap());
    let mut stream = Events::of(send(&moved.session.endpoint, resume, "").await);
    let done = until_answer(&mut stream).await.pop().unwrap();
    assert_eq!(done["result"]["content"][0]["text"], "true", "{done}");
    let got = moved.ask("tasks/get", json!({"taskId": id})).await;
    assert_eq!(got["result"]["status"], "completed", "{got}");
}

#[tokio::test(start_paused = true)]
async fn session_end_stops_the_wait_not_the_task() {
    let endpoint = StreamableHttp::from(office(&Tasks::in_memory()));
    let client = Client::open(&endpoint, None).await;
    let id = client.begin("wait").await;
    let waiting = {
        let session = client.session.at(&endpoint);
        let params = json!({"taskId": id});
        tokio::spawn(async move {
            let answered = session.call(7, "tasks/result", params).await;
            let mut events = Events::of(answered);
            until_answer(&mut events).await.pop().unwrap()
        })
    };
    sleep(Duration::from_secs(60)).await;
    client.session.delete().await;
    let ended = waiting.await.unwrap();
    assert_eq!(ended["error"]["code"], -32603, "{ended}");
    let again = Client::open(&endpoint, None).await;
    let got = again.ask("tasks/get", json!({"taskId": id})).await;
    assert_eq!(got["result"]["status"], "working", "{got}");
}

#[test]
fn taken_over_task_runs_for_its_owner() {
    let store = Arc::new(MemoryTaskStore::new());
    let endpoint = |waits: bool| {
        let tool = Tool::new("who", "Say whose", move |cx: RequestContext| async move {
            if waits {
                std::future::pending::<()>().await;
            }
            format!("{:?}", cx.principal().map(Principal::as_str))
        });
        let server = Server::new("office", "1.0.0")
            .extension(Tasks::new(Arc::clone(&store)).extension())
            .tool(tool.task(TaskPolicy::Required));
        StreamableHttp::from(server)
    };
    let process = || {
        let mut builder = tokio::runtime::Builder::new_current_thread();
        builder.enable_all().start_paused(true).build().unwrap()
    };
    let id = process().block_on(async {
        let call = json!({"name": "who", "arguments": {}});
        let created = ask_modern(&endpoint(true), Some("ann"), "tools/call", call).await;
        created["result"]["taskId"].as_str().unwrap().to_owned()
    });
    process().block_on(async {
        let endpoint = endpoint(false);
        sleep(Duration::from_secs(31)).await;
        let done = ask_modern(&endpoint, Some("ann"), "tasks/get", json!({"taskId": id})).await;
        let said = &done["result"]["result"]["content"][0]["text"];
        assert!(said.as_str().is_some_and(|it| it.contains("ann")), "{done}");
    });
}
