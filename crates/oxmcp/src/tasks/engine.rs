//! [`Tasks`], the extension for servers: its settings, its store, and the creation, lookup and changes of tasks.

#[cfg(feature = "http-server")]
use std::sync::OnceLock;
use std::{
    sync::{Arc, atomic::AtomicBool},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use sha2::{Digest, Sha256};
use tokio::{sync::watch, time::timeout};
use tokio_util::sync::CancellationToken;

#[cfg(feature = "http-server")]
use super::wire::ID;
use super::{
    memory::MemoryTaskStore,
    record::{TaskOutcome, TaskRecord},
    scopes,
    store::{AnyTaskStore, StoredTask, TaskStore},
    takeover::{MAX_BYTES, TaskReplay},
    wire::{LISTEN_KEY, TaskChanged, TaskState},
};
use crate::{
    debug::opaque_debug,
    error::{Error, Result},
    logged::Logged,
    server::Server,
    session::connection::RequestContext,
    transport::principal::Principal,
};

/// The maximum number of attempts to change a task that other processes change at the same time.
const MAX_TRIES: usize = 100;
/// The duration of a task's lease. The process that runs the task renews it in time.
pub(crate) const LEASE: Duration = Duration::from_secs(15);
/// The shortest TTL that a client can request. While a task works, its record is rewritten whenever half of its TTL has passed.
const MIN_TTL: Duration = Duration::from_secs(10);
/// The longest time that a task is kept, even if it works for longer.
pub(crate) const MAX_TTL: Duration = Duration::from_secs(24 * 60 * 60);

/// The [tasks](super) extension of a server: pass [`extension`](Self::extension) to the server.
#[derive(Clone)]
pub struct Tasks {
    store: Arc<dyn AnyTaskStore>,
    /// Whether the store is the default one, in memory.
    is_in_memory: bool,
    ttl: Duration,
    poll_interval: Duration,
    pub(crate) local: Arc<Local>,
}

/// The properties of a call at the time it becomes a task.
#[derive(Default)]
pub(crate) struct NewTask {
    /// The TTL that the client requests.
    pub(crate) ttl_ms: Option<u64>,
    pub(crate) replay: Option<TaskReplay>,
    /// The status message of the handler's latest progress.
    pub(crate) message: Option<String>,
    /// The outcome of a call that has already ended.
    pub(crate) outcome: Option<TaskOutcome>,
}

/// The state of this process for the tasks of one server.
pub(crate) struct Local {
    /// Whether the search for orphans is running.
    pub(crate) is_sweeping: AtomicBool,
    /// `closing` is cancelled to hand all tasks over, `cut` to cut off the remaining ones.
    pub(crate) closing: CancellationToken,
    pub(crate) cut: CancellationToken,
    /// The number of tasks that run in this process.
    pub(crate) running: watch::Sender<usize>,
    /// The store that the nodes of the server share, if the author has chosen no other store.
    #[cfg(feature = "http-server")]
    shared: OnceLock<Arc<dyn AnyTaskStore>>,
}

impl Local {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            is_sweeping: AtomicBool::new(false),
            closing: CancellationToken::new(),
            cut: CancellationToken::new(),
            running: watch::Sender::new(0),
            #[cfg(feature = "http-server")]
            shared: OnceLock::new(),
        })
    }

    /// Counts one more running task, until the returned guard is dropped.
    pub(crate) fn count(self: &Arc<Self>) -> Counted {
        self.running.send_modify(|running| *running += 1);
        Counted(Arc::clone(self))
    }

    /// Waits until no task runs in this process.
    pub(crate) async fn ended(&self) {
        let mut running = self.running.subscribe();
        // This cannot fail, because `self` holds the sender.
        let _ = running.wait_for(|running| *running == 0).await;
    }
}

/// A guard that counts one task as running.
pub(crate) struct Counted(Arc<Local>);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.running.send_modify(|running| *running -= 1);
    }
}

impl Tasks {
    /// Creates the extension with a store. A server with it checks the store every five seconds, from the time it begins to
    /// serve, for tasks whose process has ended.
    #[must_use]
    pub fn new(store: impl TaskStore) -> Self {
        Self {
            store: Arc::new(store),
            is_in_memory: false,
            ttl: Duration::from_secs(60 * 60),
            poll_interval: Duration::from_secs(1),
            local: Local::new(),
        }
    }

    /// The same settings and store, for another server.
    pub(crate) fn for_server(&self) -> Self {
        Self {
            local: Local::new(),
            ..self.clone()
        }
    }

    /// Creates the extension with tasks in the memory of this process, which end with it. If the server is served over HTTP
    /// with a [`Cluster`](crate::http::Cluster), the tasks are stored there instead.
    #[must_use]
    pub fn in_memory() -> Self {
        Self {
            is_in_memory: true,
            ..Self::new(MemoryTaskStore::new())
        }
    }

    /// Stores the tasks in this store from now on, if they would otherwise be in memory. Returns whether that was so.
    #[cfg(feature = "http-server")]
    pub(crate) fn share_store(&self, store: &Arc<dyn AnyTaskStore>) -> bool {
        if self.is_in_memory {
            self.local.shared.get_or_init(|| Arc::clone(store));
        }
        self.is_in_memory
    }

    /// The store of a server's tasks, if the server has the extension. `shared`, the store of the cluster, replaces the default
    /// store in memory. Without `shared`, `None` stands for the default store.
    #[cfg(feature = "http-server")]
    pub(crate) fn store_of(
        server: &Server,
        shared: Option<&Arc<dyn AnyTaskStore>>,
    ) -> Option<Arc<dyn AnyTaskStore>> {
        let tasks: Arc<Self> = server.extension_state(ID)?;
        match tasks.is_in_memory {
            true => shared.map(Arc::clone),
            false => Some(Arc::clone(&tasks.store)),
        }
    }

    /// Whether the store may contain tasks that other processes have begun.
    pub(crate) fn may_have_orphans(&self) -> bool {
        #[cfg(feature = "http-server")]
        if self.local.shared.get().is_some() {
            return true;
        }
        !self.is_in_memory
    }

    fn store(&self) -> &dyn AnyTaskStore {
        #[cfg(feature = "http-server")]
        if let Some(shared) = self.local.shared.get() {
            return &**shared;
        }
        &*self.store
    }

    /// Sets how long a task is kept after its creation. Default: an hour. This is extended while the task works, up to 24
    /// hours, but not while it waits for its client. When the time is over, the task is gone and its handler is cancelled.
    #[must_use]
    pub fn ttl(mut self, ttl: Duration) -> Self {
        self.ttl = ttl.clamp(Duration::from_millis(1), MAX_TTL);
        self
    }

    /// Sets how often clients should poll a task. Default: a second.
    #[must_use]
    pub fn poll_interval(mut self, interval: Duration) -> Self {
        self.poll_interval = interval.max(Duration::from_millis(1));
        self
    }

    /// Creates a task. All processes that share the store can find it when this returns.
    pub(crate) async fn create(
        &self,
        cx: &RequestContext,
        tool: &str,
        begun: NewTask,
    ) -> Result<TaskRecord> {
        let owner = owner(cx);
        let scopes = scopes::of_tool(cx, tool);
        let mut task = TaskRecord::new(new_id(owner, &scopes)?, tool);
        task.owner = owner.map(str::to_owned);
        task.revision = cx.revision();
        task.scopes = scopes;
        task.status_message = begun.message;
        task.created_ms = now_ms();
        task.updated_ms = task.created_ms;
        task.ttl_ms = self.ttl_ms(begun.ttl_ms);
        task.poll_interval_ms = in_ms(self.poll_interval);
        let replay = begun.replay.filter(|it| it.bytes() <= MAX_BYTES);
        task.replay = replay.map(Box::new);
        if let Some(outcome) = begun.outcome {
            task.finish(outcome);
        }
        self.store().create(task.clone()).await?;
        Ok(task)
    }

    /// The TTL of a task, in milliseconds: as its client requests, within the limit of the server.
    fn ttl_ms(&self, asked: Option<u64>) -> u64 {
        let longest = in_ms(self.ttl);
        let shortest = in_ms(MIN_TTL).min(longest);
        asked.map_or(longest, |asked| asked.clamp(shortest, longest))
    }

    /// The task with this ID, if it belongs to the caller and was created in a revision of the same era.
    ///
    /// # Errors
    /// The same error for an unknown ID, an expired task, and a task of another owner. A different error if the caller's token
    /// lacks the scopes that the task's tool needs.
    pub(crate) async fn find(&self, cx: &RequestContext, id: &str) -> Result<StoredTask> {
        let found = self.own(cx, id).await?.ok_or_else(unknown)?;
        scopes::check(cx, &found.task)?;
        Ok(found)
    }

    /// Finds a task for a list. `None` for a task that the caller may not see.
    pub(crate) async fn visible(
        &self,
        cx: &RequestContext,
        id: &str,
    ) -> Result<Option<StoredTask>> {
        let own = self.own(cx, id).await?;
        Ok(own.filter(|it| scopes::check(cx, &it.task).is_ok()))
    }

    async fn own(&self, cx: &RequestContext, id: &str) -> Result<Option<StoredTask>> {
        let is_modern = cx.revision().is_modern();
        let found = self.load(id).await?;
        Ok(found.filter(|StoredTask { task, .. }| {
            task.owner.as_deref() == owner(cx) && task.revision.is_modern() == is_modern
        }))
    }

    /// The IDs of an owner's tasks after the ID `after`, at most `limit` of them.
    pub(crate) async fn list(
        &self,
        owner: &str,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<String>> {
        if after.is_some_and(|after| !is_id(after)) {
            return Err(Error::invalid_params(
                "invalid cursor; list again from the start, without a cursor",
            ));
        }
        self.store().list(Some(owner), after, limit).await
    }

    pub(crate) async fn load(&self, id: &str) -> Result<Option<StoredTask>> {
        if !is_id(id) {
            return Ok(None);
        }
        self.store().load(id).await
    }

    /// Leases a task, unless another lease of it is valid. Returns the epoch of the lease.
    pub(crate) async fn claim(&self, id: &str) -> Result<Option<u64>> {
        self.store().claim(id, LEASE).await
    }

    /// Renews a lease. Returns whether the lease was still valid.
    pub(crate) async fn renew(&self, id: &str, epoch: u64, lease: Duration) -> Result<bool> {
        self.store().renew(id, epoch, lease).await
    }

    /// The IDs of at most `limit` tasks whose lease has expired.
    pub(crate) async fn orphans(&self, limit: usize) -> Result<Vec<String>> {
        self.store().orphans(limit).await
    }

    /// Whether other processes can continue the tasks when this process ends.
    pub(crate) fn outlive_process(&self) -> bool {
        self.store().outlives_process()
    }

    /// Hands the tasks that run in this process over to other processes. Tasks that cannot be handed over may finish within
    /// `drain`.
    pub(crate) async fn hand_over(&self, drain: Duration) {
        let local = &self.local;
        local.closing.cancel();
        if timeout(drain, local.ended()).await.is_err() {
            local.cut.cancel();
            // The wait is bounded, because the store may not answer and a handler may block its thread.
            let _ = timeout(LEASE, local.ended()).await;
        }
    }

    /// Waits until a task has another revision or is gone.
    pub(crate) async fn changed(&self, id: &str, revision: u64) -> Result<()> {
        self.store().changed(id, revision).await
    }

    /// Changes a task, and notifies its subscribers. `change` may be called several times, and returns whether it changed
    /// anything. Returns `None` if it did not, or if the task is gone.
    pub(crate) async fn change(
        &self,
        server: &Server,
        id: &str,
        change: impl FnMut(&mut TaskRecord) -> bool + Send,
    ) -> Result<Option<TaskRecord>> {
        self.change_if(Some(server), id, |_| true, change).await
    }

    /// Like [`change`](Self::change), for the holder of the lease. Also returns `None` if the lease was lost.
    pub(crate) async fn change_leased(
        &self,
        server: &Server,
        id: &str,
        epoch: u64,
        change: impl FnMut(&mut TaskRecord) -> bool + Send,
    ) -> Result<Option<TaskRecord>> {
        self.change_if(Some(server), id, |newest| newest == epoch, change)
            .await
    }

    /// Changes a leased task without notifying its subscribers, for data that no client sees.
    pub(crate) async fn change_quietly(
        &self,
        id: &str,
        epoch: u64,
        change: impl FnMut(&mut TaskRecord) -> bool + Send,
    ) -> Result<Option<TaskRecord>> {
        self.change_if(None, id, |newest| newest == epoch, change)
            .await
    }

    async fn change_if(
        &self,
        told: Option<&Server>,
        id: &str,
        may_change: impl Fn(u64) -> bool + Send,
        mut change: impl FnMut(&mut TaskRecord) -> bool + Send,
    ) -> Result<Option<TaskRecord>> {
        for _ in 0..MAX_TRIES {
            let Some(found) = self.load(id).await? else {
                return Ok(None);
            };
            let StoredTask {
                mut task,
                revision,
                epoch,
            } = found;
            if !may_change(epoch) || !change(&mut task) {
                return Ok(None);
            }
            if told.is_some() {
                task.updated_ms = now_ms().max(task.updated_ms);
            }
            if self.store().replace(id, revision, task.clone()).await? {
                if let Some(server) = told {
                    publish(server, &task);
                }
                return Ok(Some(task));
            }
        }
        Err(Error::internal(
            "could not update the task: too many concurrent updates",
        ))
    }
}

/// The interval and the amount of the extensions of a new task's TTL while it works: at least half of its TTL always remains.
pub(crate) fn extension_step(task: &TaskRecord) -> Duration {
    Duration::from_millis((task.ttl_ms / 2).max(1))
}

/// Extends the TTL of a task that works.
pub(crate) fn extend(task: &mut TaskRecord, step: Duration) -> bool {
    task.extend(in_ms(step), in_ms(MAX_TTL))
}

opaque_debug!(Tasks, |it| { ttl: it.ttl, poll_interval: it.poll_interval });

/// The single error for a task that is unknown, has expired, or belongs to another owner.
pub(crate) fn unknown() -> Error {
    Error::invalid_params("task not found: it may have expired")
}

fn owner(cx: &RequestContext) -> Option<&str> {
    cx.principal().map(Principal::as_str)
}

fn publish(server: &Server, task: &TaskRecord) {
    let told = server.publish::<TaskChanged>(LISTEN_KEY, task.id.as_str(), TaskState::of(task));
    if let Err(error) = told {
        tracing::debug!(error = %Logged(&error), "could not notify subscribers of a task");
    }
}

fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, in_ms)
}

fn in_ms(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// The number of random bytes of an ID, and of the bytes of the tag that follows them.
const RANDOM: usize = 16;
const TAG: usize = 8;

/// An unguessable ID. Its tag allows checking the owner and the scopes without the store, because a subscription must be
/// granted at once.
fn new_id(owner: Option<&str>, scopes: &str) -> Result<String> {
    let mut random = [0; RANDOM];
    getrandom::fill(&mut random).map_err(|error| {
        Error::internal(format!(
            "could not get random bytes from the operating system: {error}"
        ))
    })?;
    let id = [random.as_slice(), &tag(&random, owner, scopes)].concat();
    Ok(BASE64_URL_SAFE_NO_PAD.encode(id))
}

/// Whether a text has the form of a task ID.
fn is_id(id: &str) -> bool {
    decode(id).is_some()
}

fn decode(id: &str) -> Option<Vec<u8>> {
    let bytes = BASE64_URL_SAFE_NO_PAD.decode(id).ok()?;
    (bytes.len() == RANDOM + TAG).then_some(bytes)
}

/// Filters the IDs that belong to the caller and to tools that its token permits, whether or not the tasks exist.
pub(crate) fn own_ids<'a>(
    cx: &RequestContext,
    ids: impl Iterator<Item = &'a str>,
) -> impl Iterator<Item = &'a str> {
    let mut scopes = scopes::permitted(cx);
    scopes.push(String::new());
    ids.filter(move |id| {
        let Some(bytes) = decode(id) else {
            return false;
        };
        let (random, tagged) = bytes.split_at(RANDOM);
        let mut scopes = scopes.iter();
        scopes.any(|scopes| tagged == tag(random, owner(cx), scopes))
    })
}

fn tag(random: &[u8], owner: Option<&str>, scopes: &str) -> [u8; TAG] {
    let mut hash = Sha256::new();
    hash.update(random);
    // The length comes first, so scopes and owner cannot be confused.
    hash.update(scopes.len().to_be_bytes());
    hash.update(scopes);
    // No owner differs from an owner with an empty name.
    hash.update([u8::from(owner.is_some())]);
    hash.update(owner.unwrap_or_default());
    let mut tag = [0; TAG];
    for (to, from) in tag.iter_mut().zip(hash.finalize()) {
        *to = from;
    }
    tag
}
