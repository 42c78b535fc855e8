//! The table of the calls that wait.

use std::{
    collections::HashMap,
    hash::{BuildHasherDefault, Hasher},
    mem,
};

/// So many places there are at first.
const FEW: usize = 8;
/// So many there may always be, taken or not.
const SOME: usize = 64;
/// More than these are given up once none is taken.
const MANY: usize = 1024;

/// Things by ids that count up, each of which is used once.
///
/// Most calls are answered soon, and in about the order in which they were made. So there is a ring of places, in which an
/// id is found by counting. What stays long would keep all that is made after it in the ring: it is put aside.
#[derive(Debug)]
pub(crate) struct CallTable<T> {
    /// The first id of the ring, which is taken, and the one after the last.
    first: i64,
    next: i64,
    /// The place of an id is its remainder by the length, a power of two.
    ring: Vec<Option<T>>,
    /// What stays longer than the ring is long.
    aside: HashMap<i64, T, BuildHasherDefault<IdHasher>>,
    /// How many places of the ring are taken.
    taken: usize,
}

/// Spreads ids. They are our own, so that nobody can choose them to collide.
#[derive(Debug, Default)]
struct IdHasher(u64);

impl Hasher for IdHasher {
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_i64(i64::from(*byte));
        }
    }

    fn write_i64(&mut self, id: i64) {
        // The multiplier of the golden ratio: neighbours end up far from each other, in the upper bits too.
        self.0 = (self.0 ^ id.cast_unsigned()).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

impl<T> Default for CallTable<T> {
    fn default() -> Self {
        Self {
            first: 1,
            next: 1,
            ring: Vec::new(),
            aside: HashMap::default(),
            taken: 0,
        }
    }
}

impl<T> CallTable<T> {
    /// Goes on behind an id. For a table that was never used.
    #[cfg(feature = "http-server")]
    pub(crate) fn count_from(&mut self, id: i64) {
        self.first = id + 1;
        self.next = self.first;
    }

    /// Takes `value` in under the next id.
    pub(crate) fn insert(&mut self, value: T) -> i64 {
        // Where the ring was given up for it, there is no room yet.
        while self.is_full() {
            self.make_room();
        }
        let id = self.next;
        let place = self.place(id);
        if let Some(place) = self.ring.get_mut(place) {
            *place = Some(value);
            self.next += 1;
            self.taken += 1;
        }
        id
    }

    pub(crate) fn get(&self, id: i64) -> Option<&T> {
        if id < self.first {
            return self.aside.get(&id);
        }
        let place = (id < self.next).then(|| self.place(id))?;
        self.ring.get(place)?.as_ref()
    }

    pub(crate) fn get_mut(&mut self, id: i64) -> Option<&mut T> {
        if id < self.first {
            return self.aside.get_mut(&id);
        }
        let place = (id < self.next).then(|| self.place(id))?;
        self.ring.get_mut(place)?.as_mut()
    }

    /// Drops what is there under an id: to move it out would cost more.
    pub(crate) fn discard(&mut self, id: i64) {
        if id < self.first {
            self.aside.remove(&id);
            return;
        }
        let place = self.place(id);
        if id < self.next
            && let Some(place @ Some(_)) = self.ring.get_mut(place)
        {
            *place = None;
            self.taken -= 1;
            self.close_up();
        }
    }

    pub(crate) fn values(&self) -> impl Iterator<Item = &T> {
        self.ring.iter().flatten().chain(self.aside.values())
    }

    pub(crate) fn values_mut(&mut self) -> impl Iterator<Item = &mut T> {
        let ring = self.ring.iter_mut().flatten();
        ring.chain(self.aside.values_mut())
    }

    /// Where an id of the ring stands.
    fn place(&self, id: i64) -> usize {
        place_of(id, self.ring.len())
    }

    fn is_full(&self) -> bool {
        usize::try_from(self.next - self.first) == Ok(self.ring.len())
    }

    /// Lets the ring begin with a place that is taken.
    fn close_up(&mut self) {
        if self.taken == 0 {
            self.first = self.next;
            if self.ring.len() > MANY {
                self.ring = Vec::new();
            }
            return;
        }
        while let Some(None) = self.ring.get(self.place(self.first)) {
            self.first += 1;
        }
    }

    /// Puts the oldest aside where that gives room, or else makes the ring longer.
    fn make_room(&mut self) {
        let length = self.ring.len();
        if length >= SOME && length >= 2 * self.taken {
            let place = self.place(self.first);
            if let Some(oldest) = self.ring.get_mut(place).and_then(Option::take) {
                self.aside.insert(self.first, oldest);
                self.taken -= 1;
            }
            return self.close_up();
        }
        let mut ring = Vec::new();
        ring.resize_with((2 * length).max(FEW), || None);
        let mut shorter = mem::replace(&mut self.ring, ring);
        for id in self.first..self.next {
            let from = shorter.get_mut(place_of(id, length));
            let to = self.ring.get_mut(place_of(id, 2 * length));
            if let (Some(from), Some(to)) = (from, to) {
                mem::swap(from, to);
            }
        }
    }
}

/// The remainder of an id by a length that is a power of two.
fn place_of(id: i64, length: usize) -> usize {
    let mask = i64::try_from(length).unwrap_or(0) - 1;
    usize::try_from(id & mask).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Some stay for ever, some for long, and most go at once.
        #[test]
        fn it_is_a_map(stays in prop::collection::vec(0_usize..200, 0..500)) {
            let mut table = CallTable::default();
            let mut expected = BTreeMap::new();
            for (turn, stays) in stays.into_iter().enumerate() {
                let id = table.insert(turn);
                let gone = if stays > 190 { usize::MAX } else { turn + stays };
                prop_assert!(expected.insert(id, (turn, gone)).is_none());
                while let Some((id, _)) = expected.iter().find(|(_, (_, gone))| *gone <= turn) {
                    let id = *id;
                    let (value, _) = expected.remove(&id).unwrap();
                    prop_assert_eq!(table.get_mut(id), Some(&mut value.clone()));
                    table.discard(id);
                    table.discard(id);
                    prop_assert_eq!(table.get(id), None);
                }
            }
            for id in -1..600 {
                prop_assert_eq!(table.get(id), expected.get(&id).map(|(value, _)| value));
            }
            let mut values: Vec<_> = table.values().copied().collect();
            values.sort_unstable();
            prop_assert!(values.into_iter().eq(expected.values().map(|(value, _)| *value)));
        }
    }

    #[test]
    fn what_stays_does_not_keep_room_for_what_has_gone() {
        let mut table = CallTable::default();
        let stays = table.insert(0);
        for _ in 0..100_000 {
            let id = table.insert(1);
            table.discard(id);
        }
        assert!(table.ring.len() <= SOME);
        assert_eq!(table.get(stays), Some(&0));
        let burst: Vec<_> = (0..10_000).map(|it| table.insert(it)).collect();
        assert!(table.ring.len() >= 10_000);
        burst.into_iter().for_each(|id| table.discard(id));
        assert!(table.ring.len() <= MANY);
        assert_eq!(table.values().count(), 1);
    }

    #[test]
    fn what_is_made_after_many_have_gone_is_kept_whatever_stays() {
        let mut table = CallTable::default();
        let burst: Vec<_> = (0..2 * MANY).map(|it| table.insert(it)).collect();
        let (stays, gone) = burst.split_first().unwrap();
        gone.iter().for_each(|id| table.discard(*id));
        for value in 0..4 * MANY {
            let id = table.insert(value);
            assert_eq!(table.get(id), Some(&value));
            table.discard(id);
        }
        assert_eq!(table.get(*stays), Some(&0));
        assert!(table.ring.len() <= MANY);
    }
}
