//! Circuit breaker of a store: the time-out of its calls, and the pause after one.

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

/// The time-out of a call.
const PATIENCE: Duration = Duration::from_secs(2);
/// The pause without calls after a time-out.
const PAUSE: Duration = Duration::from_secs(5);
/// The maximum number of calls of a store in flight; more wait their turn. The time-out of a call begins when it is made: when
/// thousands of sessions hear of one change and all called at once, the last would not be answered in time.
const MAX_CALLS: usize = 256;
/// The maximum time that a call waits for its turn.
const MAX_QUEUED: Duration = Duration::from_secs(10);

/// The circuit breaker of one store. After a time-out the store is not called for a while, and then by one call at a time until
/// it answers. So requests wait for a store that hangs only once.
#[derive(Debug)]
pub(crate) struct Breaker {
    /// The name of the store.
    store: &'static str,
    state: Mutex<State>,
    calls: Semaphore,
}

#[derive(Debug, Default)]
struct State {
    /// The time at which the store may be called again after a time-out.
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

    /// Runs a call of the store, within the time-outs. Cancel safe if `answer` is.
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
            // The timer is created when it is first polled, since a store in memory answers at once, and needs none.
            () = async { sleep(PATIENCE).await } => {
                self.open(begun);
                return Err(Error::timeout(format!(
                    "the store has not answered within {PATIENCE:?}, and is not asked for {PAUSE:?}"
                )));
            }
        };
        // An error is an answer, too.
        self.close(begun, answer.as_ref().err());
        answer
    }

    /// Waits until another call of the store may be made.
    ///
    /// # Errors
    /// If the wait takes too long.
    async fn turn(&self) -> Result<Option<SemaphorePermit<'_>>> {
        select! {
            biased;
            // The semaphore is never closed.
            turn = self.calls.acquire() => Ok(turn.ok()),
            () = async { sleep(MAX_QUEUED).await } => Err(Error::timeout(format!(
                "the store is too slow for what it is asked: a call has waited for {MAX_QUEUED:?}"
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
                "the store has not answered lately, and is not asked now",
            ));
        }
        // This call tries the store; others fail until it has ended.
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
            "a store does not answer, and is not asked for {PAUSE:?}"
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
            tracing::info!(store, "a store answers again");
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
    async fn what_comes_at_once_is_not_late_for_others() {
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
        assert!(late.contains("too slow"), "{late}");
    }
}
