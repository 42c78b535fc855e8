//! Several processes with one store of tasks: processes that die, and processes that stall.

use std::sync::Arc;

use oxmcp::{
    protocol::{CallToolResult, TaskStatus},
    tasks::{MemoryTaskStore, ServerTasks, StoredTask, TaskRecord, TaskStore},
};
use tokio::{runtime::Builder, sync::watch, time::sleep};

use super::*;

pub(super) fn node(store: impl TaskStore, tool: Tool) -> Server {
    Server::new("office", "1.0.0")
        .extension(Tasks::new(store).extension())
        .tool(tool)
}

const HOUR: Duration = Duration::from_secs(3600);

#[test]
fn live_tasks_of_dead_process_fail_via_another() {
    let store = Arc::new(MemoryTaskStore::new());
    let [(tool, _open), (same, _same_open)] = [(); 2].map(|()| gated(TaskPolicy::Always));
    let (tool, same) = (tool.task_live(), same.task_live());
    let other = node(Arc::clone(&store), same);
    let runtime = Builder::new_current_thread().enable_all().build().unwrap();
    let id = runtime.block_on(async {
        let server = node(Arc::clone(&store), tool);
        Peer::of(&server).await.begin("report").await
    });
    // Everything on the runtime is dropped, as if its process were killed.
    drop(runtime);
    let mut builder = Builder::new_current_thread();
    let runtime = builder.enable_all().start_paused(true).build().unwrap();
    runtime.block_on(async {
        let mut peer = Peer::of(&other).await;
        // A client that only listens makes no request after this one.
        let listen = json!({"notifications": {"taskIds": [id]}});
        let listen = declaring(50, "subscriptions/listen", listen);
        peer.0.send(listen).await.unwrap();
        peer.0.receive().await.unwrap();
        sleep(Duration::from_secs(31)).await;
        let told = peer.0.receive().await.unwrap();
        assert_eq!(told["method"], "notifications/tasks", "{told}");
        assert_eq!(told["params"]["status"], "failed", "{told}");
        let failed = peer.get(&id).await;
        let message = failed["error"]["message"].as_str().unwrap();
        assert!(
            message.contains("check which work was done")
                && message.contains("before calling the tool again"),
            "{failed}"
        );
    });
}

#[tokio::test(start_paused = true)]
async fn task_renews_its_lease_while_running() {
    let (tool, open) = gated(TaskPolicy::Always);
    let server = server(tool);
    let mut peer = Peer::of(&server).await;
    let (own, left) = (peer.begin("report").await, peer.begin("report").await);
    sleep(HOUR / 4).await;
    // The task that is completed from elsewhere is not an orphan either.
    let result = CallToolResult::text("by somebody else");
    assert!(
        server
            .tasks()
            .unwrap()
            .complete(&left, result)
            .await
            .unwrap()
    );
    open.send(true).unwrap();
    peer.until(&own, "completed").await;
}

/// A handle to a store that does not answer while its process stalls.
pub(crate) struct Stalling(
    pub(crate) Arc<MemoryTaskStore>,
    pub(crate) watch::Receiver<bool>,
);

impl Stalling {
    async fn awake(&self) -> &MemoryTaskStore {
        let mut stalls = self.1.clone();
        stalls.wait_for(|stalls| !stalls).await.unwrap();
        &self.0
    }
}

impl TaskStore for Stalling {
    async fn create(&self, task: TaskRecord) -> oxmcp::Result<()> {
        self.awake().await.create(task).await
    }

    async fn load(&self, id: &str) -> oxmcp::Result<Option<StoredTask>> {
        self.awake().await.load(id).await
    }

    async fn replace(&self, id: &str, revision: u64, task: TaskRecord) -> oxmcp::Result<bool> {
        self.awake().await.replace(id, revision, task).await
    }

    async fn claim(&self, id: &str, lease: Duration) -> oxmcp::Result<Option<u64>> {
        self.awake().await.claim(id, lease).await
    }

    async fn renew(&self, id: &str, epoch: u64, lease: Duration) -> oxmcp::Result<bool> {
        self.awake().await.renew(id, epoch, lease).await
    }

    async fn orphans(&self, limit: usize) -> oxmcp::Result<Vec<String>> {
        self.awake().await.orphans(limit).await
    }

    async fn list(
        &self,
        owner: Option<&str>,
        after: Option<&str>,
        limit: usize,
    ) -> oxmcp::Result<Vec<String>> {
        self.awake().await.list(owner, after, limit).await
    }

    async fn changed(&self, id: &str, revision: u64) -> oxmcp::Result<()> {
        self.awake().await.changed(id, revision).await
    }
}

#[tokio::test(start_paused = true)]
async fn stalled_process_writes_nothing_after_resuming() {
    let store = Arc::new(MemoryTaskStore::new());
    let (stall, stalls) = watch::channel(false);
    let (tool, open) = gated(TaskPolicy::Always);
    let server = node(Stalling(Arc::clone(&store), stalls), tool);
    let id = Peer::of(&server).await.begin("report").await;
    stall.send(true).unwrap();
    sleep(Duration::from_secs(16)).await;
    let epoch = store.claim(&id, HOUR).await.unwrap();
    // The handler has its result, and the process tries to write it when it resumes.
    open.send(true).unwrap();
    sleep(Duration::from_secs(1)).await;
    let before = store.load(&id).await.unwrap().unwrap();
    assert_eq!(Some(before.epoch), epoch);
    stall.send(false).unwrap();
    sleep(Duration::from_secs(60)).await;
    let now = store.load(&id).await.unwrap().unwrap();
    assert_eq!(now.task.status, TaskStatus::Working);
    assert_eq!(now.revision, before.revision);
}

#[tokio::test(start_paused = true)]
async fn handler_is_cancelled_when_its_lease_is_lost() {
    for is_claimed in [true, false] {
        let store = Arc::new(MemoryTaskStore::new());
        let (stall, stalls) = watch::channel(false);
        let (cancelled, mut is_cancelled) = watch::channel(false);
        let tool = Tool::new("wait", "Wait", move |cx: RequestContext| {
            let cancelled = cancelled.clone();
            async move {
                cx.cancelled().await;
                cancelled.send_replace(true);
                "cancelled"
            }
        });
        let tool = tool.task(TaskPolicy::Always).task_live();
        let server = node(Stalling(Arc::clone(&store), stalls), tool);
        let mut peer = Peer::of(&server).await;
        let id = peer.begin("wait").await;
        stall.send(true).unwrap();
        sleep(Duration::from_secs(21)).await;
        if is_claimed {
            store.claim(&id, HOUR).await.unwrap().unwrap();
        }
        assert!(!*is_cancelled.borrow());
        stall.send(false).unwrap();
        let awake = tokio::time::Instant::now();
        is_cancelled.wait_for(|it| *it).await.unwrap();
        // The claim of another process is noticed at once, before the next renewal of the lease.
        let soon = Duration::from_secs(1);
        assert!(!is_claimed || awake.elapsed() < soon);
        if !is_claimed {
            // No other process has claimed the task: this process ends it as an orphan.
            peer.until(&id, "failed").await;
        }
    }
}
