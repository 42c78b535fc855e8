//! Lists that are read entry by entry, so that one unreadable entry does not affect the others.

use std::{fmt, marker::PhantomData};

use serde::de::{Deserialize, Deserializer, SeqAccess, Visitor};

use super::ENTRY;

/// Reads a list, for `deserialize_with`. Every list of the protocol's types is read by it or by [`optional_list`].
pub(crate) fn list<'de, T: Deserialize<'de>, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Vec<T>, D::Error> {
    deserializer.deserialize_seq(ListVisitor(PhantomData))
}

/// Reads a list that may be null, like [`list`].
pub(crate) fn optional_list<'de, T: Deserialize<'de>, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Vec<T>>, D::Error> {
    struct OptionVisitor<T>(PhantomData<T>);

    impl<'de, T: Deserialize<'de>> Visitor<'de> for OptionVisitor<T> {
        type Value = Option<Vec<T>>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an array")
        }

        fn visit_none<E>(self) -> Result<Self::Value, E> {
            Ok(None)
        }

        fn visit_unit<E>(self) -> Result<Self::Value, E> {
            Ok(None)
        }

        fn visit_some<D: Deserializer<'de>>(
            self,
            deserializer: D,
        ) -> Result<Self::Value, D::Error> {
            list(deserializer).map(Some)
        }
    }

    deserializer.deserialize_option(OptionVisitor(PhantomData))
}

struct ListVisitor<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for ListVisitor<T> {
    type Value = Vec<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a sequence")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Vec<T>, A::Error> {
        let mut list = Vec::new();
        while let Some(Entry(entry)) = items.next_element()? {
            list.extend(entry);
        }
        Ok(list)
    }
}

/// An entry of a list, or a value that is read by itself like one. `None` if it was left out, which only a lenient deserializer
/// does.
pub(crate) struct Entry<T>(pub(crate) Option<T>);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Entry<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct EntryVisitor<T>(PhantomData<T>);

        impl<'de, T: Deserialize<'de>> Visitor<'de> for EntryVisitor<T> {
            type Value = Entry<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an entry")
            }

            fn visit_newtype_struct<D: Deserializer<'de>>(
                self,
                deserializer: D,
            ) -> Result<Entry<T>, D::Error> {
                T::deserialize(deserializer).map(|entry| Entry(Some(entry)))
            }

            /// A lenient deserializer offers the entry again after each failure, repaired, until it is read or left out.
            fn visit_seq<A: SeqAccess<'de>>(self, mut attempts: A) -> Result<Entry<T>, A::Error> {
                loop {
                    if let Ok(entry) = attempts.next_element() {
                        return Ok(Entry(entry));
                    }
                }
            }
        }

        deserializer.deserialize_newtype_struct(ENTRY, EntryVisitor(PhantomData))
    }
}
