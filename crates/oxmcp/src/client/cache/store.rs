//! The store of cached responses, which evicts the least recently used ones.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
    time::Duration,
};

use oxmcp_protocol::{CacheScope, internal::Freshness};

use crate::client::cache::{
    key::{CacheKey, CacheLookup},
    options::CacheOptions,
};

/// The stored responses, and the order in which they were used.
#[derive(Debug, Default)]
pub(crate) struct Store {
    options: CacheOptions,
    entries: HashMap<Arc<CacheKey>, Entry>,
    /// The keys by their last use; the least recently used comes first.
    order: BTreeMap<u64, Arc<CacheKey>>,
    uses: u64,
    bytes: usize,
}

#[derive(Debug)]
struct Entry {
    text: Arc<str>,
    /// The time at which the freshness of the response ends.
    stale_at: Duration,
    /// The time at which the response can no longer be used even if the server fails.
    unusable_at: Duration,
    used: u64,
    size: usize,
}

impl Store {
    pub(crate) fn configure(&mut self, options: CacheOptions) {
        self.options = options;
        self.evict(0);
    }

    pub(crate) fn options(&self) -> &CacheOptions {
        &self.options
    }

    /// The response to a request, while it is fresh.
    pub(crate) fn fresh(&mut self, lookup: &CacheLookup, now: Duration) -> Option<Arc<str>> {
        self.find(lookup, |entry| now < entry.stale_at, now)
    }

    /// The stored response to a request that failed, while it is usable.
    pub(crate) fn stale(&mut self, lookup: &CacheLookup, now: Duration) -> Option<Arc<str>> {
        self.find(lookup, |entry| now < entry.unusable_at, now)
    }

    fn find(
        &mut self,
        lookup: &CacheLookup,
        is_good: impl Fn(&Entry) -> bool,
        now: Duration,
    ) -> Option<Arc<str>> {
        for scope in [CacheScope::Private, CacheScope::Public] {
            let key = CacheKey::new(lookup, scope);
            let Some(entry) = self.entries.get_mut(&key) else {
                continue;
            };
            if now >= entry.unusable_at {
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

    /// The time for which a response is fresh.
    fn ttl(&self, freshness: Freshness) -> Duration {
        let ttl = freshness.ttl.unwrap_or(self.options.default_ttl);
        ttl.min(self.options.max_ttl)
    }

    /// Stores a response in place of all earlier ones to the same request, if it stays fresh for a while.
    pub(crate) fn put(
        &mut self,
        lookup: &CacheLookup,
        freshness: Freshness,
        text: &str,
        now: Duration,
    ) {
        self.remove(&CacheKey::new(lookup, CacheScope::Private));
        self.remove(&CacheKey::new(lookup, CacheScope::Public));
        let ttl = self.ttl(freshness);
        let key = Arc::new(CacheKey::new(lookup, freshness.scope));
        let size = text.len() + key.size() + size_of::<Entry>();
        if ttl.is_zero() || size > self.options.max_bytes || self.options.max_entries == 0 {
            return;
        }
        self.evict(size);
        let stale_at = now.saturating_add(ttl);
        self.uses += 1;
        self.bytes += size;
        self.order.insert(self.uses, Arc::clone(&key));
        let entry = Entry {
            text: text.into(),
            stale_at,
            unusable_at: stale_at.saturating_add(self.options.stale_if_error),
            used: self.uses,
            size,
        };
        self.entries.insert(key, entry);
    }

    /// Evicts the least recently used responses, until one more entry of `size` bytes fits. With a `size` of 0, only the
    /// bounds of the present entries are enforced.
    fn evict(&mut self, size: usize) {
        let most = self.options.max_entries - usize::from(size > 0).min(self.options.max_entries);
        while self.entries.len() > most || self.bytes + size > self.options.max_bytes {
            let Some((_, oldest)) = self.order.pop_first() else {
                return;
            };
            self.remove(&oldest);
        }
    }

    fn remove(&mut self, key: &CacheKey) {
        if let Some(entry) = self.entries.remove(key) {
            self.order.remove(&entry.used);
            self.bytes -= entry.size;
        }
    }

    pub(crate) fn remove_where(&mut self, is_wrong: impl Fn(&CacheKey) -> bool) {
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
