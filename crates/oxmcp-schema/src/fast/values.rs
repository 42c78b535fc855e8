//! Deserializers of parsed values, which call visitors as serde_json does.

use std::borrow::Cow;

use oxmcp_json::Text;
use serde::{
    Deserializer,
    de::{IntoDeserializer, Visitor},
    forward_to_deserialize_any,
};
use serde_json::{Error, Result, de::StrRead};

/// A deserializer of a string.
pub(crate) struct Str<'de>(pub(crate) Cow<'de, str>);

impl<'de> Deserializer<'de> for Str<'de> {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        match self.0 {
            Cow::Borrowed(text) => visitor.visit_borrowed_str(text),
            Cow::Owned(text) => visitor.visit_string(text),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        visitor: V,
    ) -> Result<V::Value> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value> {
        let variant = self.0.into_deserializer();
        variant.deserialize_enum(name, variants, visitor)
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct seq tuple
        tuple_struct map struct identifier ignored_any
    }
}

/// Reads a text with a deserialization method of serde_json.
pub(crate) fn by_serde_json<'de, T>(
    text: Text<'de>,
    read: impl FnOnce(&mut serde_json::Deserializer<StrRead<'de>>) -> Result<T>,
) -> Result<T> {
    let mut json = serde_json::Deserializer::from_str(text.get());
    let value = read(&mut json)?;
    // For `1.5`, an integer may have been read and the rest left.
    json.end().map(|()| value)
}

/// Passes an integer to a visitor as serde_json does.
#[inline]
pub(crate) fn visit_integer<'de, V: Visitor<'de>>(integer: i64, visitor: V) -> Result<V::Value> {
    match u64::try_from(integer) {
        Ok(integer) => visitor.visit_u64(integer),
        Err(_) => visitor.visit_i64(integer),
    }
}
