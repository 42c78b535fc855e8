//! Persistence of a session: what changes in it is set in the store one thing after another, and nothing once the session is over.

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
    error::Result,
    limits::Limits,
    store::{AnySessionStore, SessionRecord, Setting, StoredSession},
    sync,
};

/// The record of a session in a store.
pub(super) struct Persistence {
    store: Arc<dyn AnySessionStore>,
    /// How many times the session has changed.
    changes: AtomicU64,
    /// Locked while something is set, or taken over, and while the version changes.
    saved: Mutex<Saved>,
    /// The version of the record that is known here.
    version: AtomicU64,
    /// When the record was last touched. `None` where that is due at the next use.
    touched: sync::Mutex<Option<Instant>>,
    /// Whether others may have changed or ended the session since.
    is_doubtful: AtomicBool,
    is_over: AtomicBool,
}

/// What is known of a record.
struct Saved {
    /// How many of the session's changes it has.
    changes: u64,
    settings: SessionSettings,
}

/// What can change in a session.
#[derive(Default)]
pub(super) struct SessionSettings {
    pub(super) initialized: bool,
    pub(super) log_level: Option<LoggingLevel>,
    pub(super) watched: Vec<String>,
}

impl Persistence {
    /// For a session that was opened, here or on another node.
    pub(super) fn new(store: Arc<dyn AnySessionStore>, stored: StoredSession) -> Self {
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
    pub(super) fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Acquire)
    }

    /// The session is over, as others know.
    pub(super) fn note_over(&self) {
        self.is_over.store(true, Ordering::Release);
    }

    /// The record has been in this version. What others have made of it is not known here yet, if they have.
    pub(super) fn note_version(&self, version: u64) {
        if self.version.load(Ordering::Acquire) < version {
            self.note_doubt();
        }
    }

    /// Others may have changed or ended the session, of which nothing was heard here.
    pub(super) fn note_doubt(&self) {
        self.is_doubtful.store(true, Ordering::Release);
    }

    /// Whether others may have changed or ended the session.
    pub(super) fn is_doubtful(&self) -> bool {
        self.is_doubtful.load(Ordering::Acquire)
    }

    /// Whether the record must be touched, which the caller does then.
    pub(super) fn is_due(&self, interval: Duration) -> bool {
        let now = Instant::now();
        let mut touched = self.touched.lock();
        let is_due = touched.is_none_or(|at| now.saturating_duration_since(at) >= interval);
        if is_due {
            *touched = Some(now);
        }
        is_due
    }

    /// Keeps the record for this time from now on. What others have set is taken over before the next request is served.
    pub(super) async fn renew(&self, id: &str, lasts: Duration) {
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

    /// Keeps the record for this time from now on. Where others have set something, `take_over` does that here, and returns what the
    /// session is then.
    pub(super) async fn touch(
        &self,
        id: &str,
        lasts: Duration,
        take_over: impl FnOnce(Vec<Setting>) -> Option<SessionSettings>,
    ) {
        let mut saved = self.saved.lock().await;
        if self.is_over() {
            return;
        }
        // What is heard from here on is asked for once more.
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
                // What is not watched here yet, or is refused here, is not given up by that.
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

    /// The session has changed. Returns the number of the change.
    pub(super) fn changed(&self) -> u64 {
        self.changes.fetch_add(1, Ordering::AcqRel) + 1
    }

    /// Sets what `settings` says of the session, unless a later call has included this change. Nothing is set where it says
    /// nothing. Returns the version of the record where something was set.
    pub(super) async fn save(
        &self,
        id: &str,
        change: u64,
        settings: impl FnOnce() -> Option<SessionSettings>,
    ) -> Option<u64> {
        let mut saved = self.saved.lock().await;
        if saved.changes >= change || self.is_over() {
            return None;
        }
        let mut newest = None;
        let changes = self.changes.load(Ordering::Acquire);
        let differing = settings().map_or_else(Vec::new, |it| saved.settings.differing(&it));
        for setting in differing {
            match self.store.set(id, setting.clone()).await {
                Ok(Some(version)) => {
                    saved.settings.apply(setting);
                    newest = Some(version);
                    // Others have set something, too, which is not known here yet.
                    if self.version.load(Ordering::Acquire) + 1 == version {
                        self.version.store(version, Ordering::Release);
                    } else {
                        self.note_doubt();
                    }
                }
                Ok(None) => self.note_over(),
                // It is tried again with the next change.
                Err(error) => log(Err(error)),
            }
        }
        saved.changes = changes;
        newest
    }

    /// Removes the record of a session that is over. A change under way is waited for, and none follows. Returns whether nobody
    /// knew yet.
    pub(super) async fn remove(&self, id: &str) -> bool {
        let is_news = !self.is_over.swap(true, Ordering::AcqRel);
        drop(self.saved.lock().await);
        log(self.store.remove(id).await);
        is_news
    }
}

impl SessionSettings {
    fn of(record: SessionRecord) -> Self {
        Self {
            initialized: record.initialized,
            log_level: record.log_level,
            watched: record.subscribed,
        }
    }

    /// What must be set to make these of them.
    fn differing(&self, now: &Self) -> Vec<Setting> {
        let mut settings = Vec::new();
        if now.initialized && !self.initialized {
            settings.push(Setting::Initialized);
        }
        settings.extend(
            now.log_level
                .filter(|level| self.log_level != Some(*level))
                .map(Setting::LogLevel),
        );
        let before: HashSet<_> = self.watched.iter().collect();
        let after: HashSet<_> = now.watched.iter().collect();
        let given_up = self.watched.iter().filter(|uri| !after.contains(uri));
        settings.extend(given_up.cloned().map(Setting::Unwatch));
        let added = now.watched.iter().filter(|uri| !before.contains(uri));
        settings.extend(added.cloned().map(Setting::Watch));
        settings
    }

    fn apply(&mut self, setting: Setting) {
        match setting {
            Setting::Initialized => self.initialized = true,
            Setting::LogLevel(level) => self.log_level = Some(level),
            Setting::Watch(uri) => self.watched.push(uri),
            Setting::Unwatch(uri) => self.watched.retain(|it| *it != uri),
        }
    }
}

/// For how long the record of a session is kept that was never used.
pub(super) const UNUSED: Duration = Duration::from_secs(60);
/// The record of a session in use is touched no more often than this part of the idle time.
const TOUCHES_PER_IDLE: u32 = 64;

/// How often the record of a session in use is touched at most.
pub(super) fn touch_interval(limits: &Limits) -> Duration {
    limits.http.session_idle / TOUCHES_PER_IDLE
}

/// For how long the record of a session is kept that is not used: longer than the session is at any node, which touches it no
/// more often than its idle time goes by.
pub(super) fn kept_for(limits: &Limits) -> Duration {
    limits.http.session_idle.saturating_mul(2)
}

/// Logs the failure of a store, which clients are not told of.
pub(super) fn log(result: Result<()>) {
    if let Err(error) = result {
        tracing::warn!(%error, "a store failed");
    }
}
