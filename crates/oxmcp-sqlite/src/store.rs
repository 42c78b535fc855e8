//! [`Sqlite`]: the handle to a file, and its bounds.

use std::{path::Path, sync::Arc, time::Duration};

use oxmcp::{
    Result,
    keys::{SharedKeys, StateKey},
    store::MemoryBus,
};

use crate::{database::Database, schema};

/// A handle to the stores of a server in one SQLite file.
///
/// Clones are handles to the same file, and see each other's changes.
///
/// The file is not encrypted, and only its owner can read it: task IDs are secrets, and so may be arguments, answers and results. A
/// second file next to it, whose name ends in `-wal`, belongs to it, also after a crash.
///
/// `Sqlite` is a [`Cluster`](oxmcp::http::Cluster) of one node that restarts: a [`TaskStore`](oxmcp::tasks::TaskStore), a
/// [`SessionStore`](oxmcp::store::SessionStore), an [`EventStore`](oxmcp::store::EventStore), and a [`Bus`](oxmcp::store::Bus)
/// in memory.
///
/// The number and size of tasks, sessions and events are limited. The file does not shrink by itself; free space in it is reused.
#[derive(Clone, Debug)]
pub struct Sqlite {
    pub(crate) database: Arc<Database>,
    pub(crate) bounds: Bounds,
    pub(crate) keys: SharedKeys,
    pub(crate) bus: Arc<MemoryBus>,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds {
    pub(crate) tasks: usize,
    pub(crate) tasks_each: usize,
    pub(crate) task_bytes: usize,
    pub(crate) sessions: usize,
    pub(crate) record_bytes: usize,
    pub(crate) stream_events: usize,
    pub(crate) stream_bytes: usize,
    pub(crate) event_bytes: usize,
    pub(crate) event_age: Duration,
}

impl Sqlite {
    /// Opens a file, or creates it. The file must be on a local disk.
    ///
    /// The default limits are 10 000 tasks, 1 000 per owner, with 256 MiB in total; 10 000 sessions; and 64 MiB of events.
    ///
    /// A process that is about to end keeps the file open for a moment, so this waits for up to 2 seconds.
    ///
    /// # Errors
    /// If this or another process has already opened the file; if it is the database of another program or of a newer release; or
    /// if it cannot be created, read or written.
    ///
    /// # Cancel safety
    /// If the future is dropped, the file may have been created, and is closed.
    pub async fn open(path: impl AsRef<Path>) -> Result<Self> {
        let database = Database::open(path.as_ref().to_owned()).await?;
        let key = database.run(schema::key).await?;
        Ok(Self {
            database: Arc::new(database),
            bounds: Bounds {
                tasks: 10_000,
                tasks_each: 1_000,
                task_bytes: 256 << 20,
                sessions: 10_000,
                record_bytes: 64 << 10,
                stream_events: 4096,
                stream_bytes: 4 << 20,
                event_bytes: 64 << 20,
                event_age: Duration::from_secs(5 * 60),
            },
            keys: SharedKeys::new([key]),
            bus: Arc::default(),
        })
    }

    /// Sets the keys that seal state that clients keep, instead of the key in the file. The first one seals, and all of them open.
    ///
    /// Use this if your secrets are stored elsewhere. Keys that are set on one clone apply to all clones.
    #[must_use]
    pub fn keys(self, keys: impl IntoIterator<Item = StateKey>) -> Self {
        self.keys.replace(keys);
        self
    }

    /// Sets the maximum number of tasks.
    #[must_use]
    pub fn max_tasks(mut self, tasks: usize) -> Self {
        self.bounds.tasks = tasks;
        self
    }

    /// Sets the maximum number of tasks per owner. All callers without authentication are one owner.
    #[must_use]
    pub fn max_tasks_each(mut self, tasks: usize) -> Self {
        self.bounds.tasks_each = tasks;
        self
    }

    /// Sets the maximum number of bytes of all tasks, including their results.
    #[must_use]
    pub fn max_task_bytes(mut self, bytes: usize) -> Self {
        self.bounds.task_bytes = bytes;
        self
    }

    /// Sets the maximum number of sessions; beyond it those that would expire first are evicted. The record of a session, including
    /// the resources that its client watches, is limited to 64 KiB.
    #[must_use]
    pub fn max_sessions(mut self, sessions: usize) -> Self {
        self.bounds.sessions = sessions;
        self
    }

    /// Sets the maximum number of events per stream; beyond it the oldest are evicted. Default: 4096.
    #[must_use]
    pub fn max_stream_events(mut self, events: usize) -> Self {
        self.bounds.stream_events = events;
        self
    }

    /// Sets the maximum number of bytes per stream; beyond it the oldest events are evicted. Default: 4 MiB.
    #[must_use]
    pub fn max_stream_bytes(mut self, bytes: usize) -> Self {
        self.bounds.stream_bytes = bytes;
        self
    }

    /// Sets the maximum number of bytes of all events; beyond it the oldest events of the largest stream are evicted. Default: 64
    /// MiB.
    #[must_use]
    pub fn max_event_bytes(mut self, bytes: usize) -> Self {
        self.bounds.event_bytes = bytes;
        self
    }

    /// Sets the time for which events are kept. Default: 5 minutes.
    #[must_use]
    pub fn max_event_age(mut self, age: Duration) -> Self {
        self.bounds.event_age = age;
        self
    }
}
