//! Helpers that the tests of clients and servers share.

use std::sync::LazyLock;

use oxmcp::{JsonSchema, Revision, Server, Tool, testing::ScriptedPeer};
use serde_json::{Value, json};
use tracing::{
    Dispatch, Subscriber,
    subscriber::{DefaultGuard, NoSubscriber},
};

/// The revisions with `initialize`.
pub(crate) const LEGACY: [Revision; 4] = [
    Revision::V2024_11_05,
    Revision::V2025_03_26,
    Revision::V2025_06_18,
    Revision::V2025_11_25,
];

#[derive(Debug, serde::Deserialize, serde::Serialize, JsonSchema)]
pub(crate) struct Pair {
    pub(crate) a: f64,
    pub(crate) b: f64,
}

/// A server with one tool, `add`.
pub(crate) fn calculator() -> Server {
    Server::new("calculator", "1.0.0").tool(add())
}

pub(crate) fn add() -> Tool {
    Tool::new("add", "Add two numbers", |Pair { a, b }: Pair| async move {
        a + b
    })
}

/// A tool that does nothing.
pub(crate) fn idle(name: &str) -> Tool {
    Tool::new(name, "Do nothing", || async {})
}

#[expect(clippy::needless_pass_by_value, reason = "it reads better in a call")]
pub(crate) fn request(id: i64, method: &str, params: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
}

/// A request of a modern client.
pub(crate) fn modern(id: i64, method: &str, mut params: Value) -> Value {
    params["_meta"] = ScriptedPeer::modern_meta();
    request(id, method, params)
}

pub(crate) fn notification(method: &str) -> Value {
    json!({"jsonrpc": "2.0", "method": method})
}

/// A scripted client that is connected to `server`.
pub(crate) async fn script(server: &Server) -> ScriptedPeer {
    let (peer, transport) = ScriptedPeer::new().await;
    server.connect(transport).await.unwrap();
    peer
}

/// The answer to a single request in a revision, on a separate connection.
pub(crate) async fn answer(
    server: &Server,
    revision: Revision,
    method: &str,
    params: Value,
) -> Value {
    let mut peer = script(server).await;
    let request = if revision.is_modern() {
        modern(7, method, params)
    } else {
        peer.initialize(revision).await.unwrap();
        request(7, method, params)
    };
    peer.ask(request).await.unwrap()
}

/// The answer to `tools/call` in a revision.
pub(crate) async fn call(
    server: &Server,
    revision: Revision,
    name: &str,
    arguments: Value,
) -> Value {
    answer(
        server,
        revision,
        "tools/call",
        json!({"name": name, "arguments": arguments}),
    )
    .await
}

/// The text of the first block of a result.
pub(crate) fn text(answer: &Value) -> &str {
    answer
        .pointer("/result/content/0/text")
        .and_then(Value::as_str)
        .unwrap_or_else(|| panic!("no text: {answer}"))
}

/// Makes `subscriber` the subscriber of this thread until the guard is dropped.
///
/// While there is a single subscriber, tracing asks the thread that reaches a callsite first for its interest, and caches the
/// answer for all threads. Tests run in parallel on threads without a subscriber, so there are always two more.
pub(crate) fn subscribe(subscriber: impl Subscriber + Send + Sync) -> DefaultGuard {
    static OTHERS: LazyLock<[Dispatch; 2]> =
        LazyLock::new(|| [(); 2].map(|()| Dispatch::new(NoSubscriber::new())));
    LazyLock::force(&OTHERS);
    tracing::subscriber::set_default(subscriber)
}
