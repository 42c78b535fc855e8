//! The calls of this side that wait for an answer.

use std::{
    collections::HashMap,
    hash::{BuildHasherDefault, Hasher},
    sync::{Mutex, MutexGuard, PoisonError},
};

use tokio::sync::{mpsc, oneshot};

use crate::{Error, Result, jsonrpc::RequestId, protocol::ProgressParams};

/// One call that waits.
#[derive(Debug)]
pub(crate) struct Waiter {
    pub(crate) answer: oneshot::Sender<Result<Box<str>>>,
    /// Where progress goes; `None` where the caller asked for none.
    pub(crate) progress: Option<mpsc::Sender<ProgressParams>>,
}

/// All calls that wait, by id. Ids count up and are never used again.
#[derive(Debug, Default)]
pub(crate) struct Calls(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    last_id: i64,
    waiting: HashMap<i64, Waiter, BuildHasherDefault<IdHasher>>,
    /// Why there will be no more answers.
    closed: Option<String>,
}

/// Spreads ids. They are our own, so that nobody can choose them to collide.
#[derive(Debug, Default)]
struct IdHasher(u64);

impl Hasher for IdHasher {
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_i64(i64::from(*byte));
        }
    }

    fn write_i64(&mut self, id: i64) {
        // The multiplier of the golden ratio: neighbours end up far from each other, in the upper bits too.
        self.0 = (self.0 ^ id.cast_unsigned()).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

impl Calls {
    /// Enters a call under a new id.
    pub(crate) fn enter(&self, waiter: Waiter) -> Result<i64> {
        let mut state = self.lock();
        if let Some(reason) = &state.closed {
            return Err(Error::closed(reason.clone()));
        }
        state.last_id += 1;
        let id = state.last_id;
        state.waiting.insert(id, waiter);
        Ok(id)
    }

    /// Takes a call out: its answer is here, or nobody waits for it any more.
    pub(crate) fn leave(&self, id: i64) -> Option<Waiter> {
        self.lock().waiting.remove(&id)
    }

    /// Hands progress to the call that it belongs to. Returns whether there is such a call.
    pub(crate) fn progress(&self, params: ProgressParams) -> bool {
        let Some(id) = params.progress_token.as_number() else {
            return false;
        };
        let state = self.lock();
        let Some(progress) = state
            .waiting
            .get(&id)
            .and_then(|waiter| waiter.progress.as_ref())
        else {
            return false;
        };
        if progress.try_send(params).is_err() {
            tracing::warn!(
                id,
                "progress came faster than the caller takes it; one update is lost"
            );
        }
        true
    }

    /// Fails all calls that wait and all that come, with `reason`.
    pub(crate) fn close(&self, reason: &str) {
        let mut state = self.lock();
        let reason = state
            .closed
            .get_or_insert_with(|| reason.to_owned())
            .clone();
        let waiting = std::mem::take(&mut state.waiting);
        drop(state);
        for waiter in waiting.into_values() {
            // Whoever dropped its receiver does not want to know.
            let _ = waiter.answer.send(Err(Error::closed(reason.clone())));
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.lock().waiting.is_empty()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The id under which one of our calls is known, where `id` can be one.
pub(crate) fn own_id(id: &RequestId) -> Option<i64> {
    match id {
        RequestId::Number(number) => Some(*number),
        RequestId::String(_) => None,
    }
}
