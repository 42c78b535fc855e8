//! The pauses between the requests of a subscription that fails.

use std::{collections::hash_map::RandomState, hash::BuildHasher, time::Duration};

/// The first pause, at most.
const FIRST: Duration = Duration::from_millis(500);
/// The longest pause, at most. A subscription that was open for as long begins again with the first.
const LONGEST: Duration = Duration::from_secs(60);

/// Exponential back-off with jitter.
#[derive(Debug)]
pub(crate) struct Backoff {
    next: Duration,
}

impl Backoff {
    pub(crate) fn new() -> Self {
        Self { next: FIRST }
    }

    /// The next pause, after a subscription that was open for a while.
    pub(crate) fn after(&mut self, open: Duration) -> Duration {
        if open >= LONGEST {
            self.next = FIRST;
        }
        // The keys of each new state are random.
        self.pause(RandomState::new().hash_one(FIRST))
    }

    /// The next pause: from a half to the whole of its bound.
    fn pause(&mut self, random: u64) -> Duration {
        let most = self.next;
        self.next = (most * 2).min(LONGEST);
        let half = most / 2;
        let share = u32::try_from(random % 1024).unwrap_or_default();
        half + half / 1024 * share
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_to_a_limit_and_begin_anew() {
        let mut backoff = Backoff::new();
        let mut most = FIRST;
        for _ in 0..12 {
            let pause = backoff.after(Duration::ZERO);
            assert!(pause >= most / 2 && pause <= most, "{pause:?} of {most:?}");
            most = (most * 2).min(LONGEST);
        }
        assert_eq!(most, LONGEST);
        assert!(backoff.after(LONGEST) <= FIRST);
    }

    #[test]
    fn pauses_differ() {
        let pauses: Vec<_> = (0..8).map(|_| Backoff::new().after(LONGEST)).collect();
        assert!(pauses.iter().any(|pause| *pause != pauses[0]), "{pauses:?}");
        assert_eq!(Backoff::new().pause(0), FIRST / 2);
    }
}
