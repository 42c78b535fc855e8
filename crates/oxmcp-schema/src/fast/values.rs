//! Deserializers of the single values of an object that is read while it is validated.

use std::borrow::Cow;

use oxmcp_json::Text;
use serde::{
    Deserializer,
    de::{IntoDeserializer, Visitor},
    forward_to_deserialize_any,
};
use serde_json::{Error, Result, de::StrRead};

/// A value that is a string.
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

/// A value that is no string: serde_json reads it.
pub(crate) struct Value<'de> {
    pub(crate) text: Text<'de>,
    /// The same, where it has been read as an integer.
    pub(crate) integer: Option<i64>,
}

/// Reads a text by a method of serde_json.
fn by_serde_json<'de, T>(
    text: &'de str,
    read: impl FnOnce(&mut serde_json::Deserializer<StrRead<'de>>) -> Result<T>,
) -> Result<T> {
    let mut json = serde_json::Deserializer::from_str(text);
    let value = read(&mut json)?;
    // Of `1.5`, an integer may have been read alone.
    json.end().map(|()| value)
}

/// Methods that leave it to the same method of serde_json.
macro_rules! by_serde_json {
    ($($method:ident($($argument:ident: $type:ty),*);)+) => {$(
        fn $method<V: Visitor<'de>>(self, $($argument: $type,)* visitor: V) -> Result<V::Value> {
            by_serde_json(self.text.get(), |json| json.$method($($argument,)* visitor))
        }
    )+};
}

/// The same where an integer is wanted, which mostly has been read.
macro_rules! integers {
    ($($method:ident)+) => {$(
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
            match self.integer {
                Some(integer) => visit_integer(integer, visitor),
                None => by_serde_json(self.text.get(), |json| json.$method(visitor)),
            }
        }
    )+};
}

/// Hands an integer out as serde_json does.
#[inline]
fn visit_integer<'de, V: Visitor<'de>>(integer: i64, visitor: V) -> Result<V::Value> {
    match u64::try_from(integer) {
        Ok(integer) => visitor.visit_u64(integer),
        Err(_) => visitor.visit_i64(integer),
    }
}

impl<'de> Deserializer<'de> for Value<'de> {
    type Error = Error;

    integers! {
        deserialize_i8
        deserialize_i16
        deserialize_i32
        deserialize_i64
        deserialize_u8
        deserialize_u16
        deserialize_u32
        deserialize_u64
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        if self.text.is_null() {
            return visitor.visit_none();
        }
        visitor.visit_some(self)
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        visitor.visit_unit()
    }

    by_serde_json! {
        deserialize_any();
        deserialize_bool();
        deserialize_i128();
        deserialize_u128();
        deserialize_f32();
        deserialize_f64();
        deserialize_char();
        deserialize_str();
        deserialize_string();
        deserialize_bytes();
        deserialize_byte_buf();
        deserialize_unit();
        deserialize_unit_struct(name: &'static str);
        deserialize_newtype_struct(name: &'static str);
        deserialize_seq();
        deserialize_tuple(len: usize);
        deserialize_tuple_struct(name: &'static str, len: usize);
        deserialize_map();
        deserialize_struct(name: &'static str, fields: &'static [&'static str]);
        deserialize_enum(name: &'static str, variants: &'static [&'static str]);
        deserialize_identifier();
    }
}
