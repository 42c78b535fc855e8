//! What a server offers, by name or URI.

use std::{collections::BTreeMap, fmt, ops::Bound, sync::Arc};

use crate::{
    protocol::{CacheHint, SubscriptionFilter},
    server::{
        features::Features,
        lists::{ListPage, Pages},
    },
    session::RequestContext,
};

/// Says whether a caller sees a feature.
pub(crate) type Visibility = Arc<dyn Fn(&RequestContext) -> bool + Send + Sync>;

/// Something that servers offer and list.
pub(crate) trait Feature: Send + Sync + Sized + 'static {
    /// How it stands in the list.
    type Definition: Clone;
    /// What lists it.
    type Page: ListPage<Self::Definition>;
    /// What tells it from others of its kind.
    fn id(&self) -> &str;

    fn definition(&self) -> &Self::Definition;

    /// Who sees it; `None` where everybody does.
    fn visibility(&self) -> Option<&Visibility>;

    /// What clients hear of when the list has changed.
    fn changed() -> SubscriptionFilter;

    fn registry(features: &Features) -> &Registry<Self>;

    fn registry_mut(features: &mut Features) -> &mut Registry<Self>;

    /// Whether the caller sees it.
    fn is_visible(&self, cx: &RequestContext) -> bool {
        self.visibility().is_none_or(|sees| sees(cx))
    }
}

/// Features of one kind, by their unique id, in the order of the ids.
///
/// The order makes lists stable, and the id makes a good place to go on from: what is added or removed meanwhile never
/// makes a reader miss or repeat what stays.
pub(crate) struct Registry<T> {
    features: BTreeMap<Arc<str>, Arc<T>>,
    /// Whether there ever was to be one: a capability that was declared is kept.
    declared: bool,
    /// What is said of the list.
    pub(crate) cache: CacheHint,
    /// The list, as it was asked for.
    pub(crate) pages: Arc<Pages>,
    /// Whether there are features that only some callers see.
    restricted: bool,
}

impl<T: Feature> Registry<T> {
    /// From now on there may be some, also where there are none.
    pub(crate) fn declare(&mut self) {
        self.declared = true;
    }

    /// Adds a feature, in place of one with the same id.
    pub(crate) fn insert(&mut self, feature: Arc<T>) {
        self.features.insert(feature.id().into(), feature);
    }

    /// Removes a feature. Returns whether there was one.
    pub(crate) fn remove(&mut self, id: &str) -> bool {
        self.features.remove(id).is_some()
    }

    /// Brings what is derived up to date.
    pub(crate) fn refresh(&mut self) {
        self.pages = Arc::default();
        let mut features = self.features.values();
        self.restricted = features.any(|feature| feature.visibility().is_some());
    }

    /// The feature of that id, if the caller sees it.
    pub(crate) fn get(&self, id: &str, cx: &RequestContext) -> Option<&Arc<T>> {
        self.features.get(id).filter(|it| it.is_visible(cx))
    }

    /// The feature of that id, whoever sees it.
    #[cfg(feature = "http-server")]
    pub(crate) fn find(&self, id: &str) -> Option<&T> {
        self.features.get(id).map(|feature| &**feature)
    }

    /// Whether there is a feature of that id, whoever sees it.
    pub(crate) fn contains(&self, id: &str) -> bool {
        self.features.contains_key(id)
    }

    pub(crate) fn is_declared(&self) -> bool {
        self.declared
    }

    /// Whether the list depends on who asks.
    pub(crate) fn is_restricted(&self) -> bool {
        self.restricted
    }

    pub(crate) fn len(&self) -> usize {
        self.features.len()
    }

    /// The features after `last`, or all.
    pub(crate) fn after(&self, last: Option<&str>) -> impl Iterator<Item = &Arc<T>> {
        let from = last.map_or(Bound::Unbounded, Bound::Excluded);
        let range = self.features.range::<str, _>((from, Bound::Unbounded));
        range.map(|(_, feature)| feature)
    }

    /// The features that the caller sees.
    pub(crate) fn visible<'a>(
        &'a self,
        cx: &'a RequestContext,
    ) -> impl Iterator<Item = &'a Arc<T>> {
        self.after(None).filter(|feature| feature.is_visible(cx))
    }
}

impl<T> Clone for Registry<T> {
    fn clone(&self) -> Self {
        Self {
            features: self.features.clone(),
            declared: self.declared,
            cache: self.cache,
            pages: Arc::clone(&self.pages),
            restricted: self.restricted,
        }
    }
}

impl<T> Default for Registry<T> {
    fn default() -> Self {
        Self {
            features: BTreeMap::new(),
            declared: false,
            cache: CacheHint::default(),
            pages: Arc::default(),
            restricted: false,
        }
    }
}

impl<T> fmt::Debug for Registry<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.features.keys()).finish()
    }
}
