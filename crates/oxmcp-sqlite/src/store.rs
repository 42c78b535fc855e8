//! [`Sqlite`]: the handle to a file, and its bounds.

use std::{path::Path, sync::Arc, time::Duration};

use oxmcp::{Result, SharedKeys, StateKey, store::MemoryBus};

use crate::{database::Database, schema};

/// The stores of a server in one SQLite file. Clones are handles to the same file, and see each other's changes.
///
/// Only the owner of the file can read it, and its contents are not encrypted: ids of tasks are secrets, and so may be arguments,
/// answers and results. A second file beside it, whose name ends in `-wal`, belongs to it, also after a crash.
///
/// `Sqlite` is a [`Cluster`](oxmcp::http::Cluster) of one node that restarts: a [`TaskStore`](oxmcp::tasks::TaskStore), a
/// [`SessionStore`](oxmcp::store::SessionStore), an [`EventStore`](oxmcp::store::EventStore), and a [`Bus`](oxmcp::store::Bus)
/// in memory.
///
/// The number of tasks and sessions is bounded, and so are their bytes and those of events. The file does not shrink by itself;
/// free space in it is used again.
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
    /// Opens a file, or creates it, for at most 10 000 tasks, 1 000 of one owner, and 256 MiB of tasks, 10 000 sessions, and 64 MiB
    /// of events. The file must be on a local disk.
    ///
    /// A process that is about to end keeps the file open for a moment, so this waits for up to 2 seconds.
    ///
    /// # Errors
    /// If another process has the file open, or this one has; if it is the database of another program, or of a newer release; or
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

    /// Seals data that travels with clients with the first of these keys, in place of the key in the file, and opens it with any of
    /// them: for programs that keep secrets elsewhere. Keys that are set on one clone apply to all clones.
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

    /// Sets the maximum number of tasks of one owner. Callers without authentication are one owner.
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

    /// Sets the maximum number of sessions; beyond it those that would expire first are evicted. The record of each, including the
    /// resources that its client watches, has 64 KiB at most.
    #[must_use]
    pub fn max_sessions(mut self, sessions: usize) -> Self {
        self.bounds.sessions = sessions;
        self
    }

    /// Sets the maximum number of events of one stream of a session; beyond it the oldest are evicted. Default: 4096.
    #[must_use]
    pub fn max_stream_events(mut self, events: usize) -> Self {
        self.bounds.stream_events = events;
        self
    }

    /// Sets the maximum number of bytes of one stream of a session; beyond it the oldest events are evicted. Default: 4 MiB.
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
