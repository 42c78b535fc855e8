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
use tokio::sync::Mutex;

use crate::{
    error::Result,
    limits::Limits,
    store::{AnySessionStore, SessionRecord, Setting, StoredSession},
};

/// The record of a session in a store.
pub(super) struct Persistence {
    store: Arc<dyn AnySessionStore>,
    /// How many times the session has changed.
    changes: AtomicU64,
    /// Locked while something is set.
    saved: Mutex<Saved>,
    is_over: AtomicBool,
}

/// What is known of a record.
struct Saved {
    /// How many of the session's changes it has.
    changes: u64,
    settings: SessionSettings,
    version: u64,
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
                version: stored.version,
            }),
            is_over: AtomicBool::new(false),
        }
    }

    /// Whether the session is over, here and on other nodes.
    pub(super) fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Acquire)
    }

    /// The session has changed. Returns the number of the change.
    pub(super) fn changed(&self) -> u64 {
        self.changes.fetch_add(1, Ordering::AcqRel) + 1
    }

    /// Sets what `settings` says of the session, unless a later call has included this change. Nothing is set where it says
    /// nothing.
    pub(super) async fn save(
        &self,
        id: &str,
        change: u64,
        settings: impl FnOnce() -> Option<SessionSettings>,
    ) {
        let mut saved = self.saved.lock().await;
        if saved.changes >= change || self.is_over() {
            return;
        }
        let changes = self.changes.load(Ordering::Acquire);
        let differing = settings().map_or_else(Vec::new, |it| saved.settings.differing(it));
        for setting in differing {
            match self.store.set(id, setting.clone()).await {
                Ok(Some(version)) => {
                    saved.settings.apply(setting);
                    saved.version = version;
                }
                Ok(None) => self.is_over.store(true, Ordering::Release),
                // It is tried again with the next change.
                Err(error) => log(Err(error)),
            }
        }
        saved.changes = changes;
    }

    /// Removes the record of a session that is over. A change under way is waited for, and none follows.
    pub(super) async fn remove(&self, id: &str) {
        self.is_over.store(true, Ordering::Release);
        drop(self.saved.lock().await);
        log(self.store.remove(id).await);
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
    fn differing(&self, now: Self) -> Vec<Setting> {
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
