//! Proofs that were seen, so that none is used twice.

use std::sync::{Mutex, PoisonError};

use crate::{bounded_map::BoundedMap, time::UnixTime};

/// The most proofs that one node remembers. At about 100 bytes each these are 10 MB.
const MAX: usize = 100_000;

/// The IDs of the proofs that a node has seen and that are still valid. Beyond 100 000 the oldest are evicted. A proof is
/// checked only if its token is valid, so filling the cache takes a valid token.
///
/// Each node has its own cache: while a proof is valid, it can be used once on each node.
#[derive(Debug)]
pub struct ReplayCache(
    /// The expiry of each proof by its id, in the order of insertion, which is the order of expiry unless clocks were set.
    Mutex<BoundedMap<[u8; 32], UnixTime>>,
);

impl ReplayCache {
    /// Remembers a proof until the time `until`. Returns `false` if it was seen before.
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
