//! A deserializer that observes a type reading an object member by member.

use oxmcp_json::{Members, Text};
use serde::{
    Deserializer,
    de::{
        DeserializeOwned, DeserializeSeed, Error as _, MapAccess, Visitor,
        value::CowStrDeserializer,
    },
    forward_to_deserialize_any,
};
use serde_json::{Error, Result, de::StrRead};

/// An observer of the members that are read.
pub(crate) trait Watch {
    /// Called with the name of the next member, and with `None` between members.
    fn member(&mut self, name: Option<&str>);

    /// Reads the value of the member.
    ///
    /// # Errors
    /// If the type does not accept the value.
    fn read<'de, V: DeserializeSeed<'de>>(
        &mut self,
        seed: V,
        json: serde_json::Deserializer<StrRead<'de>>,
    ) -> Result<V::Value>;
}

/// Reads an object into a `T`, observed by `watch`.
///
/// # Errors
/// If `T` does not accept the object.
pub(crate) fn read_watched<T: DeserializeOwned>(
    object: Text<'_>,
    watch: &mut impl Watch,
) -> Result<T> {
    T::deserialize(WatchedObject {
        members: object.members(),
        value: None,
        watch,
    })
}

struct WatchedObject<'de, 'w, W> {
    members: Members<'de>,
    /// The value of the member whose name was read last.
    value: Option<Text<'de>>,
    watch: &'w mut W,
}

impl<'de, W: Watch> Deserializer<'de> for WatchedObject<'de, '_, W> {
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

impl<'de, W: Watch> MapAccess<'de> for WatchedObject<'de, '_, W> {
    type Error = Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>> {
        self.watch.member(None);
        let Some((key, value)) = self.members.next() else {
            return Ok(None);
        };
        let name = key.as_str().ok_or_else(|| Error::custom("no name"))?;
        self.value = Some(value);
        self.watch.member(Some(&*name));
        seed.deserialize(CowStrDeserializer::new(name)).map(Some)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value> {
        let value = self.value.take().ok_or_else(|| Error::custom("no value"))?;
        let json = serde_json::Deserializer::from_str(value.get());
        let value = self.watch.read(seed, json)?;
        self.watch.member(None);
        Ok(value)
    }
}
