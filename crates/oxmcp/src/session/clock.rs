//! How long a call waits, and how that ends.

use std::time::Duration;

use tokio::{sync::oneshot, time::Instant};

use crate::{
    Error, Result,
    session::{CallOptions, after, patience::Patience},
};

/// How long a call may still take.
pub(super) struct Clock<'a> {
    patience: &'a Patience,
    timeout: Duration,
    max_total: Duration,
    deadline: Instant,
    last: Instant,
}

impl<'a> Clock<'a> {
    pub(super) fn start(patience: &'a Patience, start: Instant, options: &CallOptions) -> Self {
        let last = after(start, options.max_total);
        Self {
            patience,
            timeout: options.timeout,
            max_total: options.max_total,
            deadline: after(start, options.timeout).min(last),
            last,
        }
    }

    /// Waits until the time is up. Cancel safe.
    pub(super) async fn ends(&self) {
        let (deadline, timeout, last) = (self.deadline, self.timeout, self.last);
        self.patience.ends(deadline, timeout, last).await;
    }

    /// There was a sign of life. Returns whether there is time left all the same.
    pub(super) fn restart(&mut self) -> bool {
        let now = Instant::now();
        self.deadline = after(now, self.timeout).min(self.last);
        now < self.last
    }

    /// The time is up, before the end of all time or at it.
    pub(super) fn timed_out(&self) -> Wait {
        let at_last = self.timeout >= self.max_total || Instant::now() >= self.last;
        Wait::TimedOut(if at_last {
            self.max_total
        } else {
            self.timeout
        })
    }
}

/// How waiting for an answer ended.
pub(super) enum Wait {
    Answered(Result<Box<str>>),
    TimedOut(Duration),
    Cancelled,
}

impl Wait {
    pub(super) fn answered(
        method: &str,
        answer: Result<Result<Box<str>>, oneshot::error::RecvError>,
    ) -> Self {
        Self::Answered(answer.unwrap_or_else(|_| {
            let reason = format!("the session ended before {method} was answered");
            Err(Error::closed(reason))
        }))
    }

    pub(super) fn into_error(self, method: &str) -> Error {
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
