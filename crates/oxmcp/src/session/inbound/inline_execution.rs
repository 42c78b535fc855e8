//! Adaptive inline execution: handlers that are known to be quick run on the connection's own task.

use std::{
    sync::atomic::{AtomicU32, Ordering},
    time::Duration,
};

/// A first poll that is longer than this would hold up what else arrives on the connection.
const QUICK: Duration = Duration::from_micros(500);
/// So many quick first polls in a row let a handler run inline. One alone may be luck.
const AT_FIRST: u32 = 2;
/// So many are required after a slow one, so that a handler which is slow now and then costs little.
const AFTER_SLOW: u32 = 50;
/// After an inline poll that is longer than this the handler never runs inline again: it has held up the connection. On a task
/// of its own it held up nothing, and the first call is often the one that opens a file or fills a cache.
const FAR_TOO_SLOW: Duration = Duration::from_millis(10);
/// Required of handlers that never run inline.
const NEVER: u32 = u32::MAX;

/// Whether a handler runs inline, by how long its first polls have taken so far.
///
/// A handler that is ready at once needs no task of its own, which saves most of the cost of a call. One that computes
/// for long would delay every other message of the connection, so it gets one. It cannot be known beforehand which is which.
#[derive(Debug)]
pub(crate) struct InlineExecution {
    /// How many quick polls in a row are still required.
    required: AtomicU32,
}

impl InlineExecution {
    pub(crate) fn new() -> Self {
        Self::after(AT_FIRST)
    }

    /// For a handler that always gets a task of its own.
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

    /// It takes exactly as many polls as that until the handler runs inline.
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
    fn a_handler_that_was_slow_on_its_own_task_can_run_inline_later() {
        let inline = InlineExecution::new();
        inline.record(FAR_TOO_SLOW * 2);
        earn(&inline, AFTER_SLOW, Duration::ZERO);
    }

    #[test]
    fn inline_execution_is_allowed_and_taken_back() {
        let inline = allowed();
        inline.record(QUICK * 2);
        earn(&inline, AFTER_SLOW, Duration::ZERO);
    }

    #[test]
    fn a_handler_that_is_far_too_slow_never_runs_inline_again() {
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
