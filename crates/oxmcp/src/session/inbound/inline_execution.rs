//! Which handlers may run on the connection's own task.

use std::{
    sync::atomic::{AtomicU32, Ordering},
    time::Duration,
};

/// A first poll that is longer than this would hold up what else arrives on the connection.
const QUICK: Duration = Duration::from_micros(500);
/// So many quick first polls in a row earn a place on the connection's task. One alone may be luck.
const TRUSTED: u32 = 2;
/// So many are owed after a slow one, so that a handler which is slow now and then costs little.
const OWED: u32 = 50;
/// After one that is longer than this while it was trusted, no trust is left: whoever waited for it has noticed. Before that
/// it held up nobody, and the first call is often the one that opens a file or fills a cache.
const FAR_TOO_SLOW: Duration = Duration::from_millis(10);
/// Owed by those who are never trusted again.
const FOR_EVER: u32 = u32::MAX;

/// How long a handler's first poll commonly takes.
///
/// A handler that is ready at once needs no task of its own, which saves most of the cost of a call. One that computes
/// for long would delay every other message of the connection, so it gets one. Nobody knows beforehand which is which;
/// this remembers how it went so far.
#[derive(Debug)]
pub(crate) struct Pace(AtomicU32);

impl Pace {
    /// How many quick polls are still needed before the handler is trusted.
    pub(crate) fn new() -> Self {
        Self(AtomicU32::new(TRUSTED))
    }

    /// For a handler that is never to be trusted.
    pub(crate) fn slow() -> Self {
        Self(AtomicU32::new(FOR_EVER))
    }

    pub(crate) fn is_quick(&self) -> bool {
        self.0.load(Ordering::Relaxed) == 0
    }

    /// Whether it is never to be trusted.
    pub(crate) fn is_slow(&self) -> bool {
        self.0.load(Ordering::Relaxed) == FOR_EVER
    }

    pub(crate) fn record(&self, first_poll: Duration) {
        let owed = self.0.load(Ordering::Relaxed);
        let now = match owed {
            FOR_EVER => return,
            0 if first_poll > FAR_TOO_SLOW => FOR_EVER,
            _ if first_poll > QUICK => OWED,
            0 => return,
            owed => owed - 1,
        };
        self.0.store(now, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// It takes exactly as many polls as that to be trusted.
    fn earn(pace: &Pace, polls: u32, each: Duration) {
        for _ in 0..polls {
            assert!(!pace.is_quick());
            pace.record(each);
        }
        assert!(pace.is_quick());
    }

    fn trusted() -> Pace {
        let pace = Pace::new();
        earn(&pace, TRUSTED, QUICK);
        pace
    }

    #[test]
    fn who_was_slow_while_nobody_waited_can_earn_trust() {
        let pace = Pace::new();
        pace.record(FAR_TOO_SLOW * 2);
        earn(&pace, OWED, Duration::ZERO);
    }

    #[test]
    fn trust_is_earned_and_lost() {
        let pace = trusted();
        pace.record(QUICK * 2);
        earn(&pace, OWED, Duration::ZERO);
    }

    #[test]
    fn one_that_is_far_too_slow_is_never_trusted_again() {
        let pace = trusted();
        pace.record(FAR_TOO_SLOW * 2);
        for _ in 0..10 * OWED {
            pace.record(Duration::ZERO);
        }
        assert!(!pace.is_quick());
        assert!(pace.is_slow() && Pace::slow().is_slow() && !Pace::new().is_slow());
    }
}
