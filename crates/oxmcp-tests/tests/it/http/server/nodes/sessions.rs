//! Sessions that several nodes share.

use std::{
    collections::BTreeSet,
    future::pending,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use futures_util::stream::{self, BoxStream, StreamExt};
use http::StatusCode;
use oxmcp::{
    Error, Principal, RequestContext, Resource, Result, Revision, Server, ServerSession, Tool,
    ToolError,
    http::StreamableHttp,
    store::{
        Bus, CreateOutcome, Delivery, MemoryBus, MemorySessionStore, SessionChange, SessionRecord,
        SessionStore, StoredSession,
    },
};
use serde_json::json;
use tokio::{
    sync::Notify,
    task::yield_now,
    time::{Instant, advance},
};

use crate::http::mounts::mounts;
use crate::http::server::{
    legacy::{call_steps, endpoint, steps},
    peer::{Events, LEGACY, Session, builder, call_modern, header, initialize, json, send},
    shared_stores::{SharedEvents, SharedSessions},
};
use crate::http::sse_2024::Client;
use crate::support::{calculator, idle, request, script};

#[tokio::test]
async fn session_continues_at_another_node() {
    let (events, sessions) = (SharedEvents::default(), SharedSessions::default());
    let node = |server: &Server| {
        endpoint(server)
            .event_store(events.clone())
            .session_store(sessions.clone())
    };
    let release = Arc::new(Notify::new());
    let one = calculator().tool(steps(&release)).subscriptions();
    let one = one.resource(Resource::text("test://a", "a", "text"));
    let other = calculator().subscriptions();
    let other = other.resource(Resource::text("test://a", "a", "text"));
    let session = Session::open(&node(&one)).await;
    let params = json!({"uri": "test://a"});
    json(session.call(1, "resources/subscribe", params).await).await;
    let mut stream = Events::of(session.post(&call_steps(2)).await);
    stream.next().await.unwrap();
    let seen = stream.next().await.unwrap().id.unwrap();
    release.notify_one();
    stream.next().await.unwrap();

    let moved = session.at(&node(&other));
    let params = json!({"name": "add", "arguments": {"a": 1, "b": 2}});
    let answer = json(moved.call(3, "tools/call", params).await).await;
    assert_eq!(answer["result"]["content"][0]["text"], "3.0");
    let mut told = moved.listen().await;
    other.resource_updated("test://a");
    let update = told.next().await.unwrap().data;
    assert_eq!(update["params"]["uri"], "test://a");
    // Events from before the move can be replayed, too.
    let mut resumed = Events::of(moved.resume(&seen).await);
    let progress = resumed.next().await.unwrap().data;
    assert_eq!(progress["params"]["progress"], 2.0);
    release.notify_one();
    assert_eq!(resumed.rest().await[0].data["id"], 2);
    // A session that was deleted is not found any more.
    assert_eq!(moved.delete().await.status(), StatusCode::NO_CONTENT);
    let gone = moved.call(4, "ping", json!({})).await;
    assert_eq!(gone.status(), StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn stale_ids_open_sessions_at_every_node() {
    let (sessions, bus) = (SharedSessions::default(), Arc::new(MemoryBus::new()));
    let node = || {
        let node = endpoint(&calculator()).session_store(sessions.clone());
        node.bus(Arc::clone(&bus))
    };
    let (one, other) = (node(), node());
    let session = Session::open(&one).await;
    let again = async |node: &StreamableHttp| {
        let builder = builder("POST").header("mcp-session-id", &*session.id);
        send(node, builder, initialize(LEGACY, json!({})).to_string()).await
    };
    for node in [&one, &other] {
        let refused = json(again(node).await).await;
        assert_eq!(refused["error"]["code"], -32600, "the session is open");
    }
    assert_eq!(session.delete().await.status(), StatusCode::NO_CONTENT);
    turns().await;
    for (opening, using) in [(&one, &other), (&other, &one)] {
        let opened = again(opening).await;
        assert_eq!(opened.status(), StatusCode::OK);
        let id = header(opened.headers(), "mcp-session-id").to_owned();
        assert_ne!(id, session.id);
        let builder = builder("POST").header("mcp-session-id", &id);
        let ping = request(1, "ping", json!({}));
        let pinged = send(using, builder, ping.to_string()).await;
        assert_eq!(pinged.status(), StatusCode::OK);
    }
}

// Attack: session hijacking.
#[tokio::test]
async fn only_its_owner_restores_a_stored_session() {
    for mount in mounts!() {
        let sessions = SharedSessions::default();
        let one = mount
            .serve(&endpoint(&calculator()).session_store(sessions.clone()))
            .await;
        let open = builder("POST").extension(Principal::new("ann"));
        let opened = send(&one, open, initialize(LEGACY, json!({})).to_string()).await;
        let id = header(opened.headers(), "mcp-session-id").to_owned();
        let other = mount
            .serve(&endpoint(&calculator()).session_store(sessions))
            .await;
        let status = async |principal: &str| {
            let builder = builder("POST").header("mcp-session-id", &id);
            let builder = builder.extension(Principal::new(principal));
            let ping = request(1, "ping", json!({}));
            send(&other, builder, ping.to_string()).await.status()
        };
        assert_eq!(status("bob").await, StatusCode::NOT_FOUND);
        assert_eq!(status("ann").await, StatusCode::OK);
    }
}

#[tokio::test]
async fn streams_of_two_nodes_never_collide() {
    let (events, sessions) = (SharedEvents::default(), SharedSessions::default());
    let release = Arc::new(Notify::new());
    let node = || {
        endpoint(&calculator().tool(steps(&release)))
            .event_store(events.clone())
            .session_store(sessions.clone())
    };
    let one = Session::open(&node()).await;
    let mut streams = Vec::new();
    let mut firsts = Vec::new();
    for id in 0..3 {
        // The first call goes to the node that opened the session, the others go to nodes that restore it.
        let at = if id == 0 {
            one.endpoint.clone()
        } else {
            node()
        };
        let session = one.at(&at);
        let mut stream = Events::of(session.post(&call_steps(id)).await);
        let first = stream.next().await.unwrap().id.unwrap();
        assert_eq!(first.split_once('_').unwrap().1, "1", "{first}");
        stream.next().await.unwrap();
        streams.push(stream);
        firsts.push((session, first));
    }
    for _ in 0..2 {
        for _ in &streams {
            release.notify_one();
            yield_now().await;
        }
    }
    for (id, (stream, (session, first))) in streams.into_iter().zip(&firsts).enumerate() {
        assert_eq!(stream.rest().await.last().unwrap().data["id"], id);
        let again = Events::of(session.resume(first).await).rest().await;
        assert_eq!(again.len(), 3, "two steps and the answer");
        assert_eq!(again[2].data["id"], id);
    }
}

// Attack: a response that reaches another client.
#[tokio::test]
async fn late_answer_to_one_node_is_ignored_elsewhere() {
    for mount in mounts!() {
        #[derive(Debug, serde::Deserialize, serde::Serialize, oxmcp::JsonSchema)]
        struct Name {
            name: String,
        }

        let sessions = SharedSessions::default();
        let node = async || {
            let tool = Tool::new("greet", "Greet", |cx: RequestContext| async move {
                let Name { name } = cx.ask("name", "Who are you?").await?;
                Ok::<_, ToolError>(format!("Hello, {name}!"))
            });
            mount
                .serve(&endpoint(&calculator().tool(tool)).session_store(sessions.clone()))
                .await
        };
        let params = json!({"name": "greet", "arguments": {}});
        let one = Session::open_in(&node().await, LEGACY, json!({"elicitation": {}})).await;
        let other = one.at(&node().await);
        let mut asked = Vec::new();
        let mut streams = Vec::new();
        for session in [&one, &other] {
            let mut events = Events::of(session.call(1, "tools/call", params.clone()).await);
            events.next().await.unwrap();
            asked.push(events.next().await.unwrap().data["id"].clone());
            streams.push(events);
        }
        for (id, name) in [(&asked[0], "Ann"), (&asked[1], "Bob")] {
            let number = id.as_u64().unwrap();
            assert!(number < 1 << 53, "JSON carries it as it is");
            let answer = json!({"jsonrpc": "2.0", "id": id,
            "result": {"action": "accept", "content": {"name": name}}});
            assert_eq!(other.post(&answer).await.status(), StatusCode::ACCEPTED);
        }
        let answer = streams[1].next().await.unwrap().data;
        assert_eq!(answer["result"]["content"][0]["text"], "Hello, Bob!");
    }
}

/// Yields, so that all other ready tasks run.
async fn turns() {
    for _ in 0..50 {
        yield_now().await;
    }
}

/// A server, and the URIs of the resources that clients are subscribed to on it.
#[derive(Clone)]
struct Watched {
    server: Server,
    uris: Arc<Mutex<BTreeSet<String>>>,
}

impl Watched {
    fn new() -> Self {
        let uris = Arc::new(Mutex::<BTreeSet<String>>::default());
        let (begun, ended) = (Arc::clone(&uris), Arc::clone(&uris));
        let server = calculator().on_subscribe(
            move |_cx: RequestContext, uri: String| {
                begun.lock().unwrap().insert(uri);
                async { Ok(()) }
            },
            move |_session: ServerSession, uri: String| {
                ended.lock().unwrap().remove(&uri);
                async {}
            },
        );
        let server = server.resource(Resource::text("test://a", "a", "text"));
        let server = server.resource(Resource::text("test://b", "b", "text"));
        Self { server, uris }
    }

    fn has(&self, uris: &[&str]) -> bool {
        self.uris.lock().unwrap().iter().eq(uris)
    }
}

async fn subscribe(session: &Session<StreamableHttp>, name: &str) {
    let params = json!({"uri": format!("test://{name}")});
    let answer = json(session.call(1, "resources/subscribe", params).await).await;
    assert!(answer["result"].is_object(), "{answer}");
}

async fn ping(session: &Session<StreamableHttp>) -> StatusCode {
    session.call(9, "ping", json!({})).await.status()
}

/// Two nodes with the same session store, and with a bus if one is given, and a session that both have.
async fn two_nodes(
    servers: &[Watched; 2],
    sessions: &Arc<MemorySessionStore>,
    bus: Option<&Arc<MemoryBus>>,
) -> [Session<StreamableHttp>; 2] {
    let node = |server: &Server| {
        let node = endpoint(server).session_store(Arc::clone(sessions));
        match bus {
            Some(bus) => node.bus(Arc::clone(bus)),
            None => node,
        }
    };
    let one = Session::open(&node(&servers[0].server)).await;
    let other = one.at(&node(&servers[1].server));
    // The first request restores the session, and the second one touches its record.
    for _ in 0..2 {
        assert_eq!(ping(&other).await, StatusCode::OK);
        turns().await;
    }
    [one, other]
}

#[tokio::test(start_paused = true)]
async fn concurrent_settings_of_two_nodes_are_all_kept() {
    let sessions = Arc::new(MemorySessionStore::new());
    let servers = [Watched::new(), Watched::new()];
    let [one, other] = two_nodes(&servers, &sessions, None).await;
    subscribe(&one, "a").await;
    subscribe(&other, "b").await;
    let record = sessions.load(&one.id).await.unwrap().unwrap().record;
    assert_eq!(record.subscribed, ["test://a", "test://b"]);
    // A third node restores both subscriptions.
    let third = Watched::new();
    let moved = one.at(&endpoint(&third.server).session_store(Arc::clone(&sessions)));
    assert_eq!(ping(&moved).await, StatusCode::OK);
    assert!(third.has(&["test://a", "test://b"]));
}

#[tokio::test(start_paused = true)]
async fn change_is_known_elsewhere_before_next_answer() {
    let (sessions, bus) = (Arc::new(MemorySessionStore::new()), Arc::default());
    let servers = [Watched::new(), Watched::new()];
    let [one, other] = two_nodes(&servers, &sessions, Some(&bus)).await;
    subscribe(&one, "a").await;
    subscribe(&other, "b").await;
    turns().await;
    for (session, server) in [&one, &other].into_iter().zip(&servers) {
        assert_eq!(ping(session).await, StatusCode::OK);
        turns().await;
        assert!(server.has(&["test://a", "test://b"]));
    }
    let params = json!({"uri": "test://a"});
    json(other.call(1, "resources/unsubscribe", params).await).await;
    turns().await;
    assert_eq!(ping(&one).await, StatusCode::OK);
    turns().await;
    assert!(servers[0].has(&["test://b"]));
    let record = sessions.load(&one.id).await.unwrap().unwrap().record;
    assert_eq!(record.subscribed, ["test://b"]);
}

#[tokio::test(start_paused = true)]
async fn deleted_session_is_refused_by_other_nodes_immediately() {
    let (sessions, bus) = (Arc::new(MemorySessionStore::new()), Arc::default());
    let servers = [Watched::new(), Watched::new()];
    let [one, other] = two_nodes(&servers, &sessions, Some(&bus)).await;
    assert_eq!(one.delete().await.status(), StatusCode::NO_CONTENT);
    assert_eq!(ping(&other).await, StatusCode::NOT_FOUND);
    assert_eq!(servers[1].server.sessions().count(), 0);
}

/// A bus that cannot be reached.
struct Unreachable;

impl Bus for Unreachable {
    async fn publish(&self, _topic: &str, _message: Bytes) -> Result<()> {
        Err(Error::network("the bus cannot be reached"))
    }

    async fn subscribe(&self, _topics: &[&str]) -> Result<BoxStream<'static, Delivery>> {
        Ok(stream::pending().boxed())
    }
}

#[tokio::test(start_paused = true)]
async fn deletion_does_not_wait_for_an_unreachable_bus() {
    let server = calculator();
    let node = endpoint(&server).session_store(MemorySessionStore::new());
    let session = Session::open(&node.bus(Unreachable)).await;
    let begin = Instant::now();
    assert_eq!(session.delete().await.status(), StatusCode::NO_CONTENT);
    assert_eq!(begin.elapsed(), Duration::ZERO);
}

/// The idle time of sessions, by default.
const IDLE: Duration = Duration::from_secs(30 * 60);

#[tokio::test(start_paused = true)]
async fn deleted_session_is_refused_soon_without_bus_message() {
    let sessions = Arc::new(MemorySessionStore::new());
    let servers = [Watched::new(), Watched::new()];
    let [one, other] = two_nodes(&servers, &sessions, None).await;
    assert_eq!(one.delete().await.status(), StatusCode::NO_CONTENT);
    assert_eq!(
        ping(&other).await,
        StatusCode::OK,
        "it is not known there yet"
    );
    advance(IDLE / 64).await;
    // This request discovers the deletion, but does not wait for the store.
    assert_eq!(ping(&other).await, StatusCode::OK);
    turns().await;
    assert_eq!(ping(&other).await, StatusCode::NOT_FOUND);
    assert_eq!(servers[1].server.sessions().count(), 0);
}

#[tokio::test(start_paused = true)]
async fn change_reaches_clients_of_other_nodes() {
    let bus = Arc::new(MemoryBus::new());
    let servers = [(); 2].map(|()| calculator().subscriptions());
    let one = endpoint(&servers[0]).bus(Arc::clone(&bus));
    let chosen = servers[1].clone();
    let other = StreamableHttp::new(move |_request| chosen.clone()).bus(bus);
    let params = json!({"uri": "test://a"});
    let subscribing = request(1, "resources/subscribe", params);

    let mut sse = Client::open_by(&other, builder("GET")).await;
    sse.initialize(Revision::V2024_11_05).await;
    sse.ask(subscribing.clone()).await;
    let session = Session::open(&other).await;
    json(session.post(&subscribing).await).await;
    let mut stream = session.listen().await;
    let filter = json!({"resourceSubscriptions": ["test://a"], "toolsListChanged": true});
    let filter = json!({"notifications": filter});
    let mut listened = Events::of(call_modern(&other, "subscriptions/listen", filter).await);
    listened.next().await.unwrap();
    // The same server, over a pipe.
    let mut peer = script(&servers[1]).await;
    peer.initialize(Revision::V2025_11_25).await.unwrap();
    peer.ask(subscribing).await.unwrap();
    turns().await;

    servers[0].resource_updated("test://a");
    servers[0].add_tools([idle("more")]).unwrap();
    drop(one);
    for expected in [
        "notifications/tools/list_changed",
        "notifications/resources/updated",
    ] {
        let told = [
            sse.message().await,
            stream.next().await.unwrap().data,
            listened.next().await.unwrap().data,
            peer.receive().await.unwrap(),
        ];
        for message in told {
            assert_eq!(message["method"], expected, "{message}");
        }
    }
}

/// A bus whose second subscriber to sessions gets no messages, until it is told that it has missed some.
struct Lossy {
    bus: MemoryBus,
    subscribers: AtomicUsize,
    gap: Arc<Notify>,
}

impl Bus for Lossy {
    async fn publish(&self, topic: &str, message: Bytes) -> Result<()> {
        self.bus.publish(topic, message).await
    }

    async fn subscribe(&self, topics: &[&str]) -> Result<BoxStream<'static, Delivery>> {
        if topics != ["sessions"] || self.subscribers.fetch_add(1, Ordering::Relaxed) == 0 {
            return self.bus.subscribe(topics).await;
        }
        let gap = Arc::clone(&self.gap);
        let missed = stream::once(async move {
            gap.notified().await;
            Delivery::Missed
        });
        Ok(missed.chain(stream::pending()).boxed())
    }
}

#[tokio::test(start_paused = true)]
async fn sessions_are_rechecked_after_a_bus_gap() {
    let sessions = Arc::new(MemorySessionStore::new());
    let bus = Arc::new(Lossy {
        bus: MemoryBus::new(),
        subscribers: AtomicUsize::new(0),
        gap: Arc::default(),
    });
    let node = |server: &Server| {
        let node = endpoint(server).session_store(Arc::clone(&sessions));
        node.bus(Arc::clone(&bus))
    };
    let servers = [Watched::new(), Watched::new()];
    let one = Session::open(&node(&servers[0].server)).await;
    let other = one.at(&node(&servers[1].server));
    // The first request restores the session, and the second one touches its record.
    for _ in 0..2 {
        assert_eq!(ping(&other).await, StatusCode::OK);
        turns().await;
    }
    assert_eq!(one.delete().await.status(), StatusCode::NO_CONTENT);
    turns().await;
    assert_eq!(ping(&other).await, StatusCode::OK, "the message is lost");
    bus.gap.notify_one();
    turns().await;
    assert_eq!(ping(&other).await, StatusCode::NOT_FOUND);
}

/// A store that counts its calls, and hangs when it is told to.
#[derive(Default)]
struct Counting {
    store: MemorySessionStore,
    asked: AtomicUsize,
    hangs: AtomicBool,
}

impl Counting {
    async fn ask(&self) {
        self.asked.fetch_add(1, Ordering::Relaxed);
        if self.hangs.load(Ordering::Relaxed) {
            pending::<()>().await;
        }
    }
}

impl SessionStore for Counting {
    async fn create(
        &self,
        id: &str,
        record: SessionRecord,
        lasts: Duration,
        max_per_owner: usize,
    ) -> Result<CreateOutcome> {
        self.ask().await;
        self.store.create(id, record, lasts, max_per_owner).await
    }

    async fn load(&self, id: &str) -> Result<Option<StoredSession>> {
        self.ask().await;
        self.store.load(id).await
    }

    async fn set(&self, id: &str, change: SessionChange) -> Result<Option<u64>> {
        self.ask().await;
        self.store.set(id, change).await
    }

    async fn touch(&self, id: &str, lasts: Duration) -> Result<Option<u64>> {
        self.ask().await;
        self.store.touch(id, lasts).await
    }

    async fn remove(&self, id: &str) -> Result<()> {
        self.ask().await;
        self.store.remove(id).await
    }
}

#[tokio::test(start_paused = true)]
async fn plain_call_of_known_session_awaits_no_store() {
    let sessions = Arc::new(Counting::default());
    let server = calculator();
    let session = Session::open(&endpoint(&server).session_store(Arc::clone(&sessions))).await;
    assert_eq!(ping(&session).await, StatusCode::OK);
    turns().await;
    let before = sessions.asked.load(Ordering::Relaxed);
    for _ in 0..10 {
        assert_eq!(ping(&session).await, StatusCode::OK);
    }
    turns().await;
    assert_eq!(sessions.asked.load(Ordering::Relaxed), before);
    // The store is called now and then, but not waited for.
    sessions.hangs.store(true, Ordering::Relaxed);
    advance(IDLE / 64).await;
    let begun = Instant::now();
    assert_eq!(ping(&session).await, StatusCode::OK);
    assert_eq!(begun.elapsed(), Duration::ZERO);
    turns().await;
    assert_eq!(sessions.asked.load(Ordering::Relaxed), before + 1);
}

#[tokio::test(start_paused = true)]
async fn session_in_use_does_not_expire_in_store() {
    let sessions = Arc::new(MemorySessionStore::new());
    let servers = [Watched::new(), Watched::new()];
    let [one, other] = two_nodes(&servers, &sessions, None).await;
    for _ in 0..200 {
        advance(IDLE / 64).await;
        assert_eq!(ping(&one).await, StatusCode::OK);
        turns().await;
    }
    assert_eq!(ping(&other).await, StatusCode::OK);
    // A session of which only a stream is used does not expire either.
    let stream = other.listen().await;
    for _ in 0..200 {
        advance(IDLE / 16).await;
        turns().await;
    }
    assert!(sessions.load(&one.id).await.unwrap().is_some());
    drop(stream);
    turns().await;
    // A session that is not used again expires.
    advance(IDLE * 3).await;
    assert!(sessions.load(&one.id).await.unwrap().is_none());
}

#[tokio::test(start_paused = true)]
async fn unused_session_record_expires_in_a_minute() {
    let sessions = Arc::new(MemorySessionStore::new());
    let server = calculator();
    let node = endpoint(&server).session_store(Arc::clone(&sessions));
    let opening = initialize(LEGACY, json!({})).to_string();
    let opened = send(&node, builder("POST"), opening).await;
    let id = header(opened.headers(), "mcp-session-id").to_owned();
    advance(Duration::from_secs(59)).await;
    assert!(sessions.load(&id).await.unwrap().is_some());
    advance(Duration::from_secs(1)).await;
    assert!(sessions.load(&id).await.unwrap().is_none());
}

#[tokio::test(start_paused = true)]
async fn hanging_store_is_tried_once_then_skipped() {
    let sessions = Arc::new(Counting::default());
    sessions.hangs.store(true, Ordering::Relaxed);
    let server = calculator();
    let node = endpoint(&server).session_store(Arc::clone(&sessions));
    let unknown = Session {
        endpoint: node,
        id: "0".repeat(32),
    };
    let mut waited = Vec::new();
    for _ in 0..3 {
        let begun = Instant::now();
        assert_eq!(ping(&unknown).await, StatusCode::SERVICE_UNAVAILABLE);
        waited.push(begun.elapsed().as_secs());
    }
    assert_eq!(waited, [2, 0, 0]);
    assert_eq!(sessions.asked.load(Ordering::Relaxed), 1);
    // The store is tried again, by a single request, until it answers.
    sessions.hangs.store(false, Ordering::Relaxed);
    advance(Duration::from_secs(5)).await;
    assert_eq!(ping(&unknown).await, StatusCode::NOT_FOUND);
    assert_eq!(ping(&unknown).await, StatusCode::NOT_FOUND);
}
