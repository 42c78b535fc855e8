//! Nodes that serve the same legacy sessions, each with its own runtime, so that it can be killed.

use std::{sync::Arc, time::Duration};

use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use oxmcp::{
    RequestContext, Resource, Server, Tool, ToolError,
    http::{ResponseBody, StreamableHttp},
    protocol::{LoggingLevel, LoggingMessageParams},
};
use serde_json::{Value, json};
use tokio::{
    runtime::{Builder, Runtime},
    sync::Notify,
    time::{sleep, timeout},
};
use tower_service::Service;

use super::server::{self, own, shared};

/// The maximum duration of an operation, on a busy machine.
const SOON: Duration = Duration::from_secs(60);

/// A node, until it is killed.
struct Node {
    runtime: Option<Runtime>,
    endpoint: StreamableHttp,
    mcp: Server,
}

impl Node {
    async fn start(redis: &server::Server, prefix: &str, mcp: Server) -> Self {
        let mut builder = Builder::new_multi_thread();
        let runtime = builder.worker_threads(1).enable_all().build().unwrap();
        let (url, prefix) = (redis.url(), prefix.to_owned());
        let store = runtime.spawn(async move {
            let store = oxmcp_redis::Redis::connect(url).await.unwrap();
            store.prefix(prefix).keys([server::key(1)])
        });
        let store = store.await.unwrap();
        let endpoint = StreamableHttp::from(mcp.clone()).session_store(store.clone());
        Self {
            runtime: Some(runtime),
            endpoint: endpoint.event_store(store.clone()).bus(store),
            mcp,
        }
    }

    async fn send(&self, request: Request<Full<&'static [u8]>>) -> Response<ResponseBody> {
        let mut endpoint = self.endpoint.clone();
        let runtime = self.runtime.as_ref().unwrap();
        let answering = runtime.spawn(async move { endpoint.call(request).await });
        answering.await.unwrap().unwrap()
    }

    fn kill(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        self.kill();
    }
}

fn request(
    method: &str,
    session: &str,
    last: Option<&str>,
    body: &Value,
) -> Request<Full<&'static [u8]>> {
    let mut builder = Request::builder()
        .method(method)
        .uri("/mcp")
        .header("host", "localhost")
        .header("accept", "application/json, text/event-stream")
        .header("content-type", "application/json")
        .header("mcp-protocol-version", "2025-11-25");
    if !session.is_empty() {
        builder = builder.header("mcp-session-id", session);
    }
    if let Some(last) = last {
        builder = builder.header("last-event-id", last);
    }
    let text: &'static str = body.to_string().leak();
    builder.body(Full::new(text.as_bytes())).unwrap()
}

/// The session of a client, which sends its requests to any node.
struct Session(String);

impl Session {
    async fn open(node: &Node, capabilities: Value) -> Self {
        let params = json!({"protocolVersion": "2025-11-25", "capabilities": capabilities,
            "clientInfo": {"name": "by hand", "version": "1"}});
        let initialize =
            json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params});
        let opened = node.send(request("POST", "", None, &initialize)).await;
        let session = Self(
            opened.headers()["mcp-session-id"]
                .to_str()
                .unwrap()
                .to_owned(),
        );
        let initialized = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        assert_eq!(
            session.post(node, &initialized).await.status(),
            StatusCode::ACCEPTED
        );
        session
    }

    async fn post(&self, node: &Node, message: &Value) -> Response<ResponseBody> {
        node.send(request("POST", &self.0, None, message)).await
    }

    async fn call(&self, node: &Node, id: &Value, tool: &str) -> Response<ResponseBody> {
        let params = json!({"name": tool, "arguments": {}, "_meta": {"progressToken": "t"}});
        let call = json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params});
        self.post(node, &call).await
    }

    async fn get(&self, node: &Node, last: Option<&str>) -> Events {
        Events::of(node.send(request("GET", &self.0, last, &json!(""))).await)
    }

    /// Makes a node load the session.
    async fn ping(&self, node: &Node) {
        let ping = json!({"jsonrpc": "2.0", "id": 1000, "method": "ping"});
        assert_eq!(self.post(node, &ping).await.status(), StatusCode::OK);
    }
}

/// A stream of events.
struct Events {
    body: ResponseBody,
    text: String,
}

impl Events {
    fn of(response: Response<ResponseBody>) -> Self {
        assert_eq!(response.status(), StatusCode::OK);
        Self {
            body: response.into_body(),
            text: String::new(),
        }
    }

    /// The next message, with its id. `None` at the end.
    async fn next(&mut self) -> Option<(String, Value)> {
        loop {
            while let Some((block, rest)) = self.text.split_once("\n\n") {
                let field = |name: &str| {
                    let mut lines = block.lines();
                    lines.find_map(|line| Some(line.strip_prefix(name)?.trim().to_owned()))
                };
                let (id, data) = (field("id:"), field("data:"));
                self.text = rest.to_owned();
                if let Some(data) = data.filter(|it| !it.is_empty()) {
                    return Some((id.unwrap_or_default(), serde_json::from_str(&data).unwrap()));
                }
            }
            let frame = timeout(SOON, self.body.frame()).await;
            let frame = frame.expect("nothing comes")?.unwrap();
            let data = frame.into_data().unwrap();
            self.text.push_str(std::str::from_utf8(&data).unwrap());
        }
    }
}

/// Reports its progress twice, each time after it was released.
fn steps(release: &Arc<Notify>) -> Server {
    let release = Arc::clone(release);
    let tool = Tool::new("steps", "Report and wait", move |cx: RequestContext| {
        let release = Arc::clone(&release);
        async move {
            for step in 1..=2 {
                cx.progress(step).await;
                release.notified().await;
            }
            "done"
        }
    });
    Server::new("steps", "1").tool(tool)
}

#[tokio::test]
async fn stream_continues_elsewhere_until_its_node_is_killed() {
    let Some((redis, prefix)) = shared("streams of many nodes") else {
        return;
    };
    let release = Arc::new(Notify::new());
    let mut one = Node::start(redis, &prefix, steps(&release)).await;
    let other = Node::start(redis, &prefix, steps(&release)).await;
    let session = Session::open(&one, json!({})).await;
    let mut begun = Events::of(session.call(&one, &json!("a/ü"), "steps").await);
    let (seen, _) = begun.next().await.unwrap();
    let mut resumed = session.get(&other, Some(&seen)).await;
    // Longer than the lease of a silent node.
    sleep(Duration::from_secs(6)).await;
    release.notify_one();
    let (id, progress) = resumed.next().await.unwrap();
    assert_eq!(progress["params"]["progress"], 2.0);
    assert!(id.ends_with("_3"), "{id}");
    one.kill();
    let (_, error) = resumed.next().await.unwrap();
    assert_eq!(
        (&error["id"], &error["error"]["code"]),
        (&json!("a/ü"), &json!(-32603))
    );
    assert!(resumed.next().await.is_none());
    // The session continues, and so do the answered calls.
    let mut again = session.get(&other, Some(&id)).await;
    assert_eq!(again.next().await.unwrap().1, error);
}

#[tokio::test]
async fn answers_and_cancellations_reach_the_waiting_node() {
    let Some((redis, prefix)) = shared("answers through another node") else {
        return;
    };
    let cancelled = Arc::new(Notify::new());
    let notify = Arc::clone(&cancelled);
    let roots = Tool::new("roots", "Count", |cx: RequestContext| async move {
        Ok::<_, ToolError>(cx.roots().await?.len())
    });
    let wait = Tool::new("wait", "Wait", move |cx: RequestContext| {
        let notify = Arc::clone(&notify);
        async move {
            cx.progress(1).await;
            cx.cancelled().await;
            notify.notify_one();
        }
    });
    let server = Server::new("asks", "1").tool(roots).tool(wait);
    let one = Node::start(redis, &prefix, server).await;
    let other = Node::start(redis, &prefix, Server::new("asks", "1")).await;
    let session = Session::open(&one, json!({"roots": {}})).await;
    let mut events = Events::of(session.call(&one, &json!(1), "roots").await);
    let (_, question) = events.next().await.unwrap();
    let result = json!({"roots": [{"uri": "file:///a"}]});
    let answer = json!({"jsonrpc": "2.0", "id": question["id"], "result": result});
    assert_eq!(
        session.post(&other, &answer).await.status(),
        StatusCode::ACCEPTED
    );
    let (_, counted) = events.next().await.unwrap();
    assert_eq!(counted["result"]["content"][0]["text"], "1");

    let mut waiting = Events::of(session.call(&one, &json!(2), "wait").await);
    waiting.next().await.unwrap();
    let params = json!({"requestId": 2});
    let cancel = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params});
    assert_eq!(
        session.post(&other, &cancel).await.status(),
        StatusCode::ACCEPTED
    );
    timeout(SOON, cancelled.notified())
        .await
        .expect("it is not cancelled");
}

/// A message of a node that belongs to no request.
async fn say(node: &Node, text: &str) {
    let session = node.mcp.sessions().next().unwrap();
    let message = LoggingMessageParams::new(LoggingLevel::Error, &text).unwrap();
    session.log(message).await.unwrap();
}

#[tokio::test]
async fn client_receives_each_nodes_messages_once() {
    let Some((redis, prefix)) = shared("standing streams of many nodes") else {
        return;
    };
    let server = || Server::new("says", "1").logging();
    let mut one = Node::start(redis, &prefix, server()).await;
    let other = Node::start(redis, &prefix, server()).await;
    let session = Session::open(&one, json!({})).await;
    session.ping(&other).await;
    let mut heard = Vec::new();
    say(&other, "before").await;
    let mut first = session.get(&one, None).await;
    let mut last = String::new();
    for round in 0..10 {
        say(&one, &format!("{round} one")).await;
        say(&other, &format!("{round} other")).await;
    }
    while heard.len() < 21 {
        let (id, event) = first.next().await.unwrap();
        last = id;
        heard.push(event["params"]["data"].as_str().unwrap().to_owned());
    }
    // The other node takes over, and the first one closes its client's stream.
    let mut second = session.get(&other, Some(&last)).await;
    assert!(first.next().await.is_none());
    say(&one, "after").await;
    assert_eq!(second.next().await.unwrap().1["params"]["data"], "after");
    one.kill();
    say(&other, "alone").await;
    assert_eq!(second.next().await.unwrap().1["params"]["data"], "alone");
    heard.sort();
    let mut expected: Vec<_> = (0..10)
        .flat_map(|it| [format!("{it} one"), format!("{it} other")])
        .collect();
    expected.push("before".to_owned());
    assert_eq!(heard, expected);
}

const WATCHED: &str = "app://status";

/// The messages that the client receives until each of these nodes has sent its own.
async fn heard(events: &mut Events, nodes: &[&Node]) -> (Vec<String>, String) {
    let (mut heard, mut lasts) = (Vec::new(), 0);
    loop {
        let (id, event) = events.next().await.unwrap();
        let what = event["params"]["uri"].as_str();
        let what = what.or_else(|| event["method"].as_str()).unwrap();
        if event["params"]["data"] != "last" {
            heard.push(what.to_owned());
            if heard.len() == 1 {
                // A second notification, from another node, would arrive within some milliseconds.
                sleep(Duration::from_millis(500)).await;
                for node in nodes {
                    say(node, "last").await;
                }
            }
            continue;
        }
        lasts += 1;
        if lasts == nodes.len() {
            return (heard, id);
        }
    }
}

#[tokio::test]
async fn change_reaches_the_client_once_across_nodes() {
    let Some((redis, prefix)) = shared("changes of sessions of many nodes") else {
        return;
    };
    let server = || {
        let server = Server::new("shop", "1").logging().subscriptions();
        server.resource(Resource::text(WATCHED, "status", "fine"))
    };
    let mut nodes = Vec::new();
    for _ in 0..3 {
        nodes.push(Node::start(redis, &prefix, server()).await);
    }
    let stranger = Node::start(redis, &prefix, server()).await;
    let session = Session::open(&nodes[0], json!({})).await;
    let params = json!({"uri": WATCHED});
    let subscribe =
        json!({"jsonrpc": "2.0", "id": 1, "method": "resources/subscribe", "params": params});
    let subscribed = session.post(&nodes[0], &subscribe).await;
    assert_eq!(subscribed.status(), StatusCode::OK);
    for node in &nodes {
        session.ping(node).await;
    }
    let update = |node: &Node| {
        let mcp = node.mcp.clone();
        let runtime = node.runtime.as_ref().unwrap();
        runtime.spawn(async move { mcp.resource_updated(WATCHED) })
    };
    // While no client listens, by a node that does not have the session.
    update(&stranger).await.unwrap();
    sleep(Duration::from_millis(500)).await;
    let mut events = session.get(&nodes[1], None).await;
    let all: Vec<_> = nodes.iter().collect();
    assert_eq!(heard(&mut events, &all).await.0, [WATCHED]);
    for node in nodes.iter().chain([&stranger]) {
        update(node).await.unwrap();
        assert_eq!(heard(&mut events, &all).await.0, [WATCHED]);
    }
    // The node where the client listens is killed during a change.
    update(&stranger).await.unwrap();
    let (told, last) = heard(&mut events, &all).await;
    assert_eq!(told, [WATCHED]);
    update(&stranger).await.unwrap();
    nodes[1].kill();
    let mut events = session.get(&nodes[2], Some(&last)).await;
    let left = [&nodes[0], &nodes[2]];
    assert_eq!(heard(&mut events, &left).await.0, [WATCHED]);
}

/// The number of scripts that have run.
fn scripts(redis: &server::Server) -> u64 {
    let stats: String = redis.says(&["INFO", "commandstats"]).unwrap();
    let mut lines = stats.lines();
    let calls = lines.find_map(|line| line.strip_prefix("cmdstat_evalsha:calls="));
    let calls = calls.and_then(|it| it.split(',').next());
    calls.map_or(0, |it| it.parse().unwrap())
}

#[tokio::test]
async fn only_streamed_calls_use_redis_once_per_batch() {
    let Some(redis) = own("round trips of calls", &[]) else {
        return;
    };
    let release = Arc::new(Notify::new());
    let server = steps(&release).tool(Tool::new("plain", "Do nothing", || async {}));
    let node = Node::start(&redis, "shop", server).await;
    let session = Session::open(&node, json!({})).await;
    // Its record is touched in the background, and then not again for a long time.
    let (mut before, mut quiet) = (scripts(&redis), 0);
    while quiet < 5 {
        session.ping(&node).await;
        sleep(Duration::from_millis(200)).await;
        let now = scripts(&redis);
        quiet = if now == before { quiet + 1 } else { 0 };
        before = now;
    }
    session.call(&node, &json!(1), "plain").await;
    sleep(Duration::from_millis(100)).await;
    assert_eq!(scripts(&redis), before);
    // The first run loads the script into Redis.
    for id in [2, 3] {
        before = scripts(&redis);
        let mut events = Events::of(session.call(&node, &json!(id), "steps").await);
        events.next().await.unwrap();
        release.notify_one();
        events.next().await.unwrap();
        release.notify_one();
        assert_eq!(events.next().await.unwrap().1["id"], id);
        assert!(events.next().await.is_none());
    }
    // Two progress notifications, and the response with the end.
    assert_eq!(scripts(&redis) - before, 3);
}
