//! Where users' notification handlers run: one at a time, in the order of arrival, and in nobody's way.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::{
    runtime::Handle,
    sync::oneshot,
    task::{self, yield_now},
    time::timeout,
};

use crate::session::{BoxFuture, panics};

/// The queue of notifications that wait for their handlers.
#[derive(Debug)]
pub(crate) struct Lane {
    state: Mutex<State>,
    limit: usize,
    /// Where its connection runs: whoever pushes may be on a thread that has no runtime.
    runtime: Handle,
}

#[derive(Default)]
struct State {
    queue: VecDeque<BoxFuture<()>>,
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
    pub(crate) fn new(limit: usize, runtime: &Handle) -> Arc<Self> {
        Arc::new(Self {
            state: Mutex::default(),
            limit,
            runtime: runtime.clone(),
        })
    }

    /// Queues a handler. Where the queue is full the oldest gives way: the newest says most about how things are.
    pub(crate) fn push(self: &Arc<Self>, job: BoxFuture<()>) {
        let mut state = self.lock();
        if state.queue.len() >= self.limit {
            state.queue.pop_front();
            tracing::warn!(
                limit = self.limit,
                "notifications come faster than they are taken; the oldest is dropped"
            );
        }
        state.queue.push_back(job);
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
        self.push(Box::pin(async {
            // Whoever waited may have gone.
            let _ = done.send(());
        }));
        if timeout(limit, all_done).await.is_err() {
            tracing::warn!("the session ends, and notifications still wait for their handlers");
        }
    }

    async fn run(self: Arc<Self>) {
        while let Some(job) = self.next() {
            if let Err(panic) = panics::catch(job).await {
                tracing::error!(panic = %panic.text(), "a notification handler panicked");
            }
            yield_now().await;
        }
    }

    fn next(&self) -> Option<BoxFuture<()>> {
        let mut state = self.lock();
        let job = state.queue.pop_front();
        state.running = job.is_some();
        job
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
