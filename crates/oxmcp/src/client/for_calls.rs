//! What every call asks of a client's features, kept beside them: to load them costs more than to read this.

use std::{
    sync::atomic::{AtomicBool, AtomicU64, Ordering},
    time::Duration,
};

use crate::client::features::Features;

/// What every call asks of the features. It is written by whoever changes them, one after the other.
#[derive(Debug)]
pub(crate) struct ForCalls {
    /// In nanoseconds.
    timeout: AtomicU64,
    has_outgoing: AtomicBool,
}

impl ForCalls {
    pub(crate) fn new(features: &Features) -> Self {
        let new = Self {
            timeout: AtomicU64::new(0),
            has_outgoing: AtomicBool::new(false),
        };
        new.note(features);
        new
    }

    /// The features are these from now on.
    pub(crate) fn note(&self, features: &Features) {
        let timeout = u64::try_from(features.timeout.as_nanos()).unwrap_or(u64::MAX);
        self.timeout.store(timeout, Ordering::Relaxed);
        let has_outgoing = features.outgoing.next().is_some();
        self.has_outgoing.store(has_outgoing, Ordering::Release);
    }

    /// How long a call waits that is not told otherwise.
    pub(crate) fn timeout(&self) -> Duration {
        Duration::from_nanos(self.timeout.load(Ordering::Relaxed))
    }

    /// Whether there is middleware for what is sent. Once there is, there always will be.
    pub(crate) fn has_outgoing(&self) -> bool {
        self.has_outgoing.load(Ordering::Acquire)
    }
}
