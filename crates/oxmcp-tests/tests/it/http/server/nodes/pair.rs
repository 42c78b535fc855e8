//! Pair of nodes that share a store of sessions, a store of events and a bus, each with a connection that a test can cut.

use std::{
    future::pending,
    io,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use futures_util::stream::BoxStream;
use http::StatusCode;
use oxmcp::{
    Error, Limits, Result, Server,
    http::StreamableHttp,
    store::{
        Bus, ClaimMode, Delivery, EventStore, MemoryBus, MemoryEventStore, MemorySessionStore,
        Replay, StreamWrite,
    },
};
use serde_json::{Value, json};
use tokio::task::yield_now;

use crate::http::server::{
    legacy::endpoint,
    peer::{LEGACY, Session},
};

/// Yields, so that all other ready tasks run.
pub(super) async fn turns() {
    for _ in 0..100 {
        yield_now().await;
    }
}

/// A connection of a node to the stores, and the operations that were requested over it.
#[derive(Clone, Default)]
pub(super) struct Link {
    events: Arc<MemoryEventStore>,
    bus: Arc<MemoryBus>,
    is_cut: Arc<AtomicBool>,
    /// Whether watchers are never told of a change.
    is_deaf: Arc<AtomicBool>,
    /// Whether messages of the bus are lost.
    is_lossy: Arc<AtomicBool>,
    /// Whether the store has no room for anything new.
    is_full: Arc<AtomicBool>,
    /// Whether leases cannot be renewed.
    loses_leases: Arc<AtomicBool>,
    asked: Arc<Mutex<Vec<&'static str>>>,
}

impl Link {
    /// Another connection to the same stores.
    fn another(&self) -> Self {
        Self {
            events: Arc::clone(&self.events),
            bus: Arc::clone(&self.bus),
            ..Self::default()
        }
    }

    pub(super) fn cut(&self, is_cut: bool) {
        self.is_cut.store(is_cut, Ordering::Relaxed);
    }

    pub(super) fn fill(&self, is_full: bool) {
        self.is_full.store(is_full, Ordering::Relaxed);
    }

    fn check_room(&self) -> Result<()> {
        if self.is_full.load(Ordering::Relaxed) {
            return Err(io::Error::from(io::ErrorKind::StorageFull).into());
        }
        Ok(())
    }

    pub(super) fn deafen(&self) {
        self.is_deaf.store(true, Ordering::Relaxed);
    }

    pub(super) fn lose_leases(&self) {
        self.loses_leases.store(true, Ordering::Relaxed);
    }

    pub(super) fn lose_messages(&self) {
        self.is_lossy.store(true, Ordering::Relaxed);
    }

    /// The operations that were requested since the last call of this method.
    pub(super) fn asked(&self) -> Vec<&'static str> {
        std::mem::take(&mut self.asked.lock().unwrap())
    }

    async fn pass(&self, name: &'static str) {
        self.asked.lock().unwrap().push(name);
        if self.is_cut.load(Ordering::Relaxed) {
            pending::<()>().await;
        }
    }
}

impl EventStore for Link {
    async fn append(
        &self,
        session: &str,
        stream: &str,
        write: StreamWrite,
    ) -> Result<Option<Vec<u64>>> {
        self.pass("append").await;
        self.check_room()?;
        self.events.append(session, stream, write).await
    }

    async fn after(&self, session: &str, stream: &str, index: u64, max: usize) -> Result<Replay> {
        self.pass("after").await;
        self.events.after(session, stream, index, max).await
    }

    async fn watch(&self, session: &str, stream: &str, index: u64) -> Result<()> {
        self.pass("watch").await;
        if self.is_deaf.load(Ordering::Relaxed) {
            pending::<()>().await;
        }
        self.events.watch(session, stream, index).await
    }

    async fn claim(
        &self,
        session: &str,
        stream: &str,
        claim: ClaimMode,
        lasts: Duration,
    ) -> Result<Option<u64>> {
        self.pass("claim").await;
        self.check_room()?;
        self.events.claim(session, stream, claim, lasts).await
    }

    async fn renew(
        &self,
        session: &str,
        stream: &str,
        epoch: u64,
        lasts: Duration,
    ) -> Result<bool> {
        self.pass("renew").await;
        if self.loses_leases.load(Ordering::Relaxed) {
            return Err(Error::internal("not now"));
        }
        self.events.renew(session, stream, epoch, lasts).await
    }

    async fn forget(&self, session: &str) -> Result<()> {
        self.events.forget(session).await
    }
}

impl Bus for Link {
    async fn publish(&self, topic: &str, message: bytes::Bytes) -> Result<()> {
        if self.is_lossy.load(Ordering::Relaxed) {
            return Ok(());
        }
        self.bus.publish(topic, message).await
    }

    async fn subscribe(&self, topics: &[&str]) -> Result<BoxStream<'static, Delivery>> {
        self.bus.subscribe(topics).await
    }
}

/// Two nodes, and a session that both have.
pub(super) struct Pair {
    pub(super) one: Session<StreamableHttp>,
    pub(super) other: Session<StreamableHttp>,
    pub(super) links: [Link; 2],
}

impl Pair {
    pub(super) async fn of(servers: [&Server; 2]) -> Self {
        Self::open(servers, LEGACY, json!({}), Limits::default()).await
    }

    pub(super) async fn open(
        servers: [&Server; 2],
        version: &str,
        capabilities: Value,
        limits: Limits,
    ) -> Self {
        let sessions = Arc::new(MemorySessionStore::new());
        let link = Link::default();
        let links = [link.another(), link];
        let node = |server: &Server, link: &Link| {
            let node = endpoint(server).session_store(Arc::clone(&sessions));
            let node = node.event_store(link.clone()).bus(link.clone());
            node.limits(limits.clone())
        };
        let one = Session::open_in(&node(servers[0], &links[0]), version, capabilities).await;
        let other = one.at(&node(servers[1], &links[1]));
        // The first request restores the session, and the second one touches its record.
        for _ in 0..2 {
            let ping = other.call(1000, "ping", json!({})).await;
            assert_eq!(ping.status(), StatusCode::OK);
            turns().await;
        }
        for link in &links {
            link.asked();
        }
        Self { one, other, links }
    }
}
