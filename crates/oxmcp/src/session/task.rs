//! How a handler learns that nobody waits for it any more.

use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::Notify;

/// A flag that can be waited for. It costs nothing until somebody waits.
#[derive(Debug, Default)]
pub(crate) struct CancelSignal {
    set: AtomicBool,
    changed: Notify,
}

impl CancelSignal {
    pub(crate) fn set(&self) {
        self.set.store(true, Ordering::Release);
        self.changed.notify_waiters();
    }

    pub(crate) fn is_set(&self) -> bool {
        self.set.load(Ordering::Acquire)
    }

    /// Waits until the flag is set. Cancel safe.
    pub(crate) async fn wait(&self) {
        loop {
            let changed = self.changed.notified();
            if self.is_set() {
                return;
            }
            changed.await;
        }
    }
}
