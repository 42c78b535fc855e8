//! Stores that nodes share, and that a test can pause.

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
        ClaimMode, CreateOutcome, EventStore, MemoryEventStore, MemorySessionStore, Replay,
        SessionChange, SessionRecord, SessionStore, StoredSession, StreamWrite,
    },
};
use tokio::sync::Notify;

/// An operation of a store.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Act {
    Append,
    After,
    Set,
    Remove,
}

/// A pause of a store at one operation, once.
#[derive(Default)]
pub(crate) struct Pause {
    at: Mutex<Option<Act>>,
    reached: Notify,
    go: Notify,
}

impl Pause {
    /// Pauses the store at the next operation of this kind.
    pub(crate) fn at(&self, act: Act) {
        *self.at.lock().unwrap() = Some(act);
    }

    /// Waits until the store pauses.
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

/// Events in memory. The store pauses after an operation, before it returns the result.
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
        claim: ClaimMode,
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

/// Sessions in memory. The store pauses before a record is changed, and before a session is removed.
#[derive(Clone, Default)]
pub(crate) struct SharedSessions {
    store: Arc<MemorySessionStore>,
    pub(crate) pause: Arc<Pause>,
    /// The ids that were to be loaded.
    pub(crate) asked: Arc<Mutex<Vec<String>>>,
    /// Whether creations, loads and changes fail for now.
    pub(crate) is_away: Arc<AtomicBool>,
}

impl SharedSessions {
    fn check(&self) -> Result<()> {
        match self.is_away.load(Ordering::Relaxed) {
            true => Err(Error::closed("the database is away")),
            false => Ok(()),
        }
    }
}

impl SessionStore for SharedSessions {
    async fn create(
        &self,
        id: &str,
        record: SessionRecord,
        lasts: Duration,
        max_per_owner: usize,
    ) -> Result<CreateOutcome> {
        self.check()?;
        self.store.create(id, record, lasts, max_per_owner).await
    }

    async fn load(&self, id: &str) -> Result<Option<StoredSession>> {
        self.asked.lock().unwrap().push(id.to_owned());
        self.check()?;
        self.store.load(id).await
    }

    async fn set(&self, id: &str, change: SessionChange) -> Result<Option<u64>> {
        self.pause.pass(Act::Set).await;
        self.check()?;
        self.store.set(id, change).await
    }

    async fn touch(&self, id: &str, lasts: Duration) -> Result<Option<u64>> {
        self.store.touch(id, lasts).await
    }

    async fn remove(&self, id: &str) -> Result<()> {
        self.pause.pass(Act::Remove).await;
        self.store.remove(id).await
    }
}
