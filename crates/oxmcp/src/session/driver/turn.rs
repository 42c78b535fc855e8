//! The turn of those who make calls together.

use std::{
    future::poll_fn,
    sync::{
        OnceLock,
        atomic::{AtomicU64, Ordering},
    },
    task::Poll,
    time::Duration,
};

use tokio::time::Instant;

/// Tells the time to calls.
///
/// To look at the clock is a good part of what a call costs. Callers that are woken together often make their next calls
/// together, while the driver lets them have their turn. Then the driver has looked at the clock for all of them.
#[derive(Debug, Default)]
pub(crate) struct TurnClock {
    epoch: OnceLock<Instant>,
    /// When the turn began, in nanoseconds since the epoch; 0 while there is none.
    since: AtomicU64,
}

/// A turn; it lasts until this is dropped.
#[derive(Debug)]
struct Turn<'a>(&'a TurnClock);

impl TurnClock {
    fn begin(&self) -> Turn<'_> {
        let now = Instant::now();
        let since = now - *self.epoch.get_or_init(|| now);
        let nanoseconds = u64::try_from(since.as_nanos()).unwrap_or(0);
        self.since.store(nanoseconds, Ordering::Relaxed);
        Turn(self)
    }

    /// For the driver: lets all those have their turn who can run now. Cancel safe.
    pub(crate) async fn others(&self) {
        let mut turn = None;
        poll_fn(|cx| {
            if turn.take().is_some() {
                return Poll::Ready(());
            }
            turn = Some(self.begin());
            // A task that wakes itself goes to the end of the queue.
            cx.waker().wake_by_ref();
            Poll::Pending
        })
        .await;
    }

    /// When it is, or when the turn began.
    pub(crate) fn now(&self) -> Instant {
        match (self.since.load(Ordering::Relaxed), self.epoch.get()) {
            (0, _) | (_, None) => Instant::now(),
            (since, Some(epoch)) => *epoch + Duration::from_nanos(since),
        }
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.0.since.store(0, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::advance;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn the_clock_stands_still_during_a_turn_and_no_longer() {
        let clock = TurnClock::default();
        let second = Duration::from_secs(1);
        // The first turn is the one in which the epoch begins.
        for _ in 0..3 {
            let turn = clock.begin();
            let begun = Instant::now();
            assert_eq!(clock.now(), begun);
            advance(second).await;
            drop(turn);
            assert_eq!(clock.now(), begun + second);
        }
        let begun = Instant::now();
        let turn = clock.begin();
        advance(second).await;
        assert_eq!(clock.now(), begun);
        drop(turn);
    }
}
