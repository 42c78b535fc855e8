//! Cache of a few recent values by key, for clients that send the same identity in each request.
//!
//! The features use it to cache responses to `initialize`, and the dispatch to identify modern clients.

use std::{fmt, sync::Arc};

use arc_swap::ArcSwap;

use crate::error::Result;

/// The maximum number of entries: searching more would cost as much as recomputing the value.
pub(crate) const MAX_ENTRIES: usize = 16;
/// The maximum length of a key; longer keys are not cached.
pub(crate) const MAX_KEY_BYTES: usize = 4 << 10;

/// The most recent entries, the newest first. Reading takes no lock.
pub(crate) struct RecentCache<K, V>(ArcSwap<Vec<Arc<(K, V)>>>);

impl<K, V: Clone> RecentCache<K, V> {
    /// The value of the key that `is_key` recognizes, and whose length is `bytes`. If it is missing, `make` makes key and value.
    ///
    /// # Errors
    /// Those of `make`.
    pub(crate) fn get_or_try_insert(
        &self,
        is_key: impl Fn(&K) -> bool,
        bytes: usize,
        make: impl FnOnce() -> Result<(K, V)>,
    ) -> Result<V> {
        let entries = self.0.load();
        if let Some(found) = entries.iter().find(|entry| is_key(&entry.0)) {
            return Ok(found.1.clone());
        }
        let (key, value) = make()?;
        if bytes <= MAX_KEY_BYTES {
            let mut newer = Vec::with_capacity(MAX_ENTRIES);
            newer.push(Arc::new((key, value.clone())));
            newer.extend(entries.iter().take(MAX_ENTRIES - 1).cloned());
            // An entry added concurrently may be lost; its value is then computed again.
            self.0.store(Arc::new(newer));
        }
        Ok(value)
    }

    #[cfg(test)]
    pub(crate) fn keys(&self) -> Vec<K>
    where
        K: Clone,
    {
        let entries = self.0.load();
        entries.iter().map(|entry| entry.0.clone()).collect()
    }
}

impl<K, V> Default for RecentCache<K, V> {
    fn default() -> Self {
        Self(ArcSwap::default())
    }
}

impl<K, V> fmt::Debug for RecentCache<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RecentCache")
            .field("entries", &self.0.load().len())
            .finish()
    }
}
