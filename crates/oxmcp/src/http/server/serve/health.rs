//! Health checks of an endpoint, as services to mount: liveness and readiness.

use std::{
    convert::Infallible,
    future::ready,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use futures_core::future::BoxFuture;
use futures_util::{FutureExt, future::join_all};
use http::{HeaderValue, Request, Response, StatusCode, header};
use serde_json::{Map, Value, json};
use tokio::time::Instant;
use tower_service::Service;

use crate::{
    debug::opaque_debug,
    http::server::response::{self, ResponseBody},
    session::task::spawn,
    store::{AnyBus, AnyEventStore, AnySessionStore, Breaker, StoreHealth},
    sync::Mutex,
    tasks::store::AnyTaskStore,
};

/// The minimum interval between probes of the stores, however often the check is requested.
const PROBE_INTERVAL: Duration = Duration::from_secs(1);
/// The session, stream and task ID, and the bus topic, that only probes use.
const PROBE: &str = "probe";

/// A health check of an endpoint, from [`StreamableHttp::liveness`](crate::http::StreamableHttp::liveness) or
/// [`readiness`](crate::http::StreamableHttp::readiness). It is a [`tower_service::Service`] that answers every request, with any
/// path, method and `Host`, with 200 or 503 and a JSON body.
///
/// ```
/// use oxmcp::{Server, http::StreamableHttp};
///
/// let endpoint = StreamableHttp::from(Server::new("calculator", "1.0.0"));
/// let app = axum::Router::new()
///     .route_service("/livez", endpoint.liveness())
///     .route_service("/readyz", endpoint.readiness())
///     .route_service("/mcp", endpoint);
/// # let _: axum::Router = app;
/// ```
#[derive(Clone)]
pub struct HealthCheck(Option<Readiness>);

/// The state and the settings that decide whether an endpoint is ready.
#[derive(Clone)]
pub(crate) struct Readiness {
    pub(crate) state: Arc<HealthState>,
    pub(crate) stores: Stores,
    pub(crate) is_strict: bool,
}

/// The stores of an endpoint.
#[derive(Clone)]
pub(crate) struct Stores {
    pub(crate) sessions: Option<Arc<dyn AnySessionStore>>,
    pub(crate) events: Option<Arc<dyn AnyEventStore>>,
    pub(crate) bus: Option<Arc<dyn AnyBus>>,
    pub(crate) tasks: Option<ProbedTasks>,
}

/// A task store. Only probes determine its health, because other callers wait longer for it.
#[derive(Clone)]
pub(crate) struct ProbedTasks {
    store: Arc<dyn AnyTaskStore>,
    breaker: Arc<Breaker>,
}

/// The state that the checks of an endpoint share.
#[derive(Debug)]
pub(crate) struct HealthState {
    is_draining: AtomicBool,
    probed: Mutex<Option<Instant>>,
    tasks: Arc<Breaker>,
}

impl Default for HealthState {
    fn default() -> Self {
        Self {
            is_draining: AtomicBool::new(false),
            probed: Mutex::default(),
            tasks: Arc::new(Breaker::new("tasks")),
        }
    }
}

impl HealthState {
    /// A task store with the health that probes have found so far.
    pub(crate) fn probed_tasks(&self, store: Arc<dyn AnyTaskStore>) -> ProbedTasks {
        let breaker = Arc::clone(&self.tasks);
        ProbedTasks { store, breaker }
    }

    /// Records that no more requests should be routed here.
    pub(crate) fn set_draining(&self) {
        self.is_draining.store(true, Ordering::Relaxed);
    }

    /// Whether stores must be probed now.
    fn is_due(&self) -> bool {
        let now = Instant::now();
        let mut probed = self.probed.lock();
        let is_due = probed.is_none_or(|at| now >= at + PROBE_INTERVAL);
        if is_due {
            *probed = Some(now);
        }
        is_due
    }
}

impl Stores {
    /// The health of each store at its last use.
    fn health(&self) -> impl Iterator<Item = (&'static str, StoreHealth)> {
        let sessions = self.sessions.as_ref().map(|it| ("sessions", it.health()));
        let events = self.events.as_ref().map(|it| ("events", it.health()));
        let bus = self.bus.as_ref().map(|it| ("bus", it.health()));
        let tasks = self.tasks.as_ref();
        let tasks = tasks.map(|it| ("tasks", it.breaker.health()));
        [sessions, events, bus, tasks].into_iter().flatten()
    }

    fn any_is(&self, health: StoreHealth) -> bool {
        self.health().any(|(_, it)| it == health)
    }

    /// Probes all stores, each within its timeout. The stores record the results themselves.
    async fn probe(self) {
        let sessions = self.sessions.as_ref().map(|it| it.load(PROBE).map(drop));
        let events = self.events.as_ref();
        let events = events.map(|it| it.after(PROBE, PROBE, 0, 0).map(drop));
        let bus = self.bus.as_ref();
        let bus = bus.map(|it| it.publish(PROBE, Bytes::new()).map(drop));
        let tasks = self.tasks.as_ref();
        let tasks = tasks.map(|it| it.breaker.call(it.store.load(PROBE)).map(drop));
        let probes = [
            sessions.map(FutureExt::boxed),
            events.map(FutureExt::boxed),
            bus.map(FutureExt::boxed),
            tasks.map(FutureExt::boxed),
        ];
        join_all(probes.into_iter().flatten()).await;
    }
}

impl HealthCheck {
    /// The check whether the process answers.
    pub(crate) fn of_liveness() -> Self {
        Self(None)
    }

    pub(crate) fn of_readiness(readiness: Readiness) -> Self {
        Self(Some(readiness))
    }

    pub(crate) fn respond(self) -> BoxFuture<'static, Response<ResponseBody>> {
        match self.0 {
            Some(readiness) => Box::pin(readiness.respond()),
            None => Box::pin(ready(answer(StatusCode::OK, &json!({"status": "alive"})))),
        }
    }
}

impl Readiness {
    async fn respond(self) -> Response<ResponseBody> {
        if self.state.is_due() {
            let probe = spawn(self.stores.clone().probe());
            // Until the first result the health is unknown. Later checks do not wait for a hanging store.
            if self.stores.any_is(StoreHealth::Unknown) {
                let _ = probe.await;
            }
        }
        let (status, said) = if self.state.is_draining.load(Ordering::Relaxed) {
            (StatusCode::SERVICE_UNAVAILABLE, "draining")
        } else if self.stores.any_is(StoreHealth::Unknown) {
            (StatusCode::SERVICE_UNAVAILABLE, "starting")
        } else if !self.stores.any_is(StoreHealth::Fails) {
            (StatusCode::OK, "ready")
        } else if self.is_strict {
            (StatusCode::SERVICE_UNAVAILABLE, "degraded")
        } else {
            (StatusCode::OK, "degraded")
        };
        let stores = self.stores.health().map(|(store, health)| {
            let health = match health {
                StoreHealth::Answers => "up",
                StoreHealth::Unknown | StoreHealth::Fails => "down",
            };
            (store.to_owned(), Value::from(health))
        });
        let stores: Map<_, _> = stores.collect();
        answer(status, &json!({"status": said, "stores": stores}))
    }
}

fn answer(status: StatusCode, body: &Value) -> Response<ResponseBody> {
    let mut response = response::message(status, body.to_string().into_bytes());
    let never = HeaderValue::from_static("no-store");
    response.headers_mut().insert(header::CACHE_CONTROL, never);
    response
}

impl<B> Service<Request<B>> for HealthCheck {
    type Response = Response<ResponseBody>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Infallible>> + Send>>;

    fn poll_ready(&mut self, _cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _request: Request<B>) -> Self::Future {
        Box::pin(self.clone().respond().map(Ok))
    }
}

opaque_debug!(HealthCheck);
