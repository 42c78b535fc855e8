//! [`BoundedMap`]: a map of bounded size, which evicts its oldest entries.

use std::{
    collections::{HashMap, VecDeque},
    hash::Hash,
};

/// A map of at most `max` entries: when it is full, each new entry evicts the oldest.
#[derive(Debug)]
pub(crate) struct BoundedMap<K, V> {
    entries: HashMap<K, V>,
    /// The keys of all entries, in the order of insertion.
    order: VecDeque<K>,
    max: usize,
}

impl<K: Copy + Eq + Hash, V> BoundedMap<K, V> {
    pub(crate) fn new(max: usize) -> Self {
        Self {
            entries: HashMap::new(),
            order: VecDeque::new(),
            max,
        }
    }

    pub(crate) fn get(&self, key: &K) -> Option<&V> {
        self.entries.get(key)
    }

    pub(crate) fn contains(&self, key: &K) -> bool {
        self.entries.contains_key(key)
    }

    /// Sets the value of a key. A key that is present already keeps its age.
    pub(crate) fn insert(&mut self, key: K, value: V) {
        if self.entries.insert(key, value).is_some() {
            return;
        }
        if self.order.len() >= self.max {
            self.remove_oldest();
        }
        self.order.push_back(key);
    }

    /// The value of the oldest entry.
    pub(crate) fn oldest(&self) -> Option<&V> {
        self.entries.get(self.order.front()?)
    }

    pub(crate) fn remove_oldest(&mut self) {
        if let Some(oldest) = self.order.pop_front() {
            self.entries.remove(&oldest);
        }
    }

    pub(crate) fn remove(&mut self, key: &K) {
        if self.entries.remove(key).is_some() {
            self.order.retain(|it| it != key);
        }
    }

    pub(crate) fn retain(&mut self, mut stays: impl FnMut(&V) -> bool) {
        self.entries.retain(|_, value| stays(value));
        let entries = &self.entries;
        self.order.retain(|key| entries.contains_key(key));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn oldest_entries_are_evicted_first() {
        let mut map = BoundedMap::new(3);
        for key in 0..3 {
            map.insert(key, key);
        }
        map.insert(0, 9);
        assert_eq!((map.get(&0), map.oldest()), (Some(&9), Some(&9)));
        map.insert(3, 3);
        let kept = |map: &BoundedMap<i32, i32>| (0..5).filter(|key| map.contains(key)).collect();
        let all: Vec<i32> = kept(&map);
        assert_eq!(all, [1, 2, 3]);
        map.remove(&2);
        map.insert(4, 4);
        let all: Vec<i32> = kept(&map);
        assert_eq!(all, [1, 3, 4], "what was removed has left its place");
        map.retain(|value| *value != 1);
        assert_eq!((map.order.len(), map.oldest()), (2, Some(&3)));
        map.remove_oldest();
        map.remove_oldest();
        map.remove_oldest();
        assert_eq!((map.oldest(), map.entries.len()), (None, 0));
    }
}
