//! A call to the peer, from the serialized request to the response.

use std::{
    borrow::Cow,
    future::poll_fn,
    pin::{Pin, pin},
    sync::Arc,
    task::{Context, Poll, ready},
    time::Duration,
};

use oxmcp_protocol::{
    CancelledParams, Payload, ProgressParams, RequestId,
    internal::{ExtraMeta, write_notification, write_request},
};
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};
use tokio::{
    runtime::Handle,
    select,
    time::{Instant, sleep_until, timeout},
};
use tokio_util::sync::CancellationToken;

#[cfg(feature = "http-server")]
use crate::session::outbound::calls::Announced;
use crate::{
    debug::opaque_debug,
    error::{Error, Result},
    logged::Logged,
    session::{
        connection::{Connection, Side},
        inbound::run::MIDDLEWARE_GRACE,
        middleware::response::Response,
        notifications::progress_in::{self, ProgressReceiver, ProgressSender},
        outbound::{
            calls::{Answer, CallResult},
            deadline::Deadline,
            options::{CallOptions, OnProgress},
            outgoing::{Outgoing, Outlet},
        },
        panics,
        task::{BoxFuture, after, spawn_on},
        trace::{
            propagator,
            span::{self, OutboundSpan},
        },
    },
};

/// The shortest pause before a refused request is repeated, which doubles: a server that asks for no pause is not flooded.
const SHORTEST_PAUSE: Duration = Duration::from_millis(100);

impl Connection {
    /// Calls the peer, through the outgoing middleware, if any. `params` must not have a `_meta`, which is in the options.
    pub(crate) async fn call<P: Payload>(
        self: &Arc<Self>,
        method: &'static str,
        params: &P,
        mut options: CallOptions,
    ) -> Result<Box<str>> {
        // User code must not run under the outbox's lock: it may log.
        let params = written(params)?;
        let answer = self.call_written(method, &params, &mut options).await;
        answer.map(|result| result.json)
    }

    /// Like [`call`](Self::call), with params that are already serialized as a JSON object. The options can be reused
    /// afterwards, except `on_begin`, which is called once.
    pub(crate) async fn call_written(
        self: &Arc<Self>,
        method: &'static str,
        params: &[u8],
        options: &mut CallOptions,
    ) -> Result<CallResult> {
        if !self.role().has_outgoing() {
            return self.send_request(method, params, options).await;
        }
        self.call_through(method.into(), params, options).await
    }

    /// Like [`call_written`](Self::call_written), for a method that has no type.
    pub(crate) async fn call_named(
        self: &Arc<Self>,
        method: String,
        params: &[u8],
        options: &mut CallOptions,
    ) -> Result<CallResult> {
        if !self.role().has_outgoing() {
            return self.send_request(&method, params, options).await;
        }
        self.call_through(method.into(), params, options).await
    }

    /// Calls the peer through the outgoing middleware.
    async fn call_through(
        self: &Arc<Self>,
        method: Cow<'static, str>,
        params: &[u8],
        options: &mut CallOptions,
    ) -> Result<CallResult> {
        let params: Box<RawValue> = serde_json::from_slice(params).map_err(not_json)?;
        let mut lent = options.lend();
        let stop = lent.cancel.take().unwrap_or_default().child_token();
        lent.cancel = Some(stop.clone());
        let message = self.outgoing(method, params, Some(lent));
        let call = HeardCall {
            chain: Some(self.role().pass_outgoing(message)),
            stop,
            runtime: self.runtime.clone(),
        };
        Ok(call.await?.into_text().into())
    }

    /// Notifies the peer, through the outgoing middleware, if any.
    pub(crate) async fn notify<P: Serialize>(
        self: &Arc<Self>,
        method: impl Into<Cow<'static, str>>,
        params: P,
    ) -> Result<()> {
        let params = to_raw_value(&params).map_err(not_json)?;
        let method = method.into();
        if !self.role().has_outgoing() {
            return self.send_message(notification(&method, &params)?).await;
        }
        let message = self.outgoing(method, params, None);
        self.role().pass_outgoing(message).await.map(drop)
    }

    /// A message for the outgoing middleware.
    fn outgoing(
        self: &Arc<Self>,
        method: Cow<'static, str>,
        params: Box<RawValue>,
        options: Option<CallOptions>,
    ) -> Outgoing {
        Outgoing {
            outlet: Arc::clone(self) as _,
            method,
            params,
            options: options.map(Box::new),
        }
    }

    /// Rejects metadata that callers must not set.
    pub(crate) fn check_meta(&self, options: &CallOptions) -> Result<()> {
        let role = self.role();
        options.check_meta(role.envelope().is_some(), |key| role.has_meta_key(key))
    }

    /// Sends a serialized notification, once there is space.
    async fn send_message(&self, message: Vec<u8>) -> Result<()> {
        self.outbox.ready().await;
        self.calls().note_notification();
        self.notify_raw(|out| {
            out.extend_from_slice(&message);
            Ok(())
        })
    }

    /// Sends a notification that `write` serializes.
    pub(crate) fn notify_raw(
        &self,
        write: impl FnOnce(&mut Vec<u8>) -> serde_json::Result<()>,
    ) -> Result<()> {
        match self.outbox.append(write) {
            None => Err(Error::closed("the session has ended")),
            Some(Ok(())) => Ok(()),
            Some(Err(error)) => Err(not_json(error)),
        }
    }

    /// Sends a request and waits for its response: the single path of all calls. Repeats it if the server asks for that.
    async fn send_request(
        self: &Arc<Self>,
        method: &str,
        params: &[u8],
        options: &mut CallOptions,
    ) -> Answer {
        // The ID of such a call must not change.
        let keeps_id = options.on_begin.is_some();
        match self.send_once(method, params, options).await {
            Err(error) if error.asked_to_wait().is_some() && !keeps_id => {
                Box::pin(self.repeat_later(error, method, params, options)).await
            }
            answer => answer,
        }
    }

    /// Repeats a request that the server has refused for a while, unless the call would time out before.
    async fn repeat_later(
        self: &Arc<Self>,
        mut refusal: Error,
        method: &str,
        params: &[u8],
        options: &mut CallOptions,
    ) -> Answer {
        let mut shortest = SHORTEST_PAUSE;
        loop {
            let Some(asked) = refusal.asked_to_wait() else {
                return Err(refusal);
            };
            let start = *options.start.get_or_insert_with(Instant::now);
            let again = after(Instant::now(), asked.max(shortest));
            if again >= after(start, options.timeout.min(options.max_total)) {
                return Err(refusal);
            }
            shortest *= 2;
            tracing::debug!(%method, wait = ?asked, "repeating a request that the server refused for a while");
            select! {
                biased;
                () = cancelled(options.cancel.as_ref()) => return Err(cancelled_call(method)),
                _ = self.ended() => return Err(refusal),
                () = sleep_until(again) => {}
            }
            match self.send_once(method, params, options).await {
                Err(error) => refusal = error,
                answer => return answer,
            }
        }
    }

    /// Sends a request once, and waits for its response.
    async fn send_once(
        self: &Arc<Self>,
        method: &str,
        params: &[u8],
        options: &mut CallOptions,
    ) -> Answer {
        if self.is_closing() && self.role().side() == Side::Client && !options.is_continuation {
            return Err(Error::closed("the session was closed"));
        }
        if options.is_cancelled() {
            return Err(cancelled_call(method));
        }
        let start = *options.start.get_or_insert_with(Instant::now);
        let mut deadline = Deadline::new(start, options);
        if self.outbox.is_full() {
            let room = self.outbox.ready();
            Box::pin(wait_to_send(
                method,
                &deadline,
                options.cancel.as_ref(),
                room,
            ))
            .await?;
        }
        let (progress, mut updates) = match &options.on_progress {
            Some(_) => {
                let (sender, receiver) = progress_in::new(&self.limits);
                (Some(sender), Some(receiver))
            }
            None => (None, None),
        };
        let wants_progress = progress.is_some();
        let mut call = CallInFlight::enter(self, method, params, progress, deadline.at)?;
        #[cfg(feature = "http-server")]
        {
            call.announced = self.calls().announce(call.id).await;
        }
        call.send(params, options, wants_progress)?;
        // By reference, because the arguments of an async function are stored twice in its future, at the cost of all calls.
        call.answer(&mut updates, &mut deadline, options).await
    }

    /// Waits this long, and longer while the peer asks this side, or the transport waits for a person. Cancel safe.
    #[cfg(feature = "client")]
    pub(crate) async fn silence(&self, limit: Duration) {
        let mut options = CallOptions::within(limit);
        options.max_total = options.max_total.max(limit);
        let mut deadline = Deadline::new(Instant::now(), &options);
        loop {
            sleep_until(deadline.at).await;
            if !deadline.put_off_for(self.paused_deadlines(), Instant::now()) {
                return;
            }
        }
    }

    /// Starts the timer of all calls. It ends when no call is left.
    fn start_timer(self: &Arc<Self>) {
        let connection = Arc::clone(self);
        // The timer must live as long as the connection, so it runs on the runtime of the driver.
        spawn_on(&self.runtime, async move {
            while let Some(next) = connection.calls().ring(Instant::now()) {
                select! {
                    _ = connection.ended() => return,
                    () = connection.calls().earlier_alarm() => {}
                    () = sleep_until(next) => {}
                }
            }
        });
    }
}

impl Outlet for Connection {
    fn send(
        self: Arc<Self>,
        method: Cow<'static, str>,
        params: Box<RawValue>,
        options: Option<CallOptions>,
    ) -> BoxFuture<Result<Response>> {
        Box::pin(async move {
            let Some(mut options) = options else {
                self.send_message(notification(&method, &params)?).await?;
                return Ok(Response::empty());
            };
            self.check_meta(&options)?;
            let params = params.get().as_bytes();
            let answer = self.send_request(&method, params, &mut options).await;
            answer.map(|result| Response::from_text(result.json))
        })
    }
}

/// A call through the middleware. If it is dropped, the middleware is notified of the cancellation, and may continue for a
/// while.
struct HeardCall {
    /// `None` once it has ended.
    chain: Option<BoxFuture<Result<Response>>>,
    /// Cancels the call.
    stop: CancellationToken,
    runtime: Handle,
}

impl Future for HeardCall {
    type Output = Result<Response>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let Some(chain) = &mut self.chain else {
            return Poll::Pending;
        };
        let ended = ready!(chain.as_mut().poll(cx));
        self.chain = None;
        Poll::Ready(ended)
    }
}

impl Drop for HeardCall {
    fn drop(&mut self) {
        let Some(chain) = self.chain.take() else {
            return;
        };
        self.stop.cancel();
        spawn_on(&self.runtime, async move {
            let _ = timeout(MIDDLEWARE_GRACE, chain).await;
        });
    }
}

/// Waits until `ready` completes, so that a call may be sent. The wait counts toward the deadline of the call.
///
/// # Errors
/// If the deadline passes first, or the call is cancelled.
#[cfg(feature = "server")]
pub(crate) async fn wait_until_ready(
    method: &str,
    options: &mut CallOptions,
    ready: impl Future<Output = ()>,
) -> Result<()> {
    let start = *options.start.get_or_insert_with(Instant::now);
    let deadline = Deadline::new(start, options);
    wait_to_send(method, &deadline, options.cancel.as_ref(), ready).await
}

async fn wait_to_send(
    method: &str,
    deadline: &Deadline,
    cancel: Option<&CancellationToken>,
    ready: impl Future<Output = ()>,
) -> Result<()> {
    select! {
        biased;
        () = ready => Ok(()),
        () = cancelled(cancel) => Err(cancelled_call(method)),
        () = sleep_until(deadline.at) => Err(deadline.exceeded(method, Instant::now())),
    }
}

/// A call that waits for its response. If it is dropped before that, it is cancelled on the wire.
struct CallInFlight<'a> {
    connection: &'a Arc<Connection>,
    method: &'a str,
    id: i64,
    span: OutboundSpan,
    is_sent: bool,
    is_answered: bool,
    /// The reason for the cancellation, if the call is cancelled.
    reason: &'static str,
    /// The announcement of the call to other nodes, which may receive its response.
    #[cfg(feature = "http-server")]
    announced: Option<Announced>,
}

/// The reason for cancelling a call whose future was dropped.
const DROPPED: &str = "the caller stopped waiting";
/// The reason for cancelling a call whose deadline has passed.
const TIMED_OUT: &str = "the call timed out";
/// The reason for cancelling a call on the caller's request.
const CANCELLED: &str = "the caller cancelled the request";

impl<'a> CallInFlight<'a> {
    fn enter(
        connection: &'a Arc<Connection>,
        method: &'a str,
        params: &[u8],
        progress: Option<ProgressSender>,
        alarm: Instant,
    ) -> Result<Self> {
        let span = span::outbound(connection.role().revision(), method, params);
        let (id, needs_timer) = connection.calls().enter(progress, alarm)?;
        let call = Self {
            connection,
            method,
            id,
            span,
            is_sent: false,
            is_answered: false,
            reason: DROPPED,
            #[cfg(feature = "http-server")]
            announced: None,
        };
        if needs_timer {
            connection.start_timer();
        }
        Ok(call)
    }

    fn send(
        &mut self,
        params: &[u8],
        options: &mut CallOptions,
        wants_progress: bool,
    ) -> Result<()> {
        let (id, method) = (self.id, self.method);
        if let Some(on_begin) = options.on_begin.take() {
            on_begin(id);
        }
        self.span.begin(id);
        let trace = propagator::inject(&self.span.span);
        let extra = ExtraMeta {
            envelope: self.connection.role().envelope(),
            progress: wants_progress,
            trace: trace.as_ref(),
            meta: options.meta.as_object(),
        };
        let sent = self.append(|out| write_request(out, id, method, params, extra));
        self.is_sent = sent.inspect_err(|error| self.span.finish(Err(error)))?;
        Ok(())
    }

    /// Appends a message of this call, unless the call has failed because its peer was lost: the next peer must not get the
    /// message. Returns whether it was appended.
    fn append(&self, write: impl FnOnce(&mut Vec<u8>) -> serde_json::Result<()>) -> Result<bool> {
        let mut has_failed = false;
        self.connection.notify_raw(|out| {
            has_failed = self.connection.calls().has_failed(self.id);
            if has_failed { Ok(()) } else { write(out) }
        })?;
        Ok(!has_failed)
    }

    /// Waits for the response, reports progress, and observes the deadline and a cancellation.
    async fn answer(
        &mut self,
        updates: &mut Option<ProgressReceiver>,
        deadline: &mut Deadline,
        options: &mut CallOptions,
    ) -> Answer {
        let CallOptions {
            on_progress,
            cancel,
            ..
        } = options;
        let connection = self.connection;
        let calls = connection.calls();
        let mut cancelled = pin!(cancelled(cancel.as_ref()));
        loop {
            select! {
                biased;
                Some(update) = next(updates) => {
                    // Progress without a pause must not starve the other branches.
                    if cancel.as_ref().is_some_and(CancellationToken::is_cancelled) {
                        self.reason = CANCELLED;
                        return Err(cancelled_call(self.method));
                    }
                    report(on_progress, update);
                    let now = Instant::now();
                    if !deadline.put_off(now) {
                        self.reason = TIMED_OUT;
                        return Err(deadline.exceeded(self.method, now));
                    }
                }
                answer = poll_fn(|cx| calls.poll(self.id, cx)) => {
                    if let Some(answer) = answer {
                        self.is_answered = true;
                        self.span.finish(answer.as_ref().map(|result| &*result.json));
                        // All progress that arrived before the response is reported first.
                        while let Some(update) = updates.as_mut().and_then(ProgressReceiver::next_now) {
                            report(on_progress, update);
                        }
                        return answer;
                    }
                    let now = Instant::now();
                    if !deadline.put_off_for(connection.paused_deadlines(), now) {
                        self.reason = TIMED_OUT;
                        return Err(deadline.exceeded(self.method, now));
                    }
                }
                () = &mut cancelled => {
                    self.reason = CANCELLED;
                    return Err(cancelled_call(self.method));
                }
            }
            if calls.set_alarm(self.id, deadline.at) {
                connection.start_timer();
            }
        }
    }
}

impl Drop for CallInFlight<'_> {
    fn drop(&mut self) {
        if self.is_answered {
            return;
        }
        let connection = self.connection;
        if self.is_sent {
            self.span.fail(if self.reason == TIMED_OUT {
                "timeout"
            } else {
                "cancelled"
            });
        }
        let is_waiting = connection.calls().leave(self.id);
        // Every revision with `initialize` forbids cancelling it.
        if is_waiting && self.is_sent && self.method != "initialize" {
            let mut params = CancelledParams::new(RequestId::Number(self.id));
            params.reason = Some(self.reason.to_owned());
            connection.calls().note_notification();
            // A peer that is gone needs no cancellation.
            let _ = self.append(|out| write_notification(out, "notifications/cancelled", &params));
        }
        if connection.is_closing() {
            // It may have been the last call that the driver was waiting for.
            connection.outbox.wake_driver();
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

fn report(on_progress: &mut Option<OnProgress>, update: ProgressParams) {
    let Some(callback) = on_progress else {
        return;
    };
    if let Err(panic) = panics::catch_sync(|| callback(update)) {
        // The callback's state may be inconsistent, so it is not called again. The call continues without it.
        tracing::error!(panic = %Logged(panic.text()), "a progress handler panicked");
        *on_progress = None;
    }
}

fn cancelled_call(method: &str) -> Error {
    Error::cancelled(format!("the call to {method} was cancelled"))
}

/// Serializes a notification. This is done before it is sent: user code must not run under the outbox's lock.
fn notification(method: &str, params: &RawValue) -> Result<Vec<u8>> {
    let mut message = Vec::new();
    write_notification(&mut message, method, params).map_err(not_json)?;
    Ok(message)
}

/// Serializes params as JSON.
///
/// # Errors
/// If they cannot be serialized.
pub(crate) fn written(params: &impl Payload) -> Result<Vec<u8>> {
    let mut out = Vec::new();
    params.append_json(&mut out).map_err(not_json)?;
    Ok(out)
}

/// The error for params that cannot be serialized.
pub(crate) fn not_json(error: serde_json::Error) -> Error {
    Error::misuse(format!("could not serialize the params: {error}")).with_source(error)
}

/// A guard for a call that is repeated with answers to the peer's questions: until it is dropped, a closing connection waits
/// for the call as for one in flight.
pub(crate) struct ContinuationGuard(Arc<Connection>);

impl ContinuationGuard {
    pub(crate) fn new(connection: &Arc<Connection>) -> Self {
        connection.calls().begin_continuation();
        Self(Arc::clone(connection))
    }
}

impl Drop for ContinuationGuard {
    fn drop(&mut self) {
        self.0.calls().end_continuation();
        if self.0.is_closing() {
            // It may have been the last call that the driver was waiting for.
            self.0.outbox.wake_driver();
        }
    }
}

opaque_debug!(ContinuationGuard);

/// A guard for a question of the peer that is being answered: until it is dropped, no call of this side times out.
#[derive(Debug)]
pub(crate) struct DeadlinePause(Arc<Connection>);

impl DeadlinePause {
    pub(crate) fn begin(connection: &Arc<Connection>) -> Self {
        connection.paused_deadlines().begin();
        Self(Arc::clone(connection))
    }
}

impl Drop for DeadlinePause {
    fn drop(&mut self) {
        self.0.paused_deadlines().end();
    }
}
