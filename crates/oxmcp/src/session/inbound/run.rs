//! Running a request's handler, inline on the connection's task if it is quick, or else on a separate task, until the response
//! is in the outbox.

use std::{
    future::Future,
    pin::{Pin, pin},
    sync::Arc,
    task::{Context, Poll, Waker},
    time::Duration,
};

use oxmcp_protocol::{
    ErrorObject, RequestId,
    internal::{project_error, write_error, write_response},
};
use serde_json::json;
use tokio::{
    task::coop,
    time::{Instant, sleep},
};
use tracing::Instrument;

use crate::{
    error::{Error, Result},
    session::{
        connection::ContextParts,
        inbound::{
            batch::Batch, body::Body, in_flight::ServedRequest, inline_execution::InlineExecution,
        },
        notifications::progress_out::flush_progress,
        panics,
        task::BoxFuture,
    },
};

/// The time for which middleware may continue after the handler of a cancelled request was dropped.
pub(crate) const MIDDLEWARE_GRACE: Duration = Duration::from_secs(1);

/// The remaining work for a request.
pub(crate) struct Work {
    pub(crate) future: BoxFuture<Result<Body>>,
    /// The record that decides whether the handler runs inline. `None` for a handler that is known to be quick, or to delay no
    /// other messages.
    pub(crate) inline: Option<Arc<InlineExecution>>,
}

impl Work {
    /// The work of a handler. Its future reads the arguments at its first poll, because that could delay the connection, too.
    pub(crate) fn of(
        inline: &Arc<InlineExecution>,
        is_alone: bool,
        future: BoxFuture<Result<Body>>,
    ) -> Self {
        let holds_up_nothing = is_alone && !inline.is_never_allowed();
        Self {
            future,
            inline: (!holds_up_nothing).then(|| Arc::clone(inline)),
        }
    }
}

/// Runs the handler of a request. Must be called on the connection's task: a response that is ready at once is appended to the
/// outbox before this returns.
pub(crate) fn run(context: Arc<ContextParts>, work: Work) {
    let Work { mut future, inline } = work;
    if inline.as_ref().is_none_or(|inline| inline.is_allowed()) {
        match first_poll(&mut future, inline.as_deref()) {
            Poll::Ready(result) => respond_inline(&context, result),
            Poll::Pending => spawn(context, future, None),
        }
    } else {
        spawn(context, future, inline);
    }
}

fn first_poll(
    future: &mut BoxFuture<Result<Body>>,
    inline: Option<&InlineExecution>,
) -> Poll<Result<Body>> {
    let start = inline.map(|inline| (inline, Instant::now()));
    // No waker is needed: if the future is not ready, its task polls it again at once.
    let polled = panics::poll(future.as_mut(), &mut Context::from_waker(Waker::noop()));
    if let Some((inline, start)) = start {
        inline.record(start.elapsed());
    }
    polled.map(panics::flatten)
}

fn spawn(
    context: Arc<ContextParts>,
    mut future: BoxFuture<Result<Body>>,
    inline: Option<Arc<InlineExecution>>,
) {
    let connection = Arc::clone(&context.connection);
    let Some(id) = context.id.clone() else { return };
    if let Err(error) = connection.in_flight().enter(&id, Arc::clone(&context) as _) {
        return respond_inline(&context, Err(error));
    }
    if connection.is_cut() {
        // Over HTTP the connection may have been cut meanwhile, before `cancel_all` could see this request.
        context.cancel.set();
    }
    tokio::spawn(async move {
        let work = pin!(async {
            if let Some(inline) = &inline
                && let Poll::Ready(result) = first_poll(&mut future, Some(inline))
            {
                return result;
            }
            panics::flatten(panics::catch(Pin::new(&mut future)).await)
        });
        let result = unless_given_up(&context, work).await;
        finish(&context, &id, result);
    });
}

/// Runs the handler for `context`. `None` if it was cancelled, and did not end within its grace period.
pub(crate) async fn unless_cancelled<T>(
    context: &ContextParts,
    work: impl Future<Output = T>,
) -> Option<T> {
    within_grace(context, false, work).await
}

/// Runs the whole work for `context`, which may include middleware. `None` if it was cancelled, and did not end within its grace
/// period.
async fn unless_given_up<T>(context: &ContextParts, work: impl Future<Output = T>) -> Option<T> {
    within_grace(context, true, work).await
}

async fn within_grace<T>(
    context: &ContextParts,
    is_whole: bool,
    work: impl Future<Output = T>,
) -> Option<T> {
    let cancelled = async {
        context.cancel.wait().await;
        let connection = &context.connection;
        let mut grace = connection.limits.cancel_grace;
        if is_whole && connection.role().has_incoming() {
            grace = grace.saturating_add(MIDDLEWARE_GRACE);
        }
        // On the heap, because it is rarely needed.
        Box::pin(sleep(grace)).await;
    };
    // Work that has used up its cooperative budget would leave none for the timer, which would then never fire.
    let cancelled = coop::unconstrained(cancelled);
    tokio::select! {
        biased;
        result = work => Some(result),
        () = cancelled => None,
    }
}

/// Runs the handler of a request within middleware, which is notified how the request ends. A panic of the handler is an error,
/// and so is a cancellation, whether or not the handler ends within its grace period.
pub(crate) async fn handle_within_middleware<T>(
    context: Arc<ContextParts>,
    begin: impl FnOnce() -> BoxFuture<Result<T>>,
) -> Result<T> {
    let ended = match context.cancel.is_set() {
        // The middleware may be slow, or may retry.
        true => None,
        false => {
            let work = async {
                let mut future = panics::catch_panic(|| Ok(begin()))?;
                panics::flatten(panics::catch(Pin::new(&mut future)).await)
            };
            unless_cancelled(&context, work).await
        }
    };
    match ended {
        Some(result) if !context.cancel.is_set() => result,
        _ => Err(Error::cancelled("the request was cancelled")),
    }
}

/// Runs the handler of a question that arrived within a result, on a separate task. Dropping the future cancels it, like a
/// cancellation by the peer.
pub(crate) async fn run_question<T: Send + 'static>(
    context: Arc<ContextParts>,
    mut future: BoxFuture<Result<T>>,
) -> Result<T> {
    struct Cancel(Arc<ContextParts>);

    impl Drop for Cancel {
        fn drop(&mut self) {
            self.0.cancel.set();
        }
    }

    let _cancel = Cancel(Arc::clone(&context));
    let running = async move {
        let work = async { panics::flatten(panics::catch(Pin::new(&mut future)).await) };
        unless_given_up(&context, work).await
    };
    let running = tokio::spawn(running.in_current_span());
    match running.await {
        Ok(Some(result)) => result,
        // The runtime is shutting down, or the caller is gone.
        Ok(None) | Err(_) => Err(Error::cancelled("the request was cancelled")),
    }
}

fn finish(context: &ContextParts, id: &RequestId, result: Option<Result<Body>>) {
    let connection = &context.connection;
    match result {
        Some(result) if !context.cancel.is_set() => answer(context, id, result),
        _ => {
            if context.claim_answer() {
                finish_cancelled(context, connection.is_cut());
            }
            connection.in_flight().leave(id);
        }
    }
    if connection.in_flight().is_draining() {
        connection.trunk().outbox.wake_driver();
    }
}

/// Answers a request that was not answered at once.
///
/// The request leaves the table together with its response, under the outbox's lock. So a peer that reads the response can
/// reuse the ID, and a driver that sees an empty table while draining knows that all responses are in the outbox.
fn answer(context: &ContextParts, id: &RequestId, result: Result<Body>) {
    flush_progress(context);
    let outbox = &context.connection.outbox;
    let in_flight = context.connection.in_flight();
    let sent = match &context.batch {
        None => outbox.append_answer(|out| {
            in_flight.leave(id);
            if !context.cancel.is_set() && context.claim_answer() {
                write_answer(out, context, result);
            }
        }),
        Some(batch) if context.claim_answer() => {
            in_batch(batch, context, result).and_then(|whole| {
                outbox.append_answer(|out| {
                    in_flight.leave(id);
                    out.extend_from_slice(&whole);
                })
            })
        }
        Some(_) => None,
    };
    if sent.is_none() {
        in_flight.leave(id);
    }
}

impl ServedRequest for ContextParts {
    fn cancel(&self) {
        self.cancel.set();
    }

    fn cut_short(&self) -> bool {
        let is_wanted = !self.cancel.is_set();
        self.cancel.set();
        if !self.claim_answer() {
            return false;
        }
        finish_cancelled(self, is_wanted);
        is_wanted
    }
}

/// Ends a cancelled request. If the peer cancelled it, no response is sent, but its batch must know that. If the session
/// `is_cut`, the peer gets an error, because over HTTP a request has its own outbox.
fn finish_cancelled(context: &ContextParts, is_cut: bool) {
    let mut answer = Vec::new();
    if is_cut {
        let why = Error::internal("the session closed before the request completed");
        let why = why.with_data(json!({"reason": "closing"}));
        write_answer(&mut answer, context, Err(why));
    }
    let whole = match &context.batch {
        Some(batch) => batch.answered(Some(&*answer).filter(|it| !it.is_empty())),
        None => Some(answer),
    };
    if let Some(whole) = whole {
        let outbox = &context.connection.outbox;
        outbox.append_answer(|out| out.extend_from_slice(&whole));
    }
}

/// Answers a request on the connection's task.
pub(crate) fn respond_inline(context: &ContextParts, result: Result<Body>) {
    flush_progress(context);
    let outbox = &context.connection.outbox;
    let Some(batch) = &context.batch else {
        outbox.append_inline(|out| write_answer(out, context, result));
        return;
    };
    if let Some(whole) = in_batch(batch, context, result) {
        outbox.append_inline(|out| out.extend_from_slice(&whole));
    }
}

/// Adds a response to its batch, and returns all responses if it was the last.
fn in_batch(batch: &Batch, context: &ContextParts, result: Result<Body>) -> Option<Vec<u8>> {
    let mut answer = Vec::new();
    write_answer(&mut answer, context, result);
    batch.answered(Some(&answer))
}

fn write_answer(out: &mut Vec<u8>, context: &ContextParts, result: Result<Body>) {
    let Some(id) = &context.id else { return };
    context.set_answered();
    let server_info = context.connection.role().server_info();
    let revision = context.peer.revision;
    let written = result.and_then(|body| {
        let is_line = body.is_line();
        write_response(out, id, is_line, |out| {
            body.encode(out, revision, server_info)
        })
    });
    if let Err(error) = written {
        let mut object = ErrorObject::from(&error);
        project_error(&mut object, revision);
        context.connection.note_failure(object.code);
        // The other responses of a batch may not be refusals.
        #[cfg(feature = "http-server")]
        if let Some(seconds) = error
            .retry_after_seconds()
            .filter(|_| context.batch.is_none())
        {
            context.connection.note_refusal(seconds);
        }
        write_error(out, Some(id), &object);
    }
}
