//! The pauses before retries: exponential, with jitter, and bounded.

use std::{collections::hash_map::RandomState, hash::BuildHasher, time::Duration};

/// The shortest pause, even if a server asks for none, so that this side does not spin.
const SHORTEST: Duration = Duration::from_millis(100);
/// The longest pause that a server can ask for.
const LONGEST_ASKED: Duration = Duration::from_secs(3600);
/// A stream that was open for this long counts as a success, with or without events, because many proxies end silent streams.
pub(crate) const STABLE: Duration = Duration::from_secs(10);

/// The policy by which an [`Endpoint`](crate::http::Endpoint) reconnects when a stream is interrupted or a server cannot be reached for
/// a while: after pauses that grow, each shortened at random, and a limited number of times.
///
/// If a server says how long to wait (`retry`), no attempt is made earlier, for up to an hour.
///
/// ```
/// use std::time::Duration;
/// use oxmcp::http::Reconnect;
///
/// let patient = Reconnect::default().attempts(20).max_delay(Duration::from_secs(5));
/// # let _ = patient;
/// ```
#[derive(Clone, Debug)]
pub struct Reconnect {
    attempts: u32,
    first: Duration,
    longest: Duration,
}

impl Default for Reconnect {
    fn default() -> Self {
        Self {
            attempts: 5,
            first: Duration::from_secs(1),
            longest: Duration::from_secs(30),
        }
    }
}

impl Reconnect {
    /// Sets the maximum number of attempts without progress. Default: 5. With 0, nothing is resumed or retried.
    #[must_use]
    pub fn attempts(mut self, attempts: u32) -> Self {
        self.attempts = attempts;
        self
    }

    /// Sets the first pause; each is half as long again as the one before. Default: 1 s.
    #[must_use]
    pub fn initial_delay(mut self, pause: Duration) -> Self {
        self.first = pause;
        self
    }

    /// Sets the longest pause. Default: 30 s.
    #[must_use]
    pub fn max_delay(mut self, pause: Duration) -> Self {
        self.longest = pause;
        self
    }
}

/// The attempts at one stream or request.
#[derive(Debug)]
pub(crate) struct Attempts {
    policy: Reconnect,
    made: u32,
}

impl Attempts {
    pub(crate) fn new(policy: &Reconnect) -> Self {
        Self {
            policy: policy.clone(),
            made: 0,
        }
    }

    /// Notes that there was progress: earlier attempts do not count.
    pub(crate) fn progressed(&mut self) {
        self.made = 0;
    }

    /// The pause before the next attempt, at least the one that the server has asked for. `None` after the last attempt.
    pub(crate) fn next(&mut self, asked: Option<Duration>) -> Option<Duration> {
        // The keys of each new state are random.
        self.pause(asked, RandomState::new().hash_one(SHORTEST))
    }

    fn pause(&mut self, asked: Option<Duration>, chance: u64) -> Option<Duration> {
        if self.made >= self.policy.attempts {
            return None;
        }
        let longest = self.policy.longest.max(SHORTEST);
        let mut most = self.policy.first.clamp(SHORTEST, longest);
        for _ in 0..self.made.min(64) {
            most = (most + most / 2).min(longest);
        }
        let share = u32::try_from(chance % 1024).unwrap_or_default();
        let half = most / 2;
        let jittered = half + half / 1024 * share;
        let first = self.made == 0;
        self.made += 1;
        let pause = match asked.map(|asked| asked.min(LONGEST_ASKED)) {
            // A server that asks for a pause once has not failed.
            Some(asked) if first => asked,
            Some(asked) => asked.max(jittered),
            None => jittered,
        };
        Some(pause.max(SHORTEST))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // Attack: endless or rapid retries.
    #[test]
    fn pauses_grow_to_a_limit_and_end() {
        let mut attempts = Attempts::new(&Reconnect::default().attempts(100));
        let mut most = Duration::from_secs(1);
        for number in 0..100 {
            let pause = attempts.next(None).unwrap();
            assert!(
                pause >= most / 2 && pause <= most,
                "{number}: {pause:?} of {most:?}"
            );
            most = (most + most / 2).min(Duration::from_secs(30));
        }
        assert_eq!(attempts.next(None), None);
        attempts.progressed();
        assert!(attempts.next(None).unwrap() <= Duration::from_secs(1));
    }

    // Attack: endless or rapid retries.
    #[test]
    fn hostile_retry_delays_neither_spin_nor_overflow() {
        let mut attempts = Attempts::new(&Reconnect::default().attempts(3));
        assert_eq!(attempts.pause(Some(Duration::ZERO), 0), Some(SHORTEST));
        let second = attempts.pause(Some(Duration::ZERO), 0).unwrap();
        assert!(second >= Duration::from_millis(500), "{second:?}");
        assert_eq!(
            attempts.pause(Some(Duration::MAX), u64::MAX),
            Some(LONGEST_ASKED)
        );
        let odd = Reconnect::default()
            .initial_delay(Duration::MAX)
            .max_delay(Duration::MAX);
        assert!(Attempts::new(&odd).next(Some(Duration::MAX)).is_some());
    }

    #[test]
    fn requested_retry_delay_is_never_shortened() {
        let asked = Duration::from_secs(45);
        let mut attempts = Attempts::new(&Reconnect::default());
        while let Some(pause) = attempts.next(Some(asked)) {
            assert!(pause >= asked);
        }
    }
}
