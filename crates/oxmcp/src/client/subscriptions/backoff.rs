//! How long to wait before something is tried again.

use std::{collections::hash_map::RandomState, hash::BuildHasher, time::Duration};

/// The first pause, at most.
const FIRST: Duration = Duration::from_millis(500);
/// The longest pause, at most. What went well for as long as that begins anew with the first.
const LONGEST: Duration = Duration::from_secs(60);

/// Pauses that grow twofold, each cut short by chance, so that not all who wait come back at once.
#[derive(Debug)]
pub(crate) struct Backoff {
    next: Duration,
}

impl Backoff {
    pub(crate) fn new() -> Self {
        Self { next: FIRST }
    }

    /// The next pause, after something that went well for a while.
    pub(crate) fn after(&mut self, well: Duration) -> Duration {
        if well >= LONGEST {
            self.next = FIRST;
        }
        // The keys of each new state are random.
        self.pause(RandomState::new().hash_one(FIRST))
    }

    /// The next pause: from a half to the whole of what it may be.
    fn pause(&mut self, chance: u64) -> Duration {
        let most = self.next;
        self.next = (most * 2).min(LONGEST);
        let half = most / 2;
        let share = u32::try_from(chance % 1024).unwrap_or_default();
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
