//! The persistence of a session: its changes are stored one after another, and none after the session is over.

use std::{
    collections::HashSet,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use oxmcp_protocol::LoggingLevel;
use tokio::{sync::Mutex, time::Instant};

use crate::{
    http::server::sessions::{Session, log},
    limits::Limits,
    store::{AnySessionStore, SessionChange, SessionRecord, StoredSession},
    sync,
};

/// The record of a session in a store.
pub(crate) struct Persistence {
    store: Arc<dyn AnySessionStore>,
    /// The number of changes of the session.
    changes: AtomicU64,
    /// Locked while settings are stored or applied, and while the version changes.
    saved: Mutex<Saved>,
    /// The version of the record that this node knows.
    version: AtomicU64,
    /// The time at which the record was last touched. `None` if the next use must touch it.
    touched: sync::Mutex<Option<Instant>>,
    /// Whether other nodes may have changed or ended the session since then.
    is_doubtful: AtomicBool,
    is_over: AtomicBool,
}

/// The content of the record, as far as this node knows it.
struct Saved {
    /// The number of the session's changes that the record includes.
    changes: u64,
    settings: SessionSettings,
}

/// The settings of a session that can change.
#[derive(Default)]
pub(crate) struct SessionSettings {
    pub(crate) initialized: bool,
    pub(crate) log_level: Option<LoggingLevel>,
    pub(crate) watched: Vec<String>,
}

impl Persistence {
    /// The persistence of a session that was opened here or on another node.
    pub(crate) fn new(store: Arc<dyn AnySessionStore>, stored: StoredSession) -> Self {
        Self {
            store,
            changes: AtomicU64::new(0),
            saved: Mutex::new(Saved {
                changes: 0,
                settings: SessionSettings::of(stored.record),
            }),
            version: AtomicU64::new(stored.version),
            touched: sync::Mutex::default(),
            is_doubtful: AtomicBool::new(false),
            is_over: AtomicBool::new(false),
        }
    }

    /// Whether the session is over, here and on other nodes.
    pub(crate) fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Acquire)
    }

    /// Records that the session is over, according to other nodes.
    pub(crate) fn note_over(&self) {
        self.is_over.store(true, Ordering::Release);
    }

    /// Records that the record has had this version. If it is newer than the known one, this node does not know some changes of
    /// other nodes yet.
    pub(crate) fn note_version(&self, version: u64) {
        if self.version.load(Ordering::Acquire) < version {
            self.note_doubt();
        }
    }

    /// Records that other nodes may have changed or ended the session without this node knowing.
    pub(crate) fn note_doubt(&self) {
        self.is_doubtful.store(true, Ordering::Release);
    }

    /// Whether other nodes may have changed or ended the session.
    pub(crate) fn is_doubtful(&self) -> bool {
        self.is_doubtful.load(Ordering::Acquire)
    }

    /// Whether the caller must touch the record now.
    pub(crate) fn is_due(&self, interval: Duration) -> bool {
        let now = Instant::now();
        let mut touched = self.touched.lock();
        let is_due = touched.is_none_or(|at| now.saturating_duration_since(at) >= interval);
        if is_due {
            *touched = Some(now);
        }
        is_due
    }

    /// Keeps the record for this duration from now on. Settings from other nodes are applied before the next request is served.
    pub(crate) async fn renew(&self, id: &str, lasts: Duration) {
        let was_doubtful = self.is_doubtful.swap(false, Ordering::AcqRel);
        match self.store.touch(id, lasts).await {
            Ok(Some(version)) => self.note_version(version),
            Ok(None) => self.note_over(),
            Err(error) => {
                log(Err(error));
                self.is_doubtful.fetch_or(was_doubtful, Ordering::AcqRel);
            }
        }
    }

    /// Keeps the record for this duration from now on. If other nodes have changed settings, `take_over` applies them here, and
    /// returns the resulting settings of the session.
    pub(crate) async fn touch(
        &self,
        id: &str,
        lasts: Duration,
        take_over: impl FnOnce(Vec<SessionChange>) -> Option<SessionSettings>,
    ) {
        let mut saved = self.saved.lock().await;
        if self.is_over() {
            return;
        }
        // Messages that arrive from here on cause another check.
        let was_doubtful = self.is_doubtful.swap(false, Ordering::AcqRel);
        let found = match self.store.touch(id, lasts).await {
            Ok(Some(version)) if version == self.version.load(Ordering::Acquire) => return,
            Ok(Some(_)) => self.store.load(id).await,
            other => other.map(|_| None),
        };
        match found {
            Ok(Some(stored)) => {
                let mut settings = SessionSettings::of(stored.record);
                let here = take_over(saved.settings.differing(&settings));
                // A resource that is not, or cannot be, watched here yet must not count as unwatched.
                let watched: HashSet<_> = here.into_iter().flat_map(|it| it.watched).collect();
                settings.watched.retain(|uri| watched.contains(uri));
                saved.settings = settings;
                self.version.store(stored.version, Ordering::Release);
            }
            Ok(None) => self.note_over(),
            Err(error) => {
                log(Err(error));
                self.is_doubtful.fetch_or(was_doubtful, Ordering::AcqRel);
            }
        }
    }

    /// Records that the session has changed. Returns the number of the change.
    pub(crate) fn changed(&self) -> u64 {
        self.changes.fetch_add(1, Ordering::AcqRel) + 1
    }

    /// Stores the settings that `settings` returns, unless a later call has included this change. Stores nothing if it returns
    /// `None`. Returns the version of the record if a setting was stored, and false if the store failed and the rest must be stored
    /// later.
    pub(crate) async fn save(
        &self,
        id: &str,
        change: u64,
        settings: impl FnOnce() -> Option<SessionSettings>,
    ) -> (Option<u64>, bool) {
        let mut saved = self.saved.lock().await;
        if saved.changes >= change || self.is_over() {
            return (None, true);
        }
        let (mut newest, mut is_saved) = (None, true);
        let changes = self.changes.load(Ordering::Acquire);
        let differing = settings().map_or_else(Vec::new, |it| saved.settings.differing(&it));
        for change in differing {
            match self.store.set(id, change.clone()).await {
                Ok(Some(version)) => {
                    saved.settings.apply(change);
                    newest = Some(version);
                    // If the version has grown by more than one, other nodes have also stored settings, which this node does not
                    // know yet.
                    if self.version.load(Ordering::Acquire) + 1 == version {
                        self.version.store(version, Ordering::Release);
                    } else {
                        self.note_doubt();
                    }
                }
                Ok(None) => self.note_over(),
                Err(error) => {
                    is_saved &= error.is_refusal();
                    log(Err(error));
                }
            }
        }
        if is_saved {
            saved.changes = changes;
        }
        (newest, is_saved)
    }

    /// Removes the record of a session that is over. Waits for a change in progress; no change follows. Returns whether other nodes
    /// must be notified.
    pub(crate) async fn remove(&self, id: &str) -> bool {
        let is_news = !self.is_over.swap(true, Ordering::AcqRel);
        drop(self.saved.lock().await);
        log(self.store.remove(id).await);
        is_news
    }
}

impl SessionSettings {
    /// The present settings of a session. `None` after its connection has ended: the session no longer watches resources here, but
    /// may continue on another node.
    pub(crate) fn now(session: &Session) -> Option<Self> {
        let peer = session.peer();
        let settings = Self {
            initialized: peer.legacy_session().initialized_client().is_some(),
            log_level: peer.log_filter().level(),
            watched: peer.subscribed_uris(),
        };
        (!session.connection().is_cut()).then_some(settings)
    }

    fn of(record: SessionRecord) -> Self {
        Self {
            initialized: record.initialized,
            log_level: record.log_level,
            watched: record.subscribed,
        }
    }

    /// The settings to store in order to get from these settings to `now`.
    fn differing(&self, now: &Self) -> Vec<SessionChange> {
        let mut settings = Vec::new();
        if now.initialized && !self.initialized {
            settings.push(SessionChange::Initialized);
        }
        settings.extend(
            now.log_level
                .filter(|level| self.log_level != Some(*level))
                .map(SessionChange::LogLevel),
        );
        let before: HashSet<_> = self.watched.iter().collect();
        let after: HashSet<_> = now.watched.iter().collect();
        let given_up = self.watched.iter().filter(|uri| !after.contains(uri));
        settings.extend(given_up.cloned().map(SessionChange::Unwatch));
        let added = now.watched.iter().filter(|uri| !before.contains(uri));
        settings.extend(added.cloned().map(SessionChange::Watch));
        settings
    }

    fn apply(&mut self, change: SessionChange) {
        match change {
            SessionChange::Initialized => self.initialized = true,
            SessionChange::LogLevel(level) => self.log_level = Some(level),
            SessionChange::Watch(uri) => self.watched.push(uri),
            SessionChange::Unwatch(uri) => self.watched.retain(|it| *it != uri),
        }
    }
}

/// The time for which the record of a never used session is kept.
pub(crate) const UNUSED: Duration = Duration::from_secs(60);
/// The maximum number of touches of a session's record within the idle timeout.
const TOUCHES_PER_IDLE: u32 = 64;

/// The minimum interval between touches of the record of a session in use.
pub(crate) fn touch_interval(limits: &Limits) -> Duration {
    limits.http.session_idle / TOUCHES_PER_IDLE
}

/// The time for which the record of an unused session is kept. It is longer than the session lasts on any node, because a node
/// touches the record of a session in use within the idle timeout.
pub(crate) fn kept_for(limits: &Limits) -> Duration {
    limits.http.session_idle.saturating_mul(2)
}
