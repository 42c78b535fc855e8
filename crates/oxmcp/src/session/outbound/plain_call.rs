//! A call of which nothing is wanted but the answer, as of most.

use std::{
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, Waker, ready},
};

use tokio::select;

use crate::{
    Result,
    session::{
        Connection,
        calls::Answer,
        clock::{Clock, Wait, deadline},
        pending::{Outgoing, State, Ticket},
    },
};

/// A call that is made when it is first polled, and then waits for its answer and nothing else.
///
/// Futures of async functions are moved into each other, layer by layer, and what they return is moved out again. This one
/// is by hand, because nearly all calls are one. It is polled by who keeps what the call is made of, and so can be a part of
/// him.
pub(crate) struct PlainCall {
    ticket: Ticket,
    /// What waits in place of it since its alarm has rung.
    late: Option<Late>,
}

type Late = Pin<Box<dyn Future<Output = Wait> + Send>>;

impl PlainCall {
    pub(crate) fn new() -> Self {
        Self {
            ticket: Ticket::new(),
            late: None,
        }
    }

    /// Whether it was never polled.
    pub(crate) fn is_new(&self) -> bool {
        self.ticket.state == State::New
    }

    /// The same call each time, with options that want nothing beside the answer; the first time over a connection on which
    /// there is room. Whoever polls it no more, though it was not answered, [gives it up](Self::give_up).
    pub(crate) fn poll(&mut self, call: &mut Outgoing<'_>, cx: &mut Context<'_>) -> Poll<Answer> {
        if self.is_new() {
            return match self.begin(call, cx.waker()) {
                // Who waits stands in the table: there is nothing to look at until he is woken.
                Ok(()) => Poll::Pending,
                Err(error) => Poll::Ready(Err(error)),
            };
        }
        let late = match &mut self.late {
            Some(late) => late,
            none => {
                let answer = call.connection.calls().poll(self.ticket.id, cx);
                if let Some(answer) = ready!(answer) {
                    self.ticket.state = State::Answered;
                    return Poll::Ready(answer);
                }
                none.insert(wait_on(call, self.ticket.id))
            }
        };
        let end = ready!(late.as_mut().poll(cx));
        Poll::Ready(self.ticket.end(call.method, end))
    }

    fn begin(&mut self, call: &mut Outgoing<'_>, waker: &Waker) -> Result<()> {
        let alarm = deadline(call.start(), call.options);
        self.ticket.enter(call, None, Some(alarm), waker.clone())?;
        self.ticket.send(call, false)
    }

    /// Nobody waits for the answer any more: unless it has come, the call is cancelled on the wire.
    pub(crate) fn give_up(&mut self, connection: &Connection, method: &str) {
        self.ticket.give_up(connection, method);
    }
}

/// Waits on, beyond the alarm: not for long, unless somebody is being asked.
fn wait_on(call: &mut Outgoing<'_>, id: i64) -> Late {
    let clock = Clock::start(call.start(), call.options);
    let connection = Arc::clone(call.connection);
    Box::pin(async move {
        select! {
            biased;
            answer = connection.calls().answered(id) => Wait::Answered(answer),
            () = connection.patience().ends(clock.deadline, clock.timeout, clock.last) => clock.timed_out(),
        }
    })
}

/// A plain call that is awaited.
pub(crate) struct PlainExchange<'a> {
    call: Outgoing<'a>,
    plain: PlainCall,
}

impl<'a> PlainExchange<'a> {
    pub(crate) fn new(call: Outgoing<'a>) -> Self {
        let plain = PlainCall::new();
        Self { call, plain }
    }
}

impl Future for PlainExchange<'_> {
    type Output = Answer;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Answer> {
        let Self { call, plain } = &mut *self;
        plain.poll(call, cx)
    }
}

impl Drop for PlainExchange<'_> {
    fn drop(&mut self) {
        self.plain.give_up(self.call.connection, self.call.method);
    }
}
