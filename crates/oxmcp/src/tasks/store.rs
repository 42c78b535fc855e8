//! The trait of task stores, and its object-safe form.

use std::{future::Future, sync::Arc, time::Duration};

use futures_core::future::BoxFuture;
use tokio::time::timeout;

use super::record::TaskRecord;
use crate::error::{Error, Result};

/// Stores tasks, for one process or many. To change a task, a process reads it and writes it back, unless another process has
/// changed it meanwhile. So several handles to one store may work at once.
///
/// A call that runs as a task leases it and renews the lease. If a process has died, another one with the same store
/// [finds](Self::orphans) its tasks, and continues them or ends them as failed. The data for that is in the record
/// ([`TaskRecord::replay`]): a store keeps the record unchanged, and does not interpret it.
///
/// The ID of a task is a secret of its owner: a store must not show it. A task is gone when [`ttl_ms`](TaskRecord::ttl_ms) has
/// passed since its creation, by the store's own clock.
///
/// # Implementing a store
/// Implement the trait with plain `async fn`s, and test it with [the contract](crate::testing::task_store_contract).
///
/// ```
/// use std::sync::Arc;
/// use oxmcp::{tasks::MemoryTaskStore, testing};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> oxmcp::Result<()> {
/// testing::task_store_contract(|| async {
///     let store = Arc::new(MemoryTaskStore::new());
///     (Arc::clone(&store), store)
/// })
/// .await
/// # }
/// ```
pub trait TaskStore: Send + Sync + 'static {
    /// Stores a new task. Every handle finds it once this returns.
    ///
    /// # Errors
    /// If the task cannot be stored: the store is full, or the owner has too many tasks. The call is then answered with the error.
    ///
    /// # Cancel safety
    /// If the future is dropped before it completes, the task may or may not be stored.
    fn create(&self, task: TaskRecord) -> impl Future<Output = Result<()>> + Send;

    /// Loads the task with this ID. `None` if there is none, or it is gone.
    ///
    /// # Errors
    /// If the store cannot be reached.
    ///
    /// # Cancel safety
    /// Cancel safe: it changes nothing.
    fn load(&self, id: &str) -> impl Future<Output = Result<Option<StoredTask>>> + Send;

    /// Replaces a task if its revision is still `revision`. Returns whether the task was replaced; `false` also if it is gone.
    ///
    /// # Errors
    /// If the new task cannot be stored, as for [`create`](Self::create): the old one stays.
    ///
    /// # Cancel safety
    /// If the future is dropped before it completes, either the old or the new task is stored, but no mixture of both.
    fn replace(
        &self,
        id: &str,
        revision: u64,
        task: TaskRecord,
    ) -> impl Future<Output = Result<bool>> + Send;

    /// Leases a task to the caller for `lease`, by the store's own clock, unless another lease is valid. Returns the epoch of
    /// the lease, which is greater than that of every earlier lease. `None` if another lease is valid, or if the task is gone.
    ///
    /// The revision of the task changes, so that a change that was read under an earlier lease is refused. The process that runs
    /// the task compares [`StoredTask::epoch`] with its own epoch before each change.
    ///
    /// # Errors
    /// If the store cannot be reached.
    ///
    /// # Cancel safety
    /// If the future is dropped before it completes, the task may be leased without a holder until the lease expires.
    fn claim(&self, id: &str, lease: Duration) -> impl Future<Output = Result<Option<u64>>> + Send;

    /// Extends the lease of this epoch to `lease` from now on. Returns whether it is the task's newest lease and was still
    /// valid: an expired lease cannot be renewed. The revision does not change.
    ///
    /// A `lease` of zero ends the lease: when this returns, the task is an [orphan](Self::orphans), and any process can claim it.
    ///
    /// # Errors
    /// If the store cannot be reached.
    ///
    /// # Cancel safety
    /// If the future is dropped before it completes, the lease may or may not be renewed.
    fn renew(
        &self,
        id: &str,
        epoch: u64,
        lease: Duration,
    ) -> impl Future<Output = Result<bool>> + Send;

    /// Returns the IDs of tasks that have not ended and whose lease has expired, at most `limit` of them. Tasks that were never
    /// leased are not included: their work is done elsewhere.
    ///
    /// # Errors
    /// If the store cannot be reached.
    ///
    /// # Cancel safety
    /// Cancel safe: it changes nothing.
    fn orphans(&self, limit: usize) -> impl Future<Output = Result<Vec<String>>> + Send;

    /// Returns the IDs of an owner's tasks, in byte order: those after `after`, if given, and at most `limit` of them. The
    /// owner `None` stands for all callers without authentication.
    ///
    /// # Errors
    /// If the store cannot be reached.
    ///
    /// # Cancel safety
    /// Cancel safe: it changes nothing.
    fn list(
        &self,
        owner: Option<&str>,
        after: Option<&str>,
        limit: usize,
    ) -> impl Future<Output = Result<Vec<String>>> + Send;

    /// Waits until a task has another revision than `revision`, or is gone. It may return early.
    ///
    /// # Errors
    /// If the store cannot be reached.
    ///
    /// # Cancel safety
    /// Cancel safe: it changes nothing.
    fn changed(&self, id: &str, revision: u64) -> impl Future<Output = Result<()>> + Send;

    /// Returns whether other processes can continue the store's tasks when this process ends. If so, which is the default, a
    /// process that shuts down [hands its tasks over](super::TaskControl::hand_over).
    fn outlives_process(&self) -> bool {
        true
    }
}

impl<S: TaskStore> TaskStore for Arc<S> {
    async fn create(&self, task: TaskRecord) -> Result<()> {
        (**self).create(task).await
    }

    async fn load(&self, id: &str) -> Result<Option<StoredTask>> {
        (**self).load(id).await
    }

    async fn replace(&self, id: &str, revision: u64, task: TaskRecord) -> Result<bool> {
        (**self).replace(id, revision, task).await
    }

    async fn claim(&self, id: &str, lease: Duration) -> Result<Option<u64>> {
        (**self).claim(id, lease).await
    }

    async fn renew(&self, id: &str, epoch: u64, lease: Duration) -> Result<bool> {
        (**self).renew(id, epoch, lease).await
    }

    async fn orphans(&self, limit: usize) -> Result<Vec<String>> {
        (**self).orphans(limit).await
    }

    async fn list(
        &self,
        owner: Option<&str>,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<String>> {
        (**self).list(owner, after, limit).await
    }

    async fn changed(&self, id: &str, revision: u64) -> Result<()> {
        (**self).changed(id, revision).await
    }

    fn outlives_process(&self) -> bool {
        (**self).outlives_process()
    }
}

/// A task as loaded from a store.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct StoredTask {
    /// The task.
    pub task: TaskRecord,
    /// The revision of the stored task, which differs after each change.
    pub revision: u64,
    /// The epoch of the newest lease of the task, even if that lease has expired. 0 if the task was never leased.
    pub epoch: u64,
}

impl StoredTask {
    /// Creates a stored task from a record, its revision, and the epoch of its newest lease.
    #[must_use]
    pub fn new(task: TaskRecord, revision: u64, epoch: u64) -> Self {
        Self {
            task,
            revision,
            epoch,
        }
    }
}

/// The timeout of a store's calls.
const TIMEOUT: Duration = Duration::from_secs(30);

/// The object-safe form of [`TaskStore`]. All calls except [`changed`](Self::changed) have a timeout, because a store whose
/// database is gone often never answers.
pub(crate) trait AnyTaskStore: Send + Sync {
    fn create(&self, task: TaskRecord) -> BoxFuture<'_, Result<()>>;

    fn load<'a>(&'a self, id: &'a str) -> BoxFuture<'a, Result<Option<StoredTask>>>;

    fn replace<'a>(
        &'a self,
        id: &'a str,
        revision: u64,
        task: TaskRecord,
    ) -> BoxFuture<'a, Result<bool>>;

    fn claim<'a>(&'a self, id: &'a str, lease: Duration) -> BoxFuture<'a, Result<Option<u64>>>;

    fn renew<'a>(&'a self, id: &'a str, epoch: u64, lease: Duration)
    -> BoxFuture<'a, Result<bool>>;

    fn orphans(&self, limit: usize) -> BoxFuture<'_, Result<Vec<String>>>;

    fn list<'a>(
        &'a self,
        owner: Option<&'a str>,
        after: Option<&'a str>,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<String>>>;

    fn changed<'a>(&'a self, id: &'a str, revision: u64) -> BoxFuture<'a, Result<()>>;

    fn outlives_process(&self) -> bool;
}

impl<S: TaskStore> AnyTaskStore for S {
    fn create(&self, task: TaskRecord) -> BoxFuture<'_, Result<()>> {
        within_timeout(TaskStore::create(self, task))
    }

    fn load<'a>(&'a self, id: &'a str) -> BoxFuture<'a, Result<Option<StoredTask>>> {
        within_timeout(TaskStore::load(self, id))
    }

    fn replace<'a>(
        &'a self,
        id: &'a str,
        revision: u64,
        task: TaskRecord,
    ) -> BoxFuture<'a, Result<bool>> {
        within_timeout(TaskStore::replace(self, id, revision, task))
    }

    fn claim<'a>(&'a self, id: &'a str, lease: Duration) -> BoxFuture<'a, Result<Option<u64>>> {
        within_timeout(TaskStore::claim(self, id, lease))
    }

    fn renew<'a>(
        &'a self,
        id: &'a str,
        epoch: u64,
        lease: Duration,
    ) -> BoxFuture<'a, Result<bool>> {
        within_timeout(TaskStore::renew(self, id, epoch, lease))
    }

    fn orphans(&self, limit: usize) -> BoxFuture<'_, Result<Vec<String>>> {
        within_timeout(TaskStore::orphans(self, limit))
    }

    fn list<'a>(
        &'a self,
        owner: Option<&'a str>,
        after: Option<&'a str>,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<String>>> {
        within_timeout(TaskStore::list(self, owner, after, limit))
    }

    fn changed<'a>(&'a self, id: &'a str, revision: u64) -> BoxFuture<'a, Result<()>> {
        Box::pin(TaskStore::changed(self, id, revision))
    }

    fn outlives_process(&self) -> bool {
        TaskStore::outlives_process(self)
    }
}

fn within_timeout<'a, T>(
    answer: impl Future<Output = Result<T>> + Send + 'a,
) -> BoxFuture<'a, Result<T>> {
    Box::pin(async move {
        let answered = timeout(TIMEOUT, answer).await;
        answered.unwrap_or_else(|_| Err(Error::internal("the task store did not respond in time")))
    })
}
