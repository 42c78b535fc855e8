//! Deserializer that validates: one walk over the text reads a value and holds it against the schema.

use std::mem;

use oxmcp_json::{Members, Text};
use serde::{
    Deserializer,
    de::{
        DeserializeOwned, DeserializeSeed, Error as _, MapAccess, Visitor,
        value::BorrowedStrDeserializer,
    },
    forward_to_deserialize_any,
};
use serde_json::{Error, Result};

use crate::fast::{
    accept::Properties,
    check::{Check, kind},
    values::{Str, Value},
};

/// An object that was read.
#[expect(clippy::exhaustive_structs, reason = "only the SDK may use it")]
#[derive(Debug, PartialEq)]
pub struct Read<T> {
    /// What was read.
    pub value: T,
    /// Whether it has members that are no properties of the schema.
    pub has_others: bool,
}

/// Reads an object that the check accepts. `None` says nothing: the full validator decides whether it is valid, and
/// serde_json what is wrong with it where it cannot be read.
pub(crate) fn read<T: DeserializeOwned>(check: &Check, instance: Text<'_>) -> Option<Read<T>> {
    let typed = check.typed(kind::OBJECT)?;
    if typed.values.is_some() || !instance.is_object() {
        return None;
    }
    let mut object = Object {
        members: instance.members(),
        next: Next::Key,
        properties: Properties::of(typed),
    };
    let value = T::deserialize(&mut object).ok()?;
    // A type may stop before the end: then the rest is unchecked.
    let is_over = object.members.key().is_none();
    let Properties { has_others, .. } = object.properties;
    (is_over && object.properties.are_complete()).then_some(Read { value, has_others })
}

/// Error that hands the value over to serde_json. It never leaves this file.
fn leave_it() -> Error {
    Error::custom("for serde_json to read")
}

/// An object, each of whose members is held against the schema before it is handed out.
struct Object<'de, 'c> {
    members: Members<'de>,
    next: Next<'de>,
    properties: Properties<'c>,
}

/// What comes next of an object.
enum Next<'de> {
    Key,
    /// A value whose key was handed out.
    Value(Value<'de>),
    /// The same, an unchecked string: it may be long, and is walked over only once.
    String,
}

impl<'de> Object<'de, '_> {
    /// The value of the property that is next, if it is accepted.
    #[inline]
    fn value(&mut self, name: &str) -> Option<Value<'de>> {
        let (value, is_accepted) = if let Some((text, integer)) = self.members.integer() {
            let value = Value {
                text,
                integer: Some(integer),
            };
            (value, self.properties.accept_integer(name, integer))
        } else {
            let text = self.members.value()?;
            let value = Value {
                text,
                integer: None,
            };
            (value, self.properties.accept(name, text))
        };
        is_accepted.then_some(value)
    }
}

impl<'de> Deserializer<'de> for &mut Object<'de, '_> {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        visitor.visit_map(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _visitor: V,
    ) -> Result<V::Value> {
        // It may be a `RawValue`, which wants the text.
        Err(leave_it())
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        visitor.visit_some(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _variants: &'static [&'static str],
        _visitor: V,
    ) -> Result<V::Value> {
        Err(leave_it())
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct seq tuple
        tuple_struct map struct identifier ignored_any
    }
}

impl<'de> MapAccess<'de> for &mut Object<'de, '_> {
    type Error = Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>> {
        let Some(key) = self.members.key() else {
            return Ok(None);
        };
        let name = key.as_plain().ok_or_else(leave_it)?;
        if self.members.is_string() && self.properties.accept_any_string(name) {
            self.next = Next::String;
        } else {
            let value = self.value(name).ok_or_else(leave_it)?;
            self.next = Next::Value(value);
        }
        seed.deserialize(BorrowedStrDeserializer::new(name))
            .map(Some)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value> {
        let string = match mem::replace(&mut self.next, Next::Key) {
            Next::Key => None,
            Next::Value(value) if value.text.is_string() => value.text.as_str(),
            Next::Value(value) => return seed.deserialize(value),
            Next::String => self.members.string(),
        };
        seed.deserialize(Str(string.ok_or_else(leave_it)?))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::{collection, prelude::*, sample};
    use serde::Deserialize;
    use serde_json::{Value as Json, json, value::RawValue};

    use super::*;

    #[derive(Debug, Deserialize, PartialEq)]
    struct Inner {
        x: f64,
    }

    #[derive(Debug, Deserialize, PartialEq)]
    enum Kind {
        Unit,
        Tuple(i8, i8),
    }

    #[derive(Debug, Deserialize, PartialEq)]
    #[serde(untagged)]
    enum Either {
        Number(u64),
        Text(String),
    }

    #[derive(Debug, Deserialize, PartialEq)]
    struct Wrapper(String);

    /// A field for each way in which serde asks for a value.
    #[derive(Debug, Deserialize, PartialEq)]
    struct Everything {
        text: Option<String>,
        char: Option<char>,
        int: Option<i64>,
        big: Option<u128>,
        float: Option<f32>,
        flag: Option<bool>,
        inner: Option<Inner>,
        kind: Option<Kind>,
        either: Option<Either>,
        wrapper: Option<Wrapper>,
        any: Option<Json>,
        list: Option<Vec<String>>,
        unit: Option<()>,
    }

    #[derive(Debug, Deserialize, PartialEq)]
    struct Flattened {
        text: Option<String>,
        #[serde(flatten)]
        rest: BTreeMap<String, Json>,
    }

    const NAMES: [&str; 14] = [
        "text", "char", "int", "big", "float", "flag", "inner", "kind", "either", "wrapper", "any",
        "list", "unit", "unknown",
    ];

    const VALUES: [&str; 24] = [
        "null",
        "true",
        "0",
        "-0",
        "-7",
        "300",
        "999999999999999999",
        "-9223372036854775808",
        "18446744073709551616",
        "1.5",
        "1e3",
        r#""""#,
        r#""a""#,
        r#""a\"\n\u00e9\ud83d\ude00""#,
        r#""\ud800""#,
        r#"{"x":1}"#,
        r#"{"x":"1"}"#,
        r#""Unit""#,
        r#"{"Tuple":[1,2]}"#,
        "[]",
        r#"["a", "\t"]"#,
        "[1]",
        "{}",
        r#"{"x":1,"x":2}"#,
    ];

    fn members() -> impl Strategy<Value = String> {
        let member = (
            sample::select(&NAMES),
            sample::select(&VALUES),
            any::<bool>(),
        );
        let member = member.prop_map(|(name, value, spaced)| match spaced {
            true => format!(r#" "{name}" : {value} "#),
            false => format!(r#""{name}":{value}"#),
        });
        collection::vec(member, 0..4).prop_map(|members| format!("{{{}}}", members.join(",")))
    }

    fn is_read_alike<T: DeserializeOwned + PartialEq + std::fmt::Debug>(json: &str) {
        let object = Check::compile(&json!({"type": "object"}));
        let expected = serde_json::from_str::<T>(json).ok();
        if let Some(read) = read::<T>(&object, Text::checked(json)) {
            assert_eq!(Some(read.value), expected, "{json}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]

        #[test]
        fn what_is_read_is_what_serde_json_reads(json in members()) {
            is_read_alike::<Everything>(&json);
            is_read_alike::<Flattened>(&json);
            is_read_alike::<BTreeMap<String, Json>>(&json);
            is_read_alike::<Json>(&json);
            is_read_alike::<Option<Everything>>(&json);
        }
    }

    #[test]
    fn what_most_tools_take_is_read() {
        let object = Check::compile(&json!({
            "type": "object",
            "properties": {"text": {"type": "string"}, "int": {"type": "integer"}},
            "required": ["text"],
        }));
        let json = r#"{"text":"a\n","int":3,"more":[{}]}"#;
        let read = read::<Everything>(&object, Text::checked(json)).unwrap();
        assert!(read.has_others);
        let read = read.value;
        assert_eq!((read.text.as_deref(), read.int), (Some("a\n"), Some(3)));
    }

    #[test]
    fn what_the_check_does_not_accept_is_not_read() {
        let object = Check::compile(&json!({
            "type": "object",
            "properties": {"text": {"type": "string", "maxLength": 3}},
            "required": ["text"],
            "additionalProperties": false,
        }));
        for json in [
            r#"{"text":"abcd"}"#,
            r#"{"text":1}"#,
            "{}",
            r#"{"text":"a","int":1}"#,
            "[]",
        ] {
            assert_eq!(
                read::<Everything>(&object, Text::checked(json)),
                None,
                "{json}"
            );
        }
        assert!(read::<Everything>(&object, Text::checked(r#"{"text":"abc"}"#)).is_some());
        assert!(read::<Box<RawValue>>(&object, Text::checked(r#"{"text":"a"}"#)).is_none());
    }
}
