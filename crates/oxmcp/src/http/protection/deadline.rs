//! Deadline of a stream that lasts longer than its request: the end of the token that has opened it.

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

/// When a stream ends, by the token that came with its request. Clones are one deadline.
#[derive(Clone)]
pub(in crate::http) struct StreamDeadline(Arc<State>);

struct State {
    at: Mutex<Instant>,
    busy: OnceLock<Busy>,
    /// Whether it was not busy when it was looked at last.
    was_idle: AtomicBool,
}

/// Whether a stream has something under way that must not be cut.
type Busy = Box<dyn Fn() -> bool + Send + Sync>;

impl StreamDeadline {
    /// The deadline after this time.
    pub(super) fn after(left: Duration) -> Self {
        Self(Arc::new(State {
            at: Mutex::new(after(Instant::now(), left)),
            busy: OnceLock::new(),
            was_idle: AtomicBool::new(false),
        }))
    }

    pub(in crate::http) fn at(&self) -> Instant {
        *self.0.at.lock()
    }

    /// Lets the stream last as long as that of a newer token.
    pub(in crate::http) fn extend(&self, newer: &Self) {
        let newer = newer.at();
        let mut deadline = self.0.at.lock();
        *deadline = newer.max(*deadline);
    }

    /// Puts off the end of the stream for as long as it is busy. The first word counts.
    pub(in crate::http) fn put_off_while(&self, busy: impl Fn() -> bool + Send + Sync + 'static) {
        let _ = self.0.busy.set(Box::new(busy));
    }

    /// Whether the end of the stream is to wait. An answer is on its way for a moment after its call has ended, so that a stream
    /// is to be found idle twice.
    pub(in crate::http) fn is_put_off(&self) -> bool {
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
