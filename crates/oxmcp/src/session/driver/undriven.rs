//! Connections that nobody drives: whoever brings a request takes what it is answered with.

use std::{
    future::poll_fn,
    sync::{Arc, MutexGuard, PoisonError, atomic::Ordering},
    task::{Context, Poll},
    time::Duration,
};

use crate::session::{
    Connection,
    connection::{OnClosing, Outcome},
    inflight::InFlight,
    outbox::{Outbox, ROOM, State},
    waiting,
};

/// What there is to do for who sends what one request is answered with.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Reply {
    /// There is something to send, and more may follow.
    More,
    /// What was taken is all.
    Last(Last),
    /// More follows, but the client is to fetch it later, after as long as that.
    Part(Duration),
}

/// What was taken with which nothing follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Last {
    Nothing,
    /// One message.
    Message,
    Messages,
}

impl Connection {
    /// Does that once this side wants to close, which may be now.
    pub(crate) fn when_closing(&self, then: OnClosing) {
        let mut on_closing = self.lock_on_closing();
        // Whoever closes has said so before he looks here.
        if !self.is_closing() {
            *on_closing = Some(then);
            return;
        }
        drop(on_closing);
        then();
    }

    /// This side wants to close.
    pub(crate) fn now_closing(&self) {
        let then = self.lock_on_closing().take();
        if let Some(then) = then {
            then();
        }
    }

    /// Whether something was to be done once this side wants to close. It is not done any more.
    pub(crate) fn forget_closing(&self) -> bool {
        self.lock_on_closing().take().is_some()
    }

    fn lock_on_closing(&self) -> MutexGuard<'_, Option<OnClosing>> {
        self.on_closing
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends a connection that nobody drives, and the session that it is: what is still being served is cancelled.
    pub(crate) fn end(self: &Arc<Self>) {
        self.cut(Outcome::Closed);
        self.finished();
    }

    /// Ends a connection that nobody drives and that never was a session of its own.
    pub(crate) fn abandon(self: &Arc<Self>) {
        self.cut(Outcome::Closed);
        self.ended.set();
    }
}

/// Who takes what a connection has to send that nobody drives, for as long as this lives.
#[derive(Debug)]
pub(crate) struct Hearing(Arc<Connection>);

impl Hearing {
    pub(crate) fn new(connection: &Arc<Connection>) -> Self {
        connection.outbox.turn();
        Self(Arc::clone(connection))
    }
}

impl Drop for Hearing {
    fn drop(&mut self) {
        self.0.outbox.turn();
    }
}

impl Outbox {
    /// Nobody takes what is appended, until a [`Hearing`] does.
    pub(crate) fn is_for_later(&self) {
        self.turn();
    }

    fn turn(&self) {
        self.turns.fetch_add(1, Ordering::Relaxed);
    }

    /// Asks that the stream end before the answer.
    pub(crate) fn part(&self, retry: Duration) {
        let mut state = self.lock();
        state.parted = Some(retry);
        let driver = state.driver.take();
        drop(state);
        if let Some(driver) = driver {
            driver.wake();
        }
    }

    /// For who sends what requests are answered with, where there is no driver: takes what is to be sent in exchange for
    /// `sent`, an empty buffer. Whatever was taken before counts as sent.
    pub(crate) fn poll_reply(&self, cx: &Context<'_>, sent: &mut Vec<u8>) -> Poll<Reply> {
        if self.being_written.swap(0, Ordering::Relaxed) > 0 {
            self.drained.notify_waiters();
        }
        let mut state = self.lock();
        self.being_written
            .store(state.buffer.len(), Ordering::Relaxed);
        self.exchange(&mut state, sent);
        if let Some(last) = state.last(sent) {
            return Poll::Ready(Reply::Last(last));
        }
        if !sent.is_empty() {
            return Poll::Ready(Reply::More);
        }
        if let Some(retry) = state.parted.take() {
            return Poll::Ready(Reply::Part(retry));
        }
        // Most streams are silent most of the time, and there may be thousands.
        give_back(&mut state.buffer);
        give_back(sent);
        waiting::note(&mut state.driver, cx.waker());
        Poll::Pending
    }

    /// Takes what is to be sent in exchange for `sent`, an empty buffer, where nothing will follow. Else nothing is taken.
    pub(crate) fn take_last(&self, sent: &mut Vec<u8>) -> Option<Last> {
        let mut state = self.lock();
        let last = state.last(&state.buffer)?;
        self.exchange(&mut state, sent);
        Some(last)
    }

    /// The same as a future. Cancel safe.
    pub(crate) async fn reply(&self, sent: &mut Vec<u8>) -> Reply {
        poll_fn(|cx| self.poll_reply(cx, sent)).await
    }
}

impl State {
    /// What this is that the buffer had in it, where nothing will follow.
    fn last(&self, taken: &[u8]) -> Option<Last> {
        (self.answered || self.closed).then_some(match taken.len() {
            0 => Last::Nothing,
            length if length == self.first_end => Last::Message,
            _ => Last::Messages,
        })
    }
}

/// Frees the room of an empty buffer that will soon be had again. That of one through which much has gone is kept.
fn give_back(buffer: &mut Vec<u8>) {
    if buffer.capacity() <= ROOM {
        *buffer = Vec::new();
    }
}

impl InFlight {
    /// Waits, while it drains, until nothing is being served any more. Cancel safe.
    pub(crate) async fn settled(&self) {
        loop {
            let emptied = self.emptied.notified();
            if self.is_empty() {
                return;
            }
            emptied.await;
        }
    }
}
