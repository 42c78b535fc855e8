//! Proofs that were seen, so that none is used twice.

use std::{
    collections::{HashSet, VecDeque},
    sync::{Mutex, PoisonError},
};

use crate::time::UnixTime;

/// Proofs that one node keeps in mind. At some 100 bytes each that is 10 MB.
const MAX: usize = 100_000;

/// The ids of the proofs that a node has seen within the time that proofs are valid for. Beyond 100 000 the oldest are
/// forgotten: a proof is checked only where its token is valid, so filling it takes a valid token.
///
/// Each node has its own: a proof can be used once on each within its time.
#[derive(Debug, Default)]
pub struct ReplayCache(Mutex<Seen>);

#[derive(Debug, Default)]
struct Seen {
    ids: HashSet<[u8; 32]>,
    /// In the order that they came in, which is that of their ends, but for clocks that were set.
    order: VecDeque<(UnixTime, [u8; 32])>,
}

impl ReplayCache {
    /// Keeps a proof in mind until that time; `false` where it was seen before.
    pub fn insert(&self, id: [u8; 32], until: UnixTime, now: UnixTime) -> bool {
        let mut seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        seen.insert(id, until, now)
    }
}

impl Seen {
    fn insert(&mut self, id: [u8; 32], until: UnixTime, now: UnixTime) -> bool {
        while let Some((end, ended)) = self.order.front()
            && *end < now
        {
            self.ids.remove(ended);
            self.order.pop_front();
        }
        if !self.ids.insert(id) {
            return false;
        }
        if self.order.len() >= MAX
            && let Some((_, oldest)) = self.order.pop_front()
        {
            self.ids.remove(&oldest);
        }
        self.order.push_back((until, id));
        true
    }
}
