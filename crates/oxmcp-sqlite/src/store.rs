//! [`Sqlite`]: the handle to a file, and its bounds.

use std::{path::Path, sync::Arc};

use oxmcp::Result;

use crate::database::Database;

/// The stores of a server in one SQLite file. Clones are handles to the same file, and to one another's changes.
///
/// Only the file's owner can read it, and what is in it is not encrypted: ids of tasks are secrets, and so may be arguments, answers and
/// results. A file beside it, with `-wal` at its end, belongs to it, also after a crash.
///
/// It is bounded: in how many tasks there are, in all and of one owner, and in their bytes. The file does not shrink by itself;
/// what is free in it is used again.
#[derive(Clone, Debug)]
pub struct Sqlite {
    pub(crate) database: Arc<Database>,
    pub(crate) bounds: Bounds,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds {
    pub(crate) tasks: usize,
    pub(crate) tasks_each: usize,
    pub(crate) task_bytes: usize,
}

impl Sqlite {
    /// Opens a file, or makes it: for at most 10 000 tasks, 1 000 of one owner, and 256 MiB of them. It must be on a local disk.
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
        Ok(Self {
            database: Arc::new(database),
            bounds: Bounds {
                tasks: 10_000,
                tasks_each: 1_000,
                task_bytes: 256 << 20,
            },
        })
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
}
