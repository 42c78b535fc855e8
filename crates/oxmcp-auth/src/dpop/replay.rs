//! Proofs that were seen, so that none is used twice.

use std::sync::{Mutex, PoisonError};

use crate::{bounded_map::BoundedMap, time::UnixTime};

/// Proofs that one node keeps in mind. At some 100 bytes each that is 10 MB.
const MAX: usize = 100_000;

/// The ids of the proofs that a node has seen within the time that proofs are valid for. Beyond 100 000 the oldest are
/// forgotten: a proof is checked only where its token is valid, so filling it takes a valid token.
///
/// Each node has its own: a proof can be used once on each within its time.
#[derive(Debug)]
pub struct ReplayCache(
    /// The ends of the proofs by their ids, in the order that they came in: that of their ends, but for clocks that were set.
    Mutex<BoundedMap<[u8; 32], UnixTime>>,
);

impl ReplayCache {
    /// Keeps a proof in mind until that time; `false` where it was seen before.
    pub fn insert(&self, id: [u8; 32], until: UnixTime, now: UnixTime) -> bool {
        let mut seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        while seen.oldest().is_some_and(|end| *end < now) {
            seen.remove_oldest();
        }
        if seen.contains(&id) {
            return false;
        }
        seen.insert(id, until);
        true
    }
}

impl Default for ReplayCache {
    fn default() -> Self {
        Self(Mutex::new(BoundedMap::new(MAX)))
    }
}
