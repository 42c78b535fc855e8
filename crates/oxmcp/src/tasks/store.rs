//! Store of tasks: the trait, and its object-safe form.

use std::{future::Future, sync::Arc, time::Duration};

use futures_core::future::BoxFuture;
use tokio::time::timeout;

use super::record::TaskRecord;
use crate::error::{Error, Result};

/// Keeps tasks. Whatever changes one reads it, and writes it back if nobody else has meanwhile, so several handles to one store
/// may be at work at once. A call that runs as a task leases it and renews the lease; where a process has died, another that has
/// the store [finds](Self::orphans) its tasks and goes on with them, or ends them as failed. What that needs is in the record
/// ([`TaskRecord::replay`]): a store keeps the record as it is, and knows nothing of it.
///
/// A task is made and read by its id, which is a secret of its owner: a store must not show it. It is gone when
/// [`ttl_ms`](TaskRecord::ttl_ms) is over, by the store's own clock, counted from when it was made.
///
/// # Writing one
/// Implement it with plain `async fn`s, and hold it against [the contract](crate::testing::task_store_contract).
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
    /// Keeps a new task, which every handle finds once this returns.
    ///
    /// # Errors
    /// Where it cannot be kept: the store is full, or its owner has too many. The call is answered with the error then.
    ///
    /// # Cancel safety
    /// Dropped before it returns, the task may be there.
    fn create(&self, task: TaskRecord) -> impl Future<Output = Result<()>> + Send;

    /// The task of an id. `None` where there is none, or it is gone.
    ///
    /// # Errors
    /// Where the store cannot be asked.
    ///
    /// # Cancel safety
    /// Cancel safe: it changes nothing.
    fn load(&self, id: &str) -> impl Future<Output = Result<Option<StoredTask>>> + Send;

    /// Replaces a task if its revision is still this one. Returns whether it was; `false` also where it is gone.
    ///
    /// # Errors
    /// Where it cannot be kept, as for [`create`](Self::create): it is what it was.
    ///
    /// # Cancel safety
    /// Dropped before it returns, either may be there, but no mixture of both.
    fn replace(
        &self,
        id: &str,
        revision: u64,
        task: TaskRecord,
    ) -> impl Future<Output = Result<bool>> + Send;

    /// Leases a task to the caller, if no lease of it holds: for `lease`, by the store's own clock. Returns the epoch of the
    /// lease, which is greater than that of any before it; `None` where another lease holds, and where the task is gone.
    ///
    /// The revision of the task becomes another one, so that a change that was read under an earlier lease is refused. Whoever
    /// runs the task compares [`StoredTask::epoch`] with its own before each change.
    ///
    /// # Errors
    /// Where the store cannot be asked.
    ///
    /// # Cancel safety
    /// Dropped before it returns, the task may be leased to nobody until the lease has run out.
    fn claim(&self, id: &str, lease: Duration) -> impl Future<Output = Result<Option<u64>>> + Send;

    /// Makes the lease of this epoch last for `lease` from now on. Returns whether it still is the task's newest and held until
    /// now; a lease that has run out cannot be renewed. The revision stays.
    ///
    /// A `lease` of no time ends it: when this returns, the task is an [orphan](Self::orphans), and whoever claims it gets it.
    ///
    /// # Errors
    /// Where the store cannot be asked.
    ///
    /// # Cancel safety
    /// Dropped before it returns, the lease may be renewed or not.
    fn renew(
        &self,
        id: &str,
        epoch: u64,
        lease: Duration,
    ) -> impl Future<Output = Result<bool>> + Send;

    /// The ids of tasks that are not over and whose lease has run out, at most `limit` of them. A task that was never leased is
    /// not among them: others work on it.
    ///
    /// # Errors
    /// Where the store cannot be asked.
    ///
    /// # Cancel safety
    /// Cancel safe: it changes nothing.
    fn orphans(&self, limit: usize) -> impl Future<Output = Result<Vec<String>>> + Send;

    /// The ids of the tasks of an owner, in their order as bytes: those after `after`, where that is given, and at most `limit` of
    /// them. `None` is the owner of what belongs to nobody in particular.
    ///
    /// # Errors
    /// Where the store cannot be asked.
    ///
    /// # Cancel safety
    /// Cancel safe: it changes nothing.
    fn list(
        &self,
        owner: Option<&str>,
        after: Option<&str>,
        limit: usize,
    ) -> impl Future<Output = Result<Vec<String>>> + Send;

    /// Waits until a task has another revision than this one, or is gone. It may return early.
    ///
    /// # Errors
    /// Where the store cannot be asked.
    ///
    /// # Cancel safety
    /// Cancel safe: it changes nothing.
    fn changed(&self, id: &str, revision: u64) -> impl Future<Output = Result<()>> + Send;

    /// Whether others can go on with its tasks when this process ends. Where that is so, the default, a process that shuts down
    /// [hands them over](super::TaskControl::hand_over).
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

/// A task as a store has it.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct StoredTask {
    /// The task.
    pub task: TaskRecord,
    /// The revision, which is another one after each change.
    pub revision: u64,
    /// The epoch of its newest lease, whether that still holds or not. 0 where it was never leased.
    pub epoch: u64,
}

impl StoredTask {
    /// A task in a revision, with the epoch of its newest lease.
    #[must_use]
    pub fn new(task: TaskRecord, revision: u64, epoch: u64) -> Self {
        Self {
            task,
            revision,
            epoch,
        }
    }
}

/// How long a store may take to answer.
const TIMEOUT: Duration = Duration::from_secs(30);

/// The object-safe form of [`TaskStore`]. All but the wait have a time-out: a store whose database has gone away often never
/// answers.
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
        answered.unwrap_or_else(|_| Err(Error::internal("the store of tasks does not answer")))
    })
}
