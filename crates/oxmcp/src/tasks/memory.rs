//! A bounded store of tasks in memory.

use std::{
    collections::{BTreeSet, HashMap},
    fmt,
    ops::Bound,
    time::Duration,
};

use tokio::{
    sync::watch,
    time::{Instant, timeout_at},
};

use super::{
    record::TaskRecord,
    store::{StoredTask, TaskStore},
};
use crate::{
    error::{Error, Result},
    session::task::after,
    sync::Mutex,
};

/// A task store in the memory of this process, for a single process and for tests. Its tasks end with the process.
///
/// The store limits the number of tasks, in total and per owner, and their total size in bytes. If it is full, calls that need
/// a task are refused. If a result does not fit, the task fails.
pub struct MemoryTaskStore {
    tasks: Mutex<Table>,
    max_tasks: usize,
    max_per_owner: usize,
    max_bytes: usize,
}

#[derive(Default)]
struct Table {
    entries: HashMap<String, Entry>,
    /// The IDs of each owner's tasks.
    owners: HashMap<Option<String>, BTreeSet<String>>,
    bytes: usize,
}

struct Entry {
    task: TaskRecord,
    created: Instant,
    /// The revision of the record, which [`TaskStore::changed`] observes.
    revision: watch::Sender<u64>,
    /// The epoch of the newest lease, and when that lease expires.
    epoch: u64,
    leased_until: Option<Instant>,
}

impl Entry {
    fn expires(&self) -> Instant {
        after(self.created, Duration::from_millis(self.task.ttl_ms))
    }

    fn is_leased(&self) -> bool {
        self.leased_until.is_some_and(|end| Instant::now() < end)
    }

    fn is_orphan(&self, now: Instant) -> bool {
        self.leased_until.is_some_and(|end| now >= end) && !self.task.is_over()
    }
}

impl Default for MemoryTaskStore {
    fn default() -> Self {
        Self::new()
    }
}

impl MemoryTaskStore {
    /// Creates an empty store, for at most 10 000 tasks, 1 000 tasks of one owner, and 64 MiB in total.
    #[must_use]
    pub fn new() -> Self {
        Self {
            tasks: Mutex::default(),
            max_tasks: 10_000,
            max_per_owner: 1_000,
            max_bytes: 64 << 20,
        }
    }

    /// Sets the maximum number of tasks.
    #[must_use]
    pub fn max_tasks(mut self, tasks: usize) -> Self {
        self.max_tasks = tasks;
        self
    }

    /// Sets the maximum number of tasks of one owner. Callers without authentication are one owner.
    #[must_use]
    pub fn max_per_owner(mut self, tasks: usize) -> Self {
        self.max_per_owner = tasks;
        self
    }

    /// Sets the maximum size of all tasks including their outcomes, in bytes.
    #[must_use]
    pub fn max_bytes(mut self, bytes: usize) -> Self {
        self.max_bytes = bytes;
        self
    }

    fn check_bytes(&self, bytes: usize) -> Result<()> {
        if bytes <= self.max_bytes {
            return Ok(());
        }
        Err(Error::limit("task store is full; try again later"))
    }
}

impl Table {
    fn add(&mut self, entry: Entry) {
        self.bytes += entry.task.bytes();
        let own = self.owners.entry(entry.task.owner.clone()).or_default();
        own.insert(entry.task.id.clone());
        self.entries.insert(entry.task.id.clone(), entry);
    }

    fn remove(&mut self, id: &str) {
        let Some(Entry { task, .. }) = self.entries.remove(id) else {
            return;
        };
        self.bytes -= task.bytes();
        if let Some(own) = self.owners.get_mut(&task.owner) {
            own.remove(id);
            if own.is_empty() {
                self.owners.remove(&task.owner);
            }
        }
    }

    fn remove_expired(&mut self) {
        let now = Instant::now();
        let all = self.entries.iter();
        let expired = all.filter(|(_, entry)| now >= entry.expires());
        let expired: Vec<_> = expired.map(|(id, _)| id.clone()).collect();
        for id in expired {
            self.remove(&id);
        }
    }

    /// The entry with an ID, if it has not expired.
    fn find(&mut self, id: &str) -> Option<&mut Entry> {
        let entry = self.entries.get(id)?;
        if Instant::now() >= entry.expires() {
            self.remove(id);
        }
        self.entries.get_mut(id)
    }
}

impl TaskStore for MemoryTaskStore {
    async fn create(&self, task: TaskRecord) -> Result<()> {
        let mut table = self.tasks.lock();
        let has_room = |table: &Table| {
            let of_owner = table.owners.get(&task.owner).map_or(0, BTreeSet::len);
            table.entries.len() < self.max_tasks && of_owner < self.max_per_owner
        };
        // This checks all tasks, so it is done only if the store is full.
        if !has_room(&table) || table.bytes + task.bytes() > self.max_bytes {
            table.remove_expired();
        }
        if !has_room(&table) {
            return Err(Error::limit("too many tasks; wait until some expire"));
        }
        self.check_bytes(table.bytes + task.bytes())?;
        if table.entries.contains_key(&task.id) {
            return Err(Error::internal("task ID is already in use"));
        }
        table.add(Entry {
            created: Instant::now(),
            revision: watch::Sender::new(1),
            epoch: 0,
            leased_until: None,
            task,
        });
        Ok(())
    }

    async fn load(&self, id: &str) -> Result<Option<StoredTask>> {
        let mut table = self.tasks.lock();
        let entry = table.find(id);
        Ok(entry.map(|it| StoredTask::new(it.task.clone(), *it.revision.borrow(), it.epoch)))
    }

    async fn replace(&self, id: &str, revision: u64, task: TaskRecord) -> Result<bool> {
        let mut table = self.tasks.lock();
        let all = table.bytes;
        let Some(entry) = table.find(id) else {
            return Ok(false);
        };
        if *entry.revision.borrow() != revision {
            return Ok(false);
        }
        let (before, bytes) = (entry.task.bytes(), task.bytes());
        if bytes > before {
            self.check_bytes(all - before + bytes)?;
        }
        entry.task = task;
        entry.revision.send_modify(|revision| *revision += 1);
        table.bytes = table.bytes - before + bytes;
        Ok(true)
    }

    async fn claim(&self, id: &str, lease: Duration) -> Result<Option<u64>> {
        let mut table = self.tasks.lock();
        let free = table.find(id).filter(|entry| !entry.is_leased());
        Ok(free.map(|entry| {
            entry.epoch += 1;
            entry.leased_until = Some(after(Instant::now(), lease));
            entry.revision.send_modify(|revision| *revision += 1);
            entry.epoch
        }))
    }

    async fn renew(&self, id: &str, epoch: u64, lease: Duration) -> Result<bool> {
        let mut table = self.tasks.lock();
        let entry = table.find(id);
        let own = entry.filter(|entry| entry.epoch == epoch && entry.is_leased());
        let renewed = own.map(|entry| entry.leased_until = Some(after(Instant::now(), lease)));
        Ok(renewed.is_some())
    }

    async fn orphans(&self, limit: usize) -> Result<Vec<String>> {
        let mut table = self.tasks.lock();
        table.remove_expired();
        let now = Instant::now();
        let all = table.entries.iter();
        let orphans = all.filter(|(_, entry)| entry.is_orphan(now));
        Ok(orphans.map(|(id, _)| id.clone()).take(limit).collect())
    }

    async fn list(
        &self,
        owner: Option<&str>,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<String>> {
        let mut table = self.tasks.lock();
        table.remove_expired();
        let own = table.owners.get(&owner.map(str::to_owned));
        let ids = own.into_iter().flat_map(|ids| {
            let after = after.map_or(Bound::Unbounded, Bound::Excluded);
            ids.range::<str, _>((after, Bound::Unbounded))
        });
        Ok(ids.take(limit).cloned().collect())
    }

    async fn changed(&self, id: &str, revision: u64) -> Result<()> {
        loop {
            let found = {
                let mut table = self.tasks.lock();
                table
                    .find(id)
                    .map(|it| (it.revision.subscribe(), it.expires()))
            };
            let Some((mut now, expires)) = found else {
                return Ok(());
            };
            // Removing an entry drops its sender, which also ends the wait.
            if timeout_at(expires, now.wait_for(|now| *now != revision))
                .await
                .is_ok()
            {
                return Ok(());
            }
        }
    }

    fn outlives_process(&self) -> bool {
        false
    }
}

impl fmt::Debug for MemoryTaskStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let table = self.tasks.lock();
        f.debug_struct("MemoryTaskStore")
            .field("tasks", &table.entries.len())
            .field("bytes", &table.bytes)
            .finish_non_exhaustive()
    }
}
