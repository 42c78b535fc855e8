//! Orphans: the beginning of the search, the number of takeovers at a time, and orphans that cannot be taken over.

use std::sync::Arc;

use oxmcp::{
    http::{LegacySse, StreamableHttp},
    protocol::TaskStatus,
    tasks::{MemoryTaskStore, StoredTask, TaskRecord, TaskStore},
};
use tokio::time::sleep;

use super::{leases::node, takeover::process, *};

/// A way in which a process begins to serve. The returned value is kept while the process serves.
type Serve = fn(Server) -> futures_util::future::BoxFuture<'static, Box<dyn std::any::Any>>;

#[test]
fn orphan_search_starts_when_a_process_serves() {
    let connected: Serve = |server| Box::pin(async move { Box::new(script(&server).await) as _ });
    let mounted: Serve = |server| Box::pin(async { Box::new(StreamableHttp::from(server)) as _ });
    let served: Serve = |server| {
        Box::pin(async {
            let endpoint = StreamableHttp::from(server);
            Box::new(endpoint.serve("127.0.0.1:0").await.unwrap()) as _
        })
    };
    let old: Serve = |server| Box::pin(async { Box::new(LegacySse::from(server)) as _ });
    for serve in [connected, mounted, served, old] {
        let store = Arc::new(MemoryTaskStore::new());
        let id = process(async {
            let (tool, _open) = gated(TaskPolicy::Required);
            let server = node(Arc::clone(&store), tool);
            Peer::of(&server).await.begin("report").await
        });
        process(async {
            let (tool, open) = gated(TaskPolicy::Required);
            open.send(true).unwrap();
            let _serving = serve(node(Arc::clone(&store), tool)).await;
            // No client makes a request.
            sleep(Duration::from_secs(31)).await;
        });
        let kept = process(store.load(&id)).unwrap().unwrap();
        assert_eq!(kept.task.status, TaskStatus::Completed);
    }
}

#[tokio::test]
async fn memory_store_has_no_orphan_search() {
    let running = || {
        tokio::runtime::Handle::current()
            .metrics()
            .num_alive_tasks()
    };
    let serves = |tasks: Tasks| {
        let server = Server::new("office", "1.0.0").extension(tasks.extension());
        StreamableHttp::from(server)
    };
    let before = running();
    let _memory = serves(Tasks::in_memory());
    assert_eq!(running(), before);
    let shared = Arc::new(MemoryTaskStore::new());
    let _shared = serves(Tasks::new(shared));
    assert_eq!(running(), before + 1);
}

/// Starts tasks in a process that then ends. Returns their ids.
fn orphans<const N: usize>(store: &Arc<MemoryTaskStore>) -> [String; N] {
    process(async {
        let (tool, _open) = gated(TaskPolicy::Required);
        let mut peer = Peer::of(&node(Arc::clone(store), tool)).await;
        let mut ids = [(); N].map(|()| String::new());
        for id in &mut ids {
            *id = peer.begin("report").await;
        }
        ids
    })
}

/// The number of these tasks that are completed when another process has served for this time.
fn done_after(store: impl TaskStore + Clone, ids: &[String], time: Duration) -> usize {
    process(async {
        let (tool, open) = gated(TaskPolicy::Required);
        open.send(true).unwrap();
        let kept = store.clone();
        let _peer = Peer::of(&node(store, tool)).await;
        sleep(time).await;
        let mut done = 0;
        for id in ids {
            let kept = kept.load(id).await.unwrap().unwrap();
            done += usize::from(kept.task.status == TaskStatus::Completed);
        }
        done
    })
}

#[test]
fn many_orphans_are_taken_over_without_long_pauses() {
    let store = Arc::new(MemoryTaskStore::new());
    let ids = orphans::<250>(&store);
    // After a lease and a pause there are three rounds, one second apart.
    let done = done_after(Arc::clone(&store), &ids, Duration::from_secs(23));
    assert_eq!(done, 250);
}

/// A handle to a store. The function decides by operation and id whether leasing or replacing a task fails.
#[derive(Clone)]
pub(super) struct Failing<F>(pub(super) Arc<MemoryTaskStore>, pub(super) F);

impl<F: Fn(&str, &str) -> bool> Failing<F> {
    fn check(&self, operation: &str, id: &str) -> oxmcp::Result<()> {
        if (self.1)(operation, id) {
            return Err(oxmcp::Error::internal("the store fails"));
        }
        Ok(())
    }
}

impl<F: Fn(&str, &str) -> bool + Send + Sync + 'static> TaskStore for Failing<F> {
    async fn create(&self, task: TaskRecord) -> oxmcp::Result<()> {
        self.0.create(task).await
    }

    async fn load(&self, id: &str) -> oxmcp::Result<Option<StoredTask>> {
        self.0.load(id).await
    }

    async fn replace(&self, id: &str, revision: u64, task: TaskRecord) -> oxmcp::Result<bool> {
        self.check("replace", id)?;
        self.0.replace(id, revision, task).await
    }

    async fn claim(&self, id: &str, lease: Duration) -> oxmcp::Result<Option<u64>> {
        self.check("claim", id)?;
        self.0.claim(id, lease).await
    }

    async fn renew(&self, id: &str, epoch: u64, lease: Duration) -> oxmcp::Result<bool> {
        self.0.renew(id, epoch, lease).await
    }

    async fn orphans(&self, limit: usize) -> oxmcp::Result<Vec<String>> {
        self.0.orphans(limit).await
    }

    async fn list(
        &self,
        owner: Option<&str>,
        after: Option<&str>,
        limit: usize,
    ) -> oxmcp::Result<Vec<String>> {
        self.0.list(owner, after, limit).await
    }

    async fn changed(&self, id: &str, revision: u64) -> oxmcp::Result<()> {
        self.0.changed(id, revision).await
    }
}

#[test]
fn failed_takeover_does_not_block_other_orphans() {
    let store = Arc::new(MemoryTaskStore::new());
    let ids = orphans::<20>(&store);
    for cursed in [0, 19] {
        let cursed_id = ids[cursed].clone();
        let fails = move |operation: &str, id: &str| operation == "claim" && id == cursed_id;
        let failing = Failing(Arc::clone(&store), fails);
        let done = done_after(failing, &ids, Duration::from_secs(60));
        assert_eq!(done, if cursed == 0 { 19 } else { 20 });
    }
}
