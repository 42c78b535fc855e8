//! Bounded queues of notifications, and a queue whose handlers run one at a time in the order of arrival.

use std::{
    collections::VecDeque,
    future::poll_fn,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::Poll,
    time::Duration,
};

use tokio::{
    runtime::Handle,
    sync::oneshot,
    task::{self, yield_now},
    time::timeout,
};

use crate::{
    debug::opaque_debug,
    limits::Limits,
    logged::Logged,
    session::{
        panics,
        task::{BoxFuture, spawn_on},
    },
    sync::Mutex,
};

/// A queue that is bounded in items, and in the bytes that it keeps of a peer. If it is full, the oldest item is dropped,
/// because the newest is most relevant to the current state.
pub(crate) struct BoundedQueue<T> {
    queue: VecDeque<(T, usize)>,
    /// The total number of bytes of the queued items.
    bytes: usize,
    limit: usize,
    /// The maximum of `bytes`. A single item may be longer, because it was already read.
    max_bytes: usize,
}

impl<T> BoundedQueue<T> {
    /// Creates a queue with the limits for notifications.
    pub(crate) fn new(limits: &Limits) -> Self {
        Self {
            queue: VecDeque::new(),
            bytes: 0,
            limit: limits.max_queued_notifications,
            max_bytes: limits.max_message_bytes,
        }
    }

    /// Queues an item that keeps `bytes` bytes. `lost` is logged for each item that is dropped.
    pub(crate) fn push(&mut self, item: T, bytes: usize, lost: &str) {
        while self.is_full(bytes) && self.pop().is_some() {
            let (limit, max_bytes) = (self.limit, self.max_bytes);
            tracing::warn!(limit, max_bytes, "{lost}");
        }
        self.bytes += bytes;
        self.queue.push_back((item, bytes));
    }

    fn is_full(&self, more: usize) -> bool {
        // An item that keeps no bytes of a peer is not limited by bytes.
        let is_long = more > 0 && self.bytes.saturating_add(more) > self.max_bytes;
        self.queue.len() >= self.limit || is_long
    }

    pub(crate) fn pop(&mut self) -> Option<T> {
        let (item, bytes) = self.queue.pop_front()?;
        self.bytes -= bytes;
        Some(item)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        self.queue.iter().map(|(item, _)| item)
    }

    pub(crate) fn len(&self) -> usize {
        self.queue.len()
    }

    #[cfg(test)]
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }
}

opaque_debug!([T] BoundedQueue<T>, |it| { queued: it.len() });

/// The queue of notifications that wait for users' handlers, which run one at a time on a separate task: a slow handler delays
/// only the next notifications.
#[derive(Debug)]
pub(crate) struct NotificationQueue {
    state: Mutex<State>,
    /// Whether an answer may have to wait, readable without the lock.
    is_awaited: AtomicBool,
    /// The runtime of its connection: a notification may be pushed from a thread without a runtime.
    runtime: Handle,
}

struct State {
    queue: BoundedQueue<BoxFuture<()>>,
    running: bool,
    /// The state of the handler that was taken out of the queue last.
    head: Head,
    /// The number of handlers that were queued so far.
    queued: u64,
    /// The number of the last queued handler that answers wait for.
    last_awaited: u64,
    /// The answers that wait, each with the number of the handler that must begin first.
    answers: VecDeque<(u64, Release)>,
    /// The task that runs the handlers.
    runner: Option<task::Id>,
    closed_from_within: bool,
}

opaque_debug!(State, |it| { queued: it.queue.len() });

/// The state of the handler that was taken out of the queue last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Head {
    /// It has not been polled yet.
    Taken,
    /// It was polled, and is pending.
    Pending,
    /// It is done, if there was one.
    Done,
}

/// A callback that passes a response to its call.
type Release = Box<dyn FnOnce() + Send>;

impl State {
    /// The number of handlers that have begun, or were dropped.
    fn begun(&self) -> u64 {
        self.queued - self.queue.len() as u64 - u64::from(self.head == Head::Taken)
    }

    /// Whether a response that arrives now must wait. A pending handler may itself wait for that response.
    fn must_wait(&self) -> bool {
        self.head != Head::Pending && self.begun() < self.last_awaited
    }

    /// Removes and returns the responses that no longer need to wait.
    fn take_answers(&mut self) -> Vec<Release> {
        let begun = self.begun();
        let is_free = |number: u64| self.head == Head::Pending || number <= begun;
        let count = self.answers.iter().take_while(|it| is_free(it.0)).count();
        self.answers
            .drain(..count)
            .map(|(_, release)| release)
            .collect()
    }
}

fn release(answers: Vec<Release>) {
    for release in answers {
        release();
    }
}

impl NotificationQueue {
    /// A queue whose handlers run on `runtime`.
    pub(crate) fn new(limits: &Limits, runtime: &Handle) -> Arc<Self> {
        Arc::new(Self {
            state: Mutex::new(State {
                queue: BoundedQueue::new(limits),
                running: false,
                head: Head::Done,
                queued: 0,
                last_awaited: 0,
                answers: VecDeque::new(),
                runner: None,
                closed_from_within: false,
            }),
            is_awaited: AtomicBool::new(false),
            runtime: runtime.clone(),
        })
    }

    /// Queues a handler, which keeps `bytes` bytes of a peer. If the queue is full, the oldest is dropped.
    pub(crate) fn push(self: &Arc<Self>, job: BoxFuture<()>, bytes: usize) {
        self.add(job, bytes, false);
    }

    /// Like [`push`](Self::push), for a handler that must begin before any later response is passed on.
    pub(crate) fn push_before_answers(self: &Arc<Self>, job: BoxFuture<()>, bytes: usize) {
        self.add(job, bytes, true);
    }

    fn add(self: &Arc<Self>, job: BoxFuture<()>, bytes: usize, is_awaited: bool) {
        let lost = "notification queue is full; dropping the oldest";
        let mut state = self.state.lock();
        state.queue.push(job, bytes, lost);
        state.queued += 1;
        if is_awaited {
            state.last_awaited = state.queued;
            self.is_awaited.store(true, Ordering::Relaxed);
        }
        if !state.running {
            state.running = true;
            let runner = spawn_on(&self.runtime, Arc::clone(self).run());
            state.runner = Some(runner.id());
        }
        // Some of the handlers that they waited for may have been dropped.
        let answers = state.take_answers();
        drop(state);
        release(answers);
    }

    /// Whether an answer that arrives now may have to wait for handlers to begin.
    pub(crate) fn is_awaited(&self) -> bool {
        self.is_awaited.load(Ordering::Relaxed)
    }

    /// Calls `release` once the handlers that a response waits for have begun, which may be now, or once one of them is
    /// pending, because it may wait for that response.
    pub(crate) fn when_begun(&self, release: Release) {
        let mut state = self.state.lock();
        if state.must_wait() {
            let number = state.last_awaited;
            state.answers.push_back((number, release));
        } else {
            drop(state);
            release();
        }
    }

    /// Records that the session is about to close. If one of the handlers closes it, [`flush`](Self::flush) does not wait for
    /// that handler, which itself waits for the end.
    pub(crate) fn closing(&self) {
        let mut state = self.state.lock();
        state.closed_from_within |= state.running && state.runner == task::try_id();
    }

    /// Waits until all currently queued handlers have run or were dropped, for at most `limit`.
    pub(crate) async fn flush(self: &Arc<Self>, limit: Duration) {
        let (done, all_done) = oneshot::channel();
        let is_over = {
            let state = self.state.lock();
            !state.running || state.closed_from_within
        };
        if is_over {
            return;
        }
        let tell = Box::pin(async {
            // `flush` may have timed out.
            let _ = done.send(());
        });
        self.push(tell, 0);
        if timeout(limit, all_done).await.is_err() {
            tracing::warn!("session ended with unhandled notifications");
        }
    }

    async fn run(self: Arc<Self>) {
        while let Some(mut job) = self.next() {
            let first = poll_fn(|cx| Poll::Ready(panics::poll(job.as_mut(), cx))).await;
            self.began(first.is_pending());
            let done = match first {
                Poll::Ready(done) => done,
                Poll::Pending => panics::catch(job).await,
            };
            if let Err(panic) = done {
                tracing::error!(panic = %Logged(panic.text()), "a notification handler panicked");
            }
            yield_now().await;
        }
    }

    fn next(&self) -> Option<BoxFuture<()>> {
        let mut state = self.state.lock();
        let job = state.queue.pop();
        state.running = job.is_some();
        state.head = if job.is_some() {
            Head::Taken
        } else {
            Head::Done
        };
        job
    }

    /// Records that the last handler taken out has been polled once.
    fn began(&self, is_pending: bool) {
        let mut state = self.state.lock();
        state.head = if is_pending {
            Head::Pending
        } else {
            Head::Done
        };
        let answers = state.take_answers();
        if state.begun() >= state.last_awaited {
            self.is_awaited.store(false, Ordering::Relaxed);
        }
        drop(state);
        release(answers);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs jobs of these sizes, and returns the sizes of those that ran.
    async fn run(max_bytes: usize, sizes: &[usize]) -> Vec<usize> {
        let limits = Limits::default().max_message_bytes(max_bytes);
        let queue = NotificationQueue::new(&limits, &Handle::current());
        let ran = Arc::new(Mutex::new(Vec::new()));
        for size in sizes {
            let (ran, size) = (Arc::clone(&ran), *size);
            let job = async move { ran.lock().push(size) };
            queue.push(Box::pin(job), size);
        }
        queue.flush(Duration::from_secs(1)).await;
        assert_eq!(queue.state.lock().queue.bytes(), 0);
        let ran = ran.lock();
        ran.clone()
    }

    #[tokio::test(start_paused = true)]
    async fn queue_is_bounded_in_bytes() {
        assert_eq!(run(100, &[1, 40, 50, 30, 20]).await, [50, 30, 20]);
        // A job that is longer than the limit is queued by itself.
        assert_eq!(run(100, &[1, 500, 2]).await, [2]);
        assert_eq!(run(100, &[1, 500]).await, [500]);
    }
}
