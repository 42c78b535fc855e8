//! Panics of user code, which become errors.
//!
//! Panics are caught in `inbound/run.rs` (handlers), `finish_round` of `server/ask/rounds.rs` (handlers that may ask),
//! `server/tool/layer.rs` (handlers of tasks), `notifications/queue.rs`, `server/dispatch/requests.rs`, `client/dispatch.rs`,
//! and, for a user's HTTP client, in `post.rs` and `executor.rs` of `http/client/exchange/`. The peer gets -32603.

use std::{
    any::Any,
    future::{Future, poll_fn},
    panic::{AssertUnwindSafe, catch_unwind},
    pin::Pin,
    result::Result as StdResult,
    task::{Context, Poll},
};

use crate::{
    error::{Error, Result},
    logged::Logged,
};

/// A caught panic. Its message is only for this side's log and never crosses the wire.
#[derive(Debug)]
pub(crate) struct Panic(Box<dyn Any + Send>);

impl Panic {
    /// Logs the panic, and returns the error for the peer, without the panic's message.
    pub(crate) fn into_error(self) -> Error {
        tracing::error!(panic = %Logged(self.text()), "a handler panicked");
        Error::internal("the handler failed unexpectedly; see the log of its process")
    }

    pub(crate) fn text(&self) -> &str {
        let payload = &*self.0;
        payload
            .downcast_ref::<&'static str>()
            .copied()
            .or_else(|| payload.downcast_ref::<String>().map(String::as_str))
            .unwrap_or("panic without a message")
    }
}

/// Calls `f`, and returns its panic as an error.
///
/// The caller must drop the data that the closure was working on, because a panic may have left it inconsistent.
pub(crate) fn catch_sync<T>(f: impl FnOnce() -> T) -> StdResult<T, Panic> {
    catch_unwind(AssertUnwindSafe(f)).map_err(Panic)
}

/// Polls `future` once, and returns its panic as an error.
pub(crate) fn poll<F: Future + ?Sized>(
    future: Pin<&mut F>,
    cx: &mut Context<'_>,
) -> Poll<StdResult<F::Output, Panic>> {
    match catch_sync(|| future.poll(cx)) {
        Ok(Poll::Pending) => Poll::Pending,
        Ok(Poll::Ready(output)) => Poll::Ready(Ok(output)),
        Err(panic) => Poll::Ready(Err(panic)),
    }
}

/// Runs `future` to its end, and returns its panic as an error.
pub(crate) async fn catch<F: Future + Unpin>(mut future: F) -> StdResult<F::Output, Panic> {
    poll_fn(|cx| poll(Pin::new(&mut future), cx)).await
}

/// Calls user code; its panic becomes an error.
pub(crate) fn catch_panic<T>(f: impl FnOnce() -> Result<T>) -> Result<T> {
    flatten(catch_sync(f))
}

/// Flattens the two results into one: a panic becomes an error.
pub(crate) fn flatten<T>(result: StdResult<Result<T>, Panic>) -> Result<T> {
    result.unwrap_or_else(|panic| Err(panic.into_error()))
}
