//! The answers that are kept.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
    time::Duration,
};

use crate::{
    client::cache::{
        key::{Ask, Key},
        options::CacheOptions,
    },
    protocol::{CacheScope, Freshness},
};

/// The answers that are kept, and in which order they were used.
#[derive(Debug, Default)]
pub(crate) struct Store {
    options: CacheOptions,
    entries: HashMap<Arc<Key>, Entry>,
    /// The one that was used longest ago comes first.
    order: BTreeMap<u64, Arc<Key>>,
    uses: u64,
    bytes: usize,
}

#[derive(Debug)]
struct Entry {
    text: Arc<str>,
    /// When it is no longer fresh.
    stale_at: Duration,
    /// When it is of no use at all.
    useless_at: Duration,
    used: u64,
    size: usize,
}

impl Store {
    pub(crate) fn configure(&mut self, options: CacheOptions) {
        self.options = options;
        self.make_room(0);
    }

    /// The answer to a question, while it is fresh.
    pub(crate) fn fresh(&mut self, ask: &Ask, now: Duration) -> Option<Arc<str>> {
        self.find(ask, |entry| now < entry.stale_at, now)
    }

    /// The answer to a question that is good enough where there is no better one.
    pub(crate) fn stale(&mut self, ask: &Ask, now: Duration) -> Option<Arc<str>> {
        self.find(ask, |entry| now < entry.useless_at, now)
    }

    fn find(
        &mut self,
        ask: &Ask,
        is_good: impl Fn(&Entry) -> bool,
        now: Duration,
    ) -> Option<Arc<str>> {
        for scope in [CacheScope::Private, CacheScope::Public] {
            let key = Key::new(ask, scope);
            let Some(entry) = self.entries.get_mut(&key) else {
                continue;
            };
            if now >= entry.useless_at {
                self.remove(&key);
            } else if is_good(entry) {
                self.uses += 1;
                if let Some(key) = self.order.remove(&entry.used) {
                    self.order.insert(self.uses, key);
                }
                entry.used = self.uses;
                return Some(Arc::clone(&entry.text));
            }
        }
        None
    }

    /// How long an answer counts as fresh.
    fn ttl(&self, freshness: Freshness) -> Duration {
        let ttl = freshness.ttl.unwrap_or(self.options.default_ttl);
        ttl.min(self.options.max_ttl)
    }

    /// Whether an answer stays fresh for a while.
    pub(crate) fn lasts(&self, freshness: Freshness) -> bool {
        !self.ttl(freshness).is_zero()
    }

    /// Takes an answer in the place of all earlier ones to the same question. Returns it where it stays fresh for a
    /// while, whether or not there is room for it.
    pub(crate) fn put(
        &mut self,
        ask: &Ask,
        freshness: Freshness,
        text: &str,
        now: Duration,
    ) -> Option<Arc<str>> {
        self.remove(&Key::new(ask, CacheScope::Private));
        self.remove(&Key::new(ask, CacheScope::Public));
        if !self.lasts(freshness) {
            return None;
        }
        let text: Arc<str> = text.into();
        let key = Arc::new(Key::new(ask, freshness.scope));
        let size = text.len() + key.size() + size_of::<Entry>();
        if size <= self.options.max_bytes && self.options.max_entries > 0 {
            self.make_room(size);
            let stale_at = now.saturating_add(self.ttl(freshness));
            self.uses += 1;
            self.bytes += size;
            self.order.insert(self.uses, Arc::clone(&key));
            let entry = Entry {
                text: Arc::clone(&text),
                stale_at,
                useless_at: stale_at.saturating_add(self.options.stale_if_error),
                used: self.uses,
                size,
            };
            self.entries.insert(key, entry);
        }
        Some(text)
    }

    /// Drops what was used longest ago, until one more entry of `size` bytes fits; none, where it is 0.
    fn make_room(&mut self, size: usize) {
        let most = self.options.max_entries - usize::from(size > 0).min(self.options.max_entries);
        while self.entries.len() > most || self.bytes + size > self.options.max_bytes {
            let Some((_, oldest)) = self.order.pop_first() else {
                return;
            };
            self.remove(&oldest);
        }
    }

    fn remove(&mut self, key: &Key) {
        if let Some(entry) = self.entries.remove(key) {
            self.order.remove(&entry.used);
            self.bytes -= entry.size;
        }
    }

    pub(crate) fn remove_where(&mut self, is_wrong: impl Fn(&Key) -> bool) {
        let wrong = self.entries.keys().filter(|key| is_wrong(key));
        for key in wrong.cloned().collect::<Vec<_>>() {
            self.remove(&key);
        }
    }

    #[cfg(test)]
    pub(crate) fn totals(&self) -> (usize, usize) {
        assert_eq!(self.entries.len(), self.order.len());
        let bytes: usize = self.entries.values().map(|entry| entry.size).sum();
        assert_eq!(bytes, self.bytes);
        (self.entries.len(), self.bytes)
    }
}
