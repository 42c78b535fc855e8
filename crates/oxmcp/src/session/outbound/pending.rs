//! A call on its way: its place in the table of those that wait, and what is sent.

use std::{mem, sync::Arc, task::Waker};

use tokio::time::Instant;

use crate::{
    Result,
    jsonrpc::{ExtraMeta, RequestId, write_notification, write_request},
    protocol::CancelledParams,
    session::{
        CallOptions, Connection, calls::Answer, clock::Wait, progress_queue::ProgressSender,
    },
};

/// A call that is to be made.
pub(crate) struct Outgoing<'a> {
    pub(crate) connection: &'a Arc<Connection>,
    pub(crate) method: &'a str,
    /// A JSON object, without a `_meta`.
    pub(crate) params: &'a [u8],
    pub(crate) options: &'a mut CallOptions,
}

impl Outgoing<'_> {
    /// When its clock began to run.
    pub(crate) fn start(&mut self) -> Instant {
        let now = || self.connection.now();
        *self.options.start.get_or_insert_with(now)
    }

    /// Whether nothing is wanted of it but the answer, and it can be sent at once. See [`PlainCall`](super::PlainCall).
    pub(crate) fn is_plain(&self) -> bool {
        let connection = self.connection;
        self.options.is_plain()
            && !connection.outbox.is_full()
            && !connection.is_closing()
            && connection.role().outgoing().is_none()
    }
}

/// A call on its way, for who knows what call it is.
#[derive(Debug)]
pub(crate) struct Ticket {
    pub(crate) id: i64,
    pub(crate) state: State,
}

/// How far a call has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    New,
    /// It stands in the table of those that wait.
    Entered,
    /// The peer knows of it.
    Sent,
    /// It stands in the table no more.
    Answered,
}

impl Ticket {
    pub(crate) fn new() -> Self {
        Self {
            id: 0,
            state: State::New,
        }
    }

    /// Gives the call an id, under which `waker` is woken by the answer, or at `alarm`.
    pub(crate) fn enter(
        &mut self,
        call: &mut Outgoing<'_>,
        progress: Option<ProgressSender>,
        alarm: Option<Instant>,
        waker: Waker,
    ) -> Result<()> {
        let connection = call.connection;
        let entered = connection.calls().enter(progress, alarm, waker)?;
        self.id = entered.id;
        self.state = State::Entered;
        if entered.needs_clock {
            connection.start_clock();
        }
        if let Some(on_begin) = call.options.on_begin.take() {
            on_begin(self.id);
        }
        Ok(())
    }

    /// Sends it, once it has been entered.
    pub(crate) fn send(&mut self, call: &Outgoing<'_>, progress: bool) -> Result<()> {
        let Outgoing {
            connection,
            method,
            params,
            options,
        } = call;
        let extra = ExtraMeta {
            envelope: connection.role().envelope(),
            progress,
            meta: options.meta.as_object(),
        };
        let id = self.id;
        connection.notify_raw(|out| write_request(out, id, method, params, extra))?;
        self.state = State::Sent;
        Ok(())
    }

    /// The call has waited.
    pub(crate) fn end(&mut self, method: &str, end: Wait) -> Answer {
        if let Wait::Answered(answer) = end {
            self.state = State::Answered;
            return answer;
        }
        Err(end.into_error(method))
    }

    /// Nobody waits for the call any more. Unless it was answered, it is cancelled on the wire.
    pub(crate) fn give_up(&mut self, connection: &Connection, method: &str) {
        let state = mem::replace(&mut self.state, State::Answered);
        if matches!(state, State::New | State::Answered) {
            return;
        }
        let waiting = connection.calls().leave(self.id);
        // `initialize` must not be cancelled, says the specification of every revision that has it.
        if waiting && state == State::Sent && method != "initialize" {
            let params = CancelledParams::new(RequestId::Number(self.id));
            // A peer that is gone needs no cancellation.
            let _ = connection
                .notify_raw(|out| write_notification(out, "notifications/cancelled", &params));
        }
        if connection.is_closing() {
            // It may have been the last that the driver was waiting for.
            connection.outbox.call_attention();
        }
    }
}

/// A call on its way. Dropped before it was answered, it is cancelled on the wire.
pub(crate) struct Pending<'a> {
    pub(crate) call: Outgoing<'a>,
    pub(crate) ticket: Ticket,
}

impl Drop for Pending<'_> {
    fn drop(&mut self) {
        let Outgoing {
            connection, method, ..
        } = self.call;
        self.ticket.give_up(connection, method);
    }
}
