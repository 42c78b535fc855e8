//! Building blocks of asynchronous code: boxed futures, tasks, latches, stored wakers, deadlines that never overflow.

use std::{
    future::{Future, poll_fn},
    mem,
    pin::Pin,
    sync::atomic::{AtomicBool, Ordering},
    task::{Poll, Waker},
    time::Duration,
};

use futures_util::{FutureExt, future::try_join_all};
use serde_json::value::RawValue;
use tokio::{
    runtime::Handle,
    sync::Notify,
    task::{self, JoinHandle},
    time::Instant,
};
#[cfg(feature = "http-server")]
use tokio::{
    select,
    time::{sleep, sleep_until},
};
#[cfg(feature = "client")]
use tokio::{sync::oneshot, time::timeout};

use crate::error::Result;
#[cfg(any(feature = "client", feature = "http-server"))]
use crate::session::panics::catch_sync;

/// A future on the heap that owns all its data.
pub(crate) type BoxFuture<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// Awaits all futures concurrently, and returns their texts in order. The first error ends it. They are boxed, because the code
/// that joins them would otherwise be compiled for each type of future.
pub(crate) async fn try_join_boxed<'a, F>(
    futures: impl Iterator<Item = F>,
) -> Result<Vec<Box<RawValue>>>
where
    F: Future<Output = Result<Box<RawValue>>> + Send + 'a,
{
    let futures = futures.map(FutureExt::boxed).collect::<Vec<_>>();
    try_join_all(futures).await
}

/// Spawns a task. Its future is boxed, so that the runtime's code for tasks is compiled once per type of output, and not per
/// type of future.
pub(crate) fn spawn<T: Send + 'static>(
    future: impl Future<Output = T> + Send + 'static,
) -> JoinHandle<T> {
    spawn_boxed(Box::pin(future))
}

fn spawn_boxed<T: Send + 'static>(future: BoxFuture<T>) -> JoinHandle<T> {
    task::spawn(future)
}

/// Polls a future once, and spawns the rest: its first actions are done before this returns, if there is space. So a request
/// that it sends precedes all later ones.
#[cfg(any(feature = "client", feature = "http-server"))]
pub(crate) fn spawn_polled(future: impl Future<Output = ()> + Send + 'static) {
    let mut future: BoxFuture<()> = Box::pin(future);
    // A panic ends only this future, as it would end only a task.
    if let Ok(None) = catch_sync(|| future.as_mut().now_or_never()) {
        spawn_boxed(future);
    }
}

/// Like [`spawn_polled`], and waits for the end for at most `limit`. After that the task continues in the background.
#[cfg(feature = "client")]
pub(crate) async fn run_polled_within(
    limit: Duration,
    future: impl Future<Output = ()> + Send + 'static,
) {
    let (running, ended) = oneshot::channel::<()>();
    spawn_polled(async move {
        future.await;
        drop(running);
    });
    // The result does not matter: nothing is ever sent, the sender is only dropped.
    let _ = timeout(limit, ended).await;
}

/// Spawns a task on `runtime`, as [`spawn`] does on the current one.
pub(crate) fn spawn_on(
    runtime: &Handle,
    future: impl Future<Output = ()> + Send + 'static,
) -> JoinHandle<()> {
    let future: BoxFuture<()> = Box::pin(future);
    runtime.spawn(future)
}

/// A flag that can be set once and awaited.
///
/// Unlike a [`CancellationToken`](crate::CancellationToken), it is stored inline and allocates nothing, because each request
/// has one.
#[derive(Debug, Default)]
pub(crate) struct Latch {
    set: AtomicBool,
    changed: Notify,
}

impl Latch {
    pub(crate) fn set(&self) {
        self.set.store(true, Ordering::Release);
        self.changed.notify_waiters();
    }

    pub(crate) fn is_set(&self) -> bool {
        self.set.load(Ordering::Acquire)
    }

    /// Waits until the flag is set. Cancel safe.
    pub(crate) async fn wait(&self) {
        loop {
            let changed = self.changed.notified();
            if self.is_set() {
                return;
            }
            changed.await;
        }
    }
}

/// Stores a waker in place of an earlier one, which usually belongs to the same task and is then not cloned again.
pub(crate) fn store_waker(stored: &mut Option<Waker>, waker: &Waker) {
    match stored {
        Some(stored) => stored.clone_from(waker),
        none => *none = Some(waker.clone()),
    }
}

/// The time `wait` after `start`, or one that is never reached, because users may wait forever.
pub(crate) fn after(start: Instant, wait: Duration) -> Instant {
    const FAR: Duration = Duration::from_secs(30 * 365 * 24 * 60 * 60);
    start.checked_add(wait).unwrap_or_else(|| start + FAR)
}

/// Waits until the given time, or forever if there is none.
#[cfg(feature = "http-server")]
pub(crate) async fn reached(moment: Option<Instant>) {
    match moment {
        Some(moment) => sleep_until(moment).await,
        None => std::future::pending().await,
    }
}

/// Like [`tokio::time::timeout`], but without a timer for a future that is ready at once, as most are. `None` after a timeout.
/// Cancel safe if the future is.
#[cfg(feature = "http-server")]
pub(crate) async fn within<T>(limit: Duration, future: impl Future<Output = T>) -> Option<T> {
    select! {
        biased;
        output = future => Some(output),
        () = lazy(move || sleep(limit)) => None,
    }
}

/// A future that is created when it is first polled.
#[cfg(feature = "http-server")]
pub(crate) async fn lazy<F: Future>(make: impl FnOnce() -> F) -> F::Output {
    make().await
}

/// Lets the tasks that are ready now run first. Unlike [`yield_now`](tokio::task::yield_now), it does not poll for I/O, which
/// would be a system call.
pub(crate) async fn requeue() {
    let mut is_requeued = false;
    poll_fn(|cx| {
        if mem::replace(&mut is_requeued, true) {
            return Poll::Ready(());
        }
        // A task that wakes itself goes to the end of the queue.
        cx.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

#[cfg(all(test, feature = "http-server"))]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[tokio::test]
    async fn immediately_panicking_task_ends_only_itself() {
        spawn_polled(async { panic!("of a user's code") });
        let ended = Arc::<Latch>::default();
        let waiting = Arc::clone(&ended);
        spawn_polled(async move {
            requeue().await;
            ended.set();
        });
        waiting.wait().await;
    }
}
