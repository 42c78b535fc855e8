//! Patience with a store: how long it may take to answer, and how long it is left alone when it has not.

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

/// How long a store may take to answer.
const PATIENCE: Duration = Duration::from_secs(2);
/// How long a store that has not answered is not asked.
const PAUSE: Duration = Duration::from_secs(5);
/// How many calls of a store are under way at once; more wait their turn. Each has its time once it is made: of a change that
/// thousands of sessions hear of, the last would not be answered in time if all were made together.
const MAX_CALLS: usize = 256;
/// How long a call may wait for its turn.
const MAX_QUEUED: Duration = Duration::from_secs(10);

/// The breaker of one store: once it has not answered in time it is not asked for a while, and then by one call alone, until it
/// answers. A request waits for a store that hangs once, and no more.
#[derive(Debug)]
pub(crate) struct Breaker {
    /// The name of the store.
    store: &'static str,
    state: Mutex<State>,
    calls: Semaphore,
}

#[derive(Debug, Default)]
struct State {
    /// When a store may be asked again that has not answered.
    reopens: Option<Instant>,
    health: StoreHealth,
}

/// What is known of a store by how it was when it was asked last.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum StoreHealth {
    /// It has never answered yet.
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

    /// Waits for an answer of the store, within bounds. Cancel safe if the answer is.
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
            // Made when it is polled first: a store in memory answers at once, and needs no timer.
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

    /// Waits until the store may be asked one thing more.
    ///
    /// # Errors
    /// Where that takes too long.
    async fn turn(&self) -> Result<Option<SemaphorePermit<'_>>> {
        select! {
            biased;
            // They are never closed.
            turn = self.calls.acquire() => Ok(turn.ok()),
            () = async { sleep(MAX_QUEUED).await } => Err(Error::timeout(format!(
                "the store is too slow for what it is asked: a call has waited for {MAX_QUEUED:?}"
            ))),
        }
    }

    /// # Errors
    /// Where the store is not asked now.
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
        // This call tries it; others do not until that is over.
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
        // One that refuses what it is asked is there.
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
        // What would wait for too long says why.
        let answers = join_all((0..4000).map(|_| breaker.call(answer()))).await;
        let late = answers.into_iter().find_map(Result::err);
        let late = late.unwrap().to_string();
        assert!(late.contains("too slow"), "{late}");
    }
}
