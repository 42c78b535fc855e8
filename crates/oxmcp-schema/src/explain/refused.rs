//! Properties that a type refuses though its schema accepts them: `1.0` is an integer for a schema, and none for a `u32`.

use oxmcp_json::{Members, Text, pointer_token};
use serde::{
    Deserializer,
    de::{
        DeserializeOwned, DeserializeSeed, Error as _, MapAccess, Visitor,
        value::CowStrDeserializer,
    },
    forward_to_deserialize_any,
};
use serde_json::{Error, Result};

/// How much of a name is shown.
const SHOWN: usize = 100;

/// The JSON pointer of the property of an object that `T` does not accept, its name or its value. `None` where it is
/// something else that it does not accept.
#[must_use]
pub fn refused_property<T: DeserializeOwned>(object: Text<'_>) -> Option<String> {
    let mut places = Places {
        members: object.members(),
        value: None,
        at: None,
    };
    T::deserialize(&mut places).err()?;
    let name: String = places.at?.chars().take(SHOWN).collect();
    Some(format!("/{}", pointer_token(&name)))
}

/// An object that knows which of its members is being read.
struct Places<'de> {
    members: Members<'de>,
    value: Option<Text<'de>>,
    at: Option<String>,
}

impl<'de> Deserializer<'de> for &mut Places<'de> {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        visitor.visit_map(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        visitor: V,
    ) -> Result<V::Value> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        visitor.visit_some(self)
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct seq tuple
        tuple_struct map struct enum identifier ignored_any
    }
}

impl<'de> MapAccess<'de> for &mut Places<'de> {
    type Error = Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>> {
        self.at = None;
        let Some((key, value)) = self.members.next() else {
            return Ok(None);
        };
        let name = key.as_str().ok_or_else(|| Error::custom("no name"))?;
        self.value = Some(value);
        self.at = Some(name.clone().into_owned());
        seed.deserialize(CowStrDeserializer::new(name)).map(Some)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value> {
        let value = self.value.take().ok_or_else(|| Error::custom("no value"))?;
        let mut json = serde_json::Deserializer::from_str(value.get());
        let value = seed.deserialize(&mut json)?;
        self.at = None;
        Ok(value)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde::Deserialize;

    use super::*;

    #[derive(Deserialize)]
    #[expect(dead_code, reason = "they are there to be read")]
    struct Order {
        count: u32,
        #[serde(rename = "a/b~c")]
        odd: Option<u8>,
        #[serde(default)]
        inner: BTreeMap<String, u8>,
    }

    #[derive(Deserialize)]
    #[expect(dead_code, reason = "they are there to be read")]
    struct Flat {
        x: u32,
        #[serde(flatten)]
        rest: BTreeMap<String, u8>,
    }

    fn refused<T: DeserializeOwned>(json: &str) -> Option<String> {
        refused_property::<T>(Text::checked(json))
    }

    #[test]
    fn the_property_is_named_and_nothing_is_guessed() {
        let table = [
            (r#"{"count": 1.0}"#, Some("/count")),
            (r#"{"count": 1, "count": 2}"#, Some("/count")),
            (r#"{"count": 1, "a/b~c": 2e2}"#, Some("/a~1b~0c")),
            (r#"{"count": 1, "inner": {"x": 1.5}}"#, Some("/inner")),
            (r#"{"a/b~c": 1}"#, None),
            (r#"{"count": 1}"#, None),
        ];
        for (json, expected) in table {
            assert_eq!(refused::<Order>(json).as_deref(), expected, "{json}");
        }
        assert_eq!(
            refused::<Flat>(r#"{"x": 1.0, "y": 1}"#).as_deref(),
            Some("/x")
        );
        assert_eq!(refused::<Flat>(r#"{"x": 1, "y": 1.5}"#), None);
        let long = format!(r#"{{"{}": 1.5}}"#, "x".repeat(100_000));
        let place = refused::<BTreeMap<String, u8>>(&long).unwrap();
        assert_eq!(place.len(), SHOWN + 1);
    }
}
