//! The byte budget that the connections of an HTTP endpoint share.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use bytes::Bytes;

/// The number of bytes that an endpoint holds for its clients, and its limit.
#[derive(Debug)]
pub(crate) struct Budget {
    used: AtomicUsize,
    limit: AtomicUsize,
}

impl Budget {
    pub(crate) fn new(limit: usize) -> Arc<Self> {
        Arc::new(Self {
            used: AtomicUsize::new(0),
            limit: AtomicUsize::new(limit),
        })
    }

    pub(crate) fn set_limit(&self, limit: usize) {
        self.limit.store(limit, Ordering::Relaxed);
    }

    /// The number of bytes that are held.
    pub(crate) fn used(&self) -> usize {
        self.used.load(Ordering::Relaxed)
    }

    /// Whether more bytes are held than the limit allows.
    pub(crate) fn is_exceeded(&self) -> bool {
        self.used() > self.limit.load(Ordering::Relaxed)
    }

    /// Records that held data takes `now` bytes instead of `before`.
    pub(crate) fn change(&self, before: usize, now: usize) {
        if now > before {
            self.used.fetch_add(now - before, Ordering::Relaxed);
        } else if before > now {
            // If the counter wrapped, the budget would refuse everything from then on.
            let less = |used: usize| Some(used.saturating_sub(before - now));
            let _ = self
                .used
                .fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
        }
    }

    /// Charges bytes that are already held, even if they exceed the budget.
    pub(crate) fn charge(self: &Arc<Self>, bytes: usize) -> Charge {
        self.change(0, bytes);
        Charge {
            budget: Arc::clone(self),
            bytes,
        }
    }
}

/// A charge of bytes to a budget, which is released on drop.
#[derive(Debug)]
pub(crate) struct Charge {
    budget: Arc<Budget>,
    bytes: usize,
}

impl Charge {
    /// Charges more bytes. Returns false if this exceeds the budget: the caller must release them.
    pub(crate) fn grow(&mut self, bytes: usize) -> bool {
        self.budget.change(0, bytes);
        self.bytes += bytes;
        !self.budget.is_exceeded()
    }

    /// Attaches the charge to the bytes: it lasts until the last reference to them is dropped.
    pub(crate) fn with(self, bytes: impl AsRef<[u8]> + Send + 'static) -> Bytes {
        Bytes::from_owner(Charged {
            bytes,
            _charge: self,
        })
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        self.budget.change(self.bytes, 0);
    }
}

/// Bytes with their charge.
struct Charged<T> {
    bytes: T,
    _charge: Charge,
}

impl<T: AsRef<[u8]>> AsRef<[u8]> for Charged<T> {
    fn as_ref(&self) -> &[u8] {
        self.bytes.as_ref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_charged_until_last_part_is_freed() {
        let budget = Budget::new(10);
        let mut bytes = budget.charge(10).with(vec![0; 10]);
        let part = bytes.split_to(3);
        drop(bytes);
        assert_eq!(budget.used(), 10);
        let mut more = budget.charge(0);
        assert!(!more.grow(1) && budget.is_exceeded());
        drop(more);
        drop(part);
        assert_eq!(budget.used(), 0);
    }

    #[test]
    fn budget_never_goes_negative() {
        let budget = Budget::new(10);
        budget.change(7, 2);
        assert!(budget.used() == 0 && !budget.is_exceeded());
    }
}
