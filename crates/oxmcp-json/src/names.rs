//! Search for duplicate names: objects, at any depth of a value, in which a name occurs twice.
//!
//! RFC 8259 leaves the meaning of such an object open, and readers differ: one takes the first value, another the last.
//! The value that one of them has checked is then not the value that the other one uses.

use std::{borrow::Cow, collections::HashSet};

use crate::text::{Text, Walk};

/// The number of names of an object that are compared one by one; more are looked up in a hash set.
const FEW: usize = 16;

impl<'a> Text<'a> {
    /// Returns a name that occurs twice in one object of the value, at any depth. The search takes one pass, and
    /// allocates nothing if the objects are small and their names have no escapes.
    #[must_use]
    pub fn duplicate_key(self) -> Option<Cow<'a, str>> {
        value(&mut Walk::new(self)).err()
    }
}

/// The result of a search; `Err` has the duplicate name.
type Doubled<'a> = Result<(), Cow<'a, str>>;

/// Searches the next value of the walk.
fn value<'a>(walk: &mut Walk<'a>) -> Doubled<'a> {
    match walk.peek() {
        Some(b'{') => object(walk),
        Some(b'[') => array(walk),
        _ => {
            walk.value();
            Ok(())
        }
    }
}

fn array<'a>(walk: &mut Walk<'a>) -> Doubled<'a> {
    walk.enter();
    while walk.peek().is_some() {
        value(walk)?;
    }
    walk.close();
    Ok(())
}

fn object<'a>(walk: &mut Walk<'a>) -> Doubled<'a> {
    walk.enter();
    let mut names = Names::default();
    while let Some(key) = walk.value() {
        names.add(key)?;
        value(walk)?;
    }
    walk.close();
    Ok(())
}

/// The names of one object that were read so far.
#[derive(Default)]
struct Names<'a> {
    few: [&'a str; FEW],
    count: usize,
    /// All names, if there are more than [`FEW`] of them or one has an escape.
    many: Option<HashSet<Cow<'a, str>>>,
}

impl<'a> Names<'a> {
    #[inline]
    fn add(&mut self, key: Text<'a>) -> Doubled<'a> {
        let known = self.few.get(..self.count).unwrap_or_default();
        if self.many.is_none()
            && let Some(name) = key.as_plain()
        {
            if known.contains(&name) {
                return Err(Cow::Borrowed(name));
            }
            if let Some(free) = self.few.get_mut(self.count) {
                *free = name;
                self.count += 1;
                return Ok(());
            }
        }
        self.add_to_many(key)
    }

    #[cold]
    fn add_to_many(&mut self, key: Text<'a>) -> Doubled<'a> {
        // A string with a lone surrogate is invalid: then the escaped text itself serves as the name.
        let name = key.as_str().unwrap_or_else(|| Cow::Borrowed(key.get()));
        let few = self.few.iter().take(self.count);
        let many = self
            .many
            .get_or_insert_with(|| few.map(|name| Cow::Borrowed(*name)).collect());
        if many.contains(&name) {
            return Err(name);
        }
        many.insert(name);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::{cell::RefCell, fmt};

    use proptest::{collection, prelude::*};
    use serde::{
        Deserialize, Deserializer,
        de::{MapAccess, SeqAccess, Visitor},
    };

    use super::*;

    fn doubled(json: &str) -> Option<String> {
        Text::checked(json).duplicate_key().map(Cow::into_owned)
    }

    #[test]
    fn duplicate_name_is_found_at_any_depth() {
        let many = |last: &str| {
            let members = (0..40).map(|n| format!("\"m{n}\":[{n}]"));
            let members: Vec<_> = members.chain([format!("\"{last}\":0")]).collect();
            format!("{{{}}}", members.join(","))
        };
        for (json, expected) in [
            (r#"{"a":1,"b":2}"#.to_owned(), None),
            (r#"{"a":1,"a":1}"#.to_owned(), Some("a")),
            (r#"{ "a" : {"a":[{"a":"a"}]} , "b":[] }"#.to_owned(), None),
            (r#"[{"a":1},{"a":1}]"#.to_owned(), None),
            (
                r#"{"x":[0,{"y":{"b":1,"c":[],"b":2}}]}"#.to_owned(),
                Some("b"),
            ),
            // A reader that decodes escapes finds the same name twice.
            (r#"{"a":1,"\u0061":2}"#.to_owned(), Some("a")),
            (r#"{"\u0061":1,"b":1,"a":2}"#.to_owned(), Some("a")),
            (r#"{"\ud800":1,"\ud801":2}"#.to_owned(), None),
            (r#"{"\ud800":1,"\ud800":2}"#.to_owned(), Some(r#""\ud800""#)),
            (r#""{\"a\":1,\"a\":2}""#.to_owned(), None),
            ("{}".to_owned(), None),
            (many("m40"), None),
            (many("m3"), Some("m3")),
            (many("m39"), Some("m39")),
        ] {
            assert_eq!(doubled(&json).as_deref(), expected, "{json}");
        }
    }

    #[test]
    fn depth_does_not_repeat_the_walk() {
        let json = format!("{}1{}", r#"{"a":["#.repeat(60), "]}".repeat(60));
        assert_eq!(doubled(&json), None);
        // Malformed JSON must not cause a panic.
        for cut in 0..json.len() {
            doubled(json.get(..cut).unwrap());
        }
    }

    thread_local! {
        static FOUND: RefCell<bool> = const { RefCell::new(false) };
    }

    /// A value whose `Deserialize` implementation looks for duplicate names in the plain way.
    struct Plain;

    impl<'de> Deserialize<'de> for Plain {
        fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
            deserializer.deserialize_any(Self)
        }
    }

    impl<'de> Visitor<'de> for Plain {
        type Value = Self;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("anything")
        }

        fn visit_u64<E>(self, _: u64) -> Result<Self, E> {
            Ok(Self)
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Self, A::Error> {
            while items.next_element::<Self>()?.is_some() {}
            Ok(Self)
        }

        fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Self, A::Error> {
            let mut names = HashSet::new();
            while let Some((name, Self)) = members.next_entry::<String, Self>()? {
                if !names.insert(name) {
                    FOUND.set(true);
                }
            }
            Ok(Self)
        }
    }

    fn json() -> impl Strategy<Value = String> {
        let leaf = any::<u8>().prop_map(|n| n.to_string());
        leaf.prop_recursive(4, 64, 20, |inner| {
            let name = prop_oneof!["[a-z]", "[a-c]{2}", Just("\\u0061".to_owned())];
            let member = (name, inner.clone()).prop_map(|(name, it)| format!("\"{name}\": {it}"));
            prop_oneof![
                collection::vec(inner, 0..4).prop_map(|items| format!("[{}]", items.join(", "))),
                collection::vec(member, 0..20).prop_map(|all| format!("{{{}}}", all.join(" ,"))),
            ]
        })
    }

    proptest! {
        #[test]
        fn duplicate_search_agrees_with_reading(json in json()) {
            FOUND.set(false);
            serde_json::from_str::<Plain>(&json).unwrap();
            prop_assert_eq!(doubled(&json).is_some(), FOUND.take(), "{}", json);
        }
    }
}
