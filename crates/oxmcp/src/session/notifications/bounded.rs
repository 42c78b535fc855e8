//! Queues that a peer fills.

use std::{collections::VecDeque, fmt};

use crate::limits::Limits;

/// A queue that is bounded in number, and in how many bytes of a peer it keeps. Where there is no room the oldest gives way:
/// the newest says most about how things are.
pub(crate) struct Bounded<T> {
    queue: VecDeque<(T, usize)>,
    /// How many bytes all that waits takes.
    bytes: usize,
    limit: usize,
    /// How many may wait. One alone may be longer: it has been read.
    max_bytes: usize,
}

impl<T> Bounded<T> {
    /// One for notifications.
    pub(crate) fn new(limits: &Limits) -> Self {
        Self {
            queue: VecDeque::new(),
            bytes: 0,
            limit: limits.max_queued_notifications,
            max_bytes: limits.max_message_bytes,
        }
    }

    /// Queues what keeps so many bytes. `lost` is what the log is told where something gives way.
    pub(crate) fn push(&mut self, item: T, bytes: usize, lost: &str) {
        while self.is_full(bytes) && self.pop().is_some() {
            let (limit, max_bytes) = (self.limit, self.max_bytes);
            tracing::warn!(limit, max_bytes, "{lost}");
        }
        self.bytes += bytes;
        self.queue.push_back((item, bytes));
    }

    fn is_full(&self, more: usize) -> bool {
        // What keeps nothing of a peer needs no room for that.
        let is_long = more > 0 && self.bytes.saturating_add(more) > self.max_bytes;
        self.queue.len() >= self.limit || is_long
    }

    pub(crate) fn pop(&mut self) -> Option<T> {
        let (item, bytes) = self.queue.pop_front()?;
        self.bytes -= bytes;
        Some(item)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        self.queue.iter().map(|(item, _)| item)
    }

    pub(crate) fn len(&self) -> usize {
        self.queue.len()
    }

    #[cfg(test)]
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }
}

impl<T> fmt::Debug for Bounded<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Bounded")
            .field("queued", &self.len())
            .finish_non_exhaustive()
    }
}
