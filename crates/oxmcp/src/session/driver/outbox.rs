//! The output buffer of a connection. Handlers and callers append to it, and the driver empties it.

use std::{
    future::poll_fn,
    mem,
    sync::{
        MutexGuard,
        atomic::{AtomicU32, AtomicUsize, Ordering},
    },
    task::{Context, Poll, Waker},
};
#[cfg(feature = "http-server")]
use std::{
    sync::{Arc, OnceLock, atomic::AtomicBool},
    time::Duration,
};

use memchr::memchr_iter;
use tokio::sync::Notify;

#[cfg(feature = "http-server")]
use crate::session::driver::budget::Budget;
use crate::{session::task::store_waker, sync::Mutex};

/// The initial capacity of a buffer: enough for most messages.
pub(crate) const INITIAL_CAPACITY: usize = 512;

/// The output buffer of a connection.
///
/// Messages are serialized straight into it, in the order of the wire. Many small messages become one write. A caller that can
/// wait does so in [`ready`](Self::ready) while too much is unsent. No message is dropped, except responses over HTTP that
/// exceed the endpoint's budget: the client gets an error instead (`stream_output.rs`).
#[derive(Debug)]
pub(crate) struct Outbox {
    pub(crate) state: Mutex<State>,
    /// The number of bytes in the buffer, readable without the lock.
    buffered: AtomicUsize,
    /// The number of bytes that the driver has taken and not written yet.
    pub(crate) being_written: AtomicUsize,
    pub(crate) drained: Notify,
    max_unsent: usize,
    /// The budget in which the bytes in the buffer count, if there is one.
    #[cfg(feature = "http-server")]
    pub(crate) budget: OnceLock<Arc<Budget>>,
    /// Whether a response that exceeds the budget is dropped.
    #[cfg(feature = "http-server")]
    pub(crate) drops_answers: AtomicBool,
    /// The number of times that an output stream was attached or detached: odd while there is none, as is possible over HTTP.
    pub(crate) attachments: AtomicU32,
}

#[derive(Debug, Default)]
pub(crate) struct State {
    pub(crate) buffer: Vec<u8>,
    /// The end of the first message in the buffer.
    #[cfg(feature = "http-server")]
    pub(crate) first_end: usize,
    /// The waker of the driver, if it waits for output.
    pub(crate) driver: Option<Waker>,
    /// Whether the driver was woken because of appended output.
    woken: bool,
    /// Whether the state of the connection has changed, other than the buffer.
    attention: bool,
    /// Whether the answer to all requests of this outbox has been appended.
    pub(crate) answered: bool,
    /// Set when the stream must end before the response: the time that the client should wait before it resumes.
    #[cfg(feature = "http-server")]
    pub(crate) parted: Option<Duration>,
    pub(crate) closed: bool,
    /// Whether the output stream has begun.
    #[cfg(feature = "http-server")]
    pub(crate) streamed: bool,
    /// Whether it was closed because the response exceeded the budget.
    #[cfg(feature = "http-server")]
    pub(crate) exhausted: bool,
}

/// The reason for waking the driver.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Due {
    /// There is output to write.
    Write,
    /// The connection's state has changed.
    Attention,
}

impl Outbox {
    pub(crate) fn new(max_unsent: usize) -> Self {
        Self {
            state: Mutex::default(),
            buffered: AtomicUsize::new(0),
            being_written: AtomicUsize::new(0),
            drained: Notify::new(),
            max_unsent,
            #[cfg(feature = "http-server")]
            budget: OnceLock::new(),
            #[cfg(feature = "http-server")]
            drops_answers: AtomicBool::new(false),
            attachments: AtomicU32::new(0),
        }
    }

    /// Appends a message, which `write` serializes with its newline. After the connection has closed, does nothing and returns
    /// `None`.
    pub(crate) fn append<T>(&self, write: impl FnOnce(&mut Vec<u8>) -> T) -> Option<T> {
        self.add(false, write)
    }

    /// Like [`append`](Self::append), for the answer to all requests of this outbox.
    pub(crate) fn append_answer<T>(&self, write: impl FnOnce(&mut Vec<u8>) -> T) -> Option<T> {
        self.add(true, write)
    }

    fn add<T>(&self, is_answer: bool, write: impl FnOnce(&mut Vec<u8>) -> T) -> Option<T> {
        let mut state = self.state.lock();
        if state.closed {
            return None;
        }
        let start = state.buffer.len();
        let written = self.append_whole(&mut state, write);
        state.answered |= is_answer;
        self.check_budget(&mut state, start);
        wake(state);
        Some(written)
    }

    /// Like [`append`](Self::append), unless so much is unsent that the message should wait. Then it does nothing and returns
    /// false.
    pub(crate) fn append_if_room(&self, write: impl FnOnce(&mut Vec<u8>)) -> bool {
        let mut state = self.state.lock();
        if state.closed {
            return true;
        }
        if self.is_full() {
            return false;
        }
        self.append_whole(&mut state, write);
        wake(state);
        true
    }

    /// Like [`append_answer`](Self::append_answer), on the driver's task, which need not be woken: the driver checks the buffer
    /// before it sleeps.
    pub(crate) fn append_inline<T>(&self, write: impl FnOnce(&mut Vec<u8>) -> T) -> Option<T> {
        let mut state = self.state.lock();
        if state.closed {
            return None;
        }
        state.answered = true;
        let start = state.buffer.len();
        let written = self.append_whole(&mut state, write);
        self.check_budget(&mut state, start);
        Some(written)
    }

    /// Whether so much is unsent that requests should wait.
    pub(crate) fn is_full(&self) -> bool {
        let unsent = self.unsent();
        // While nothing is unsent here, no write would wake the waiting callers.
        unsent > self.max_unsent || unsent > 0 && self.exceeds_budget()
    }

    /// Whether the outbox's budget is exceeded.
    fn exceeds_budget(&self) -> bool {
        #[cfg(feature = "http-server")]
        return self.budget.get().is_some_and(|it| it.is_exceeded());
        #[cfg(not(feature = "http-server"))]
        false
    }

    /// Drops a response, which was appended from `start` on, if it exceeds the budget and the outbox drops such responses.
    fn check_budget(&self, state: &mut State, start: usize) {
        #[cfg(feature = "http-server")]
        if state.answered && self.exceeds_budget() {
            self.drop_answer(state, start);
        }
        #[cfg(not(feature = "http-server"))]
        let _ = (state, start);
    }

    /// Records the number of bytes in the buffer. Must be called with the lock held, so that it does not change concurrently.
    pub(crate) fn note_buffered(&self, length: usize) {
        #[cfg(feature = "http-server")]
        if let Some(budget) = self.budget.get() {
            budget.change(self.buffered.load(Ordering::Relaxed), length);
        }
        self.buffered.store(length, Ordering::Relaxed);
    }

    /// Whether there is space, or the connection has closed, so that waiting is pointless.
    pub(crate) fn has_room(&self) -> bool {
        !self.is_full() || self.state.lock().closed
    }

    /// The number of bytes that are not written yet.
    pub(crate) fn unsent(&self) -> usize {
        self.being_written.load(Ordering::Relaxed) + self.buffered.load(Ordering::Relaxed)
    }

    /// The number of messages that the driver has not taken yet.
    pub(crate) fn unsent_messages(&self) -> usize {
        memchr_iter(b'\n', &self.state.lock().buffer).count()
    }

    /// Waits until there is space, or the connection has closed.
    pub(crate) async fn ready(&self) {
        loop {
            // Created before the check, so that no notification is missed in between.
            let drained = self.drained.notified();
            if self.has_room() {
                return;
            }
            drained.await;
        }
    }

    /// For the driver: waits until there is output, or the connection's state has changed. The output is taken in exchange for
    /// `written`, an empty buffer. Cancel safe.
    ///
    /// With `coalesce`, other tasks that are about to append run first. Otherwise a scheduler may run the driver right after
    /// the first task that appends, and each message would become a separate write.
    pub(crate) async fn take(&self, written: &mut Vec<u8>, coalesce: bool) -> Due {
        poll_fn(|cx| self.poll_take(cx, written, coalesce)).await
    }

    fn poll_take(&self, cx: &Context<'_>, written: &mut Vec<u8>, coalesce: bool) -> Poll<Due> {
        let mut state = self.state.lock();
        let was_woken = mem::take(&mut state.woken);
        if was_woken && coalesce && !state.attention {
            // A task that wakes itself goes to the end of the queue.
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        if let Some(due) = self.due(&mut state, written) {
            return Poll::Ready(due);
        }
        store_waker(&mut state.driver, cx.waker());
        Poll::Pending
    }

    /// Like [`take`](Self::take), without waiting.
    pub(crate) fn try_take(&self, written: &mut Vec<u8>) -> Option<Due> {
        let mut state = self.state.lock();
        state.woken = false;
        self.due(&mut state, written)
    }

    fn due(&self, state: &mut State, written: &mut Vec<u8>) -> Option<Due> {
        if mem::take(&mut state.attention) {
            return Some(Due::Attention);
        }
        if state.buffer.is_empty() {
            return None;
        }
        self.being_written
            .store(state.buffer.len(), Ordering::Relaxed);
        self.exchange(state, written);
        Some(Due::Write)
    }

    /// Takes the content of the buffer, in exchange for an empty buffer.
    pub(crate) fn exchange(&self, state: &mut State, empty: &mut Vec<u8>) {
        mem::swap(&mut state.buffer, empty);
        self.note_buffered(state.buffer.len());
    }

    /// For the driver while it writes: waits until the connection's state has changed. Cancel safe.
    pub(crate) async fn attention(&self) {
        poll_fn(|cx| {
            let mut state = self.state.lock();
            if mem::take(&mut state.attention) {
                return Poll::Ready(());
            }
            store_waker(&mut state.driver, cx.waker());
            Poll::Pending
        })
        .await;
    }

    /// Makes the driver check the state of the connection.
    pub(crate) fn wake_driver(&self) {
        let mut state = self.state.lock();
        state.attention = true;
        wake(state);
    }

    /// For the driver of a peer that has ended: drops the output for that peer, and calls `and` before more is appended.
    #[cfg(feature = "client")]
    pub(crate) fn discard<T>(&self, and: impl FnOnce() -> T) -> T {
        let mut state = self.state.lock();
        state.buffer.clear();
        self.note_buffered(0);
        self.being_written.store(0, Ordering::Relaxed);
        let done = and();
        drop(state);
        self.drained.notify_waiters();
        done
    }

    /// For the driver: waits until there is output, which is not taken, or the connection's state has changed. Cancel safe.
    #[cfg(feature = "client")]
    pub(crate) async fn wanted(&self) -> Due {
        poll_fn(|cx| {
            let mut state = self.state.lock();
            if mem::take(&mut state.attention) {
                return Poll::Ready(Due::Attention);
            }
            if !state.buffer.is_empty() {
                return Poll::Ready(Due::Write);
            }
            store_waker(&mut state.driver, cx.waker());
            Poll::Pending
        })
        .await
    }

    /// For the driver: records that the output that it took has been written.
    pub(crate) fn wrote(&self, written: &mut Vec<u8>, retention: &mut BufferRetention) {
        retention.clear(written);
        self.being_written.store(0, Ordering::Relaxed);
        self.drained.notify_waiters();
    }

    /// The number that identifies the output stream. `None` while there is none.
    pub(crate) fn attachment(&self) -> Option<u32> {
        let attachments = self.attachments.load(Ordering::Relaxed);
        attachments.is_multiple_of(2).then_some(attachments)
    }

    /// Refuses further output, and frees the unsent output.
    pub(crate) fn close(&self) {
        let mut state = self.state.lock();
        state.closed = true;
        self.exchange(&mut state, &mut Vec::new());
        wake(state);
        self.drained.notify_waiters();
    }

    /// Appends the output of `write`, or nothing if it panics: half a message would corrupt the next one.
    fn append_whole<T>(&self, state: &mut State, write: impl FnOnce(&mut Vec<u8>) -> T) -> T {
        let buffer = &mut state.buffer;
        if buffer.capacity() == 0 {
            buffer.reserve(INITIAL_CAPACITY);
        }
        let length = buffer.len();
        let mut rollback = Rollback { buffer, length };
        let written = write(rollback.buffer);
        rollback.length = rollback.buffer.len();
        self.note_buffered(rollback.length);
        drop(rollback);
        #[cfg(feature = "http-server")]
        if length == 0 {
            state.first_end = state.buffer.len();
        }
        written
    }
}

/// Wakes the driver, if it waits.
pub(crate) fn wake(mut state: MutexGuard<'_, State>) {
    let driver = state.driver.take();
    state.woken |= driver.is_some();
    drop(state);
    if let Some(driver) = driver {
        driver.wake();
    }
}

/// Truncates a buffer to `length` on drop, to undo an incomplete write.
struct Rollback<'a> {
    buffer: &'a mut Vec<u8>,
    length: usize,
}

impl Drop for Rollback<'_> {
    fn drop(&mut self) {
        self.buffer.truncate(self.length);
    }
}

/// The capacity up to which an empty buffer is always kept.
const MIN_RETAINED: usize = 64 << 10;
/// The maximum capacity that is kept if messages of that size were written recently: fresh memory costs more than writing to
/// it.
const MAX_RETAINED: usize = 2 << 20;
/// The number of writes between two reviews of their sizes.
const REVIEW_WRITES: u32 = 64;

/// The policy for keeping the memory of an emptied output buffer, based on the sizes of recent writes.
#[derive(Debug)]
pub(crate) struct BufferRetention {
    /// The capacity above which a buffer is freed once it is empty.
    retained: usize,
    /// The size of the largest write since the last review.
    peak: usize,
    writes: u32,
}

impl Default for BufferRetention {
    fn default() -> Self {
        Self {
            retained: MIN_RETAINED,
            peak: 0,
            writes: 0,
        }
    }
}

impl BufferRetention {
    /// Empties a buffer that was written, and keeps its memory if it is likely to be needed again.
    pub(crate) fn clear(&mut self, written: &mut Vec<u8>) {
        self.note(written.len());
        if written.capacity() > self.retained {
            *written = Vec::new();
        }
        written.clear();
    }

    /// Records the size of a write.
    fn note(&mut self, written: usize) {
        self.peak = self.peak.max(written);
        let wanted = |peak: usize| peak.saturating_mul(4).clamp(MIN_RETAINED, MAX_RETAINED);
        self.retained = self.retained.max(wanted(written));
        self.writes += 1;
        if self.writes == REVIEW_WRITES {
            self.retained = wanted(self.peak);
            self.peak = 0;
            self.writes = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(retention: &mut BufferRetention, length: usize) -> usize {
        let mut batch = vec![b' '; length];
        retention.clear(&mut batch);
        assert!(batch.is_empty());
        batch.capacity()
    }

    #[test]
    fn closed_connection_has_no_waiters_for_room() {
        let outbox = Outbox::new(1);
        outbox.append(|buffer| buffer.extend_from_slice(b"{}\n"));
        // The driver never writes it.
        let mut taken = Vec::new();
        assert!(matches!(outbox.try_take(&mut taken), Some(Due::Write)));
        assert!(!outbox.has_room());
        outbox.close();
        assert!(outbox.is_full() && outbox.has_room());
    }

    #[test]
    fn memory_is_retained_only_while_needed() {
        let retention = &mut BufferRetention::default();
        assert_eq!(write(retention, MAX_RETAINED + 1), 0);
        for _ in 0..REVIEW_WRITES {
            assert_eq!(write(retention, 1 << 20), 1 << 20);
        }
        for _ in 0..REVIEW_WRITES * 2 {
            write(retention, 10);
        }
        assert_eq!(retention.retained, MIN_RETAINED);
    }
}
