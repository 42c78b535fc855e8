//! Deadline of a stream that lasts longer than its request: the end of the token that has opened it.

use std::{sync::Arc, time::Duration};

use tokio::time::Instant;

use crate::{session::task::after, sync::Mutex};

/// When a stream ends, by the token that came with its request. Clones are one deadline.
#[derive(Clone, Debug)]
pub(in crate::http) struct StreamDeadline(Arc<Mutex<Instant>>);

impl StreamDeadline {
    /// The deadline after this time.
    pub(super) fn after(left: Duration) -> Self {
        Self(Arc::new(Mutex::new(after(Instant::now(), left))))
    }

    pub(in crate::http) fn at(&self) -> Instant {
        *self.0.lock()
    }

    /// Lets the stream last as long as that of a newer token.
    pub(in crate::http) fn extend(&self, newer: &Self) {
        let newer = newer.at();
        let mut deadline = self.0.lock();
        *deadline = newer.max(*deadline);
    }
}
