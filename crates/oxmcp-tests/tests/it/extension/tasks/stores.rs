//! Stores of tasks, and their limits.

use std::sync::Arc;

use oxmcp::{
    protocol::TaskStatus,
    tasks::{MemoryTaskStore, StoredTask, TaskRecord, TaskStore},
    testing::task_store_contract,
};

use super::*;

async fn handles() -> (Arc<MemoryTaskStore>, Arc<MemoryTaskStore>) {
    let store = Arc::new(MemoryTaskStore::new());
    (Arc::clone(&store), store)
}

#[tokio::test(start_paused = true)]
async fn memory_store_satisfies_the_contract() {
    task_store_contract(handles).await.unwrap();
}

/// A store that breaks one rule.
struct Broken(Arc<MemoryTaskStore>, &'static str);

impl TaskStore for Broken {
    async fn create(&self, mut task: TaskRecord) -> oxmcp::Result<()> {
        match self.1 {
            "finds a created task" => task.owner = None,
            "an expired task" if task.ttl_ms == 200 => task.ttl_ms = 3_600_000,
            _ => {}
        }
        self.0.create(task).await
    }

    async fn load(&self, id: &str) -> oxmcp::Result<Option<StoredTask>> {
        let mut found = self.0.load(id).await?;
        if let Some(found) = &mut found {
            match self.1 {
                "claim did not change" => found.revision -= found.epoch,
                "follows epoch" => found.epoch = found.epoch.min(1),
                _ => {}
            }
        }
        Ok(found)
    }

    async fn replace(&self, id: &str, revision: u64, task: TaskRecord) -> oxmcp::Result<bool> {
        if self.1 == "revision" {
            let Some(now) = self.0.load(id).await? else {
                return Ok(false);
            };
            return self.0.replace(id, now.revision, task).await;
        }
        self.0.replace(id, revision, task).await
    }

    async fn claim(&self, id: &str, lease: Duration) -> oxmcp::Result<Option<u64>> {
        let claimed = self.0.claim(id, lease).await?;
        Ok(match self.1 {
            "one lease at a time" => claimed.or(Some(1)),
            "follows epoch" => claimed.map(|_| 1),
            _ => claimed,
        })
    }

    async fn renew(&self, id: &str, epoch: u64, lease: Duration) -> oxmcp::Result<bool> {
        let newest = self.0.load(id).await?.map_or(0, |it| it.epoch);
        match self.1 {
            "lost" | "follows epoch" => self.0.renew(id, newest, lease).await,
            "an expired lease" => Ok(self.0.renew(id, epoch, lease).await? || epoch == newest),
            "for zero time" if lease.is_zero() => Ok(epoch == newest),
            _ => self.0.renew(id, epoch, lease).await,
        }
    }

    async fn orphans(&self, limit: usize) -> oxmcp::Result<Vec<String>> {
        let limit = if self.1 == "did not expire" { 0 } else { limit };
        self.0.orphans(limit).await
    }

    async fn list(
        &self,
        owner: Option<&str>,
        after: Option<&str>,
        limit: usize,
    ) -> oxmcp::Result<Vec<String>> {
        match self.1 {
            "comes after the first" => self.0.list(owner, None, limit).await,
            "are listed" => {
                let mut all = self.0.list(owner, after, limit).await?;
                all.reverse();
                Ok(all)
            }
            "without an owner" => self.0.list(owner.or(Some("")), after, limit).await,
            "more than the limit" => {
                let list = self.0.list(owner, after, limit.max(1));
                list.await
            }
            _ => self.0.list(owner, after, limit).await,
        }
    }

    async fn changed(&self, id: &str, revision: u64) -> oxmcp::Result<()> {
        match self.1 {
            "ends" => std::future::pending().await,
            _ => self.0.changed(id, revision).await,
        }
    }
}

#[tokio::test(start_paused = true)]
async fn contract_detects_broken_stores() {
    for rule in [
        "finds a created task",
        "revision",
        "ends",
        "one lease at a time",
        "claim did not change",
        "follows epoch",
        "lost",
        "an expired lease",
        "for zero time",
        "did not expire",
        "are listed",
        "comes after the first",
        "without an owner",
        "more than the limit",
        "an expired task",
    ] {
        let broken = task_store_contract(async || {
            let store = Arc::new(MemoryTaskStore::new());
            (Broken(Arc::clone(&store), rule), Broken(store, rule))
        });
        let error = broken.await.unwrap_err();
        assert!(error.message().contains(rule), "{rule}: {error}");
    }
}

#[tokio::test(start_paused = true)]
async fn full_store_refuses_tasks_until_some_expire() {
    let store = MemoryTaskStore::new().max_tasks(3).max_per_owner(2);
    let task = |id: &str, owner: Option<&str>| {
        let mut task = TaskRecord::new(id, "tool");
        task.owner = owner.map(str::to_owned);
        task.ttl_ms = 1000;
        task
    };
    for (id, owner, is_taken) in [
        ("a", Some("ann"), true),
        ("b", Some("ann"), true),
        ("c", Some("ann"), false),
        ("d", None, true),
        ("e", Some("bob"), false),
    ] {
        assert_eq!(
            store.create(task(id, owner)).await.is_ok(),
            is_taken,
            "{id}"
        );
    }
    tokio::time::sleep(Duration::from_millis(1001)).await;
    store.create(task("e", Some("bob"))).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn default_store_is_limited_to_ten_thousand_tasks() {
    let store = MemoryTaskStore::new();
    let task = |number: usize| {
        let mut task = TaskRecord::new(number.to_string(), "tool");
        task.owner = Some((number % 10).to_string());
        task.ttl_ms = 1000;
        task
    };
    for round in 0..2 {
        for number in 0..10_000 {
            store.create(task(number)).await.unwrap();
        }
        assert!(store.create(task(10_000)).await.is_err(), "{round}");
        tokio::time::sleep(Duration::from_millis(1001)).await;
    }
    assert!(store.load("0").await.unwrap().is_none());
}

#[tokio::test(start_paused = true)]
async fn result_beyond_the_limit_fails_its_task() {
    let store = MemoryTaskStore::new().max_bytes(10_000);
    let tool = |name: &str, bytes: usize| {
        let text = "x".repeat(bytes);
        let tool = Tool::new(name, "Write", move || {
            let text = text.clone();
            async move {
                tokio::task::yield_now().await;
                text
            }
        });
        tool.task(TaskPolicy::Always)
    };
    let server = Server::new("s", "1")
        .extension(Tasks::new(store).extension())
        .tool(tool("short", 2000))
        .tool(tool("long", 20_000));
    let mut peer = Peer::of(&server).await;
    let id = peer.begin("long").await;
    let failed = peer.until(&id, "failed").await;
    let message = failed["error"]["message"].as_str().unwrap();
    assert!(message.contains("task store is full"), "{failed}");
    let id = peer.begin("short").await;
    peer.until(&id, "completed").await;
}

#[tokio::test(start_paused = true)]
async fn task_beyond_ten_thousand_running_is_refused() {
    let (tool, open) = gated(TaskPolicy::Required);
    let store = Arc::new(MemoryTaskStore::new().max_per_owner(10_000));
    let tasks = Tasks::new(Arc::clone(&store)).ttl(Duration::from_secs(60));
    let server = Server::new("s", "1")
        .extension(tasks.extension())
        .tool(tool);
    let mut peer = Peer::of(&server).await;
    let mut ids = Vec::new();
    for _ in 0..10_000 {
        ids.push(peer.begin("report").await);
    }
    let refused = peer.ask("tools/call", json!({"name": "report"})).await;
    let message = refused["error"]["message"].as_str().unwrap();
    assert!(message.contains("too many tasks"), "{refused}");
    // The tasks do not disturb each other: none is lost, and none expires while it works.
    tokio::time::sleep(Duration::from_secs(120)).await;
    open.send(true).unwrap();
    tokio::time::sleep(Duration::from_secs(1)).await;
    for id in &ids {
        let found = store.load(id).await.unwrap().unwrap();
        assert_eq!(found.task.status, TaskStatus::Completed);
    }
    // Once they have expired, there is room again.
    tokio::time::sleep(Duration::from_secs(240)).await;
    peer.begin("report").await;
    let kept = store.list(None, None, 10_000).await.unwrap();
    assert_eq!(kept.len(), 1);
}
