//! A call to the peer, from the first byte to the answer.

use std::{future::poll_fn, sync::Arc, task::Poll, time::Duration};

use serde::Serialize;
use serde_json::value::RawValue;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use crate::{
    Error, Result,
    json::Logged,
    jsonrpc::write_notification,
    protocol::ProgressParams,
    session::{
        CallOptions, CallResult, Connection, Side, after,
        calls::Answer,
        clock::{Clock, Wait},
        connection::not_json,
        middleware::{Request, Response},
        panics,
        pending::{Outgoing, Pending, Ticket},
        plain_call::PlainExchange,
        progress_queue::{self, ProgressReceiver},
    },
};

impl Connection {
    /// Calls the peer, through the outgoing middleware where there is any. `params` must not hold a `_meta`: it is in
    /// the options.
    pub(crate) async fn call<P: Serialize + Sync>(
        self: &Arc<Self>,
        method: &'static str,
        params: P,
        mut options: CallOptions,
    ) -> Result<Box<str>> {
        match self.role().outgoing() {
            None => {
                // A user's code must not run under the outbox's lock: it may well log.
                let params = serde_json::to_vec(&params).map_err(not_json)?;
                let answer = self.call_written(method, &params, &mut options).await;
                answer.map(|result| result.json)
            }
            Some(next) => {
                let request = Request::outgoing(self, method, &params, options)?;
                Ok(Box::pin(next.run(request)).await?.into_text())
            }
        }
    }

    /// The same with params that have been written already, as a JSON object. The options are there afterwards, all but
    /// `on_begin`, which is called once.
    pub(crate) async fn call_written(
        self: &Arc<Self>,
        method: &'static str,
        params: &[u8],
        options: &mut CallOptions,
    ) -> Result<CallResult> {
        let Some(next) = self.role().outgoing() else {
            return self.exchange(method, params, options).await;
        };
        let params: &RawValue = serde_json::from_slice(params).map_err(not_json)?;
        let request = Request::outgoing(self, method, &params, options.lend())?;
        Ok(Box::pin(next.run(request)).await?.into_text().into())
    }

    /// Notifies the peer, through the outgoing middleware where there is any.
    pub(crate) async fn notify<P: Serialize>(
        self: &Arc<Self>,
        method: &'static str,
        params: P,
    ) -> Result<()> {
        match self.role().outgoing() {
            None => self.send_notification(method, &params).await,
            Some(next) => {
                let request = Request::outgoing_notification(self, method, &params)?;
                next.run(request).await.map(drop)
            }
        }
    }

    /// The innermost of the outgoing middleware.
    pub(crate) async fn send(self: Arc<Self>, request: Request) -> Result<Response> {
        let (method, params, options) = request.into_outgoing()?;
        match options {
            Some(mut options) => {
                options.check_meta(self.role().envelope().is_some())?;
                let params = params.get().as_bytes();
                let answer = self.exchange(&method, params, &mut options).await;
                answer.map(|result| Response::from_text(result.json))
            }
            None => {
                self.send_notification(&method, &params).await?;
                Ok(Response::empty())
            }
        }
    }

    async fn send_notification(
        &self,
        method: &str,
        params: &(impl Serialize + ?Sized),
    ) -> Result<()> {
        // As above.
        let mut message = Vec::new();
        write_notification(&mut message, method, params).map_err(not_json)?;
        self.outbox.ready().await;
        self.notify_raw(|out| {
            out.extend_from_slice(&message);
            Ok(())
        })
    }

    /// Sends a request and waits for its answer.
    async fn exchange(
        self: &Arc<Self>,
        method: &str,
        params: &[u8],
        options: &mut CallOptions,
    ) -> Answer {
        if self.is_closing() && self.role().side() == Side::Client && !options.goes_on {
            return Err(Error::closed("the session was closed"));
        }
        // A call that nobody wants must not even be begun.
        let cancel = options.cancel.as_ref();
        if cancel.is_some_and(CancellationToken::is_cancelled) {
            return Err(Wait::Cancelled.into_error(method));
        }
        let mut call = Outgoing {
            connection: self,
            method,
            params,
            options,
        };
        let start = call.start();
        if self.outbox.is_full() {
            let limit = call.options.timeout.min(call.options.max_total);
            let cancel = call.options.cancel.as_ref();
            Box::pin(self.room(method, start, limit, cancel)).await?;
        }
        if call.options.is_plain() {
            PlainExchange::new(call).await
        } else {
            Box::pin(self.watched(call)).await
        }
    }

    /// Makes a call of which progress is wanted as well, or that may be cancelled.
    async fn watched(&self, mut call: Outgoing<'_>) -> Answer {
        let (progress, updates) = match &call.options.on_progress {
            Some(_) => {
                let (sender, receiver) = progress_queue::new(&self.limits);
                (Some(sender), Some(receiver))
            }
            None => (None, None),
        };
        let clock = Clock::start(call.start(), call.options);
        let waker = poll_fn(|cx| Poll::Ready(cx.waker().clone())).await;
        let mut pending = Pending {
            call,
            ticket: Ticket::new(),
        };
        let Pending { call, ticket } = &mut pending;
        ticket.enter(call, progress, None, waker)?;
        ticket.send(call, updates.is_some())?;
        let end = self.watch(ticket.id, updates, call.options, clock).await;
        ticket.end(call.method, end)
    }

    /// Waits until a call may be sent, no longer than for its answer.
    async fn room(
        &self,
        method: &str,
        start: Instant,
        limit: Duration,
        cancel: Option<&CancellationToken>,
    ) -> Result<()> {
        let end = tokio::select! {
            biased;
            () = self.outbox.ready() => return Ok(()),
            () = cancelled(cancel) => Wait::Cancelled,
            () = sleep_until(after(start, limit)) => Wait::TimedOut(limit),
        };
        Err(end.into_error(method))
    }

    /// Waits for an answer, takes progress, and heeds a cancellation.
    async fn watch(
        &self,
        id: i64,
        mut updates: Option<ProgressReceiver>,
        options: &mut CallOptions,
        mut clock: Clock,
    ) -> Wait {
        loop {
            tokio::select! {
                biased;
                Some(update) = next(&mut updates) => {
                    report(options, update);
                    // Progress that never pauses must not keep the other branches from their turn.
                    if options.cancel.as_ref().is_some_and(CancellationToken::is_cancelled) {
                        return Wait::Cancelled;
                    }
                    if !clock.restart() {
                        return clock.timed_out();
                    }
                }
                answer = self.calls().answered(id) => {
                    drain(&mut updates, options);
                    return Wait::Answered(answer);
                }
                () = cancelled(options.cancel.as_ref()) => return Wait::Cancelled,
                () = self.patience().ends(clock.deadline, clock.timeout, clock.last) => {
                    return clock.timed_out();
                }
            }
        }
    }
}

async fn next(updates: &mut Option<ProgressReceiver>) -> Option<ProgressParams> {
    updates.as_mut()?.next().await
}

async fn cancelled(token: Option<&CancellationToken>) {
    match token {
        Some(token) => token.cancelled().await,
        None => std::future::pending().await,
    }
}

fn report(options: &mut CallOptions, update: ProgressParams) {
    let Some(on_progress) = &mut options.on_progress else {
        return;
    };
    if let Err(panic) = panics::catch_sync(|| on_progress(update)) {
        // What it was working on may be half done: it is not called again. The call goes on without it.
        tracing::error!(panic = %Logged(panic.text()), "a progress handler panicked");
        options.on_progress = None;
    }
}

/// All progress that came before the answer is reported before the answer.
fn drain(updates: &mut Option<ProgressReceiver>, options: &mut CallOptions) {
    while let Some(update) = updates.as_mut().and_then(ProgressReceiver::next_now) {
        report(options, update);
    }
}
