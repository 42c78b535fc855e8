//! Moments that never overflow: users may wait for ever.

use std::time::Duration;

use tokio::time::Instant;

/// The moment `wait` after `start`, or one so far away that it never comes.
pub(crate) fn after(start: Instant, wait: Duration) -> Instant {
    const FAR: Duration = Duration::from_secs(30 * 365 * 24 * 60 * 60);
    start.checked_add(wait).unwrap_or_else(|| start + FAR)
}
