//! The deadline of a stream that outlives its request: the expiry of the token that opened the stream.

use std::{
    fmt,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use tokio::time::Instant;

use crate::{session::task::after, sync::Mutex};

/// The time at which a stream ends because its token expires. Clones share one deadline.
#[derive(Clone)]
pub(crate) struct StreamDeadline(Arc<State>);

struct State {
    at: Mutex<Instant>,
    busy: OnceLock<Busy>,
    /// Whether the stream was idle at the last check.
    was_idle: AtomicBool,
}

/// Checks whether a stream has calls in flight that must not be cut off.
type Busy = Box<dyn Fn() -> bool + Send + Sync>;

impl StreamDeadline {
    /// A deadline after this duration.
    pub(crate) fn after(left: Duration) -> Self {
        Self(Arc::new(State {
            at: Mutex::new(after(Instant::now(), left)),
            busy: OnceLock::new(),
            was_idle: AtomicBool::new(false),
        }))
    }

    pub(crate) fn at(&self) -> Instant {
        *self.0.at.lock()
    }

    /// Extends the deadline to that of a newer token, if it is later.
    pub(crate) fn extend(&self, newer: &Self) {
        let newer = newer.at();
        let mut deadline = self.0.at.lock();
        *deadline = newer.max(*deadline);
    }

    /// Postpones the end of the stream as long as `busy` returns true. Only the first call has an effect.
    pub(crate) fn put_off_while(&self, busy: impl Fn() -> bool + Send + Sync + 'static) {
        let _ = self.0.busy.set(Box::new(busy));
    }

    /// Whether the end of the stream must wait. After a call has ended, its response is still on its way for a moment, so the
    /// stream must be idle twice in a row.
    pub(crate) fn is_put_off(&self) -> bool {
        let Some(is_busy) = self.0.busy.get() else {
            return false;
        };
        let is_idle = !is_busy();
        let was_idle = self.0.was_idle.swap(is_idle, Ordering::Relaxed);
        !(is_idle && was_idle)
    }
}

impl fmt::Debug for StreamDeadline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("StreamDeadline").field(&self.at()).finish()
    }
}
