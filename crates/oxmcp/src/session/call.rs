//! A call to the peer, from the first byte to the answer.

use std::{sync::Arc, time::Duration};

use serde::Serialize;
use serde_json::value::RawValue;
use tokio::{
    sync::mpsc,
    time::{Instant, sleep_until},
};
use tokio_util::sync::CancellationToken;

use crate::{
    Error, Result,
    jsonrpc::{ExtraMeta, RequestId, write_notification, write_request},
    protocol::{CancelledParams, ProgressParams},
    session::{
        CallOptions, CallResult, Connection, Side, after,
        clock::{Clock, Wait},
        connection::not_json,
        middleware::{Request, Response},
        panics,
    },
};

/// Appends params.
type Encode<'a> = dyn Fn(&mut Vec<u8>) -> serde_json::Result<()> + Sync + 'a;

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
                let encode = |out: &mut Vec<u8>| serde_json::to_writer(out, &params);
                let answer = self.exchange(method, &encode, &mut options).await;
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
            let encode = |out: &mut Vec<u8>| {
                out.extend_from_slice(params);
                Ok(())
            };
            return self.exchange(method, &encode, options).await;
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
                let encode = |out: &mut Vec<u8>| serde_json::to_writer(out, &params);
                let answer = self.exchange(&method, &encode, &mut options).await;
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
        self.outbox.ready().await;
        self.notify_raw(|out| write_notification(out, method, params))
    }

    /// Sends a request, whose params `encode` appends, and waits for its answer. It is the same code for all params,
    /// because there is much of it.
    async fn exchange(
        self: &Arc<Self>,
        method: &str,
        encode: &Encode<'_>,
        options: &mut CallOptions,
    ) -> Result<CallResult> {
        if self.is_closing() && self.role().side() == Side::Client {
            return Err(Error::closed("the session was closed"));
        }
        // A call that nobody wants must not even be begun.
        let unwanted = |options: &CallOptions| {
            options
                .cancel
                .as_ref()
                .is_some_and(CancellationToken::is_cancelled)
        };
        if unwanted(options) {
            return Err(Wait::Cancelled.into_error(method));
        }
        let start = options.start.unwrap_or_else(Instant::now);
        if self.outbox.is_full() {
            let limit = options.timeout.min(options.max_total);
            Box::pin(self.room(method, start, limit, options.cancel.as_ref())).await?;
        }
        let (progress, updates) = match &options.on_progress {
            Some(_) => {
                let (sender, receiver) = mpsc::channel(self.limits.max_queued_progress.max(1));
                (Some(sender), Some(receiver))
            }
            None => (None, None),
        };
        let clock = Clock::start(start, options);
        let is_plain = updates.is_none() && options.cancel.is_none();
        let entered = self
            .calls()
            .enter(progress, is_plain.then_some(clock.deadline))?;
        if entered.needs_clock {
            self.start_clock();
        }
        let id = entered.id;
        if let Some(on_begin) = options.on_begin.take() {
            on_begin(id);
        }
        let mut pending = Pending {
            connection: self,
            id,
            method,
            sent: false,
        };
        let extra = ExtraMeta {
            envelope: self.role().envelope(),
            progress: updates.is_some(),
            meta: options.meta.as_object(),
        };
        self.notify_raw(|out| write_request(out, id, method, encode, extra))?;
        pending.sent = true;
        let result = if is_plain {
            self.wait(id, clock).await
        } else {
            Box::pin(self.watch(id, updates, options, clock)).await
        };
        if let Wait::Answered(result) = result {
            pending.sent = false;
            return result;
        }
        Err(result.into_error(method))
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

    /// Waits for an answer and nothing else, as most calls do. Most are answered in time, and need no timer of their own.
    async fn wait(&self, id: i64, clock: Clock) -> Wait {
        if let Some(answer) = self.calls().answered_in_time(id).await {
            return Wait::Answered(answer);
        }
        // Few ever wait here, and none needs room for it before.
        Box::pin(async {
            tokio::select! {
                biased;
                answer = self.calls().answered(id) => Wait::Answered(answer),
                () = self.patience().ends(clock.deadline, clock.timeout, clock.last) => clock.timed_out(),
            }
        })
        .await
    }

    /// Waits for an answer, takes progress, and heeds a cancellation.
    async fn watch(
        &self,
        id: i64,
        mut updates: Option<mpsc::Receiver<ProgressParams>>,
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

async fn next<T>(updates: &mut Option<mpsc::Receiver<T>>) -> Option<T> {
    updates.as_mut()?.recv().await
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
        tracing::error!(panic = %panic.text(), "a progress handler panicked");
        options.on_progress = None;
    }
}

/// All progress that came before the answer is reported before the answer.
fn drain(updates: &mut Option<mpsc::Receiver<ProgressParams>>, options: &mut CallOptions) {
    while let Some(Ok(update)) = updates.as_mut().map(mpsc::Receiver::try_recv) {
        report(options, update);
    }
}

/// A call that has been entered. Dropped before it was answered, it is cancelled on the wire.
struct Pending<'a> {
    connection: &'a Arc<Connection>,
    id: i64,
    method: &'a str,
    /// Whether the peer knows of the call and has not answered.
    sent: bool,
}

impl Drop for Pending<'_> {
    fn drop(&mut self) {
        let waiting = self.connection.calls().leave(self.id);
        // `initialize` must not be cancelled, says the specification of every revision that has it.
        if waiting && self.sent && self.method != "initialize" {
            let params = CancelledParams::new(RequestId::Number(self.id));
            // A peer that is gone needs no cancellation.
            let _ = self
                .connection
                .notify_raw(|out| write_notification(out, "notifications/cancelled", &params));
        }
        if waiting && self.connection.is_closing() {
            // It may have been the last that the driver was waiting for.
            self.connection.outbox.call_attention();
        }
    }
}
