//! Nodes in one process, each with its own connection to Redis.

use std::{
    fmt, mem,
    sync::{Arc, Mutex},
};

use oxmcp::{
    Revision, Server,
    auth::{
        UnixTime,
        dpop::{NonceKeys, ProofVerifier},
        server::TrustedIssuer,
    },
    http::{Cluster, ProtectedResource, ServerHandle, StreamableHttp},
    keys::StateKey,
};
use oxmcp_redis::Redis;
use tracing::{
    Event, Level, Metadata, Subscriber,
    field::{Field, Visit},
    span::{Attributes, Id, Record},
};

use super::{
    proxy::Proxy,
    shop::{Ledger, call, connect, node, right_answer},
};
use crate::server::{Server as RedisServer, key, refused, shared};

async fn two_nodes(server: &RedisServer, prefix: &str) -> (Vec<ServerHandle>, Proxy, Ledger) {
    let ledger = Ledger::open(&server.url(), prefix).await;
    let mut nodes = Vec::new();
    for _ in 0..2 {
        let store = server.connect(prefix).await;
        nodes.push(node(&ledger, store, 0).await.unwrap());
    }
    let proxy = Proxy::start(nodes.iter().map(ServerHandle::local_addr)).await;
    (nodes, proxy, ledger)
}

#[tokio::test]
async fn asking_call_and_task_continue_at_next_node() {
    let Some((server, prefix)) = shared("calls at several nodes") else {
        return;
    };
    let (nodes, proxy, ledger) = two_nodes(server, &prefix).await;
    let session = connect(&proxy.url(), Revision::V2026_07_28).await.unwrap();
    for number in 0..4 {
        for tool in ["asked", "long", "streamed", "plain"] {
            let id = format!("{tool}-{number}");
            let answer = call(&session, tool, &id).await.unwrap();
            assert_eq!(answer, right_answer(tool, &id));
        }
    }
    assert!(ledger.entries().await.iter().all(|(_, count)| *count == 1));
    session.close().await.unwrap();
    drop(nodes);
}

#[tokio::test]
async fn session_continues_at_the_next_node() {
    let Some((server, prefix)) = shared("sessions at several nodes") else {
        return;
    };
    let (nodes, proxy, _) = two_nodes(server, &prefix).await;
    let session = connect(&proxy.url(), Revision::V2025_11_25).await.unwrap();
    for number in 0..4 {
        let id = number.to_string();
        let answer = call(&session, "plain", &id).await.unwrap();
        assert_eq!(answer, right_answer("plain", &id));
    }
    assert!(proxy.requests() > 4);
    session.close().await.unwrap();
    drop(nodes);
}

#[tokio::test]
async fn node_does_not_start_without_keys() {
    let Some((server, _)) = shared("nodes without keys") else {
        return;
    };
    for store in [
        Redis::connect(server.url()).await.unwrap(),
        Redis::connect(server.url()).await.unwrap().plaintext(),
    ] {
        let endpoint = StreamableHttp::from(Server::new("shop", "1.0.0")).cluster(store.clone());
        let error = refused(endpoint.serve("127.0.0.1:0").await);
        assert!(
            error.contains(".keys([StateKey::from_base64(text)?])"),
            "{error}"
        );
        assert!(error.contains("openssl rand -base64 32"), "{error}");
        // Keys may be set later.
        let _keys = store.keys([key(1)]);
        endpoint.serve("127.0.0.1:0").await.unwrap().close().await;
    }
}

#[tokio::test]
async fn keys_rotate_while_calls_await_answers() {
    let Some((server, prefix)) = shared("keys of nodes that are replaced") else {
        return;
    };
    let ledger = Ledger::open(&server.url(), &prefix).await;
    let store = server.connect(&prefix).await;
    let serving = node(&ledger, store.clone(), 0).await.unwrap();
    let url = format!("http://{}/mcp", serving.local_addr());
    let keys = |first: u8, second: u8| [key(first), key(second)];
    let replaced = move |keys: [StateKey; 2]| drop(store.clone().keys(keys));
    for (id, while_asked, succeeds) in [("a", keys(2, 1), true), ("b", keys(4, 3), false)] {
        let replaced = replaced.clone();
        let client =
            super::shop::client().on_elicit(move |_: oxmcp::protocol::ElicitFormParams| {
                replaced(while_asked.clone());
                async {
                    oxmcp::protocol::ElicitResult::accept(&serde_json::json!({"code": "7"}))
                        .map_err(|error| oxmcp::Error::internal(error.to_string()))
                }
            });
        let client = client.revisions([Revision::V2026_07_28]);
        let session = client
            .connect(oxmcp::http::Endpoint::new(&url))
            .await
            .unwrap();
        let answer = call(&session, "asked", id).await;
        // State that was sealed with a removed key cannot be opened: the call starts again, or fails.
        let reserved = ledger.entries().await;
        let count = reserved
            .iter()
            .find(|(entry, _)| *entry == format!("reserved {id}"));
        assert_eq!(
            answer.is_ok() && count.unwrap().1 == 1,
            succeeds,
            "{answer:?} {count:?}"
        );
        session.close().await.unwrap();
    }
}

#[tokio::test]
async fn node_settings_are_compared() {
    let Some((server, prefix)) = shared("what nodes compare") else {
        return;
    };
    let (one, other) = (server.connect(&prefix).await, server.connect(&prefix).await);
    assert_eq!(one.compare("name", "shop").await.unwrap(), None);
    assert_eq!(other.compare("name", "shop").await.unwrap(), None);
    assert_eq!(other.compare("url", "shop").await.unwrap(), None);
    let told = other.compare("name", "office").await.unwrap();
    assert_eq!(told.as_deref(), Some("shop"));
    // Servers with different names have different prefixes, unless the prefix is set.
    let mine = Redis::connect(server.url()).await.unwrap().keys([key(1)]);
    let [mine, yours] =
        ["mine", "yours"].map(|name| mine.clone().for_server(&format!("{prefix}-{name}")));
    mine.compare("name", "mine").await.unwrap();
    assert_eq!(yours.compare("name", "yours").await.unwrap(), None);
    let told = one
        .for_server("another")
        .compare("name", "x")
        .await
        .unwrap();
    assert_eq!(told.as_deref(), Some("shop"), "the first counts");
}

#[tokio::test]
async fn nonces_use_shared_keys_unless_configured() {
    let Some((server, prefix)) = shared("nonces of nodes") else {
        return;
    };
    let at = UnixTime::from_seconds(1_000);
    let store = server.connect(&prefix).await;
    let nonces = |keys: NonceKeys| {
        let proofs = ProofVerifier::new().require_nonces(keys.clone());
        let resource = ProtectedResource::new("https://mcp.example.com/mcp").dpop(proofs);
        let endpoint = StreamableHttp::from(Server::new("shop", "1.0.0"));
        (endpoint, resource, keys)
    };
    let (endpoint, resource, one) = nonces(NonceKeys::random().unwrap());
    let _before = endpoint.cluster(store.clone()).protect(resource);
    let (endpoint, resource, other) = nonces(NonceKeys::random().unwrap());
    let _after = endpoint
        .protect(resource)
        .cluster(server.connect(&prefix).await);
    let (endpoint, resource, own) = nonces(NonceKeys::new(&[7; 32]));
    let _own = endpoint.protect(resource).cluster(store.clone());
    assert!(other.is_current(&one.make(at), at));
    assert!(!own.is_current(&one.make(at), at));
    // The keys change without a restart.
    let before = one.make(at);
    let store = store.keys([key(2), key(1)]);
    assert!(one.is_current(&before, at) && !other.is_current(&one.make(at), at));
    drop(store.keys([key(2)]));
    assert!(!one.is_current(&before, at));
}

/// Collects warnings from the log, with their fields.
#[derive(Clone, Default)]
struct Warnings(Arc<Mutex<Vec<String>>>);

impl Subscriber for Warnings {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        *metadata.level() == Level::WARN
    }

    fn event(&self, event: &Event<'_>) {
        let mut fields = Fields::default();
        event.record(&mut fields);
        self.0.lock().unwrap().push(fields.0);
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

#[derive(Default)]
struct Fields(String);

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.0.push_str(&format!("{}={value:?} ", field.name()));
    }
}

#[tokio::test]
async fn differing_node_settings_are_logged() {
    let Some((server, prefix)) = shared("nodes that differ") else {
        return;
    };
    let warnings = Warnings::default();
    let _here = tracing::subscriber::set_default(warnings.clone());
    let told = || mem::take(&mut *warnings.0.lock().unwrap());
    let serve = async |name: &str, url: &str| {
        let issuer = TrustedIssuer::new("https://auth.example.com");
        let endpoint = StreamableHttp::from(Server::new(name, "1.0.0"))
            .protect(ProtectedResource::new(url).issuer(issuer))
            .cluster(server.connect(&prefix).await);
        endpoint.serve("127.0.0.1:0").await
    };
    let _one = serve("shop", "https://mcp.example.com/a").await.unwrap();
    let _same = serve("shop", "https://mcp.example.com/a").await.unwrap();
    assert_eq!(told(), Vec::<String>::new());
    let _other = serve("shop", "https://mcp.example.com/b").await.unwrap();
    let warned = told();
    assert_eq!(warned.len(), 1, "{warned:?}");
    assert!(warned[0].contains("URL and audiences"), "{warned:?}");
    // Each would serve the sessions of the other.
    for _ in 0..2 {
        let error = refused(serve("office", "https://mcp.example.com/a").await);
        assert!(
            error.contains("\"shop\"") && error.contains("prefix"),
            "{error}"
        );
    }
}
