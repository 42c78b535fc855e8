//! Tasks in Redis: a hash for each task, and sorted sets of all tasks, of each owner's tasks, and of the leases. Scripts make all
//! changes, so that each change is atomic and uses the clock of Redis.

use std::{pin::pin, time::Duration};

use oxmcp::{
    Error, Result,
    tasks::{StoredTask, TaskRecord, TaskStore},
};
use tokio::time::timeout;

use crate::{
    changes::RECHECK,
    scripts::{FOREVER_MS, millis, script},
    store::Redis,
};

script!(CREATE, "tasks/create.lua");
script!(REPLACE, "tasks/replace.lua");
script!(CLAIM, "tasks/claim.lua");
script!(RENEW, "tasks/renew.lua");
script!(ORPHANS, "tasks/orphans.lua");
script!(LIST, "tasks/list.lua");

/// The kinds of values. A value of one kind cannot be opened as one of another.
const RECORD: &str = "task";
const ID: &str = "id of a task";

/// The most expired leases that are examined at once.
const MOST_ORPHANS: usize = 1000;

impl Redis {
    fn task_record(&self, key: &str, task: &TaskRecord) -> Result<Vec<u8>> {
        let json = serde_json::to_vec(task)
            .map_err(|error| Error::internal("could not serialize a task").with_source(error))?;
        self.values.encode(RECORD, key, &json)
    }

    fn task_id(&self, owner: &str, kept: &[u8]) -> Result<String> {
        let id = self.values.decode(ID, owner, kept)?;
        String::from_utf8(id).map_err(|_| Error::internal("could not read a task ID: damaged text"))
    }
}

impl TaskStore for Redis {
    async fn create(&self, task: TaskRecord) -> Result<()> {
        let key = self.names.task(&task.id);
        let owner = self.names.owner(task.owner.as_deref());
        let record = self.task_record(&key, &task)?;
        let id = self.values.encode(ID, &owner, task.id.as_bytes())?;
        let mut script = CREATE.keys(&[&key, &owner, &self.names.tasks()]);
        script.arg(record).arg(id).arg(u8::from(task.is_over()));
        script.arg(task.ttl_ms.min(FOREVER_MS));
        script.arg(self.max_tasks).arg(self.max_tasks_each);
        match self.connection.invoke::<String>(&script).await?.as_str() {
            "created" => Ok(()),
            "full" => Err(Error::limit("too many tasks; wait until some expire")),
            _ => Err(Error::internal("task ID is already in use")),
        }
    }

    async fn load(&self, id: &str) -> Result<Option<StoredTask>> {
        let key = self.names.task(id);
        let mut command = redis::cmd("HMGET");
        command.arg(&key).arg(&["record", "revision", "epoch"]);
        let found: (Option<Vec<u8>>, Option<u64>, Option<u64>) =
            self.connection.run(&command).await?;
        let (Some(record), Some(revision), Some(epoch)) = found else {
            return Ok(None);
        };
        let json = self.values.decode(RECORD, &key, &record)?;
        let task = serde_json::from_slice(&json).map_err(|error| {
            Error::internal("could not read a task: a newer release may have written it")
                .with_source(error)
        })?;
        Ok(Some(StoredTask::new(task, revision, epoch)))
    }

    async fn replace(&self, id: &str, revision: u64, task: TaskRecord) -> Result<bool> {
        let key = self.names.task(id);
        let record = self.task_record(&key, &task)?;
        let mut script = REPLACE.keys(&[&key, &self.names.tasks(), &self.names.leases()]);
        script
            .arg(revision)
            .arg(record)
            .arg(u8::from(task.is_over()));
        script
            .arg(task.ttl_ms.min(FOREVER_MS))
            .arg(self.names.changes());
        self.connection.invoke(&script).await
    }

    async fn claim(&self, id: &str, lease: Duration) -> Result<Option<u64>> {
        let mut script = CLAIM.keys(&[&self.names.task(id), &self.names.leases()]);
        script.arg(millis(lease)).arg(self.names.changes());
        self.connection.invoke(&script).await
    }

    async fn renew(&self, id: &str, epoch: u64, lease: Duration) -> Result<bool> {
        let mut script = RENEW.keys(&[&self.names.task(id), &self.names.leases()]);
        script.arg(epoch).arg(millis(lease));
        self.connection.invoke(&script).await
    }

    async fn orphans(&self, limit: usize) -> Result<Vec<String>> {
        let mut script = ORPHANS.keys(&[&self.names.leases()]);
        script.arg(limit.min(MOST_ORPHANS)).arg(MOST_ORPHANS);
        let found: Vec<Vec<u8>> = self.connection.invoke(&script).await?;
        let (pairs, _) = found.as_chunks::<2>();
        let ids = pairs
            .iter()
            .map(|[id, owner]| self.task_id(&String::from_utf8_lossy(owner), id));
        ids.collect()
    }

    async fn list(
        &self,
        owner: Option<&str>,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<String>> {
        let owner = self.names.owner(owner);
        let script = LIST.keys(&[&owner]);
        let found: Vec<Vec<u8>> = self.connection.invoke(&script).await?;
        let ids = found.iter().map(|id| self.task_id(&owner, id));
        let mut ids = ids.collect::<Result<Vec<_>>>()?;
        // Sealed IDs have no order, so all IDs of an owner are read, at most `max_tasks_each`.
        ids.retain(|id| after.is_none_or(|after| id.as_str() > after));
        ids.sort_unstable();
        ids.truncate(limit);
        Ok(ids)
    }

    async fn changed(&self, id: &str, revision: u64) -> Result<()> {
        let key = self.names.task(id);
        let mut command = redis::cmd("HGET");
        command.arg(&key).arg("revision");
        let waiter = self.changes.to(&key);
        loop {
            // Enabled before the query, so that a change in between is not missed.
            let mut change = pin!(waiter.changed());
            change.as_mut().enable();
            if self.connection.run::<Option<u64>>(&command).await? != Some(revision) {
                return Ok(());
            }
            // In either case the query is repeated.
            let _ = timeout(RECHECK, change).await;
        }
    }
}
