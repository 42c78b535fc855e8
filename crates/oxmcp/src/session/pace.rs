//! Which handlers may run on the connection's own task.

use std::{
    sync::atomic::{AtomicU32, Ordering},
    time::Duration,
};

/// A first poll that is longer than this would hold up what else arrives on the connection.
const QUICK: Duration = Duration::from_micros(500);
/// So many quick first polls in a row earn a place on the connection's task. One alone may be luck.
const TRUSTED: u32 = 2;
/// So many are owed after a slow one, so that a handler which is slow now and then costs little.
const OWED: u32 = 50;

/// How long a handler's first poll commonly takes.
///
/// A handler that is ready at once needs no task of its own, which saves most of the cost of a call. One that computes
/// for long would delay every other message of the connection, so it gets one. Nobody knows beforehand which is which;
/// this remembers how it went so far.
#[derive(Debug)]
pub(crate) struct Pace(AtomicU32);

impl Pace {
    /// How many quick polls are still needed before the handler is trusted.
    pub(crate) fn new() -> Self {
        Self(AtomicU32::new(TRUSTED))
    }

    pub(crate) fn is_quick(&self) -> bool {
        self.0.load(Ordering::Relaxed) == 0
    }

    pub(crate) fn record(&self, first_poll: Duration) {
        if first_poll > QUICK {
            self.0.store(OWED, Ordering::Relaxed);
        } else {
            let owed = self.0.load(Ordering::Relaxed);
            if owed > 0 {
                self.0.store(owed - 1, Ordering::Relaxed);
            }
        }
    }
}
