//! A peer that has ended and is connected to anew, as a process that is started again.

use std::{collections::VecDeque, sync::Arc, time::Duration};

use tokio::{
    select,
    time::{Instant, sleep},
};

use crate::{
    error::{Error, Result},
    logged::Logged,
    session::{connection::Connection, driver::outbox::Due},
    transport::traits::WriteHalf,
};

/// The pause before the first restart, doubled with each that follows, and the longest. A server that fails at once must not take
/// a processor for itself.
const PAUSES: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(30));
/// So many restarts are made in so much time. A server that ends more often does not work.
const MAX_RESTARTS: usize = 5;
const WITHIN: Duration = Duration::from_secs(5 * 60);

/// The restarts of a peer, those of the last minutes.
#[derive(Debug, Default)]
pub(super) struct Restarts(VecDeque<Instant>);

impl Restarts {
    /// Fails what waits for a peer that has ended, and connects to it anew once something is to be sent. Returns whether that
    /// was done: not where this side closes the session meanwhile.
    ///
    /// # Errors
    /// How the peer ended, where it has ended too often.
    pub(super) async fn restart(
        &mut self,
        connection: &Arc<Connection>,
        write: &mut impl WriteHalf,
        ended: Error,
    ) -> Result<bool> {
        let mut ended = ended;
        loop {
            // In this order: a call that is entered later is sent to the next process.
            connection.outbox.discard();
            connection.calls().fail_all(ended.message());
            // What still runs is ended now: nothing may be wanted for a long time.
            if let Err(error) = write.close().await {
                tracing::debug!(error = %Logged(&error), "the server that has ended did not close cleanly");
            }
            if !is_wanted(connection).await {
                return Ok(false);
            }
            let Some(pause) = self.next(Instant::now()) else {
                return Err(ended);
            };
            tracing::warn!(?pause, why = %Logged(&ended), "the server has ended, and is started anew");
            if closes_within(connection, pause).await {
                return Ok(false);
            }
            match write.reconnect().await {
                Ok(()) => return Ok(true),
                Err(error) => ended = error,
            }
        }
    }

    /// The pause before the next restart, which is counted; none where there were too many.
    fn next(&mut self, now: Instant) -> Option<Duration> {
        while self.0.front().is_some_and(|then| now - *then >= WITHIN) {
            self.0.pop_front();
        }
        if self.0.len() >= MAX_RESTARTS {
            return None;
        }
        let doubled = u32::try_from(self.0.len()).unwrap_or(u32::MAX);
        self.0.push_back(now);
        Some(PAUSES.0.saturating_mul(1 << doubled.min(16)).min(PAUSES.1))
    }
}

/// Waits until something is to be sent. Returns `false` where this side closes the session instead.
async fn is_wanted(connection: &Connection) -> bool {
    loop {
        let due = connection.outbox.wanted().await;
        if connection.is_closing() || connection.is_cut() {
            return false;
        }
        if due == Due::Write {
            return true;
        }
    }
}

async fn closes_within(connection: &Connection, pause: Duration) -> bool {
    select! {
        biased;
        () = connection.closing() => true,
        () = sleep(pause) => connection.is_cut(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn restarts_come_ever_later_and_end() {
        let mut restarts = Restarts::default();
        let start = Instant::now();
        for pause in [100, 200, 400, 800, 1600] {
            assert_eq!(restarts.next(start), Some(Duration::from_millis(pause)));
        }
        assert_eq!(restarts.next(start + WITHIN / 2), None);
        assert_eq!(restarts.next(start + WITHIN), Some(PAUSES.0));
    }
}
