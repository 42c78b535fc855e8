//! Where users' notification handlers run: one at a time, in the order of arrival, and in nobody's way.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use tokio::task::yield_now;

use crate::session::{BoxFuture, panics};

/// The queue of notifications that wait for their handlers.
#[derive(Debug)]
pub(crate) struct Lane {
    state: Mutex<State>,
    limit: usize,
}

#[derive(Default)]
struct State {
    queue: VecDeque<BoxFuture<()>>,
    running: bool,
}

impl std::fmt::Debug for State {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("State")
            .field("queued", &self.queue.len())
            .finish_non_exhaustive()
    }
}

impl Lane {
    pub(crate) fn new(limit: usize) -> Arc<Self> {
        Arc::new(Self {
            state: Mutex::default(),
            limit,
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
            drop(state);
            tokio::spawn(Arc::clone(self).run());
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
