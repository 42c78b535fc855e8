//! Deserializer that validates: one pass over the text reads a value and checks it against the schema.

use std::sync::LazyLock;

use oxmcp_json::Text;
use serde::{
    Deserializer,
    de::{
        DeserializeOwned, DeserializeSeed, Error as _, MapAccess, SeqAccess, Visitor,
        value::{BorrowedStrDeserializer, MapAccessDeserializer},
    },
};
use serde_json::{Error, Result, json};

use crate::{
    explain::integers::whole_number,
    fast::{
        accept::{Acceptor, Properties, accepts_integer, accepts_string},
        check::{ANYTHING, Check, Typed, kind},
        values::{Str, by_serde_json, visit_integer},
    },
};

/// Whether a method asks for an integer.
const INTEGERS: bool = true;
const FRACTIONS: bool = false;

/// An object that was read.
#[expect(clippy::exhaustive_structs, reason = "only the SDK may use it")]
#[derive(Debug, PartialEq)]
pub struct Read<T> {
    /// The value that was read.
    pub value: T,
    /// Whether the object has names, at any depth, that are not properties of the schema. If it has none, no object in
    /// it has duplicate names.
    pub has_unlisted_names: bool,
}

/// Reads an object that the check accepts. `None` does not mean that it is invalid: the full validator decides that,
/// and serde_json reports the error if it cannot be read.
pub(crate) fn read<T: DeserializeOwned>(check: &Check, instance: Text<'_>) -> Option<Read<T>> {
    if !instance.is_object() {
        return None;
    }
    let mut acceptor = Acceptor::new(instance);
    let value = T::deserialize(Checked {
        acceptor: &mut acceptor,
        check,
    });
    // A type may read nothing: then the object was not checked.
    let is_over = acceptor.walk.at() == instance.get().len();
    let has_unlisted_names = acceptor.has_unlisted_names;
    value.ok().filter(|_| is_over).map(|value| Read {
        value,
        has_unlisted_names,
    })
}

/// Reads an object in which `3.0` counts as `3` wherever the type asks for an integer, and nowhere else. `None` if the
/// type does not accept it. That is also the case if the type buffers values before it asks for their types (flattened
/// fields, untagged enums), or asks for 128-bit integers.
#[must_use]
pub fn read_whole_numbers<T: DeserializeOwned>(instance: Text<'_>) -> Option<T> {
    if !instance.is_object() {
        return None;
    }
    let mut acceptor = Acceptor::new(instance);
    acceptor.takes_whole_numbers = true;
    let value = T::deserialize(Checked {
        acceptor: &mut acceptor,
        check: &ANYTHING,
    });
    let is_over = acceptor.walk.at() == instance.get().len();
    value.ok().filter(|_| is_over)
}

/// The check of containers without assertions, which are traversed only for their numbers.
static ANY_CONTAINER: LazyLock<Check> =
    LazyLock::new(|| Check::compile(&json!({"type": ["array", "object"]})));

/// The error that leaves the value to serde_json. It is not visible outside of this module.
fn leave_it() -> Error {
    Error::custom("for serde_json to read")
}

/// A value that is checked while it is read. It is read completely, or not at all, or reading fails.
struct Checked<'r, 'de, 'c> {
    acceptor: &'r mut Acceptor<'de>,
    check: &'c Check,
}

impl<'de, 'c> Checked<'_, 'de, 'c> {
    fn peek(&mut self) -> Option<u8> {
        self.acceptor.walk.peek()
    }

    /// The assertions for the next value, if it is a container of one of these types. `None` leaves it to serde_json,
    /// which is as fast if there is nothing to check.
    fn container(&mut self, kinds: u8) -> Option<(u8, &'c Typed)> {
        let kind = match self.peek()? {
            b'{' => kind::OBJECT,
            b'[' => kind::ARRAY,
            _ => return None,
        };
        let check = match self.check {
            Check::Anything if self.acceptor.takes_whole_numbers => &ANY_CONTAINER,
            check => check,
        };
        let typed = check.typed(kind & kinds)?;
        typed.values.is_none().then_some((kind, typed))
    }

    /// Takes the text of the value, for serde_json to read.
    fn text(self) -> Result<Text<'de>> {
        self.acceptor.walk.peek();
        let start = self.acceptor.walk.at();
        let is_accepted = self.acceptor.value(self.check);
        let text = self.acceptor.walk.since(start).filter(|_| is_accepted);
        text.ok_or_else(leave_it)
    }

    fn str(self) -> Result<Str<'de>> {
        let string = self.acceptor.walk.string().ok_or_else(leave_it)?;
        let is_accepted = match self.check {
            Check::Anything => true,
            check => accepts_string(check, &string),
        };
        is_accepted.then_some(Str(string)).ok_or_else(leave_it)
    }

    fn object<V: Visitor<'de>>(self, typed: &'c Typed, visitor: V) -> Result<V::Value> {
        let Self { acceptor, .. } = self;
        acceptor.walk.enter();
        let mut object = Object {
            acceptor,
            properties: Properties::of(typed),
            value: None,
        };
        let value = visitor.visit_map(&mut object)?;
        let Object {
            acceptor,
            properties,
            ..
        } = object;
        // A type may stop before the end: then the rest is unchecked.
        let is_over = acceptor.walk.peek().is_none();
        acceptor.walk.close();
        acceptor.has_unlisted_names |= properties.has_others;
        let is_complete = is_over && properties.are_complete();
        is_complete.then_some(value).ok_or_else(leave_it)
    }

    /// Reads an enum variant with content, which is an object with one member.
    fn tagged<V: Visitor<'de>>(self, typed: &'c Typed, visitor: V) -> Result<V::Value> {
        let Self { acceptor, .. } = self;
        acceptor.walk.enter();
        let mut object = Object {
            acceptor,
            properties: Properties::of(typed),
            value: None,
        };
        let value = visitor.visit_enum(MapAccessDeserializer::new(&mut object))?;
        let is_over = object.acceptor.walk.peek().is_none();
        object.acceptor.walk.close();
        is_over.then_some(value).ok_or_else(leave_it)
    }

    fn array<V: Visitor<'de>>(self, typed: &'c Typed, visitor: V) -> Result<V::Value> {
        let Self { acceptor, .. } = self;
        acceptor.walk.enter();
        let mut array = Array {
            acceptor,
            typed,
            count: 0,
        };
        let value = visitor.visit_seq(&mut array)?;
        let Array {
            acceptor, count, ..
        } = array;
        let is_over = acceptor.walk.peek().is_none();
        acceptor.walk.close();
        let is_complete = is_over && typed.accepts_count(count);
        is_complete.then_some(value).ok_or_else(leave_it)
    }
}

/// Methods that delegate to the same method of serde_json.
macro_rules! by_serde_json {
    ($($method:ident($($argument:ident: $type:ty),*);)+) => {$(
        fn $method<V: Visitor<'de>>(self, $($argument: $type,)* visitor: V) -> Result<V::Value> {
            by_serde_json(self.text()?, |json| json.$method($($argument,)* visitor))
        }
    )+};
}

/// The same, except that integers are parsed in the same pass.
macro_rules! numbers {
    ($($method:ident)+, of $asked:expr) => {$(
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
            let asked = $asked && self.acceptor.takes_whole_numbers;
            let Some(integer) = self.acceptor.walk.integer() else {
                let text = self.text()?;
                return match asked.then(|| whole_number(text.get())).flatten() {
                    Some(whole) => serde_json::Deserializer::from_reader(whole.as_bytes()).$method(visitor),
                    None => by_serde_json(text, |json| json.$method(visitor)),
                };
            };
            match self.check {
                Check::Anything => visit_integer(integer, visitor),
                check if accepts_integer(check, integer) => visit_integer(integer, visitor),
                _ => Err(leave_it()),
            }
        }
    )+};
}

/// The same, except that strings are parsed in the same pass.
macro_rules! strings {
    ($($method:ident)+) => {$(
        fn $method<V: Visitor<'de>>(mut self, visitor: V) -> Result<V::Value> {
            match self.peek() {
                Some(b'"') => self.str()?.$method(visitor),
                _ => by_serde_json(self.text()?, |json| json.$method(visitor)),
            }
        }
    )+};
}

/// The same, except that objects and arrays with assertions are checked while they are read.
macro_rules! containers {
    ($($method:ident($($argument:ident: $type:ty),*) of $kinds:expr;)+) => {$(
        fn $method<V: Visitor<'de>>(mut self, $($argument: $type,)* visitor: V) -> Result<V::Value> {
            match self.container($kinds) {
                Some((kind::OBJECT, typed)) => self.object(typed, visitor),
                Some((_, typed)) => self.array(typed, visitor),
                None => by_serde_json(self.text()?, |json| json.$method($($argument,)* visitor)),
            }
        }
    )+};
}

impl<'de> Deserializer<'de> for Checked<'_, 'de, '_> {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(mut self, visitor: V) -> Result<V::Value> {
        match (self.peek(), self.container(kind::OBJECT | kind::ARRAY)) {
            (Some(b'"'), _) => self.str()?.deserialize_any(visitor),
            (_, Some((kind::OBJECT, typed))) => self.object(typed, visitor),
            (_, Some((_, typed))) => self.array(typed, visitor),
            _ => by_serde_json(self.text()?, |json| json.deserialize_any(visitor)),
        }
    }

    fn deserialize_bool<V: Visitor<'de>>(mut self, visitor: V) -> Result<V::Value> {
        let is_true = self.peek() == Some(b't');
        let text = self.text()?;
        if is_true || text.get() == "false" {
            return visitor.visit_bool(is_true);
        }
        Err(leave_it())
    }

    fn deserialize_option<V: Visitor<'de>>(mut self, visitor: V) -> Result<V::Value> {
        if self.peek() == Some(b'n') {
            return self.text().and_then(|_| visitor.visit_none());
        }
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value> {
        // No Rust type has such a name: it is a `RawValue`, which only serde_json can read.
        if name.starts_with('$') {
            let text = self.text()?;
            return by_serde_json(text, |json| json.deserialize_newtype_struct(name, visitor));
        }
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        self.text().and_then(|_| visitor.visit_unit())
    }

    fn deserialize_enum<V: Visitor<'de>>(
        mut self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value> {
        if self.peek() == Some(b'"') {
            return self.str()?.deserialize_enum(name, variants, visitor);
        }
        if self.acceptor.takes_whole_numbers
            && let Some((_, typed)) = self.container(kind::OBJECT)
        {
            return self.tagged(typed, visitor);
        }
        let text = self.text()?;
        by_serde_json(text, |json| json.deserialize_enum(name, variants, visitor))
    }

    containers! {
        deserialize_seq() of kind::ARRAY;
        deserialize_tuple(len: usize) of kind::ARRAY;
        deserialize_tuple_struct(name: &'static str, len: usize) of kind::ARRAY;
        deserialize_map() of kind::OBJECT;
        deserialize_struct(name: &'static str, fields: &'static [&'static str]) of kind::OBJECT | kind::ARRAY;
    }

    numbers! {
        deserialize_i8
        deserialize_i16
        deserialize_i32
        deserialize_i64
        deserialize_u8
        deserialize_u16
        deserialize_u32
        deserialize_u64,
        of INTEGERS
    }

    numbers! {
        deserialize_f32
        deserialize_f64,
        of FRACTIONS
    }

    strings! {
        deserialize_char
        deserialize_str
        deserialize_string
        deserialize_identifier
    }

    by_serde_json! {
        deserialize_i128();
        deserialize_u128();
        deserialize_bytes();
        deserialize_byte_buf();
        deserialize_unit();
        deserialize_unit_struct(name: &'static str);
    }
}

/// An object whose members are checked while they are read.
struct Object<'r, 'de, 'c> {
    acceptor: &'r mut Acceptor<'de>,
    properties: Properties<'c>,
    /// The check for the next value, whose name was already read.
    value: Option<&'c Check>,
}

impl<'de> MapAccess<'de> for &mut Object<'_, 'de, '_> {
    type Error = Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>> {
        let Some(key) = self.acceptor.walk.value() else {
            return Ok(None);
        };
        let name = key.as_plain().ok_or_else(leave_it)?;
        let check = self.properties.meet(name).ok_or_else(leave_it)?;
        if self.value.replace(check).is_some() {
            return Err(leave_it());
        }
        seed.deserialize(BorrowedStrDeserializer::new(name))
            .map(Some)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value> {
        let check = self.value.take().ok_or_else(leave_it)?;
        read_next(self.acceptor, check, seed)
    }
}

/// An array whose items are checked while they are read.
struct Array<'r, 'de, 'c> {
    acceptor: &'r mut Acceptor<'de>,
    typed: &'c Typed,
    count: usize,
}

impl<'de> SeqAccess<'de> for &mut Array<'_, 'de, '_> {
    type Error = Error;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>> {
        if self.acceptor.walk.peek().is_none() {
            return Ok(None);
        }
        self.count += 1;
        read_next(self.acceptor, &self.typed.items, seed).map(Some)
    }
}

fn read_next<'de, S: DeserializeSeed<'de>>(
    acceptor: &mut Acceptor<'de>,
    check: &Check,
    seed: S,
) -> Result<S::Value> {
    acceptor.walk.peek();
    let start = acceptor.walk.at();
    let value = seed.deserialize(Checked { acceptor, check })?;
    // A type may read nothing: then the value is unchecked, and would be mistaken for the next one.
    let is_taken = acceptor.walk.at() > start;
    is_taken.then_some(value).ok_or_else(leave_it)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::{collection, prelude::*, sample};
    use serde::Deserialize;
    use serde_json::{Value as Json, value::RawValue};

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

    #[derive(Debug, Deserialize, PartialEq)]
    struct Point(i8, Option<f32>);

    /// A struct with a field for each way in which serde requests a value.
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
        inners: Option<Vec<Inner>>,
        point: Option<Point>,
        pairs: Option<BTreeMap<i8, (String, char)>>,
        unit: Option<()>,
    }

    #[derive(Debug, Deserialize, PartialEq)]
    struct Flattened {
        text: Option<String>,
        #[serde(flatten)]
        rest: BTreeMap<String, Json>,
    }

    const NAMES: [&str; 17] = [
        "text", "char", "int", "big", "float", "flag", "inner", "kind", "either", "wrapper", "any",
        "list", "inners", "point", "pairs", "unit", "unknown",
    ];

    const VALUES: [&str; 31] = [
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
        r#"[ {"x":1.5} , {"x":2,"y":[3]} ]"#,
        r#"[{"x":1},{"x":null}]"#,
        "[[1.5]]",
        "[1,null]",
        "[1,2,3]",
        r#"{"7":["a","b"]}"#,
        r#"{"\u0037":["a","b"]}"#,
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
        let expected = serde_json::from_str::<T>(json).ok();
        let kinds = ["null", "boolean", "number", "string", "array", "object"];
        let object = json!({"additionalProperties": {"type": kinds}});
        // With assertions for nested values, containers are traversed; otherwise serde_json reads them.
        let items = json!({"type": kinds, "items": object, "additionalProperties": object});
        for values in [json!(true), json!({"type": kinds}), items] {
            let check = Check::compile(&json!({"type": "object", "additionalProperties": values}));
            if let Some(read) = read::<T>(&check, Text::checked(json)) {
                assert_eq!(Some(&read.value), expected.as_ref(), "{json} {values}");
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]

        #[test]
        fn values_are_read_like_serde_json(json in members()) {
            is_read_alike::<Everything>(&json);
            is_read_alike::<Flattened>(&json);
            is_read_alike::<BTreeMap<String, Json>>(&json);
            is_read_alike::<Json>(&json);
            is_read_alike::<Option<Everything>>(&json);
        }
    }

    #[test]
    fn whole_floats_are_integers_only_where_expected() {
        let read = |json| read_whole_numbers::<Everything>(Text::checked(json));
        let json = r#"{"int": 3.0, "float": -0.0, "any": [2.0, {"x": 1e2}], "kind": {"Tuple": [1.0, 2]},
            "inners": [{"x": 4.0}], "point": [5e0, 1.0], "list": ["6.0"], "wrapper": "7.0", "text": null, "unknown": [8.0]}"#;
        let read_all = read(json).unwrap();
        assert_eq!(read_all.int, Some(3));
        assert!(read_all.float.is_some_and(f32::is_sign_negative));
        assert_eq!(read_all.any.unwrap().to_string(), r#"[2.0,{"x":100.0}]"#);
        assert_eq!(read_all.kind, Some(Kind::Tuple(1, 2)));
        assert_eq!(read_all.point, Some(Point(5, Some(1.0))));
        assert_eq!(read_all.list.as_deref(), Some(&["6.0".to_owned()][..]));
        for refused in [
            r#"{"int": 1.5}"#,
            r#"{"int": 3.0, "either": 4.0}"#,
            r#"{"kind": {"Tuple": [1.0, 2], "Unit": null}}"#,
            "[3.0]",
        ] {
            assert!(read(refused).is_none(), "{refused}");
        }
    }

    #[test]
    fn common_tool_inputs_are_read_in_one_pass() {
        let object = Check::compile(&json!({
            "type": "object",
            "properties": {"text": {"type": "string"}, "int": {"type": "integer"}},
            "required": ["text"],
        }));
        let json = r#"{"text":"a\n","int":3,"more":[{}]}"#;
        let read = read::<Everything>(&object, Text::checked(json)).unwrap();
        assert!(read.has_unlisted_names);
        let read = read.value;
        assert_eq!((read.text.as_deref(), read.int), (Some("a\n"), Some(3)));
    }

    #[test]
    fn values_rejected_by_the_check_are_not_read() {
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
    }

    #[test]
    fn type_narrower_than_its_schema_is_not_read() {
        /// A type that reads nothing.
        #[derive(Debug, PartialEq)]
        struct Nothing;

        impl<'de> Deserialize<'de> for Nothing {
            fn deserialize<D: Deserializer<'de>>(_: D) -> std::result::Result<Self, D::Error> {
                Ok(Self)
            }
        }

        /// A type that reads only the first key or the first item.
        #[derive(Debug, PartialEq)]
        struct First;

        impl<'de> Deserialize<'de> for First {
            fn deserialize<D: Deserializer<'de>>(from: D) -> std::result::Result<Self, D::Error> {
                from.deserialize_any(Self)
            }
        }

        impl<'de> Visitor<'de> for First {
            type Value = Self;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("anything")
            }

            fn visit_map<A: MapAccess<'de>>(
                self,
                mut map: A,
            ) -> std::result::Result<Self, A::Error> {
                map.next_key::<String>().map(|_| self)
            }

            fn visit_seq<A: SeqAccess<'de>>(
                self,
                mut seq: A,
            ) -> std::result::Result<Self, A::Error> {
                seq.next_element::<u8>().map(|_| self)
            }
        }

        let check = Check::compile(&json!({
            "type": "object",
            "additionalProperties": {"type": "array", "items": {"type": "integer"}},
        }));
        let text = Text::checked(r#"{"a":[1,2],"b":[3,4]}"#);
        assert_eq!(read::<Nothing>(&check, text), None);
        assert_eq!(read::<First>(&check, text), None);
        assert_eq!(read::<BTreeMap<String, Nothing>>(&check, text), None);
        assert_eq!(read::<BTreeMap<String, First>>(&check, text), None);
        assert_eq!(read::<BTreeMap<String, Vec<Nothing>>>(&check, text), None);
        assert!(read::<BTreeMap<String, Vec<u8>>>(&check, text).is_some());
    }

    #[test]
    fn nested_raw_value_is_read() {
        let object = Check::compile(&json!({"properties": {"a": {"type": "array"}}}));
        let read_raw = |json| read::<BTreeMap<String, Box<RawValue>>>(&object, Text::checked(json));
        let read = read_raw(r#"{"a": [ 1 ]}"#).unwrap();
        assert_eq!(read.value["a"].get(), "[ 1 ]");
        assert!(read_raw(r#"{"a":1}"#).is_none());
    }
}
