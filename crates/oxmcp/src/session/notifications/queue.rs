//! Where users' notification handlers run: one at a time, in the order of arrival, and in nobody's way.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::{
    runtime::Handle,
    sync::oneshot,
    task::{self, yield_now},
    time::timeout,
};

use crate::{
    json::Logged,
    limits::Limits,
    session::{Bounded, BoxFuture, panics},
};

/// The queue of notifications that wait for their handlers.
#[derive(Debug)]
pub(crate) struct Lane {
    state: Mutex<State>,
    /// Where its connection runs: whoever pushes may be on a thread that has no runtime.
    runtime: Handle,
}

struct State {
    queue: Bounded<BoxFuture<()>>,
    running: bool,
    /// Who runs the handlers.
    runner: Option<task::Id>,
    closed_from_within: bool,
}

impl std::fmt::Debug for State {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("State")
            .field("queued", &self.queue.len())
            .finish_non_exhaustive()
    }
}

impl Lane {
    /// A lane whose handlers run on `runtime`.
    pub(crate) fn new(limits: &Limits, runtime: &Handle) -> Arc<Self> {
        Arc::new(Self {
            state: Mutex::new(State {
                queue: Bounded::new(limits),
                running: false,
                runner: None,
                closed_from_within: false,
            }),
            runtime: runtime.clone(),
        })
    }

    /// Queues a handler, which keeps so many bytes of a peer. Where the queue is full the oldest gives way.
    pub(crate) fn push(self: &Arc<Self>, job: BoxFuture<()>, bytes: usize) {
        let lost = "notifications come faster than they are taken; the oldest is dropped";
        let mut state = self.lock();
        state.queue.push(job, bytes, lost);
        if !state.running {
            state.running = true;
            let runner = self.runtime.spawn(Arc::clone(self).run());
            state.runner = Some(runner.id());
        }
    }

    /// The session is about to be closed. A handler that closes it is not waited for: it waits itself.
    pub(crate) fn closing(&self) {
        let mut state = self.lock();
        state.closed_from_within |= state.running && state.runner == task::try_id();
    }

    /// Waits until all that is queued now has been handled, or given way, but no longer than that.
    pub(crate) async fn flush(self: &Arc<Self>, limit: Duration) {
        let (done, all_done) = oneshot::channel();
        let is_over = {
            let state = self.lock();
            !state.running || state.closed_from_within
        };
        if is_over {
            return;
        }
        let tell = Box::pin(async {
            // Whoever waited may have gone.
            let _ = done.send(());
        });
        self.push(tell, 0);
        if timeout(limit, all_done).await.is_err() {
            tracing::warn!("the session ends, and notifications still wait for their handlers");
        }
    }

    async fn run(self: Arc<Self>) {
        while let Some(job) = self.next() {
            if let Err(panic) = panics::catch(job).await {
                tracing::error!(panic = %Logged(panic.text()), "a notification handler panicked");
            }
            yield_now().await;
        }
    }

    fn next(&self) -> Option<BoxFuture<()>> {
        let mut state = self.lock();
        let job = state.queue.pop();
        state.running = job.is_some();
        job
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Which of the jobs run, of these sizes.
    async fn run(max_bytes: usize, sizes: &[usize]) -> Vec<usize> {
        let limits = Limits {
            max_message_bytes: max_bytes,
            ..Limits::default()
        };
        let lane = Lane::new(&limits, &Handle::current());
        let ran = Arc::new(Mutex::new(Vec::new()));
        for size in sizes {
            let (ran, size) = (Arc::clone(&ran), *size);
            let job = async move { ran.lock().unwrap().push(size) };
            lane.push(Box::pin(job), size);
        }
        lane.flush(Duration::from_secs(1)).await;
        assert_eq!(lane.lock().queue.bytes(), 0);
        let ran = ran.lock().unwrap();
        ran.clone()
    }

    #[tokio::test(start_paused = true)]
    async fn what_waits_is_bounded_in_bytes() {
        assert_eq!(run(100, &[1, 40, 50, 30, 20]).await, [50, 30, 20]);
        // One that is longer than all room has it alone.
        assert_eq!(run(100, &[1, 500, 2]).await, [2]);
        assert_eq!(run(100, &[1, 500]).await, [500]);
    }
}
