//! A call on its way: its place in the table of those that wait, and what is sent.

use std::{sync::Arc, task::Waker};

use tokio::time::Instant;

use crate::{
    Result,
    jsonrpc::{ExtraMeta, RequestId, write_notification, write_request},
    protocol::CancelledParams,
    session::{
        Connection, call_options::OnBegin, calls::Answer, clock::Wait,
        progress_queue::ProgressSender,
    },
};

/// Appends params.
pub(super) type Encode<'a> = dyn Fn(&mut Vec<u8>) -> serde_json::Result<()> + Sync + 'a;

/// A call on its way. Dropped before it was answered, it is cancelled on the wire.
pub(super) struct Pending<'a> {
    pub(super) connection: &'a Arc<Connection>,
    pub(super) id: i64,
    method: &'a str,
    pub(super) state: State,
}

/// How far a call has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    New,
    /// It stands in the table of those that wait.
    Entered,
    /// The peer knows of it.
    Sent,
    /// It stands in the table no more.
    Answered,
}

impl<'a> Pending<'a> {
    pub(super) fn new(connection: &'a Arc<Connection>, method: &'a str) -> Self {
        Self {
            connection,
            id: 0,
            method,
            state: State::New,
        }
    }

    /// Gives it an id, under which `waker` is woken by the answer, or at `alarm`.
    pub(super) fn enter(
        &mut self,
        progress: Option<ProgressSender>,
        alarm: Option<Instant>,
        waker: Waker,
        on_begin: Option<OnBegin>,
    ) -> Result<()> {
        let entered = self.connection.calls().enter(progress, alarm, waker)?;
        self.id = entered.id;
        self.state = State::Entered;
        if entered.needs_clock {
            self.connection.start_clock();
        }
        if let Some(on_begin) = on_begin {
            on_begin(self.id);
        }
        Ok(())
    }

    /// Sends it, once it has been entered.
    pub(super) fn send(&mut self, encode: &Encode<'_>, extra: ExtraMeta<'_>) -> Result<()> {
        let (id, method) = (self.id, self.method);
        self.connection
            .notify_raw(|out| write_request(out, id, method, encode, extra))?;
        self.state = State::Sent;
        Ok(())
    }

    /// It has waited.
    pub(super) fn end(&mut self, end: Wait) -> Answer {
        if let Wait::Answered(answer) = end {
            self.state = State::Answered;
            return answer;
        }
        Err(end.into_error(self.method))
    }
}

impl Drop for Pending<'_> {
    fn drop(&mut self) {
        if matches!(self.state, State::New | State::Answered) {
            return;
        }
        let waiting = self.connection.calls().leave(self.id);
        // `initialize` must not be cancelled, says the specification of every revision that has it.
        if waiting && self.state == State::Sent && self.method != "initialize" {
            let params = CancelledParams::new(RequestId::Number(self.id));
            // A peer that is gone needs no cancellation.
            let _ = self
                .connection
                .notify_raw(|out| write_notification(out, "notifications/cancelled", &params));
        }
        if self.connection.is_closing() {
            // It may have been the last that the driver was waiting for.
            self.connection.outbox.call_attention();
        }
    }
}
