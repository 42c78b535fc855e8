//! The output of connections without a driver: over HTTP, the stream of a request sends the response and the messages before
//! it.

use std::{
    future::poll_fn,
    sync::{Arc, atomic::Ordering},
    task::{Context, Poll},
    time::Duration,
};

use oxmcp_protocol::{ErrorCode, ErrorObject, RequestId, internal::write_error};
use serde::Deserialize;

use crate::session::{
    connection::Connection,
    driver::{
        budget::Budget,
        outbox::{INITIAL_CAPACITY, Outbox, State, wake},
    },
    task::store_waker,
};

/// The error message in place of a response that does not fit into the budget.
const NO_ROOM: &str = "could not send the response: the server's response buffers are full";

/// The next step of a stream that sends the output for a request.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Reply {
    /// There is output to send, and more may follow.
    More,
    /// The output that was taken is complete.
    Last(Last),
    /// More follows, but the client should fetch it later, after this delay.
    Part(Duration),
}

/// The content of the output that was taken last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Last {
    Nothing,
    /// One message.
    Message,
    Messages,
}

/// Marks an output stream as attached to a connection, until it is dropped.
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
    /// Counts the content of the buffer in a budget, from now on. With `drops_answers`, for an outbox of one request, a
    /// response that does not fit is dropped.
    pub(crate) fn count_in(&self, budget: &Arc<Budget>, drops_answers: bool) {
        self.drops_answers.store(drops_answers, Ordering::Relaxed);
        let state = self.state.lock();
        // It is set only once.
        if self.budget.set(Arc::clone(budget)).is_ok() {
            budget.change(0, state.buffer.len());
        }
    }

    /// The budget in which the buffer counts.
    pub(crate) fn budget(&self) -> Option<&Arc<Budget>> {
        self.budget.get()
    }

    /// Removes a response that was appended from `start` on, if responses are dropped. An error replaces it, even if that
    /// exceeds the budget. If the stream has not begun yet, the outbox is closed, and the whole request is refused.
    pub(crate) fn drop_answer(&self, state: &mut State, start: usize) {
        if !self.drops_answers.load(Ordering::Relaxed) {
            return;
        }
        tracing::debug!("response buffers are full; dropping a response");
        if state.streamed {
            let refusal = refusal(state.buffer.get(start..).unwrap_or_default());
            state.buffer.truncate(start);
            state.buffer.extend_from_slice(&refusal);
            state.buffer.shrink_to(INITIAL_CAPACITY);
            if start == 0 {
                state.first_end = state.buffer.len();
            }
            self.note_buffered(state.buffer.len());
            return;
        }
        state.closed = true;
        state.exhausted = true;
        self.exchange(state, &mut Vec::new());
        self.drained.notify_waiters();
    }

    /// Records that the output stream begins: from here on the whole request cannot be refused anymore. Returns false if the
    /// response did not fit, so that it still can.
    pub(crate) fn begin_stream(&self) -> bool {
        let mut state = self.state.lock();
        state.streamed = true;
        !state.exhausted
    }

    /// Whether the response did not fit and the stream had not begun.
    pub(crate) fn is_exhausted(&self) -> bool {
        self.state.lock().exhausted
    }

    /// Records that there is no output stream, until one is [`Attached`].
    pub(crate) fn is_for_later(&self) {
        self.attach_or_detach();
    }

    fn attach_or_detach(&self) {
        self.attachments.fetch_add(1, Ordering::Relaxed);
    }

    /// Asks the stream to end before the response; the client should resume after `retry`.
    pub(crate) fn part(&self, retry: Duration) {
        let mut state = self.state.lock();
        state.parted = Some(retry);
        wake(state);
    }

    /// For a stream, in place of the driver: takes the output in exchange for `sent`, an empty buffer. Output that was taken
    /// before counts as sent.
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
        // Most streams are idle most of the time, and there may be thousands.
        give_back(&mut state.buffer);
        give_back(sent);
        store_waker(&mut state.driver, cx.waker());
        Poll::Pending
    }

    /// Like [`poll_reply`](Self::poll_reply), as a future. Cancel safe.
    pub(crate) async fn reply(&self, sent: &mut Vec<u8>) -> Reply {
        poll_fn(|cx| self.poll_reply(cx, sent)).await
    }
}

impl Drop for Outbox {
    fn drop(&mut self) {
        self.note_buffered(0);
    }
}

impl State {
    /// The content of the taken output, if no more will follow.
    fn last(&self, taken: &[u8]) -> Option<Last> {
        (self.answered || self.closed).then_some(match taken.len() {
            0 => Last::Nothing,
            length if length == self.first_end => Last::Message,
            _ => Last::Messages,
        })
    }
}

/// The errors that replace a response, or a batch of responses.
fn refusal(answer: &[u8]) -> Vec<u8> {
    #[derive(Deserialize)]
    struct Answer {
        id: Option<RequestId>,
    }

    let error = ErrorObject::new(ErrorCode::INTERNAL_ERROR, NO_ROOM);
    let mut out = Vec::new();
    if answer.first() != Some(&b'[') {
        if let Ok(answer) = serde_json::from_slice::<Answer>(answer) {
            write_error(&mut out, answer.id.as_ref(), &error);
        }
        return out;
    }
    let answers: Vec<Answer> = serde_json::from_slice(answer).unwrap_or_default();
    for Answer { id } in answers {
        out.push(if out.is_empty() { b'[' } else { b',' });
        write_error(&mut out, id.as_ref(), &error);
        out.pop();
    }
    if !out.is_empty() {
        out.extend_from_slice(b"]\n");
    }
    out
}

/// Frees a buffer that has only its initial capacity, which is cheap to allocate again. A grown buffer is kept.
fn give_back(buffer: &mut Vec<u8>) {
    if buffer.capacity() <= INITIAL_CAPACITY {
        *buffer = Vec::new();
    }
}

#[cfg(test)]
mod tests {
    use std::{pin::pin, task::Waker};

    use futures_util::FutureExt;

    use super::*;

    /// The output in place of a response that does not fit, once its stream has begun.
    fn refused(answer: &[u8]) -> (Poll<Reply>, String) {
        let (outbox, budget) = (Outbox::new(1 << 20), Budget::new(100));
        outbox.count_in(&budget, true);
        assert!(outbox.begin_stream());
        let progress = b"{\"method\":\"p\"}\n";
        outbox.append(|out| out.extend_from_slice(progress));
        outbox.append_answer(|out| out.extend_from_slice(answer));
        let mut taken = Vec::new();
        assert!(budget.used() < progress.len() + answer.len());
        let reply = outbox.poll_reply(&Context::from_waker(Waker::noop()), &mut taken);
        assert_eq!(budget.used(), 0);
        let rest = taken.strip_prefix(progress).unwrap();
        (reply, String::from_utf8(rest.to_vec()).unwrap())
    }

    #[test]
    fn answer_without_room_becomes_error_mid_stream() {
        let long = "x".repeat(1000);
        let error = format!(r#""error":{{"code":-32603,"message":"{NO_ROOM}"}}}}"#);
        let answer = |id: &str| format!(r#"{{"jsonrpc":"2.0","id":{id},"result":"{long}"}}"#);
        let (reply, got) = refused(format!("{}\n", answer("7")).as_bytes());
        assert_eq!(reply, Poll::Ready(Reply::Last(Last::Messages)));
        assert_eq!(got, format!("{{\"jsonrpc\":\"2.0\",\"id\":7,{error}\n"));
        let batch = format!("[{},{}]\n", answer("1"), answer("\"b\""));
        let (_, got) = refused(batch.as_bytes());
        let head = r#"{"jsonrpc":"2.0","id":"#;
        assert_eq!(got, format!("[{head}1,{error},{head}\"b\",{error}]\n"));
    }

    #[test]
    fn answer_without_room_closes_an_unsent_outbox() {
        let (outbox, budget) = (Outbox::new(1 << 20), Budget::new(10));
        outbox.count_in(&budget, true);
        outbox.append_answer(|out| out.extend_from_slice(&[b' '; 11]));
        assert!(outbox.is_exhausted() && !outbox.begin_stream());
        assert_eq!(budget.used(), 0);
        assert!(
            outbox.append(|out| out.push(b'\n')).is_none(),
            "it is closed"
        );
    }

    #[test]
    fn waiters_continue_when_an_answer_has_no_room() {
        let (outbox, budget) = (Outbox::new(1), Budget::new(10));
        outbox.count_in(&budget, true);
        outbox.append(|out| out.extend_from_slice(b"ab"));
        let mut ready = pin!(outbox.ready());
        assert_eq!(ready.as_mut().now_or_never(), None);
        outbox.append_answer(|out| out.extend_from_slice(&[b' '; 11]));
        assert_eq!(ready.now_or_never(), Some(()));
    }

    #[test]
    fn silent_stream_retains_only_buffers_of_long_messages() {
        let kept = |length: usize| {
            let (outbox, mut sent) = (Outbox::new(1 << 20), Vec::new());
            let mut poll = || {
                let reply = outbox.poll_reply(&Context::from_waker(Waker::noop()), &mut sent);
                sent.clear();
                reply
            };
            // Twice, so that both buffers have been used.
            for _ in 0..2 {
                outbox.append(|out| out.resize(length, b' '));
                assert_eq!(poll(), Poll::Ready(Reply::More));
            }
            assert_eq!(poll(), Poll::Pending);
            let buffered = outbox.state.lock().buffer.capacity();
            (buffered > 0, sent.capacity() > 0)
        };
        assert_eq!(kept(INITIAL_CAPACITY), (false, false));
        assert_eq!(kept(INITIAL_CAPACITY + 1), (true, true));
    }

    #[test]
    fn bytes_buffered_before_the_budget_are_counted() {
        let (outbox, budget) = (Outbox::new(1 << 20), Budget::new(10));
        outbox.append(|out| out.extend_from_slice(b"12345"));
        outbox.count_in(&budget, false);
        assert_eq!(budget.used(), 5);
        outbox.close();
        assert_eq!(budget.used(), 0);
    }
}
