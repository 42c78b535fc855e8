//! What an endpoint is busy with.

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use tokio::sync::Notify;

/// How many of something are open, and when the last of them is not.
#[derive(Default)]
pub(super) struct Open {
    count: AtomicUsize,
    emptied: Notify,
}

impl Open {
    /// One more, until the returned guard is dropped.
    pub(super) fn enter(self: &Arc<Self>) -> Entered {
        self.count.fetch_add(1, Ordering::Relaxed);
        Entered(Arc::clone(self))
    }

    /// One more, unless there are as many as that.
    pub(super) fn enter_below(self: &Arc<Self>, limit: usize) -> Option<Entered> {
        let before = self.count.fetch_add(1, Ordering::Relaxed);
        let entered = Entered(Arc::clone(self));
        (before < limit).then_some(entered)
    }

    pub(super) fn count(&self) -> usize {
        self.count.load(Ordering::Acquire)
    }

    /// Waits until there is none. Cancel safe.
    pub(super) async fn none(&self) {
        loop {
            let emptied = self.emptied.notified();
            if self.count() == 0 {
                return;
            }
            emptied.await;
        }
    }
}

impl fmt::Debug for Open {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.count, f)
    }
}

/// One of what is open.
#[derive(Debug)]
pub(super) struct Entered(Arc<Open>);

impl Drop for Entered {
    fn drop(&mut self) {
        if self.0.count.fetch_sub(1, Ordering::Release) == 1 {
            self.0.emptied.notify_waiters();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_are_no_more_than_the_limit() {
        let open = Arc::<Open>::default();
        let first = open.enter_below(1);
        assert!(first.is_some() && open.enter_below(1).is_none());
        drop(first);
        assert!(open.enter_below(1).is_some());
    }
}
