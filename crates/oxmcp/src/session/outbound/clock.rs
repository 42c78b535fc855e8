//! How long a call waits, and how that ends.

use std::{sync::Arc, time::Duration};

use tokio::{
    select,
    time::{Instant, sleep_until},
};

use crate::{
    Error,
    session::{CallOptions, Connection, after, calls::Answer},
};

/// How long a call may still take.
pub(crate) struct Clock {
    pub(crate) timeout: Duration,
    max_total: Duration,
    pub(crate) deadline: Instant,
    pub(crate) last: Instant,
}

/// When a call that hears nothing has waited long enough.
pub(crate) fn deadline(start: Instant, options: &CallOptions) -> Instant {
    after(start, options.timeout.min(options.max_total))
}

impl Clock {
    pub(crate) fn start(start: Instant, options: &CallOptions) -> Self {
        Self {
            timeout: options.timeout,
            max_total: options.max_total,
            deadline: deadline(start, options),
            last: after(start, options.max_total),
        }
    }

    /// There was a sign of life. Returns whether there is time left all the same.
    pub(crate) fn restart(&mut self) -> bool {
        let now = Instant::now();
        self.deadline = after(now, self.timeout).min(self.last);
        now < self.last
    }

    /// The time is up, before the end of all time or at it.
    pub(crate) fn timed_out(&self) -> Wait {
        let at_last = self.timeout >= self.max_total || Instant::now() >= self.last;
        Wait::TimedOut(if at_last {
            self.max_total
        } else {
            self.timeout
        })
    }
}

impl Connection {
    /// Watches the clock for all calls, until none is left that wants to be woken.
    pub(crate) fn start_clock(self: &Arc<Self>) {
        let connection = Arc::clone(self);
        // It must live as long as the connection, and so on the runtime that drives it.
        self.runtime.spawn(async move {
            while let Some(next) = connection.calls().ring(Instant::now()) {
                select! {
                    _ = connection.ended() => return,
                    () = connection.calls().earlier() => {}
                    () = sleep_until(next) => {}
                }
            }
        });
    }
}

/// How waiting for an answer ended.
pub(crate) enum Wait {
    Answered(Answer),
    TimedOut(Duration),
    Cancelled,
}

impl Wait {
    pub(crate) fn into_error(self, method: &str) -> Error {
        match self {
            Self::Answered(_) | Self::Cancelled => {
                Error::cancelled(format!("the call of {method} was cancelled"))
            }
            Self::TimedOut(limit) => Error::timeout(format!(
                "no answer to {method} within {limit:?}; the call was cancelled \
                 (set a longer timeout on the call where it may take longer)"
            )),
        }
    }
}
