//! Patience with a store: how long it may take to answer, and how long it is left alone when it has not.

use std::{future::Future, time::Duration};

use tokio::{
    select,
    time::{Instant, sleep},
};

use crate::{
    error::{Error, Result},
    sync::Mutex,
};

/// How long a store may take to answer.
const PATIENCE: Duration = Duration::from_secs(2);
/// How long a store that has not answered is not asked.
const PAUSE: Duration = Duration::from_secs(5);

/// The breaker of one store: once it has not answered in time it is not asked for a while, and then by one call alone, until it
/// answers. A request waits for a store that hangs once, and no more.
#[derive(Debug, Default)]
pub(super) struct Breaker(Mutex<Option<Instant>>);

impl Breaker {
    /// Waits for an answer of the store, within bounds. Cancel safe if the answer is.
    pub(super) async fn call<T>(
        &self,
        answer: impl Future<Output = Result<T>> + Send,
    ) -> Result<T> {
        self.check()?;
        let answer = select! {
            biased;
            answer = answer => answer,
            // Made when it is polled first: a store in memory answers at once, and needs no timer.
            () = async { sleep(PATIENCE).await } => {
                self.open();
                return Err(Error::timeout(format!(
                    "the store has not answered within {PATIENCE:?}, and is not asked for {PAUSE:?}"
                )));
            }
        };
        // An error is an answer, too.
        self.close();
        answer
    }

    /// # Errors
    /// Where the store is not asked now.
    fn check(&self) -> Result<()> {
        let mut until = self.0.lock();
        let Some(reopens) = *until else {
            return Ok(());
        };
        let now = Instant::now();
        if now < reopens {
            return Err(Error::timeout(
                "the store has not answered lately, and is not asked now",
            ));
        }
        // This call tries it; others do not until that is over.
        *until = Some(now + PATIENCE);
        Ok(())
    }

    fn open(&self) {
        *self.0.lock() = Some(Instant::now() + PAUSE);
        tracing::warn!("a store does not answer, and is not asked for {PAUSE:?}");
    }

    fn close(&self) {
        if self.0.lock().take().is_some() {
            tracing::info!("a store answers again");
        }
    }
}
