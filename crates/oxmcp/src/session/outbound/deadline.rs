//! The deadline of a call: its timeout, which progress and questions of the peer extend, and its total limit.

use std::{sync::OnceLock, time::Duration};

use tokio::time::Instant;

use crate::{
    error::Error,
    session::{outbound::options::CallOptions, task::after},
    sync::Mutex,
    transport::traits::{UserWaits, Waits},
};

/// The minimum interval between two checks whether the peer's questions are still being answered.
const LOOK_AGAIN: Duration = Duration::from_millis(1);

/// The deadline of a call.
#[derive(Debug)]
pub(crate) struct Deadline {
    timeout: Duration,
    max_total: Duration,
    /// The time at which the call fails, unless there is a sign of life.
    pub(crate) at: Instant,
    /// The time at which it fails in any case.
    last: Instant,
}

impl Deadline {
    pub(crate) fn new(start: Instant, options: &CallOptions) -> Self {
        Self {
            timeout: options.timeout,
            max_total: options.max_total,
            at: after(start, options.timeout.min(options.max_total)),
            last: after(start, options.max_total),
        }
    }

    /// Extends the deadline after a sign of life at `now`. Returns whether there is time left.
    pub(crate) fn put_off(&mut self, now: Instant) -> bool {
        self.at = after(now, self.timeout).min(self.last);
        now < self.last
    }

    /// Extends a deadline that has passed, if questions of the peer are being answered, or were since it was set. Returns
    /// whether it was extended.
    pub(crate) fn put_off_for(&mut self, paused: &PausedDeadlines, now: Instant) -> bool {
        let later = match paused.waits() {
            // The end of the questions is not known yet. At the new deadline this is checked again, and the deadline extended
            // once more.
            Waits { waiting: 1.., .. } => after(now, self.timeout.max(LOOK_AGAIN)),
            Waits {
                ended: Some(ended), ..
            } => after(ended, self.timeout),
            Waits { ended: None, .. } => return false,
        };
        let later = later.min(self.last);
        let is_later = later > self.at;
        self.at = self.at.max(later);
        is_later
    }

    /// The error of a call whose deadline has passed.
    pub(crate) fn exceeded(&self, method: &str, now: Instant) -> Error {
        let is_total = self.timeout >= self.max_total || now >= self.last;
        let limit = if is_total {
            self.max_total
        } else {
            self.timeout
        };
        Error::timeout(format!(
            "{method} timed out: no response within {limit:?}; set a longer timeout on the call"
        ))
    }
}

/// The pauses during which no call of this side times out: while questions of the peer to the user and to a model (elicitation,
/// sampling) are being answered, and while the transport waits for a person.
///
/// The peer usually asks because of a call that it has not answered yet. It does not say which one, so the deadlines of all
/// calls are paused.
#[derive(Debug, Default)]
pub(crate) struct PausedDeadlines {
    questions: Mutex<Waits>,
    transport: OnceLock<UserWaits>,
}

impl PausedDeadlines {
    pub(crate) fn begin(&self) {
        self.questions.lock().begin();
    }

    pub(crate) fn end(&self) {
        self.questions.lock().end();
    }

    /// Makes the waits of the transport count, too.
    #[cfg(feature = "client")]
    pub(crate) fn count_waits(&self, waits: UserWaits) {
        let _ = self.transport.set(waits);
    }

    fn waits(&self) -> Waits {
        let mut waits = *self.questions.lock();
        if let Some(of_transport) = self.transport.get().map(UserWaits::waits) {
            waits.waiting += of_transport.waiting;
            waits.ended = waits.ended.max(of_transport.ended);
        }
        waits
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::advance;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn questions_postpone_deadline_up_to_the_total() {
        let second = Duration::from_secs(1);
        let start = Instant::now();
        let options = CallOptions {
            timeout: second,
            max_total: second * 4,
            ..CallOptions::default()
        };
        let mut deadline = Deadline::new(start, &options);
        let paused = PausedDeadlines::default();
        assert!(!deadline.put_off_for(&paused, start + second));

        paused.begin();
        advance(second).await;
        assert!(deadline.put_off_for(&paused, Instant::now()));
        assert_eq!(deadline.at, start + second * 2);
        advance(second / 2).await;
        paused.end();
        advance(second / 2).await;
        assert!(deadline.put_off_for(&paused, Instant::now()));
        assert_eq!(deadline.at, start + second * 5 / 2);

        paused.begin();
        advance(second).await;
        assert!(deadline.put_off_for(&paused, Instant::now()));
        assert_eq!(deadline.at, start + second * 4);
        advance(second).await;
        assert!(!deadline.put_off_for(&paused, Instant::now()));
        assert!(
            deadline
                .exceeded("m", Instant::now())
                .message()
                .contains("4s")
        );
    }

    #[cfg(feature = "client")]
    #[tokio::test(start_paused = true)]
    async fn transport_waits_postpone_the_deadline() {
        let second = Duration::from_secs(1);
        let options = CallOptions {
            timeout: second,
            max_total: second * 9,
            ..CallOptions::default()
        };
        let mut deadline = Deadline::new(Instant::now(), &options);
        let (paused, waits) = (PausedDeadlines::default(), UserWaits::new());
        paused.count_waits(waits.clone());
        let wait = waits.begin();
        advance(second).await;
        assert!(deadline.put_off_for(&paused, Instant::now()));
        advance(second / 2).await;
        drop(wait);
        advance(second / 2).await;
        assert!(deadline.put_off_for(&paused, Instant::now()));
        advance(second / 2).await;
        assert!(!deadline.put_off_for(&paused, Instant::now()));
    }
}
