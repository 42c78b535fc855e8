//! Health checks of an endpoint.

use std::{
    future::pending,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use http::{Request, StatusCode};
use http_body_util::Full;
use oxmcp::{
    Error, Result,
    http::{HealthCheck, StreamableHttp},
    store::{
        CreateOutcome, MemorySessionStore, SessionChange, SessionRecord, SessionStore,
        StoredSession,
    },
    tasks::{MemoryTaskStore, StoredTask, TaskRecord, TaskStore, Tasks},
};
use serde_json::{Value, json};
use tokio::time::{Instant, advance};
use tower::{Service, ServiceExt};

use crate::{
    http::server::peer::{call_modern, json},
    support::calculator,
};

/// A store that may fail, or hang.
#[derive(Default)]
struct Flaky {
    store: MemorySessionStore,
    fails: AtomicBool,
    hangs: AtomicBool,
    asked: AtomicUsize,
}

impl SessionStore for Flaky {
    async fn create(
        &self,
        id: &str,
        record: SessionRecord,
        lasts: Duration,
        max_per_owner: usize,
    ) -> Result<CreateOutcome> {
        self.store.create(id, record, lasts, max_per_owner).await
    }

    async fn load(&self, id: &str) -> Result<Option<StoredSession>> {
        self.asked.fetch_add(1, Ordering::Relaxed);
        if self.hangs.load(Ordering::Relaxed) {
            pending::<()>().await;
        }
        if self.fails.load(Ordering::Relaxed) {
            return Err(Error::closed("the store is away"));
        }
        self.store.load(id).await
    }

    async fn set(&self, id: &str, change: SessionChange) -> Result<Option<u64>> {
        self.store.set(id, change).await
    }

    async fn touch(&self, id: &str, lasts: Duration) -> Result<Option<u64>> {
        self.store.touch(id, lasts).await
    }

    async fn remove(&self, id: &str) -> Result<()> {
        self.store.remove(id).await
    }
}

fn endpoint(store: &Arc<Flaky>) -> StreamableHttp {
    StreamableHttp::from(calculator()).session_store(Arc::clone(store))
}

/// The status and the body of a check.
async fn check(check: &HealthCheck) -> (StatusCode, Value) {
    let response = check
        .clone()
        .oneshot(Request::new(Full::<&[u8]>::default()))
        .await
        .unwrap();
    assert_eq!(response.headers()["cache-control"], "no-store");
    (response.status(), json(response).await)
}

/// The result of a later check, after the stores were asked again.
async fn check_later(readiness: &HealthCheck) -> (StatusCode, Value) {
    for _ in 0..2 {
        advance(Duration::from_secs(1)).await;
        check(readiness).await;
        tokio::task::yield_now().await;
    }
    check(readiness).await
}

fn said(status: &str, sessions: &str) -> Value {
    json!({"status": status, "stores": {"sessions": sessions, "events": "up"}})
}

const UNAVAILABLE: StatusCode = StatusCode::SERVICE_UNAVAILABLE;

#[tokio::test(start_paused = true)]
async fn endpoint_is_ready_until_it_drains() {
    for is_strict in [false, true] {
        let store = Arc::new(Flaky::default());
        store.fails.store(true, Ordering::Relaxed);
        let endpoint = endpoint(&store);
        let endpoint = if is_strict {
            endpoint.strict_readiness()
        } else {
            endpoint
        };
        let readiness = endpoint.readiness();
        let starting = (UNAVAILABLE, said("starting", "down"));
        assert_eq!(check(&readiness).await, starting);
        assert_eq!(check_later(&readiness).await, starting);
        store.fails.store(false, Ordering::Relaxed);
        advance(Duration::from_secs(1)).await;
        let is_ready = (StatusCode::OK, said("ready", "up"));
        assert_eq!(check(&readiness).await, is_ready);
        // A store that was up once may be down.
        store.fails.store(true, Ordering::Relaxed);
        let status = if is_strict {
            UNAVAILABLE
        } else {
            StatusCode::OK
        };
        let degraded = (status, said("degraded", "down"));
        assert_eq!(check_later(&readiness).await, degraded);
        store.fails.store(false, Ordering::Relaxed);
        assert_eq!(check_later(&readiness).await, is_ready);
        // The endpoint still serves requests.
        endpoint.announce_close();
        let draining = (UNAVAILABLE, said("draining", "up"));
        assert_eq!(check(&readiness).await, draining);
        let served = call_modern(&endpoint, "tools/list", json!({})).await;
        assert_eq!(served.status(), StatusCode::OK);
        let alive = (StatusCode::OK, json!({"status": "alive"}));
        assert_eq!(check(&endpoint.liveness()).await, alive);
    }
}

#[tokio::test(start_paused = true)]
async fn hanging_store_delays_only_the_first_check() {
    let store = Arc::new(Flaky::default());
    store.hangs.store(true, Ordering::Relaxed);
    let readiness = endpoint(&store).readiness();
    let begun = Instant::now();
    assert_eq!(check(&readiness).await.0, UNAVAILABLE);
    assert_eq!(begun.elapsed(), Duration::from_secs(2));
    store.hangs.store(false, Ordering::Relaxed);
    advance(Duration::from_secs(5)).await;
    assert_eq!(check(&readiness).await.0, StatusCode::OK);
    // From here on the check answers at once.
    store.hangs.store(true, Ordering::Relaxed);
    advance(Duration::from_secs(1)).await;
    let begun = Instant::now();
    for _ in 0..100 {
        assert_eq!(check(&readiness).await.0, StatusCode::OK);
    }
    assert_eq!(begun.elapsed(), Duration::ZERO);
    tokio::time::sleep(Duration::from_secs(3)).await;
    assert_eq!(check(&readiness).await.1, said("degraded", "down"));
}

#[tokio::test(start_paused = true)]
async fn store_checks_are_rate_limited() {
    let store = Arc::new(Flaky::default());
    let readiness = endpoint(&store).readiness();
    for _ in 0..100 {
        check(&readiness).await;
        tokio::task::yield_now().await;
    }
    assert_eq!(store.asked.load(Ordering::Relaxed), 1);
}

#[tokio::test]
async fn closing_endpoint_is_not_ready() {
    let endpoint = StreamableHttp::from(calculator());
    let readiness = endpoint.readiness();
    assert_eq!(check(&readiness).await.0, StatusCode::OK);
    endpoint.close().await;
    assert_eq!(check(&readiness).await.1["status"], "draining");
}

#[tokio::test]
async fn health_paths_are_answered_for_any_host() {
    let endpoint = StreamableHttp::from(calculator());
    let get = async |mut endpoint: StreamableHttp, path: &str| {
        let request = Request::get(path).header("host", "10.1.2.3");
        let request = request.body(Full::<&[u8]>::default()).unwrap();
        endpoint.call(request).await.unwrap()
    };
    for path in ["/livez", "/readyz"] {
        let refused = get(endpoint.clone(), path).await;
        assert_eq!(refused.status(), StatusCode::FORBIDDEN);
    }
    let endpoint = endpoint.liveness_path("/livez").readiness_path("/readyz");
    for (path, status) in [("/livez", "alive"), ("/readyz", "ready")] {
        let answer = get(endpoint.clone(), path).await;
        assert_eq!(json(answer).await["status"], status);
    }
    let other = get(endpoint, "/live").await;
    assert_eq!(other.status(), StatusCode::FORBIDDEN);
}

/// A store of tasks that may fail.
struct FlakyTasks(MemoryTaskStore, AtomicBool);

impl TaskStore for FlakyTasks {
    async fn create(&self, task: TaskRecord) -> Result<()> {
        self.0.create(task).await
    }

    async fn load(&self, id: &str) -> Result<Option<StoredTask>> {
        if self.1.load(Ordering::Relaxed) {
            return Err(Error::closed("the store is away"));
        }
        self.0.load(id).await
    }

    async fn replace(&self, id: &str, revision: u64, task: TaskRecord) -> Result<bool> {
        self.0.replace(id, revision, task).await
    }

    async fn claim(&self, id: &str, lease: Duration) -> Result<Option<u64>> {
        self.0.claim(id, lease).await
    }

    async fn renew(&self, id: &str, epoch: u64, lease: Duration) -> Result<bool> {
        self.0.renew(id, epoch, lease).await
    }

    async fn orphans(&self, limit: usize) -> Result<Vec<String>> {
        self.0.orphans(limit).await
    }

    async fn list(
        &self,
        owner: Option<&str>,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<String>> {
        self.0.list(owner, after, limit).await
    }

    async fn changed(&self, id: &str, revision: u64) -> Result<()> {
        self.0.changed(id, revision).await
    }
}

#[tokio::test(start_paused = true)]
async fn task_store_is_checked_only_if_configured() {
    let store = FlakyTasks(MemoryTaskStore::new(), AtomicBool::new(true));
    let store = Arc::new(store);
    let tasks = Tasks::new(Arc::clone(&store)).extension();
    let endpoint = StreamableHttp::from(calculator().extension(tasks));
    let readiness = endpoint.readiness_path("/readyz").readiness();
    let said = |status: &str, tasks: &str| json!({"status": status, "stores": {"events": "up", "tasks": tasks}});
    assert_eq!(
        check(&readiness).await,
        (UNAVAILABLE, said("starting", "down"))
    );
    store.1.store(false, Ordering::Relaxed);
    assert_eq!(
        check_later(&readiness).await,
        (StatusCode::OK, said("ready", "up"))
    );
    store.1.store(true, Ordering::Relaxed);
    let degraded = (StatusCode::OK, said("degraded", "down"));
    assert_eq!(check_later(&readiness).await, degraded);
    let in_memory = calculator().extension(Tasks::in_memory().extension());
    let readiness = StreamableHttp::from(in_memory).readiness();
    let ready = json!({"status": "ready", "stores": {"events": "up"}});
    assert_eq!(check(&readiness).await, (StatusCode::OK, ready));
}
