//! Timing of a task that the client waits for: the pauses between the polls, and the deadlines of the call.

use std::time::Duration;

use tokio::{
    select,
    sync::Notify,
    time::{Instant, sleep_until},
};

use crate::{
    error::Error,
    session::{outbound::options::CallOptions, task::after},
    sync::Mutex,
};

/// The shortest pause, even if a server asks for a shorter one.
const SHORTEST: Duration = Duration::from_millis(50);
/// The longest pause.
pub(crate) const LONGEST: Duration = Duration::from_secs(60);
/// The first and the longest pause, if the server sends no poll interval.
const OWN: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(10));

/// The pauses between the polls of a task.
#[derive(Debug)]
pub(crate) struct Pace {
    /// The next pause, if the server sends no poll interval.
    own: Duration,
    /// The number of failed requests since the last one that succeeded.
    failures: u32,
}

impl Pace {
    pub(crate) fn new() -> Self {
        Self {
            own: OWN.0,
            failures: 0,
        }
    }

    /// The pause after a request that succeeded. `asked` is the server's poll interval, in milliseconds.
    pub(crate) fn next(&mut self, asked: Option<u64>, has_changed: bool) -> Duration {
        self.failures = 0;
        if let Some(asked) = asked {
            return Duration::from_millis(asked).clamp(SHORTEST, LONGEST);
        }
        if has_changed {
            self.own = OWN.0;
        }
        let pause = self.own;
        self.own = (pause * 3 / 2).min(OWN.1);
        pause
    }

    /// The pause after a request that has failed: twice as long each time.
    pub(crate) fn after_failure(&mut self) -> Duration {
        let doubled = OWN.0 * 2_u32.saturating_pow(self.failures.min(16));
        self.failures += 1;
        doubled.min(LONGEST)
    }
}

/// The deadlines of a call, including its task. Each change of the task restarts the timeout, like progress. The timeout is
/// paused while the server waits for an answer from this side. `max_total` limits the whole.
#[derive(Debug)]
pub(crate) struct Clock {
    timeout: Duration,
    max_total: Duration,
    latest: Instant,
    /// The time at which the timeout expires. `None` while it is paused.
    until: Mutex<Option<Instant>>,
    changed: Notify,
}

impl Clock {
    /// The clock of a call that begins now.
    pub(crate) fn of(options: &CallOptions) -> Self {
        let now = Instant::now();
        Self {
            timeout: options.timeout,
            max_total: options.max_total,
            latest: after(now, options.max_total),
            until: Mutex::new(Some(after(now, options.timeout))),
            changed: Notify::new(),
        }
    }

    /// Restarts the timeout.
    pub(crate) fn restart(&self) {
        *self.until.lock() = Some(after(Instant::now(), self.timeout));
        self.changed.notify_one();
    }

    /// Pauses the timeout until it is restarted.
    pub(crate) fn pause(&self) {
        *self.until.lock() = None;
        self.changed.notify_one();
    }

    /// Waits until a deadline expires, and returns the error for it. Cancel safe.
    pub(crate) async fn is_over(&self) -> Error {
        loop {
            let until = *self.until.lock();
            let next = until.unwrap_or(self.latest).min(self.latest);
            select! {
                () = sleep_until(next) => {}
                () = self.changed.notified() => continue,
            }
            let (limit, (option, missed)) = if next == self.latest {
                (self.max_total, ("max_total", "finish"))
            } else {
                (self.timeout, ("timeout", "change"))
            };
            return Error::timeout(format!(
                "tools/call timed out: its task did not {missed} within {limit:?} and was cancelled; set a longer {option} on the call, or use `as_task`"
            ));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requested_poll_interval_is_clamped() {
        let mut pace = Pace::new();
        for (asked, expected) in [(0, 50), (70, 70), (u64::MAX, 60_000)] {
            assert_eq!(
                pace.next(Some(asked), false),
                Duration::from_millis(expected)
            );
        }
    }

    #[test]
    fn pauses_grow_until_the_task_changes() {
        let mut pace = Pace::new();
        assert_eq!(pace.next(None, false), OWN.0);
        assert!(pace.next(None, false) > OWN.0);
        for _ in 0..20 {
            assert!(pace.next(None, false) <= OWN.1);
        }
        assert_eq!(pace.next(None, true), OWN.0);
    }

    #[test]
    fn failures_are_followed_by_longer_pauses() {
        let mut pace = Pace::new();
        assert_eq!(pace.after_failure(), OWN.0);
        assert_eq!(pace.after_failure(), OWN.0 * 2);
        for _ in 0..100 {
            assert!(pace.after_failure() <= LONGEST);
        }
        pace.next(None, false);
        assert_eq!(pace.after_failure(), OWN.0);
    }
}
