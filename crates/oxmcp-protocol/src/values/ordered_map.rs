//! JSON object that keeps the order of its members.

use std::{fmt, marker::PhantomData, slice, vec};

use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{MapAccess, Visitor},
};

/// A map from strings that keeps the order of its entries, as the fields of a form and input requests require it.
///
/// It is meant for few entries: a lookup searches through all of them.
///
/// ```
/// use oxmcp_protocol::OrderedMap;
///
/// let map: OrderedMap<i32> = [("b", 1), ("a", 2)].into_iter().collect();
/// assert_eq!(map.get("a"), Some(&2));
/// assert_eq!(serde_json::to_string(&map)?, r#"{"b":1,"a":2}"#);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct OrderedMap<V>(Vec<(String, V)>);

impl<V> OrderedMap<V> {
    /// Creates a map without entries.
    #[must_use]
    pub const fn new() -> Self {
        Self(Vec::new())
    }

    /// Returns the number of entries.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns whether there are no entries.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the value of `key`.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&V> {
        self.iter()
            .find_map(|(name, value)| (name == key).then_some(value))
    }

    /// Sets the value of `key`, in its place or at the end, and returns the previous value.
    pub fn insert(&mut self, key: impl Into<String>, value: V) -> Option<V> {
        let key = key.into();
        match self.0.iter_mut().find(|(name, _)| *name == key) {
            Some((_, old)) => Some(std::mem::replace(old, value)),
            None => {
                self.0.push((key, value));
                None
            }
        }
    }

    /// Removes `key`, and returns its value.
    pub fn remove(&mut self, key: &str) -> Option<V> {
        let at = self.0.iter().position(|(name, _)| name == key)?;
        Some(self.0.remove(at).1)
    }

    /// Returns the entries in their order.
    pub fn iter(&self) -> OrderedMapIter<'_, V> {
        self.0.iter().map(borrow)
    }

    /// Returns the keys in their order.
    pub fn keys(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|(key, _)| &**key)
    }

    /// Returns the values in the order of their keys.
    pub fn values(&self) -> impl Iterator<Item = &V> {
        self.0.iter().map(|(_, value)| value)
    }

    /// Returns the values in the order of their keys, mutable.
    pub fn values_mut(&mut self) -> impl Iterator<Item = &mut V> {
        self.0.iter_mut().map(|(_, value)| value)
    }
}

/// The entries of an [`OrderedMap`].
pub type OrderedMapIter<'a, V> =
    std::iter::Map<slice::Iter<'a, (String, V)>, fn(&'a (String, V)) -> (&'a str, &'a V)>;

fn borrow<V>((key, value): &(String, V)) -> (&str, &V) {
    (key, value)
}

impl<V> Default for OrderedMap<V> {
    fn default() -> Self {
        Self::new()
    }
}

impl<V: fmt::Debug> fmt::Debug for OrderedMap<V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

impl<K: Into<String>, V> FromIterator<(K, V)> for OrderedMap<V> {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(entries: I) -> Self {
        let mut map = Self::new();
        for (key, value) in entries {
            map.insert(key, value);
        }
        map
    }
}

impl<V> IntoIterator for OrderedMap<V> {
    type Item = (String, V);
    type IntoIter = vec::IntoIter<(String, V)>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

impl<'a, V> IntoIterator for &'a OrderedMap<V> {
    type Item = (&'a str, &'a V);
    type IntoIter = OrderedMapIter<'a, V>;

    fn into_iter(self) -> OrderedMapIter<'a, V> {
        self.iter()
    }
}

impl<V: Serialize> Serialize for OrderedMap<V> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self)
    }
}

impl<'de, V: Deserialize<'de>> Deserialize<'de> for OrderedMap<V> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct MapVisitor<V>(PhantomData<V>);

        impl<'de, V: Deserialize<'de>> Visitor<'de> for MapVisitor<V> {
            type Value = OrderedMap<V>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<OrderedMap<V>, A::Error> {
                let mut entries: Vec<(String, V)> = Vec::new();
                while let Some(entry) = map.next_entry()? {
                    entries.push(entry);
                }
                dedup(&mut entries);
                Ok(OrderedMap(entries))
            }
        }

        deserializer.deserialize_map(MapVisitor(PhantomData))
    }
}

/// Keeps the last of the entries with the same key. The time is linear, so that a peer cannot cause quadratic work.
fn dedup<V>(entries: &mut Vec<(String, V)>) {
    let mut last = std::collections::HashMap::with_capacity(entries.len());
    for (index, (key, _)) in entries.iter().enumerate() {
        last.insert(key.clone(), index);
    }
    if last.len() < entries.len() {
        let mut index = 0;
        entries.retain(|(key, _)| {
            index += 1;
            last.get(key) == Some(&(index - 1))
        });
    }
}
