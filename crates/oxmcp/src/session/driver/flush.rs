//! The time that a connection which ends leaves its peer to take what is written.

use std::time::Duration;

use tokio::time::Instant;

use crate::session::task::after;

/// What a peer takes each second at least. A slow modem takes as much; who takes less is as good as gone.
const MIN_BYTES_PER_SECOND: u64 = 4 << 10;
/// How long it may take nothing at first: as long as a reader may be busy that is there, and shorter than whoever closes many
/// sessions waits for all of them.
const GRACE: Duration = Duration::from_secs(1);
/// How long it may take nothing after it has taken much: it works on that.
const MAX_PAUSE: Duration = Duration::from_secs(10);

/// The time until which writing goes on. It is put off while the peer takes enough.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Flush {
    start: Instant,
    /// What it had taken before.
    taken_before: u64,
    deadline: Instant,
    /// The deadline is never later than that.
    end: Instant,
}

impl Flush {
    /// One that begins now, where the peer has taken so many bytes.
    pub(super) fn new(now: Instant, limit: Duration, taken: u64) -> Self {
        let end = after(now, limit);
        Self {
            start: now,
            taken_before: taken,
            deadline: end.min(now + GRACE),
            end,
        }
    }

    pub(super) fn deadline(&self) -> Instant {
        self.deadline
    }

    /// Puts the deadline off by what has been taken since it was set. Returns whether it has passed nevertheless.
    pub(super) fn is_over(&mut self, now: Instant, taken: u64) -> bool {
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
    fn the_deadline_is_put_off_by_what_is_taken() {
        let start = Instant::now();
        let mut flush = Flush::new(start, 60 * SECOND, 100);
        assert_eq!(flush.deadline(), start + GRACE);
        let mut silent = flush;
        assert!(silent.is_over(start + GRACE, 100));
        assert!(!flush.is_over(start + GRACE, 100 + 3 * MIN_BYTES_PER_SECOND));
        assert_eq!(flush.deadline(), start + GRACE + 3 * SECOND);
        // Much at once is no leave to be silent for ever, and nothing is at the end.
        assert!(!flush.is_over(start + 4 * SECOND, 1 << 30));
        assert_eq!(flush.deadline(), start + 4 * SECOND + MAX_PAUSE);
        assert!(!flush.is_over(start + 59 * SECOND, 1 << 31));
        assert_eq!(flush.deadline(), start + 60 * SECOND);
        assert!(flush.is_over(start + 60 * SECOND, 1 << 32));
    }

    #[test]
    fn no_flush_is_over_at_once() {
        let now = Instant::now();
        assert!(Flush::new(now, Duration::ZERO, 0).is_over(now, 1 << 30));
    }
}
