//! [`Sqlite`]: the handle to a file, and its bounds.

use std::{path::Path, sync::Arc, time::Duration};

use oxmcp::{Result, SharedKeys, StateKey, store::MemoryBus};

use crate::{database::Database, schema};

/// The stores of a server in one SQLite file. Clones are handles to the same file, and to one another's changes.
///
/// Only the file's owner can read it, and what is in it is not encrypted: ids of tasks are secrets, and so may be arguments, answers and
/// results. A file beside it, with `-wal` at its end, belongs to it, also after a crash.
///
/// It is a [`Cluster`](oxmcp::http::Cluster) of one node, which restarts: a [`TaskStore`](oxmcp::tasks::TaskStore), a
/// [`SessionStore`](oxmcp::store::SessionStore), an [`EventStore`](oxmcp::store::EventStore), and a [`Bus`](oxmcp::store::Bus) in memory.
///
/// It is bounded: in how many tasks and sessions there are, and in their bytes and those of events. The file does not shrink by itself;
/// what is free in it is used again.
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
    /// Opens a file, or makes it: for at most 10 000 tasks, 1 000 of one owner, and 256 MiB of them, 10 000 sessions, and 64 MiB of
    /// events. It must be on a local disk.
    ///
    /// A process that is about to end keeps the file for a moment, so this waits for up to 2 seconds.
    ///
    /// # Errors
    /// Where another process has the file, or this one has opened it before; where it is the database of something else, or of a
    /// newer release; and where it cannot be made, read or written.
    ///
    /// # Cancel safety
    /// Dropped before it returns, the file may be there, and is closed.
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

    /// Seals what travels with clients with the first of these keys, in place of one that is in the file, and opens with all of them:
    /// for programs that keep secrets elsewhere. Given to any clone this holds for all of them.
    #[must_use]
    pub fn keys(self, keys: impl IntoIterator<Item = StateKey>) -> Self {
        self.keys.replace(keys);
        self
    }

    /// How many tasks there are at most.
    #[must_use]
    pub fn max_tasks(mut self, tasks: usize) -> Self {
        self.bounds.tasks = tasks;
        self
    }

    /// How many tasks one owner has at most. Callers without authentication are one owner.
    #[must_use]
    pub fn max_tasks_each(mut self, tasks: usize) -> Self {
        self.bounds.tasks_each = tasks;
        self
    }

    /// How many bytes all tasks have at most, with what they came to.
    #[must_use]
    pub fn max_task_bytes(mut self, bytes: usize) -> Self {
        self.bounds.task_bytes = bytes;
        self
    }

    /// How many sessions there are at most; beyond it those go that would expire first. Each has 64 KiB at most of what its client
    /// says of itself and watches.
    #[must_use]
    pub fn max_sessions(mut self, sessions: usize) -> Self {
        self.bounds.sessions = sessions;
        self
    }

    /// How many events one stream of a session may hold; beyond it the oldest go. Default: 4096.
    #[must_use]
    pub fn max_stream_events(mut self, events: usize) -> Self {
        self.bounds.stream_events = events;
        self
    }

    /// How many bytes one stream of a session may hold; beyond it the oldest events go. Default: 4 MiB.
    #[must_use]
    pub fn max_stream_bytes(mut self, bytes: usize) -> Self {
        self.bounds.stream_bytes = bytes;
        self
    }

    /// How many bytes all events have at most; beyond it the stream that holds the most loses its oldest ones. Default: 64 MiB.
    #[must_use]
    pub fn max_event_bytes(mut self, bytes: usize) -> Self {
        self.bounds.event_bytes = bytes;
        self
    }

    /// How long events are kept. Default: 5 minutes.
    #[must_use]
    pub fn max_event_age(mut self, age: Duration) -> Self {
        self.bounds.event_age = age;
        self
    }
}
