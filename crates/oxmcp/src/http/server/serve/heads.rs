//! How long the heads of requests take, over HTTP/1.
//!
//! Hyper sets a timer for each head, which takes part of the time of a call though nearly all are there at once. Here they are
//! only counted, and what looks at the clock is [`overdue`](super::overdue).

use std::{
    future::Future,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    task::{Context, Poll},
    time::{Duration, Instant},
};

use hyper::rt::{Sleep, Timer};
use tower_service::Service;

/// The heads of one connection: what hyper takes for a clock.
#[derive(Clone, Debug)]
pub(super) struct Heads(Arc<Counts>);

/// Only the connection's own task writes them.
#[derive(Debug)]
struct Counts {
    /// How many heads have been waited for.
    awaited: AtomicU64,
    /// How many had been when something was read the last time.
    begun: AtomicU64,
    /// How many had been when the last one came.
    came: AtomicU64,
    epoch: Instant,
}

impl Heads {
    pub(super) fn new() -> Self {
        Self(Arc::new(Counts {
            awaited: AtomicU64::new(0),
            begun: AtomicU64::new(0),
            came: AtomicU64::new(0),
            epoch: tokio::time::Instant::now().into_std(),
        }))
    }

    /// What is waited for. `None` while a request is being answered, which may take as long as it likes.
    pub(super) fn waiting(&self) -> Option<Awaited> {
        let Counts {
            awaited,
            begun,
            came,
            ..
        } = &*self.0;
        let number = awaited.load(Ordering::Relaxed);
        if number == came.load(Ordering::Relaxed) {
            return None;
        }
        Some(if number == begun.load(Ordering::Relaxed) {
            Awaited::Rest(number)
        } else {
            Awaited::Beginning(number)
        })
    }

    /// Something was read.
    pub(super) fn note_read(&self) {
        let Counts { awaited, begun, .. } = &*self.0;
        begun.store(awaited.load(Ordering::Relaxed), Ordering::Relaxed);
    }

    /// The service that is called with each request, and so tells that its head has come. It is ready always.
    pub(super) fn heard_by<S>(&self, service: S) -> Heard<S> {
        Heard {
            service,
            heads: self.clone(),
        }
    }
}

/// What is waited for, and the number of its head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Awaited {
    /// The client is idle.
    Beginning(u64),
    /// It has begun to say something.
    Rest(u64),
}

/// Hyper begins to wait for a head when it sets the timer, the only one that it sets over HTTP/1.
impl Timer for Heads {
    fn sleep(&self, _duration: Duration) -> Pin<Box<dyn Sleep>> {
        self.sleep_until(self.0.epoch)
    }

    fn sleep_until(&self, _deadline: Instant) -> Pin<Box<dyn Sleep>> {
        let awaited = self.0.awaited.load(Ordering::Relaxed) + 1;
        self.0.awaited.store(awaited, Ordering::Relaxed);
        Box::pin(Never)
    }

    /// Nobody looks at the clock that would be added to it.
    fn now(&self) -> Instant {
        self.0.epoch
    }
}

/// It takes no room, and so making it takes no time.
struct Never;

impl Future for Never {
    type Output = ();

    fn poll(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<()> {
        Poll::Pending
    }
}

impl Sleep for Never {}

/// See [`Heads::heard_by`].
pub(super) struct Heard<S> {
    service: S,
    heads: Heads,
}

impl<S, R> hyper::service::Service<R> for Heard<S>
where
    S: Service<R> + Clone,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = S::Future;

    fn call(&self, request: R) -> S::Future {
        let Counts { awaited, came, .. } = &*self.heads.0;
        came.store(awaited.load(Ordering::Relaxed), Ordering::Relaxed);
        self.service.clone().call(request)
    }
}
