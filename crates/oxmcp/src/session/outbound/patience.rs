//! Clocks that stand still while a person is asked.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::{
    select,
    sync::Notify,
    time::{Instant, sleep_until},
};

use crate::session::{Connection, after};

/// Whether this side is asking a person or a model for the peer just now.
///
/// The peer most often asks because of a call that it has not answered yet. Which one, nobody says; so the clocks of all
/// calls stand still meanwhile.
#[derive(Debug, Default)]
pub(crate) struct Patience {
    state: Mutex<State>,
    over: Notify,
}

#[derive(Debug, Default)]
struct State {
    asking: usize,
    /// When there was nothing left to ask.
    over: Option<Instant>,
}

/// Somebody is being asked, until this is dropped.
#[derive(Debug)]
pub(crate) struct Asking(Arc<Connection>);

impl Asking {
    pub(crate) fn begin(connection: &Arc<Connection>) -> Self {
        connection.patience().lock().asking += 1;
        Self(Arc::clone(connection))
    }
}

impl Drop for Asking {
    fn drop(&mut self) {
        let patience = self.0.patience();
        let mut state = patience.lock();
        state.asking -= 1;
        if state.asking == 0 {
            state.over = Some(Instant::now());
            patience.over.notify_waiters();
        }
    }
}

impl Patience {
    /// Waits until `deadline`, and then for as long as somebody is asked and `timeout` after that; but not beyond `last`.
    /// Cancel safe.
    pub(crate) async fn ends(&self, mut deadline: Instant, timeout: Duration, last: Instant) {
        loop {
            sleep_until(deadline).await;
            if deadline >= last {
                return;
            }
            let over = match self.over() {
                Some(over) => over,
                None => {
                    // Few ever wait here.
                    Box::pin(async {
                        select! {
                            over = self.wait() => over,
                            () = sleep_until(last) => None,
                        }
                    })
                    .await
                }
            };
            match over.map(|over| after(over, timeout).min(last)) {
                Some(later) if later > deadline => deadline = later,
                _ => return,
            }
        }
    }

    /// When there was nothing left to ask, be it that nothing ever was. `None` while somebody is asked.
    #[expect(
        clippy::option_option,
        reason = "the inner one is no moment, the outer one none yet"
    )]
    fn over(&self) -> Option<Option<Instant>> {
        let state = self.lock();
        (state.asking == 0).then_some(state.over)
    }

    async fn wait(&self) -> Option<Instant> {
        loop {
            let over = self.over.notified();
            if let Some(over) = self.over() {
                return over;
            }
            over.await;
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
