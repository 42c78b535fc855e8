//! What waits to be written: one buffer for each connection, which everybody appends to and the driver empties.

#[cfg(feature = "http-server")]
use std::time::Duration;
use std::{
    future::poll_fn,
    mem,
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU32, AtomicUsize, Ordering},
    },
    task::{Context, Poll, Waker},
};

use tokio::sync::Notify;

use crate::session::{room::Room, waiting};

/// How much room a buffer begins with: enough for most messages.
pub(crate) const ROOM: usize = 512;
/// The one output buffer of a connection.
///
/// Messages are serialized straight into it, in the order in which they will be on the wire. Many small ones become
/// one write. Nothing is ever dropped: whoever can wait does so in [`ready`](Self::ready) while too much is unsent.
#[derive(Debug)]
pub(crate) struct Outbox {
    state: Mutex<State>,
    /// Bytes that are in the buffer, for those who want to know no more than that.
    waiting: AtomicUsize,
    /// Bytes that the driver took and has not written yet.
    pub(crate) being_written: AtomicUsize,
    pub(crate) drained: Notify,
    max_unsent: usize,
    /// How often it was found or left by who takes what is appended: odd while nobody does, as it may be over HTTP.
    pub(crate) turns: AtomicU32,
}

#[derive(Debug, Default)]
pub(crate) struct State {
    pub(crate) buffer: Vec<u8>,
    /// Where the first message in the buffer ends.
    #[cfg(feature = "http-server")]
    pub(crate) first_end: usize,
    /// The driver, where it waits for something to write.
    pub(crate) driver: Option<Waker>,
    /// Somebody has woken the driver by what he appended.
    roused: bool,
    /// Something other than the buffer has changed.
    attention: bool,
    /// All that the requests here were for has been appended.
    pub(crate) answered: bool,
    /// The stream is to be ended though there is more to come; the client is to wait this long before it asks for that.
    #[cfg(feature = "http-server")]
    pub(crate) parted: Option<Duration>,
    pub(crate) closed: bool,
}

/// What there is to do for the driver.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Due {
    /// There is something to write.
    Write,
    /// The connection's state has changed.
    Attention,
}

impl Outbox {
    pub(crate) fn new(max_unsent: usize) -> Self {
        Self {
            state: Mutex::default(),
            waiting: AtomicUsize::new(0),
            being_written: AtomicUsize::new(0),
            drained: Notify::new(),
            max_unsent,
            turns: AtomicU32::new(0),
        }
    }

    /// Appends a message, which `write` serializes with its newline. After the connection has closed it does nothing.
    pub(crate) fn append<T>(&self, write: impl FnOnce(&mut Vec<u8>) -> T) -> Option<T> {
        self.add(false, write)
    }

    /// Like [`append`](Self::append), for what answers all that was asked here.
    pub(crate) fn append_answer<T>(&self, write: impl FnOnce(&mut Vec<u8>) -> T) -> Option<T> {
        self.add(true, write)
    }

    fn add<T>(&self, is_answer: bool, write: impl FnOnce(&mut Vec<u8>) -> T) -> Option<T> {
        let mut state = self.lock();
        if state.closed {
            return None;
        }
        let written = self.append_whole(&mut state, write);
        state.answered |= is_answer;
        rouse(state);
        Some(written)
    }

    /// Like [`append`](Self::append), unless so much is unsent that the message should wait: then it does nothing, and
    /// returns false.
    pub(crate) fn append_if_room(&self, write: impl FnOnce(&mut Vec<u8>)) -> bool {
        let mut state = self.lock();
        if state.closed {
            return true;
        }
        if self.is_full() {
            return false;
        }
        self.append_whole(&mut state, write);
        rouse(state);
        true
    }

    /// Like [`append_answer`](Self::append_answer), from within the driver, which looks for itself before it sleeps.
    pub(crate) fn append_from_driver<T>(&self, write: impl FnOnce(&mut Vec<u8>) -> T) -> Option<T> {
        let mut state = self.lock();
        if state.closed {
            return None;
        }
        state.answered = true;
        Some(self.append_whole(&mut state, write))
    }

    /// Whether so much is unsent that requests should wait.
    pub(crate) fn is_full(&self) -> bool {
        self.unsent() > self.max_unsent
    }

    /// Whether there is room, or the connection has closed, so that there is nothing to wait for.
    pub(crate) fn has_room(&self) -> bool {
        !self.is_full() || self.lock().closed
    }

    /// How many bytes are not written yet.
    pub(crate) fn unsent(&self) -> usize {
        self.being_written.load(Ordering::Relaxed) + self.waiting.load(Ordering::Relaxed)
    }

    /// Waits until there is room, or the connection has closed.
    pub(crate) async fn ready(&self) {
        loop {
            // It hears of all that happens from here on, so what is checked next cannot change unheard.
            let drained = self.drained.notified();
            if self.has_room() {
                return;
            }
            drained.await;
        }
    }

    /// For the driver: waits until there is something to do for it. What is to be written is taken in exchange for
    /// `written`, an empty buffer. Cancel safe.
    ///
    /// With `gather`, whoever else is about to append has his turn first: a scheduler may run the driver right after
    /// the first task that appends, and then each message would become a write of its own.
    pub(crate) async fn take(&self, written: &mut Vec<u8>, gather: bool) -> Due {
        poll_fn(|cx| self.poll_take(cx, written, gather)).await
    }

    fn poll_take(&self, cx: &Context<'_>, written: &mut Vec<u8>, gather: bool) -> Poll<Due> {
        let mut state = self.lock();
        let is_roused = mem::take(&mut state.roused);
        if is_roused && gather && !state.attention {
            // A task that wakes itself goes to the end of the queue.
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        if let Some(due) = self.due(&mut state, written) {
            return Poll::Ready(due);
        }
        waiting::note(&mut state.driver, cx.waker());
        Poll::Pending
    }

    /// The same where there is something to do at once.
    pub(crate) fn take_now(&self, written: &mut Vec<u8>) -> Option<Due> {
        let mut state = self.lock();
        state.roused = false;
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

    /// Takes what is in the buffer, in exchange for an empty one.
    pub(crate) fn exchange(&self, state: &mut State, empty: &mut Vec<u8>) {
        mem::swap(&mut state.buffer, empty);
        self.waiting.store(state.buffer.len(), Ordering::Relaxed);
    }

    /// For the driver while it writes: waits until the connection's state has changed. Cancel safe.
    pub(crate) async fn attention(&self) {
        poll_fn(|cx| {
            let mut state = self.lock();
            if mem::take(&mut state.attention) {
                return Poll::Ready(());
            }
            state.driver = Some(cx.waker().clone());
            Poll::Pending
        })
        .await;
    }

    /// Makes the driver look at the state of the connection.
    pub(crate) fn call_attention(&self) {
        let mut state = self.lock();
        state.attention = true;
        let driver = state.driver.take();
        drop(state);
        if let Some(driver) = driver {
            driver.wake();
        }
    }

    /// For the driver: what it took has been written.
    pub(crate) fn wrote(&self, written: &mut Vec<u8>, room: &mut Room) {
        room.clear(written);
        self.being_written.store(0, Ordering::Relaxed);
        self.drained.notify_waiters();
    }

    /// Something that changes whenever somebody comes or goes who takes what is appended. `None` while there is nobody.
    pub(crate) fn heard_in(&self) -> Option<u32> {
        let turns = self.turns.load(Ordering::Relaxed);
        turns.is_multiple_of(2).then_some(turns)
    }

    /// Refuses what comes from now on, and frees what waits.
    pub(crate) fn close(&self) {
        let mut state = self.lock();
        state.closed = true;
        self.exchange(&mut state, &mut Vec::new());
        let driver = state.driver.take();
        drop(state);
        self.drained.notify_waiters();
        if let Some(driver) = driver {
            driver.wake();
        }
    }

    /// Appends what `write` writes, all of it or, where it panics, nothing: half a message would spoil the next one.
    fn append_whole<T>(&self, state: &mut State, write: impl FnOnce(&mut Vec<u8>) -> T) -> T {
        let buffer = &mut state.buffer;
        if buffer.capacity() == 0 {
            buffer.reserve(ROOM);
        }
        let length = buffer.len();
        let mut whole = Whole { buffer, length };
        let written = write(whole.buffer);
        whole.length = whole.buffer.len();
        self.waiting.store(whole.length, Ordering::Relaxed);
        drop(whole);
        #[cfg(feature = "http-server")]
        if length == 0 {
            state.first_end = state.buffer.len();
        }
        written
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        // A panic while a user's type is serialized leaves nothing behind: see `append_whole`.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Wakes the driver, where it waits, for what was appended.
fn rouse(mut state: MutexGuard<'_, State>) {
    let driver = state.driver.take();
    state.roused |= driver.is_some();
    drop(state);
    if let Some(driver) = driver {
        driver.wake();
    }
}

/// A buffer whose end holds nothing by halves.
struct Whole<'a> {
    buffer: &'a mut Vec<u8>,
    length: usize,
}

impl Drop for Whole<'_> {
    fn drop(&mut self) {
        self.buffer.truncate(self.length);
    }
}
