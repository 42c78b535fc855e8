//! The deadline for writing the remaining output of a connection that ends.

use std::time::Duration;

use tokio::time::Instant;

use crate::session::task::after;

/// The minimum rate at which a peer must read, in bytes per second. A slow modem reaches it. A slower peer counts as lost.
const MIN_BYTES_PER_SECOND: u64 = 4 << 10;
/// The time for which the peer may read nothing at first: long enough for a busy reader, and short enough for a caller that
/// closes many sessions and waits for all of them.
const GRACE: Duration = Duration::from_secs(1);
/// The time for which the peer may read nothing after it has read much, because it may be processing that.
const MAX_PAUSE: Duration = Duration::from_secs(10);

/// The deadline for writing. It is extended while the peer reads fast enough.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Flush {
    start: Instant,
    /// The number of bytes that the peer had accepted at the start.
    taken_before: u64,
    deadline: Instant,
    /// The latest possible deadline.
    end: Instant,
}

impl Flush {
    /// A flush that begins now, when the peer has accepted `taken` bytes.
    pub(crate) fn new(now: Instant, limit: Duration, taken: u64) -> Self {
        let end = after(now, limit);
        Self {
            start: now,
            taken_before: taken,
            deadline: end.min(now + GRACE),
            end,
        }
    }

    pub(crate) fn deadline(&self) -> Instant {
        self.deadline
    }

    /// Extends the deadline by the bytes that were accepted since the start. Returns whether it has still passed.
    pub(crate) fn is_over(&mut self, now: Instant, taken: u64) -> bool {
        let bytes = taken.saturating_sub(self.taken_before);
        let earned = Duration::from_millis(bytes.saturating_mul(1_000) / MIN_BYTES_PER_SECOND);
        let deadline = after(self.start + GRACE, earned).min(now + MAX_PAUSE);
        self.deadline = deadline.min(self.end);
        now >= self.deadline
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn deadline_is_extended_by_progress() {
        let start = Instant::now();
        let mut flush = Flush::new(start, 60 * SECOND, 100);
        assert_eq!(flush.deadline(), start + GRACE);
        let mut silent = flush;
        assert!(silent.is_over(start + GRACE, 100));
        assert!(!flush.is_over(start + GRACE, 100 + 3 * MIN_BYTES_PER_SECOND));
        assert_eq!(flush.deadline(), start + GRACE + 3 * SECOND);
        // A large read does not allow an endless pause, and nothing extends the end.
        assert!(!flush.is_over(start + 4 * SECOND, 1 << 30));
        assert_eq!(flush.deadline(), start + 4 * SECOND + MAX_PAUSE);
        assert!(!flush.is_over(start + 59 * SECOND, 1 << 31));
        assert_eq!(flush.deadline(), start + 60 * SECOND);
        assert!(flush.is_over(start + 60 * SECOND, 1 << 32));
    }

    #[test]
    fn flush_always_gets_some_time() {
        let now = Instant::now();
        assert!(Flush::new(now, Duration::ZERO, 0).is_over(now, 1 << 30));
    }
}
