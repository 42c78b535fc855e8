//! Thread that owns the connection. Jobs that are queued at the same time become one transaction.

use std::{
    array,
    hash::{BuildHasher, BuildHasherDefault, DefaultHasher},
    io,
    path::PathBuf,
    sync::Arc,
    thread,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use oxmcp::{Error, Result};
use rusqlite::Connection;
use tokio::{
    sync::{Notify, mpsc, oneshot},
    time::Instant,
};

use crate::{
    failure::{self, Failure},
    schema,
};

/// The most jobs that may wait, and that become one transaction. Each may have a message of the largest size.
const QUEUE: usize = 64;

/// A job that uses the connection, within a transaction. It returns a callback that gets the outcome of the transaction.
type Job = Box<dyn FnOnce(&Connection) -> Answer + Send>;
type Answer = Box<dyn FnOnce(Option<&rusqlite::Error>)>;

/// An open database. When its last owner is dropped, the thread ends and closes the file.
#[derive(Debug)]
pub(crate) struct Database {
    jobs: mpsc::Sender<Job>,
    clock: Clock,
    changes: Arc<Changes>,
}

/// The number of groups in which waiters are woken. A waiter that is woken without a change queries the database once more.
const GROUPS: usize = 64;

/// The handles that wake waiters for changes.
#[derive(Debug)]
pub(crate) struct Changes([Notify; GROUPS]);

impl Changes {
    /// The handle that wakes the waiters for changes of this name, and of others in its group.
    pub(crate) fn of(&self, name: &str) -> &Notify {
        let hash = BuildHasherDefault::<DefaultHasher>::default().hash_one(name);
        let [first, ..] = &self.0;
        let group = usize::try_from(hash % GROUPS as u64).unwrap_or_default();
        self.0.get(group).unwrap_or(first)
    }
}

impl Database {
    /// Opens the file, or creates it.
    pub(crate) async fn open(path: PathBuf) -> Result<Self> {
        let (jobs, queue) = mpsc::channel(QUEUE);
        let (opened, is_open) = oneshot::channel();
        let clock = Clock::new();
        let begun = clock.now_ms();
        let spawned = thread::Builder::new()
            .name("oxmcp-sqlite".to_owned())
            .spawn(move || match schema::open(&path, begun) {
                Ok(connection) => {
                    // This fails if the caller of `open` is gone. Then the queue is closed, too.
                    let _ = opened.send(Ok(()));
                    serve(&connection, queue);
                }
                Err(error) => {
                    let _ = opened.send(Err(error));
                }
            });
        spawned?;
        is_open.await.unwrap_or_else(|_| Err(ended()))?;
        Ok(Self {
            jobs,
            clock,
            changes: Arc::new(Changes(array::from_fn(|_| Notify::new()))),
        })
    }

    /// The handles that wake waiters for changes.
    pub(crate) fn changes(&self) -> &Changes {
        &self.changes
    }

    /// Runs a job, and returns when its writes are on the disk. A job that fails has written nothing. If the future is dropped, a
    /// queued job is still run.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        job: impl FnOnce(&Connection) -> Result<T, Failure> + Send + 'static,
    ) -> Result<T> {
        self.run_then(job, || {}).await
    }

    /// Runs a job, like [`run`](Self::run), that changes the data of this name, and wakes the waiters, even if the future was
    /// dropped.
    pub(crate) async fn change<T: Send + 'static>(
        &self,
        name: &str,
        job: impl FnOnce(&Connection) -> Result<T, Failure> + Send + 'static,
    ) -> Result<T> {
        let (changes, name) = (Arc::clone(&self.changes), name.to_owned());
        let wake = move || changes.of(&name).notify_waiters();
        self.run_then(job, wake).await
    }

    async fn run_then<T: Send + 'static>(
        &self,
        job: impl FnOnce(&Connection) -> Result<T, Failure> + Send + 'static,
        then: impl FnOnce() + Send + 'static,
    ) -> Result<T> {
        let (answer, answered) = oneshot::channel();
        let job: Job = Box::new(move |connection| {
            let outcome = atomically(connection, job);
            Box::new(move |failed| {
                let outcome = match failed {
                    Some(error) => Err(uncommitted(error)),
                    None => outcome.map_err(Error::from),
                };
                then();
                // The caller may be gone.
                let _ = answer.send(outcome);
            })
        });
        self.jobs.send(job).await.map_err(|_| ended())?;
        answered.await.unwrap_or_else(|_| Err(ended()))
    }

    /// The time of the store, in milliseconds since 1970.
    pub(crate) fn now_ms(&self) -> i64 {
        self.clock.now_ms()
    }
}

/// A clock that begins at the system time, and does not jump with it.
#[derive(Debug)]
struct Clock {
    begun: Instant,
    begun_ms: i64,
}

impl Clock {
    fn new() -> Self {
        let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH);
        Self {
            begun: Instant::now(),
            begun_ms: millis(since_1970.unwrap_or_default()),
        }
    }

    fn now_ms(&self) -> i64 {
        self.begun_ms.saturating_add(millis(self.begun.elapsed()))
    }
}

/// A duration in milliseconds, as an integer of SQLite.
pub(crate) fn millis(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}

/// Runs jobs until the queue is closed.
fn serve(connection: &Connection, mut queue: mpsc::Receiver<Job>) {
    while let Some(first) = queue.blocking_recv() {
        let mut batch = vec![first];
        while batch.len() < QUEUE
            && let Ok(next) = queue.try_recv()
        {
            batch.push(next);
        }
        transact(connection, batch);
    }
}

/// Runs jobs as one transaction, and sends their outcomes when it has ended.
fn transact(connection: &Connection, batch: Vec<Job>) {
    let begun = execute(connection, "BEGIN");
    let answers: Vec<_> = batch.into_iter().map(|job| job(connection)).collect();
    // If the disk is full, SQLite may have rolled back already, so there is nothing to commit.
    let ended = begun.and_then(|()| execute(connection, "COMMIT"));
    let failed = ended.err();
    if let Some(error) = &failed {
        tracing::warn!(%error, "could not commit to SQLite");
        if !connection.is_autocommit() {
            let _ = execute(connection, "ROLLBACK");
        }
    }
    for answer in answers {
        answer(failed.as_ref());
    }
}

/// Runs a job atomically: completely or not at all.
fn atomically<T>(
    connection: &Connection,
    job: impl FnOnce(&Connection) -> Result<T, Failure>,
) -> Result<T, Failure> {
    execute(connection, "SAVEPOINT job")?;
    let outcome = job(connection);
    if outcome.is_err() {
        execute(connection, "ROLLBACK TO job")?;
    }
    execute(connection, "RELEASE job")?;
    outcome
}

fn execute(connection: &Connection, sql: &str) -> rusqlite::Result<()> {
    connection.prepare_cached(sql)?.execute([]).map(drop)
}

/// The error of each job of a transaction that was not committed.
fn uncommitted(error: &rusqlite::Error) -> Error {
    let code = error.sqlite_error().copied();
    let copy = code.map(|code| rusqlite::Error::SqliteFailure(code, Some(error.to_string())));
    copy.map_or_else(
        || failure::io(io::ErrorKind::Other, "operation of the SQLite store failed"),
        failure::of_sqlite,
    )
}

fn ended() -> Error {
    Error::closed("SQLite store is closed")
}
