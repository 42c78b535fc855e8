//! What the store keeps of a session: one record at a time is written, and nothing once the session is over.

use std::{
    mem,
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError},
};

use serde_json::value::RawValue;
use tokio::sync::Notify;

use crate::{
    http::server::session::{Session, log},
    store::{AnySessionStore, SessionRecord},
};

/// What is kept of a session, and where.
pub(super) struct Kept {
    store: Arc<dyn AnySessionStore>,
    initialize: Box<RawValue>,
    /// When the session was opened, as its records say.
    created: OnceLock<u64>,
    state: Mutex<State>,
    changed: Notify,
}

#[derive(Default)]
struct State {
    /// How often it was to be written.
    wanted: u64,
    /// Up to which of these times it is.
    written: u64,
    /// Whether there is a task that writes.
    is_writing: bool,
    /// Whether nothing may be written any more.
    is_over: bool,
}

impl Kept {
    /// Of a session that these params of `initialize` open, or where it was opened before, have opened then.
    pub(super) fn new(
        store: Arc<dyn AnySessionStore>,
        initialize: Box<RawValue>,
        created: Option<u64>,
    ) -> Self {
        Self {
            store,
            initialize,
            created: created.map_or_else(OnceLock::new, OnceLock::from),
            state: Mutex::default(),
            changed: Notify::new(),
        }
    }

    /// Whether the session is over, here and elsewhere.
    pub(super) fn is_over(&self) -> bool {
        self.lock().is_over
    }

    /// What is written of the session as it is now.
    fn record(&self, session: &Session) -> Option<SessionRecord> {
        let peer = session.peer();
        let mut record = SessionRecord::new(self.initialize.clone(), session.revision()?);
        record.created = *self.created.get_or_init(|| record.created);
        record.principal = session.principal().map(|it| it.as_ref().to_owned());
        record.initialized = peer.callers().ready().is_some();
        record.log_level = peer.log_gate().level();
        record.subscribed = peer.subscribed_uris();
        Some(record)
    }

    /// Which time is to be written now. Where there is none, the task that writes ends.
    fn next(&self) -> Option<u64> {
        let mut state = self.lock();
        if state.is_over || state.written == state.wanted {
            state.stop();
            return None;
        }
        Some(state.wanted)
    }

    /// Waits until something is so. Cancel safe.
    async fn until(&self, is_so: impl Fn(&State) -> bool) {
        loop {
            let changed = self.changed.notified();
            if is_so(&self.lock()) {
                return;
            }
            changed.await;
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Begins to keep what a session is made of now, in a task of its own: whoever has changed it may go away. There is one such
/// task, however often that is.
pub(super) fn begin_save(session: &Arc<Session>) {
    let Some(kept) = session.kept() else {
        return;
    };
    let mut state = kept.lock();
    state.wanted += 1;
    if !mem::replace(&mut state.is_writing, true) {
        tokio::spawn(write(Writing {
            session: Arc::clone(session),
            is_done: false,
        }));
    }
}

/// Waits until what a session was made of when this was called is kept. Cancel safe.
pub(super) async fn saved(session: &Session) {
    if let Some(kept) = session.kept() {
        let wanted = kept.lock().wanted;
        kept.until(|state| state.written >= wanted).await;
    }
}

/// Drops what is kept of a session that is over. What is being written is waited for, and nothing is written after it.
pub(super) async fn remove(session: &Session) {
    if let Some(kept) = session.kept() {
        kept.lock().is_over = true;
        kept.until(|state| !state.is_writing).await;
        log(kept.store.remove(session.id()).await);
    }
}

/// Writes what a session is made of until there is nothing new.
async fn write(mut writing: Writing) {
    let session = Arc::clone(&writing.session);
    let Some(kept) = session.kept() else {
        return;
    };
    while let Some(wanted) = kept.next() {
        let record = kept.record(&session);
        // What has ended here watches nothing any more, but elsewhere it goes on.
        let record = record.filter(|_| !session.connection().is_cut());
        if let Some(record) = record {
            log(kept.store.save(session.id(), record).await);
        }
        kept.lock().written = wanted;
        kept.changed.notify_waiters();
    }
    writing.is_done = true;
}

impl State {
    fn stop(&mut self) {
        self.is_writing = false;
        self.written = self.wanted;
    }
}

/// Who writes. Nobody waits for it in vain where the store panics.
struct Writing {
    session: Arc<Session>,
    /// Whether it has ended by itself: there may be another by now.
    is_done: bool,
}

impl Drop for Writing {
    fn drop(&mut self) {
        if let Some(kept) = self.session.kept() {
            if !self.is_done {
                kept.lock().stop();
            }
            kept.changed.notify_waiters();
        }
    }
}
