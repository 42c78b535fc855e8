//! [`RateLimit`], the number of requests in a period.

use std::{
    collections::BTreeMap,
    future::ready,
    sync::{Arc, OnceLock},
    task::{Context, Poll},
    time::Duration,
};

use oxmcp_protocol::CallToolResult;
use tokio::time::Instant;
use tower_layer::Layer;
use tower_service::Service;

use super::counted::{Counted, LayerFuture, Share, counted_methods};
use crate::{
    debug::opaque_debug,
    error::{Error, Result},
    server::tool::{ToolCall, ToolResponse},
    session::{
        middleware::{Next, Request, Response},
        task::BoxFuture,
    },
    sync::Mutex,
};

/// The default number of shares that are counted at the same time: some 100 bytes each.
const MAX_SHARES: usize = 10_000;

/// The shortest time between two searches for shares that are unused.
const SWEEP: Duration = Duration::from_secs(1);

/// A limit on the number of requests in a period; a [middleware](crate::middleware).
///
/// A caller may make all of its requests at once, and then regains them at an even rate: with 60 per minute, one
/// each second. A refused request has no effect, and gets an error that says when to retry: over HTTP with the status 429
/// and `Retry-After` ([`Error::with_retry_after`]). Clients of this SDK then wait, and retry within the request's deadline.
///
/// By default, tool calls are limited, across all callers. Clones share their counts.
///
/// ```
/// use std::time::Duration;
/// use oxmcp::{Server, layers::RateLimit};
///
/// const MINUTE: Duration = Duration::from_secs(60);
///
/// let server = Server::new("search", "1.0.0")
///     .layer(RateLimit::new(600, MINUTE).per_principal())
///     .layer(RateLimit::new(5, MINUTE).per_principal().tools(["export"]));
/// # let _ = server;
/// ```
#[derive(Clone)]
pub struct RateLimit {
    requests: u32,
    period: Duration,
    max_shares: usize,
    counted: Counted,
    counts: Arc<Counts>,
}

#[derive(Default)]
struct Counts {
    /// The time that all times are relative to.
    start: OnceLock<Instant>,
    shares: Mutex<Shares>,
}

/// For each share, the time at which it is unused again, as a time since the start.
#[derive(Default)]
struct Shares {
    free_at: BTreeMap<Share, Duration>,
    /// The share of all callers for whom there is no space.
    others_free_at: Duration,
    swept_at: Duration,
}

impl RateLimit {
    /// Creates a limit of this many requests in this period. Zero counts as one.
    #[must_use]
    pub fn new(requests: u32, period: Duration) -> Self {
        Self {
            requests: requests.max(1),
            period,
            max_shares: MAX_SHARES,
            counted: Counted::default(),
            counts: Arc::default(),
        }
    }

    counted_methods!();

    /// Sets how many principals, sessions and tools are counted separately at the same time. Default: 10,000. Further ones share
    /// one count, until a separate one becomes unused.
    #[must_use]
    pub fn max_shares(mut self, shares: usize) -> Self {
        self.max_shares = shares;
        self
    }

    /// Returns the limit as a layer of a [tool](crate::Tool::layer). A refused call gets a result with an error, for the model.
    ///
    /// ```
    /// use std::time::Duration;
    /// use oxmcp::{Tool, layers::RateLimit};
    ///
    /// let limit = RateLimit::new(5, Duration::from_secs(60)).per_principal();
    /// let tool = Tool::new("export", "Export everything", || async { "done" }).layer(limit.for_tool());
    /// # let _ = tool;
    /// ```
    pub fn for_tool(
        &self,
    ) -> impl Fn(ToolCall) -> BoxFuture<Result<ToolResponse>> + Send + Sync + 'static + use<> {
        let limit = self.clone();
        move |call| {
            let share = limit.counted.share(call.context(), Some(call.tool()));
            match limit.take(share) {
                Ok(()) => Box::pin(call.run()),
                Err(error) => {
                    let refused = CallToolResult::error(error.message());
                    Box::pin(ready(Ok(refused.into())))
                }
            }
        }
    }

    /// Counts a request.
    ///
    /// # Errors
    /// The refusal, if there are too many.
    fn take(&self, share: Share) -> Result<()> {
        let start = self.counts.start.get_or_init(Instant::now);
        let wait = self.wait(share, start.elapsed());
        if wait.is_zero() {
            return Ok(());
        }
        let (requests, period) = (self.requests, self.period);
        let begun = u64::from(wait.subsec_nanos() > 0);
        let seconds = wait.as_secs().saturating_add(begun);
        Err(Error::limit(format!(
            "too many requests: the limit is {requests} in {period:?}; retry in {seconds} s"
        ))
        .with_retry_after(wait))
    }

    /// Counts a request at `now`. Returns the time until it would be accepted; zero if it is.
    fn wait(&self, share: Share, now: Duration) -> Duration {
        let each = (self.period / self.requests).max(Duration::from_nanos(1));
        // The first requests may come at once.
        let ahead = each.saturating_mul(self.requests - 1);
        let mut shares = self.counts.shares.lock();
        let free_at = shares.of(share, now, self.max_shares);
        let wait = free_at.saturating_sub(now).saturating_sub(ahead);
        if wait.is_zero() {
            *free_at = now.max(*free_at).saturating_add(each);
        }
        wait
    }
}

impl Shares {
    fn of(&mut self, share: Share, now: Duration, limit: usize) -> &mut Duration {
        let is_new = !self.free_at.contains_key(&share);
        if is_new && self.free_at.len() >= limit {
            // Forgetting a share in use would give its caller new requests.
            if now.saturating_sub(self.swept_at) >= SWEEP {
                self.free_at.retain(|_, free_at| *free_at > now);
                self.swept_at = now;
            }
            if self.free_at.len() >= limit {
                return &mut self.others_free_at;
            }
        }
        self.free_at.entry(share).or_default()
    }
}

impl Layer<Next> for RateLimit {
    type Service = RateLimited;

    fn layer(&self, next: Next) -> RateLimited {
        RateLimited {
            limit: self.clone(),
            next,
        }
    }
}

/// The service of a [`RateLimit`].
#[derive(Clone)]
pub struct RateLimited {
    limit: RateLimit,
    next: Next,
}

impl Service<Request> for RateLimited {
    type Response = Response;
    type Error = Error;
    type Future = LayerFuture;

    fn poll_ready(&mut self, _cx: &mut Context<'_>) -> Poll<Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request) -> LayerFuture {
        let share = self.limit.counted.share_of(&request);
        match share.map_or(Ok(()), |share| self.limit.take(share)) {
            Ok(()) => self.next.call(request),
            Err(error) => Box::pin(ready(Err(error))),
        }
    }
}

opaque_debug!(RateLimit, |it| { requests: it.requests, period: it.period });
opaque_debug!(RateLimited, |it| { limit: it.limit });

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn share(tool: &str) -> Share {
        Share::named(tool)
    }

    #[test]
    fn requests_return_evenly_after_a_burst() {
        let limit = RateLimit::new(3, SECOND * 3);
        for _ in 0..3 {
            assert_eq!(limit.wait(share("a"), SECOND), Duration::ZERO);
        }
        assert_eq!(limit.wait(share("a"), SECOND), SECOND);
        assert_eq!(limit.wait(share("b"), SECOND), Duration::ZERO);
        assert_eq!(limit.wait(share("a"), SECOND * 2), Duration::ZERO);
        assert_eq!(limit.wait(share("a"), SECOND * 2), SECOND);
        for _ in 0..3 {
            assert_eq!(limit.wait(share("a"), SECOND * 9), Duration::ZERO);
        }
        assert!(!limit.wait(share("a"), SECOND * 9).is_zero());
    }

    #[test]
    fn huge_periods_do_not_overflow() {
        for requests in [0, 1, u32::MAX] {
            let limit = RateLimit::new(requests, Duration::MAX);
            for now in [Duration::ZERO, SECOND, Duration::MAX] {
                let _ = limit.wait(share("a"), now);
            }
            let limit = RateLimit::new(requests, Duration::ZERO);
            assert!(limit.wait(share("a"), Duration::MAX).is_zero());
        }
        let once = RateLimit::new(1, Duration::MAX);
        assert!(once.take(share("a")).is_ok());
        let refused = once.take(share("a")).unwrap_err();
        assert!(refused.is_limit() && refused.retry_after() > Some(SECOND));
    }

    #[test]
    fn callers_beyond_the_bound_share_a_limit() {
        let limit = RateLimit::new(1, SECOND * 10).max_shares(2);
        let at = |name: &str, seconds| limit.wait(share(name), SECOND * seconds).is_zero();
        assert!(at("a", 0) && at("b", 0) && at("c", 0));
        assert!(!at("d", 0) && !at("a", 0), "no limit is forgotten");
        assert_eq!(limit.counts.shares.lock().free_at.len(), 2);
        assert!(at("d", 11) && !at("d", 11), "unused shares make space");
    }
}
