//! The circuit breaker of a store: the timeout of its calls, and the pause after a timeout.

use std::{future::Future, time::Duration};

use tokio::{
    select,
    sync::{Semaphore, SemaphorePermit},
    time::{Instant, sleep},
};

use crate::{
    error::{Error, Result},
    logged::metrics,
    sync::Mutex,
};

/// The timeout of a call.
const PATIENCE: Duration = Duration::from_secs(2);
/// The pause without calls after a timeout.
const PAUSE: Duration = Duration::from_secs(5);
/// The maximum number of store calls in flight; further calls wait. The timeout of a call starts when it is made: if thousands
/// of sessions learned of one change and all called at once, the last would not be answered in time.
const MAX_CALLS: usize = 256;
/// The maximum time that a call waits in the queue.
const MAX_QUEUED: Duration = Duration::from_secs(10);

/// The circuit breaker of one store. After a timeout the store is not called for a while, and then by one call at a time until
/// it responds. So requests wait only once for a store that hangs.
#[derive(Debug)]
pub(crate) struct Breaker {
    /// The name of the store.
    store: &'static str,
    state: Mutex<State>,
    calls: Semaphore,
}

#[derive(Debug, Default)]
struct State {
    /// The time at which the store may be called again after a timeout.
    reopens: Option<Instant>,
    health: StoreHealth,
}

/// The health of a store, by its last calls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum StoreHealth {
    /// The store has never answered.
    #[default]
    Unknown,
    Answers,
    Fails,
}

impl Breaker {
    pub(crate) fn new(store: &'static str) -> Self {
        Self {
            store,
            state: Mutex::default(),
            calls: Semaphore::new(MAX_CALLS),
        }
    }

    pub(crate) fn health(&self) -> StoreHealth {
        self.state.lock().health
    }

    /// Runs a store call within the timeouts. Cancel safe if `answer` is.
    pub(crate) async fn call<T>(
        &self,
        answer: impl Future<Output = Result<T>> + Send,
    ) -> Result<T> {
        let _turn = self.turn().await?;
        self.check()?;
        let begun = Instant::now();
        let answer = select! {
            biased;
            answer = answer => answer,
            // The timer is created when first polled, because a store in memory responds at once and needs none.
            () = async { sleep(PATIENCE).await } => {
                self.open(begun);
                return Err(Error::timeout(format!(
                    "store is unavailable: no response within {PATIENCE:?}; calls resume in {PAUSE:?}"
                )));
            }
        };
        // An error is a response, too.
        self.close(begun, answer.as_ref().err());
        answer
    }

    /// Waits until another store call may be made.
    ///
    /// # Errors
    /// If the wait takes too long.
    async fn turn(&self) -> Result<Option<SemaphorePermit<'_>>> {
        select! {
            biased;
            // The semaphore is never closed.
            turn = self.calls.acquire() => Ok(turn.ok()),
            () = async { sleep(MAX_QUEUED).await } => Err(Error::timeout(format!(
                "store is overloaded: a call was queued for {MAX_QUEUED:?}"
            ))),
        }
    }

    /// # Errors
    /// If the store must not be called now.
    fn check(&self) -> Result<()> {
        let mut state = self.state.lock();
        let Some(reopens) = state.reopens else {
            return Ok(());
        };
        let now = Instant::now();
        if now < reopens {
            return Err(Error::timeout(
                "store is unavailable: a recent call timed out",
            ));
        }
        // This call probes the store; others fail until it has ended.
        state.reopens = Some(now + PATIENCE);
        Ok(())
    }

    fn open(&self, begun: Instant) {
        let store = self.store;
        metrics::store_asked(store, begun.elapsed(), Some("timeout"));
        let mut state = self.state.lock();
        state.reopens = Some(Instant::now() + PAUSE);
        state.note(store, false);
        drop(state);
        tracing::warn!(
            store,
            pause = ?PAUSE,
            "store is unavailable; pausing calls to it"
        );
    }

    fn close(&self, begun: Instant, error: Option<&Error>) {
        let store = self.store;
        // A store that refuses a call works.
        let failed = error.is_some_and(|error| !error.is_refusal());
        metrics::store_asked(store, begun.elapsed(), failed.then_some("unavailable"));
        let mut state = self.state.lock();
        state.note(store, !failed);
        let was_open = state.reopens.take().is_some();
        drop(state);
        if was_open {
            tracing::warn!(store, "store is available again");
        }
    }
}

impl State {
    fn note(&mut self, store: &str, answers: bool) {
        let health = match (self.health, answers) {
            (_, true) => StoreHealth::Answers,
            (StoreHealth::Unknown, false) => StoreHealth::Unknown,
            (_, false) => StoreHealth::Fails,
        };
        if health != self.health {
            self.health = health;
            metrics::store_answers(store, answers);
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::future::join_all;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn concurrent_burst_is_not_mistaken_for_a_hang() {
        let breaker = Breaker::new("events");
        let store = Semaphore::new(1);
        let answer = async || {
            let _turn = store.acquire().await;
            sleep(PATIENCE / 500).await;
            Ok(())
        };
        let answers = join_all((0..1500).map(|_| breaker.call(answer()))).await;
        assert_eq!(answers.iter().filter(|it| it.is_err()).count(), 0);
        // A call that would wait for too long fails with the reason.
        let answers = join_all((0..4000).map(|_| breaker.call(answer()))).await;
        let late = answers.into_iter().find_map(Result::err);
        let late = late.unwrap().to_string();
        assert!(late.contains("overloaded"), "{late}");
    }
}
