//! [`ConcurrencyLimit`], the number of requests that run at the same time.

use std::{
    collections::BTreeMap,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use oxmcp_protocol::CallToolResult;
use tokio::{
    select,
    sync::{OwnedSemaphorePermit, Semaphore},
    time::sleep,
};
use tower_layer::Layer;
use tower_service::Service;

use super::counted::{Counted, LayerFuture, Share, counted_methods};
use crate::{
    debug::opaque_debug,
    error::{Error, Result},
    server::tool::{ToolCall, ToolResponse},
    session::{
        connection::RequestContext,
        middleware::{Next, Request, Response},
        task::BoxFuture,
    },
    sync::Mutex,
};

/// The pause that a refused caller is asked for: it is not known how long the running requests take.
const PAUSE: Duration = Duration::from_secs(1);

/// A limit on the number of requests that run at the same time; a [middleware](crate::middleware).
///
/// By default, tool calls are limited, across all callers, and a request beyond the limit is refused at once: over
/// HTTP with the status 429 and `Retry-After` ([`Error::with_retry_after`]). With [`queue`](Self::queue), requests wait first.
/// Clones share their counts.
///
/// ```
/// use std::time::Duration;
/// use oxmcp::{Server, layers::ConcurrencyLimit};
///
/// let server = Server::new("renderer", "1.0.0")
///     .layer(ConcurrencyLimit::new(2).tools(["render"]).queue(20, Duration::from_secs(10)));
/// # let _ = server;
/// ```
#[derive(Clone)]
pub struct ConcurrencyLimit {
    running: usize,
    waiting: usize,
    longest_wait: Duration,
    counted: Counted,
    slots: Arc<Mutex<BTreeMap<Share, Slots>>>,
}

/// The slots of a share in use.
struct Slots {
    free: Arc<Semaphore>,
    /// The number of requests that run or wait.
    users: usize,
}

/// The place of a request that runs or waits.
struct Place {
    share: Share,
    slots: Arc<Mutex<BTreeMap<Share, Slots>>>,
    permit: Option<OwnedSemaphorePermit>,
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut all = self.slots.lock();
        // Under the lock, so that a share without users has all its slots.
        self.permit = None;
        if let Some(slots) = all.get_mut(&self.share) {
            slots.users -= 1;
            if slots.users == 0 {
                all.remove(&self.share);
            }
        }
    }
}

impl ConcurrencyLimit {
    /// Creates a limit of this many requests at the same time. Zero counts as one.
    #[must_use]
    pub fn new(requests: usize) -> Self {
        Self {
            running: requests.clamp(1, Semaphore::MAX_PERMITS),
            waiting: 0,
            longest_wait: Duration::ZERO,
            counted: Counted::default(),
            slots: Arc::default(),
        }
    }

    counted_methods!();

    /// Lets this many further requests wait in order, each for at most this time, before they are refused.
    #[must_use]
    pub fn queue(mut self, requests: usize, longest_wait: Duration) -> Self {
        self.waiting = requests;
        self.longest_wait = longest_wait;
        self
    }

    /// Returns the limit as a layer of a [tool](crate::Tool::layer). A refused call gets a result with an error, for the model.
    pub fn for_tool(
        &self,
    ) -> impl Fn(ToolCall) -> BoxFuture<Result<ToolResponse>> + Send + Sync + 'static + use<> {
        let limit = self.clone();
        move |call| {
            let limit = limit.clone();
            Box::pin(async move {
                let share = limit.counted.share(call.context(), Some(call.tool()));
                let cx = call.context().clone();
                match limit.enter(share, &cx).await {
                    Ok(_place) => call.run().await,
                    Err(error) if error.is_limit() => {
                        Ok(CallToolResult::error(error.message()).into())
                    }
                    Err(error) => Err(error),
                }
            })
        }
    }

    /// Waits for a slot.
    ///
    /// # Errors
    /// If there is none in time, or the request is cancelled.
    async fn enter(&self, share: Share, cx: &RequestContext) -> Result<Place> {
        let (mut place, free) = self.line_up(share)?;
        if let Ok(permit) = Arc::clone(&free).try_acquire_owned() {
            place.permit = Some(permit);
            return Ok(place);
        }
        select! {
            biased;
            permit = free.acquire_owned() => place.permit = permit.ok(),
            () = cx.cancelled() => return Err(Error::cancelled("the request was cancelled")),
            () = sleep(self.longest_wait) => return Err(self.refusal()),
        }
        Ok(place)
    }

    fn line_up(&self, share: Share) -> Result<(Place, Arc<Semaphore>)> {
        let mut all = self.slots.lock();
        let slots = all.entry(share.clone()).or_insert_with(|| Slots {
            free: Arc::new(Semaphore::new(self.running)),
            users: 0,
        });
        if slots.users >= self.running.saturating_add(self.waiting) {
            return Err(self.refusal());
        }
        slots.users += 1;
        let free = Arc::clone(&slots.free);
        let place = Place {
            share,
            slots: Arc::clone(&self.slots),
            permit: None,
        };
        Ok((place, free))
    }

    fn refusal(&self) -> Error {
        let running = self.running;
        Error::limit(format!(
            "too many concurrent requests: the limit is {running}; retry when one of them has ended"
        ))
        .with_retry_after(PAUSE)
    }
}

impl Layer<Next> for ConcurrencyLimit {
    type Service = ConcurrencyLimited;

    fn layer(&self, next: Next) -> ConcurrencyLimited {
        ConcurrencyLimited {
            limit: self.clone(),
            next,
        }
    }
}

/// The service of a [`ConcurrencyLimit`].
#[derive(Clone)]
pub struct ConcurrencyLimited {
    limit: ConcurrencyLimit,
    next: Next,
}

impl Service<Request> for ConcurrencyLimited {
    type Response = Response;
    type Error = Error;
    type Future = LayerFuture;

    fn poll_ready(&mut self, _cx: &mut Context<'_>) -> Poll<Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request) -> LayerFuture {
        let counted = self.limit.counted.share_of(&request);
        let Some((share, cx)) = counted.zip(request.context().cloned()) else {
            return self.next.call(request);
        };
        let (limit, next) = (self.limit.clone(), self.next.clone());
        Box::pin(async move {
            let _place = limit.enter(share, &cx).await?;
            next.run(request).await
        })
    }
}

opaque_debug!(ConcurrencyLimit, |it| { running: it.running, waiting: it.waiting });
opaque_debug!(ConcurrencyLimited, |it| { limit: it.limit });
