//! A call of which nothing is wanted but the answer, as of most.

use std::{
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, Waker, ready},
};

use tokio::{select, time::Instant};

use crate::{
    Result,
    jsonrpc::ExtraMeta,
    session::{
        CallOptions, Connection,
        calls::Answer,
        clock::{Clock, Wait},
        pending::{Encode, Pending, State},
    },
};

/// A call that is made when it is first polled, and then waits for its answer and nothing else.
///
/// Futures of async functions are moved into each other, layer by layer, and what they return is moved out again. This one
/// is by hand and small, because nearly all calls are one.
pub(crate) struct PlainCall<'a> {
    pending: Pending<'a>,
    /// Appends the params.
    encode: &'a Encode<'a>,
    options: &'a mut CallOptions,
    /// When its clock began to run.
    start: Instant,
    /// What waits in place of it since its alarm has rung.
    late: Option<Late<'a>>,
}

type Late<'a> = Pin<Box<dyn Future<Output = Wait> + Send + 'a>>;

impl<'a> PlainCall<'a> {
    /// A call with options that want nothing beside the answer, over a connection on which there is room.
    pub(crate) fn new(
        connection: &'a Arc<Connection>,
        method: &'a str,
        encode: &'a Encode<'a>,
        options: &'a mut CallOptions,
    ) -> Self {
        Self {
            pending: Pending::new(connection, method),
            encode,
            start: options.start.unwrap_or_else(Instant::now),
            options,
            late: None,
        }
    }

    fn clock(&self) -> Clock {
        Clock::start(self.start, &*self.options)
    }

    fn begin(&mut self, waker: &Waker) -> Result<()> {
        let alarm = self.clock().deadline;
        let on_begin = self.options.on_begin.take();
        self.pending
            .enter(None, Some(alarm), waker.clone(), on_begin)?;
        let extra = ExtraMeta {
            envelope: self.pending.connection.role().envelope(),
            progress: false,
            meta: self.options.meta.as_object(),
        };
        self.pending.send(self.encode, extra)
    }

    /// Waits on, beyond the alarm: not for long, unless somebody is being asked.
    fn wait_on(&self) -> Late<'a> {
        let Pending { connection, id, .. } = self.pending;
        let clock = self.clock();
        Box::pin(async move {
            select! {
                biased;
                answer = connection.calls().answered(id) => Wait::Answered(answer),
                () = connection.patience().ends(clock.deadline, clock.timeout, clock.last) => clock.timed_out(),
            }
        })
    }
}

impl Future for PlainCall<'_> {
    type Output = Answer;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Answer> {
        let this = &mut *self;
        if this.pending.state == State::New {
            return match this.begin(cx.waker()) {
                // Who waits stands in the table: there is nothing to look at until he is woken.
                Ok(()) => Poll::Pending,
                Err(error) => Poll::Ready(Err(error)),
            };
        }
        if this.late.is_none() {
            let pending = &mut this.pending;
            if let Some(answer) = ready!(pending.connection.calls().poll(pending.id, cx)) {
                pending.state = State::Answered;
                return Poll::Ready(answer);
            }
            this.late = Some(this.wait_on());
        }
        match &mut this.late {
            Some(late) => {
                let end = ready!(late.as_mut().poll(cx));
                Poll::Ready(this.pending.end(end))
            }
            None => Poll::Pending,
        }
    }
}
