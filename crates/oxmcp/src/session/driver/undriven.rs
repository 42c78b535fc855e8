//! The output of connections that have no driver: over HTTP the stream of a request takes what the request is answered
//! with.

use std::{
    future::poll_fn,
    sync::{Arc, atomic::Ordering},
    task::{Context, Poll},
    time::Duration,
};

use crate::session::{
    connection::Connection,
    driver::outbox::{INITIAL_CAPACITY, Outbox, State, wake},
    task::store_waker,
};

/// The next step of a stream that sends what a request is answered with.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Reply {
    /// There is something to send, and more may follow.
    More,
    /// What was taken is all.
    Last(Last),
    /// More follows, but the client is to fetch it later, after as long as that.
    Part(Duration),
}

/// What was taken, with nothing to follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Last {
    Nothing,
    /// One message.
    Message,
    Messages,
}

/// A stream that takes what a connection has to send; it is attached for as long as this lives.
#[derive(Debug)]
pub(crate) struct Attached(Arc<Connection>);

impl Attached {
    pub(crate) fn new(connection: &Arc<Connection>) -> Self {
        connection.outbox.attach_or_detach();
        Self(Arc::clone(connection))
    }
}

impl Drop for Attached {
    fn drop(&mut self) {
        self.0.outbox.attach_or_detach();
    }
}

impl Outbox {
    /// No stream takes what is appended, until one is [`Attached`].
    pub(crate) fn is_for_later(&self) {
        self.attach_or_detach();
    }

    fn attach_or_detach(&self) {
        self.attachments.fetch_add(1, Ordering::Relaxed);
    }

    /// Asks that the stream end before the answer.
    pub(crate) fn part(&self, retry: Duration) {
        let mut state = self.state.lock();
        state.parted = Some(retry);
        wake(state);
    }

    /// For a stream in the place of the driver: takes what is to be sent in exchange for `sent`, an empty buffer. What was
    /// taken before counts as sent.
    pub(crate) fn poll_reply(&self, cx: &Context<'_>, sent: &mut Vec<u8>) -> Poll<Reply> {
        if self.being_written.swap(0, Ordering::Relaxed) > 0 {
            self.drained.notify_waiters();
        }
        let mut state = self.state.lock();
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
        store_waker(&mut state.driver, cx.waker());
        Poll::Pending
    }

    /// The same as a future. Cancel safe.
    pub(crate) async fn reply(&self, sent: &mut Vec<u8>) -> Reply {
        poll_fn(|cx| self.poll_reply(cx, sent)).await
    }
}

impl State {
    /// What was in the buffer, where nothing will follow.
    fn last(&self, taken: &[u8]) -> Option<Last> {
        (self.answered || self.closed).then_some(match taken.len() {
            0 => Last::Nothing,
            length if length == self.first_end => Last::Message,
            _ => Last::Messages,
        })
    }
}

/// Frees a buffer that has only its initial capacity, which is soon had again. That of one through which much has gone is kept.
fn give_back(buffer: &mut Vec<u8>) {
    if buffer.capacity() <= INITIAL_CAPACITY {
        *buffer = Vec::new();
    }
}
