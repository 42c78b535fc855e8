//! The shutdown of a connection, from the request to close to the closed transport.
//!
//! ```text
//! open ── begin_close, or the peer's end ──▶ draining: nothing new is begun, what runs may finish
//!      ── end_drain ──▶ flushing: what runs is answered with errors, and written while the peer takes it
//!      ── cut ──▶ nothing can be sent or received, calls fail, handlers are cancelled
//!      ── finished ──▶ the transport is closed, too
//! ```

use std::sync::Arc;

#[cfg(feature = "server")]
use tokio::time::timeout;

#[cfg(feature = "http-server")]
use crate::session::connection::OnClosing;
use crate::session::connection::{Connection, Outcome};
#[cfg(feature = "server")]
use crate::session::inbound::run::MIDDLEWARE_GRACE;

/// The maximum number of bytes that are kept of a line that is not a message, for diagnosis.
const NOISE_BYTES: usize = 200;

impl Connection {
    /// Asks the driver to close: no new request starts, and requests in flight may finish within the drain limit.
    pub(crate) fn begin_close(&self) {
        let shared = self.shared();
        shared.notifications().closing();
        shared.shutdown.begin();
        shared.outbox.wake_driver();
    }

    /// Ends the connection without waiting, because the peer counts as lost.
    pub(crate) fn break_off(self: &Arc<Self>, reason: &str) {
        self.cut(Outcome::Failed(reason.to_owned()));
        self.begin_close();
    }

    /// For the driver: the peer sends nothing more, so there will be no more answers.
    pub(crate) fn no_more_answers(&self) {
        self.calls().close(&self.reason(&Outcome::Closed));
    }

    /// For the driver: the deadline of the requests in flight has passed. They are answered with errors, and calls fail.
    pub(crate) fn end_drain(&self) {
        self.in_flight().refuse_new();
        let requests = self.in_flight().cut_short();
        if requests > 0 {
            tracing::warn!(
                requests,
                "failing requests in flight because the session ends"
            );
        }
        self.no_more_answers();
    }

    /// For the driver: nothing can be sent or received anymore. Fails pending calls, and cancels the requests in flight.
    pub(crate) fn cut(self: &Arc<Self>, outcome: Outcome) {
        let reason = self.reason(&outcome);
        self.shutdown.cut(outcome);
        self.in_flight().refuse_new();
        self.in_flight().cancel_all();
        self.calls().close(&reason);
        self.calls().release_all();
        self.outbox.close();
    }

    /// For the driver: the transport is closed, too.
    pub(crate) fn finished(self: &Arc<Self>) {
        self.shutdown.end();
        self.role().closed(self);
    }

    /// Whether any middleware has not been notified yet of the end of its request.
    #[cfg(feature = "server")]
    pub(crate) fn has_open_middleware(&self) -> bool {
        self.role().has_incoming() && self.in_flight().is_running()
    }

    /// Waits, after the connection was cut, until the middleware was notified of the end of all requests. Without middleware,
    /// this does not wait for cancelled handlers.
    #[cfg(feature = "server")]
    pub(crate) async fn middleware_ended(&self) {
        if self.has_open_middleware() {
            let limit = self.limits.cancel_grace.saturating_add(MIDDLEWARE_GRACE);
            // A handler that blocks its thread does not end.
            let _ = timeout(limit, self.in_flight().works_ended()).await;
        }
    }

    /// The error message of calls that will not be answered.
    fn reason(&self, outcome: &Outcome) -> String {
        let reason = match outcome {
            Outcome::Closed if self.is_closing() => return "the session was closed".to_owned(),
            Outcome::Closed => "the peer closed the connection",
            Outcome::Failed(reason) => reason,
        };
        let stray_line = self.stray_line.lock();
        match &*stray_line {
            Some(stray_line) => {
                format!("{reason}; it also sent a line that is not a message: {stray_line:?}")
            }
            None => reason.to_owned(),
        }
    }

    /// Records a line from the peer that was not a message, if it is the first. Returns whether it is.
    pub(crate) fn heard_noise(&self, bytes: &[u8]) -> bool {
        let shown = bytes.get(..NOISE_BYTES).unwrap_or(bytes);
        let mut stray_line = self.stray_line.lock();
        let is_first = stray_line.is_none();
        if is_first {
            *stray_line = Some(String::from_utf8_lossy(shown).into_owned());
        }
        is_first
    }
}

/// Methods for connections without a driver, such as those of sessions over HTTP.
#[cfg(feature = "http-server")]
impl Connection {
    /// Calls `then` once this side closes, or immediately if it is already closing.
    pub(crate) fn when_closing(&self, then: OnClosing) {
        self.shutdown.when_closing(then);
    }

    /// Removes the callback of [`when_closing`](Self::when_closing). Returns whether it had not been called yet.
    pub(crate) fn take_on_closing(&self) -> bool {
        self.shutdown.take_on_closing().is_some()
    }

    /// Ends the connection, and with it the session: requests in flight are cancelled.
    pub(crate) fn end(self: &Arc<Self>) {
        self.cut(Outcome::Closed);
        self.finished();
    }

    /// Ends a connection without a session, such as that of a modern request over HTTP: the request in flight is cancelled,
    /// with its grace period.
    pub(crate) fn abandon(self: &Arc<Self>) {
        self.cut(Outcome::Closed);
        self.shutdown.end();
    }
}
