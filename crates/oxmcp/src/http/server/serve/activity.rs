//! The activity of a connection, from which its deadline is computed.
//!
//! The connection's I/O and service record events here, and its task asks for the deadline.

use std::{
    fmt,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
    time::Duration,
};

use tokio::time::{Instant, Sleep};

use crate::{limits::Limits, session::task::after, sync::Mutex};

/// The minimum interval between two checks of a connection with requests in flight.
const SHORTEST_PAUSE: Duration = Duration::from_millis(10);

/// The timeouts within which a client must act.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Timeouts {
    /// The timeout for the head of a request.
    pub(crate) head: Duration,
    /// The timeout for the next request.
    pub(crate) idle: Duration,
    /// The timeout for the client to read any of the written bytes.
    pub(crate) stall: Duration,
}

impl From<&Limits> for Timeouts {
    fn from(limits: &Limits) -> Self {
        Self {
            head: limits.http.head,
            idle: limits.http.connection_idle,
            stall: limits.http.stall,
        }
    }
}

/// The timeout that a connection has exceeded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exceeded {
    Head,
    Idle,
    Stall,
}

impl fmt::Display for Exceeded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Head => "request head timed out",
            Self::Idle => "idle timeout",
            Self::Stall => "client stopped reading",
        })
    }
}

/// The time at which a phase began. The poll in which the phase begins does not read the clock: the deadline is computed after that
/// poll, and most HTTP/1 phases have ended by then.
#[derive(Clone, Copy, Debug)]
struct Since(Option<Instant>);

impl Since {
    const THIS_POLL: Self = Self(None);

    fn now() -> Self {
        Self(Some(Instant::now()))
    }

    fn instant(&mut self) -> Instant {
        *self.0.get_or_insert_with(Instant::now)
    }
}

/// The activity of one connection.
#[derive(Clone, Debug)]
pub(crate) struct Activity(Arc<Mutex<State>>);

#[derive(Debug)]
struct State {
    is_http2: bool,
    /// The number of requests in flight.
    in_flight: usize,
    /// The time at which the last response was written, or the connection was accepted.
    idle_since: Since,
    /// The time at which an incomplete head began.
    head_since: Option<Since>,
    /// The time at which the client stopped reading written bytes.
    blocked_since: Option<Since>,
    /// Whether the client has stalled: it reads nothing of a response.
    has_stalled: bool,
}

/// A request in flight, until this is dropped.
#[derive(Debug)]
pub(crate) struct RequestGuard(Activity);

impl RequestGuard {
    pub(crate) fn activity(&self) -> &Activity {
        &self.0
    }
}

impl Activity {
    /// The activity of a connection that was just accepted. Its first head begins now.
    pub(crate) fn new() -> Self {
        let now = Since::now();
        Self(Arc::new(Mutex::new(State {
            is_http2: false,
            in_flight: 0,
            idle_since: now,
            head_since: Some(now),
            blocked_since: None,
            has_stalled: false,
        })))
    }

    /// Records that the connection uses HTTP/2, where some bytes do not belong to any request.
    pub(crate) fn is_http2(&self) {
        self.0.lock().is_http2 = true;
    }

    /// Restarts the idle time.
    pub(crate) fn restart_idle(&self) {
        self.0.lock().idle_since = Since::now();
    }

    /// Records that bytes were read. Over HTTP/1, between requests, they start a head.
    pub(crate) fn note_read(&self) {
        let mut state = self.0.lock();
        if state.in_flight == 0 && !state.is_http2 {
            state.head_since.get_or_insert(Since::THIS_POLL);
        }
    }

    /// Records an attempt to write bytes. `written` is the outcome: whether the client accepted any. Over HTTP/1, between requests,
    /// they are the rest of a response.
    pub(crate) fn note_write<T>(&self, written: &Poll<T>) {
        let mut state = self.0.lock();
        if written.is_pending() {
            state.blocked_since.get_or_insert(Since::THIS_POLL);
            return;
        }
        state.blocked_since = None;
        if state.in_flight == 0 && !state.is_http2 {
            state.idle_since = Since::THIS_POLL;
        }
    }

    /// Records that the client does not read a response. The connection ends, even if bytes of other responses could still be
    /// written. It notices when its timer fires, within a quarter of its idle timeout.
    pub(crate) fn note_stall(&self) {
        self.0.lock().has_stalled = true;
    }

    #[cfg(test)]
    pub(crate) fn has_stalled(&self) -> bool {
        self.0.lock().has_stalled
    }

    /// Records that the head of a request is complete.
    pub(crate) fn begin_request(&self) -> RequestGuard {
        let mut state = self.0.lock();
        state.in_flight += 1;
        state.head_since = None;
        RequestGuard(self.clone())
    }

    /// Waits until a timeout is exceeded. `timer` is set to the deadline, and moved only if the deadline is earlier or the timer
    /// has fired: most calls end before that, without touching the timer.
    pub(crate) fn poll_exceeded(
        &self,
        timeouts: &Timeouts,
        mut timer: Pin<&mut Sleep>,
        cx: &mut Context<'_>,
    ) -> Poll<Exceeded> {
        loop {
            let due = self.0.lock().due(timeouts);
            let has_fired = timer.is_elapsed();
            match due {
                Some((deadline, exceeded)) if has_fired && deadline <= Instant::now() => {
                    return Poll::Ready(exceeded);
                }
                Some((deadline, _)) if has_fired || deadline < timer.deadline() => {
                    timer.as_mut().reset(deadline);
                }
                // A request is in flight, and over HTTP/2 its end need not wake the task.
                None if has_fired => {
                    let pause = (timeouts.idle / 4).max(SHORTEST_PAUSE);
                    timer.as_mut().reset(after(Instant::now(), pause));
                }
                _ => {}
            }
            ready!(timer.as_mut().poll(cx));
        }
    }
}

impl State {
    /// The deadline of the current phase. `None` while a request is in flight, whose duration is not limited.
    fn due(&mut self, timeouts: &Timeouts) -> Option<(Instant, Exceeded)> {
        if self.has_stalled {
            return Some((self.idle_since.instant(), Exceeded::Stall));
        }
        if let Some(since) = &mut self.blocked_since {
            return Some((after(since.instant(), timeouts.stall), Exceeded::Stall));
        }
        if self.in_flight > 0 {
            return None;
        }
        Some(match &mut self.head_since {
            Some(since) => (after(since.instant(), timeouts.head), Exceeded::Head),
            None => (
                after(self.idle_since.instant(), timeouts.idle),
                Exceeded::Idle,
            ),
        })
    }
}

impl Drop for RequestGuard {
    fn drop(&mut self) {
        let mut state = self.0.0.lock();
        state.in_flight -= 1;
        // Over HTTP/2 another task may drop the guard, and the deadline is not computed after that.
        state.idle_since = if state.is_http2 {
            Since::now()
        } else {
            Since::THIS_POLL
        };
    }
}
