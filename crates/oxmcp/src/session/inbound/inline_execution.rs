//! Adaptive inline execution: handlers that are known to be quick run on the connection's task.

use std::{
    sync::atomic::{AtomicU32, Ordering},
    time::Duration,
};

/// The longest first poll that counts as quick. A longer one would delay the other messages of the connection.
const QUICK: Duration = Duration::from_micros(500);
/// The number of quick first polls in a row after which a handler runs inline. A single one may be luck.
const AT_FIRST: u32 = 2;
/// The number required after a slow poll, so that an occasionally slow handler costs little.
const AFTER_SLOW: u32 = 50;
/// After an inline poll longer than this, the handler never runs inline again, because it delayed the connection. A slow poll
/// on a separate task does not count: it delays nothing, and the first call often opens a file or fills a cache.
const FAR_TOO_SLOW: Duration = Duration::from_millis(10);
/// The value of `required` for handlers that never run inline.
const NEVER: u32 = u32::MAX;

/// The decision whether a handler runs inline, based on the durations of its first polls so far.
///
/// A handler that is ready at once needs no separate task, which saves most of the cost of a call. A handler that computes for
/// long would delay every other message of the connection, so it gets a task. The two cannot be distinguished in advance.
#[derive(Debug)]
pub(crate) struct InlineExecution {
    /// The number of quick polls in a row that are still required.
    required: AtomicU32,
}

impl InlineExecution {
    pub(crate) fn new() -> Self {
        Self::after(AT_FIRST)
    }

    /// The state of a handler that always gets a separate task.
    pub(crate) fn never() -> Self {
        Self::after(NEVER)
    }

    fn after(required: u32) -> Self {
        Self {
            required: AtomicU32::new(required),
        }
    }

    pub(crate) fn is_allowed(&self) -> bool {
        self.required.load(Ordering::Relaxed) == 0
    }

    pub(crate) fn is_never_allowed(&self) -> bool {
        self.required.load(Ordering::Relaxed) == NEVER
    }

    pub(crate) fn record(&self, first_poll: Duration) {
        let required = match self.required.load(Ordering::Relaxed) {
            NEVER => return,
            0 if first_poll > FAR_TOO_SLOW => NEVER,
            _ if first_poll > QUICK => AFTER_SLOW,
            0 => return,
            required => required - 1,
        };
        self.required.store(required, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks that exactly this number of polls is needed until the handler runs inline.
    fn earn(inline: &InlineExecution, polls: u32, each: Duration) {
        for _ in 0..polls {
            assert!(!inline.is_allowed());
            inline.record(each);
        }
        assert!(inline.is_allowed());
    }

    fn allowed() -> InlineExecution {
        let inline = InlineExecution::new();
        earn(&inline, AT_FIRST, QUICK);
        inline
    }

    #[test]
    fn once_slow_handler_can_run_inline_later() {
        let inline = InlineExecution::new();
        inline.record(FAR_TOO_SLOW * 2);
        earn(&inline, AFTER_SLOW, Duration::ZERO);
    }

    #[test]
    fn inline_execution_is_granted_and_revoked() {
        let inline = allowed();
        inline.record(QUICK * 2);
        earn(&inline, AFTER_SLOW, Duration::ZERO);
    }

    #[test]
    fn far_too_slow_handler_never_runs_inline_again() {
        let inline = allowed();
        inline.record(FAR_TOO_SLOW * 2);
        for _ in 0..10 * AFTER_SLOW {
            inline.record(Duration::ZERO);
        }
        assert!(!inline.is_allowed());
        assert!(inline.is_never_allowed() && InlineExecution::never().is_never_allowed());
        assert!(!InlineExecution::new().is_never_allowed());
    }
}
