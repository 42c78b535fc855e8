//! Persistence of a session: its record is saved to the store one time after another, and never once the session is over.

use std::sync::{
    Arc, OnceLock,
    atomic::{AtomicBool, AtomicU64, Ordering},
};

use oxmcp_protocol::Revision;
use serde_json::value::RawValue;
use tokio::sync::Mutex;

use crate::{
    error::Result,
    store::{AnySessionStore, SessionRecord},
};

/// The record of a session in a store.
pub(super) struct Persistence {
    store: Arc<dyn AnySessionStore>,
    initialize: Box<RawValue>,
    /// When the session was opened, as its records say.
    created: OnceLock<u64>,
    /// How many times the session has changed.
    changes: AtomicU64,
    /// How many of these changes are saved. Locked while one is.
    saved: Mutex<u64>,
    is_over: AtomicBool,
}

impl Persistence {
    /// For a session that these params of `initialize` open, or have opened on another node, at `created`.
    pub(super) fn new(
        store: Arc<dyn AnySessionStore>,
        initialize: Box<RawValue>,
        created: Option<u64>,
    ) -> Self {
        Self {
            store,
            initialize,
            created: created.map_or_else(OnceLock::new, OnceLock::from),
            changes: AtomicU64::new(0),
            saved: Mutex::new(0),
            is_over: AtomicBool::new(false),
        }
    }

    /// Whether the session is over, here and on other nodes.
    pub(super) fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Acquire)
    }

    /// A record of the session of this revision as far as it is known here.
    pub(super) fn record(&self, revision: Revision) -> SessionRecord {
        let mut record = SessionRecord::new(self.initialize.clone(), revision);
        record.created = *self.created.get_or_init(|| record.created);
        record
    }

    /// The session has changed. Returns the number of the change.
    pub(super) fn changed(&self) -> u64 {
        self.changes.fetch_add(1, Ordering::AcqRel) + 1
    }

    /// Saves what `record` makes of the session, unless a later save has included this change. Nothing is saved where it makes
    /// nothing.
    pub(super) async fn save(
        &self,
        id: &str,
        change: u64,
        record: impl FnOnce() -> Option<SessionRecord>,
    ) {
        let mut saved = self.saved.lock().await;
        if *saved >= change || self.is_over() {
            return;
        }
        let changes = self.changes.load(Ordering::Acquire);
        if let Some(record) = record() {
            log(self.store.save(id, record).await);
        }
        *saved = changes;
    }

    /// Removes the record of a session that is over. A save under way is waited for, and none follows.
    pub(super) async fn remove(&self, id: &str) {
        self.is_over.store(true, Ordering::Release);
        drop(self.saved.lock().await);
        log(self.store.remove(id).await);
    }
}

/// Logs the failure of a store, which clients are not told of.
pub(super) fn log(result: Result<()>) {
    if let Err(error) = result {
        tracing::warn!(%error, "a store failed");
    }
}
