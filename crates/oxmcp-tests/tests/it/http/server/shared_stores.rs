//! Stores that nodes share, and that a test can stop.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use oxmcp::{
    Error, Result,
    store::{
        Claim, Creation, EventStore, MemoryEventStore, MemorySessionStore, Replay, SessionRecord,
        SessionStore, Setting, StoredSession, StreamWrite,
    },
};
use tokio::sync::Notify;

/// What a store does.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Act {
    Append,
    After,
    Set,
    Remove,
}

/// Where a store stands still, once.
#[derive(Default)]
pub(crate) struct Pause {
    at: Mutex<Option<Act>>,
    reached: Notify,
    go: Notify,
}

impl Pause {
    /// The next time that this is done, it stands still.
    pub(crate) fn at(&self, act: Act) {
        *self.at.lock().unwrap() = Some(act);
    }

    /// Waits until it stands still.
    pub(crate) async fn reached(&self) {
        self.reached.notified().await;
    }

    pub(crate) fn go(&self) {
        self.go.notify_one();
    }

    async fn pass(&self, act: Act) {
        let stops = self.at.lock().unwrap().take_if(|it| *it == act).is_some();
        if stops {
            self.reached.notify_one();
            self.go.notified().await;
        }
    }
}

/// Events in memory. It stands still when something is done, and before that is told.
#[derive(Clone, Default)]
pub(crate) struct SharedEvents {
    store: Arc<MemoryEventStore>,
    pub(crate) pause: Arc<Pause>,
}

impl EventStore for SharedEvents {
    async fn append(
        &self,
        session: &str,
        stream: &str,
        write: StreamWrite,
    ) -> Result<Option<Vec<u64>>> {
        let indexes = self.store.append(session, stream, write).await;
        self.pause.pass(Act::Append).await;
        indexes
    }

    async fn after(&self, session: &str, stream: &str, index: u64, max: usize) -> Result<Replay> {
        let found = self.store.after(session, stream, index, max).await;
        self.pause.pass(Act::After).await;
        found
    }

    async fn watch(&self, session: &str, stream: &str, index: u64) -> Result<()> {
        self.store.watch(session, stream, index).await
    }

    async fn claim(
        &self,
        session: &str,
        stream: &str,
        claim: Claim,
        lasts: Duration,
    ) -> Result<Option<u64>> {
        self.store.claim(session, stream, claim, lasts).await
    }

    async fn renew(
        &self,
        session: &str,
        stream: &str,
        epoch: u64,
        lasts: Duration,
    ) -> Result<bool> {
        self.store.renew(session, stream, epoch, lasts).await
    }

    async fn forget(&self, session: &str) -> Result<()> {
        self.store.forget(session).await
    }
}

/// Sessions in memory. It stands still before something is set in a record, and before one is removed.
#[derive(Clone, Default)]
pub(crate) struct SharedSessions {
    store: Arc<MemorySessionStore>,
    pub(crate) pause: Arc<Pause>,
    /// The ids that were asked for.
    pub(crate) asked: Arc<Mutex<Vec<String>>>,
    /// Whether nothing can be loaded for now.
    pub(crate) is_away: Arc<AtomicBool>,
}

impl SessionStore for SharedSessions {
    async fn create(
        &self,
        id: &str,
        record: SessionRecord,
        lasts: Duration,
        max_each: usize,
    ) -> Result<Creation> {
        self.store.create(id, record, lasts, max_each).await
    }

    async fn load(&self, id: &str) -> Result<Option<StoredSession>> {
        self.asked.lock().unwrap().push(id.to_owned());
        if self.is_away.load(Ordering::Relaxed) {
            return Err(Error::internal("the database is away"));
        }
        self.store.load(id).await
    }

    async fn set(&self, id: &str, setting: Setting) -> Result<Option<u64>> {
        self.pause.pass(Act::Set).await;
        self.store.set(id, setting).await
    }

    async fn touch(&self, id: &str, lasts: Duration) -> Result<Option<u64>> {
        self.store.touch(id, lasts).await
    }

    async fn remove(&self, id: &str) -> Result<()> {
        self.pause.pass(Act::Remove).await;
        self.store.remove(id).await
    }
}
