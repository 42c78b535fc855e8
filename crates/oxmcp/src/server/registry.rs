//! What a server offers, by name or URI.

use std::{borrow::Borrow, collections::BTreeMap, ops::Bound, sync::Arc};

/// Features of one kind, by their unique id, in the order of the ids.
///
/// The order makes lists stable, and the id makes a good place to go on from: what is added or removed meanwhile never
/// makes a reader miss or repeat what stays.
#[derive(Debug)]
pub(crate) struct Registry<T> {
    features: BTreeMap<Arc<str>, Arc<T>>,
    /// Whether there ever was to be one: a capability that was declared is kept.
    declared: bool,
}

impl<T> Registry<T> {
    /// From now on there may be some, also where there are none.
    pub(crate) fn declare(&mut self) {
        self.declared = true;
    }

    /// Adds a feature, in place of one with the same id.
    pub(crate) fn insert(&mut self, id: &str, feature: Arc<T>) {
        self.features.insert(id.into(), feature);
    }

    /// Removes a feature. Returns whether there was one.
    pub(crate) fn remove(&mut self, id: &str) -> bool {
        self.features.remove(id).is_some()
    }

    pub(crate) fn get(&self, id: &str) -> Option<&Arc<T>> {
        self.features.get(id)
    }

    pub(crate) fn is_declared(&self) -> bool {
        self.declared
    }

    pub(crate) fn ids(&self) -> impl Iterator<Item = &str> {
        self.features.keys().map(Borrow::borrow)
    }

    /// The features after `last`, or all.
    pub(crate) fn after(&self, last: Option<&str>) -> impl Iterator<Item = (&str, &Arc<T>)> {
        let from = last.map_or(Bound::Unbounded, Bound::Excluded);
        let range = self.features.range::<str, _>((from, Bound::Unbounded));
        range.map(|(id, feature)| (&**id, feature))
    }
}

impl<T> Clone for Registry<T> {
    fn clone(&self) -> Self {
        Self {
            features: self.features.clone(),
            declared: self.declared,
        }
    }
}

impl<T> Default for Registry<T> {
    fn default() -> Self {
        Self {
            features: BTreeMap::new(),
            declared: false,
        }
    }
}
