//! Serializer that validates: a value is checked against its schema while serde_json writes it.
//!
//! It checks the output and trusts no type: a handwritten `Serialize` that does not match a derived schema is detected.

use std::cell::Cell;

use serde::{
    Serialize, Serializer,
    ser::{SerializeMap, SerializeSeq, SerializeStruct, SerializeTuple, SerializeTupleStruct},
};
use serde_json::{
    Value, to_value,
    value::{RawValue, to_raw_value},
};

use crate::fast::{
    accept::{
        Properties, accepts_boolean, accepts_fraction, accepts_integer, accepts_null,
        accepts_string,
    },
    check::{ANYTHING, Check, Typed, kind},
};

/// A serialized value.
#[expect(clippy::exhaustive_structs, reason = "only the SDK may use it")]
#[derive(Debug)]
pub struct Written {
    /// The value as JSON.
    pub json: Box<RawValue>,
    /// Whether the value is known to be valid. If not, the text must still be validated.
    pub is_valid: bool,
}

/// Serializes a value as serde_json does.
///
/// # Errors
/// The errors of serde_json.
pub(crate) fn write<T: Serialize + ?Sized>(
    check: &Check,
    value: &T,
) -> serde_json::Result<Written> {
    let is_valid = Cell::new(true);
    let place = WritePosition {
        check,
        is_valid: &is_valid,
    };
    let json = to_raw_value(&place.of(value))?;
    Ok(Written {
        json,
        is_valid: is_valid.get(),
    })
}

/// A position in the output.
#[derive(Clone, Copy)]
struct WritePosition<'c> {
    check: &'c Check,
    /// Whether everything was accepted so far.
    is_valid: &'c Cell<bool>,
}

impl<'c> WritePosition<'c> {
    fn of<T: ?Sized>(self, value: &T) -> Checked<'_, 'c, T> {
        Checked { value, place: self }
    }

    /// Requires that the check accepts the value that is written here.
    #[inline]
    fn expect(self, accepts: impl FnOnce(&Check) -> bool) {
        if !matches!(self.check, Check::Anything) && !accepts(self.check) {
            self.is_valid.set(false);
        }
    }

    /// Leaves the decision to the validation of the text.
    fn leave(self) {
        self.expect(|_| false);
    }

    /// The assertions for the object or array that is written here. `None` if there are none, or if this serializer
    /// cannot check them.
    fn typed(self, kind: u8) -> Option<&'c Typed> {
        let typed = self.check.typed(kind);
        let typed = typed.filter(|typed| typed.values.is_none());
        if typed.is_none() {
            self.leave();
        }
        typed
    }

    fn properties(self) -> Option<Properties<'c>> {
        self.typed(kind::OBJECT).map(Properties::of)
    }
}

/// A value and its position in the output.
struct Checked<'a, 'c, T: ?Sized> {
    value: &'a T,
    place: WritePosition<'c>,
}

impl<T: Serialize + ?Sized> Serialize for Checked<'_, '_, T> {
    #[inline]
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let place = self.place;
        self.value.serialize(Checking { serializer, place })
    }
}

/// A serializer that checks the values that it passes on.
struct Checking<'c, S> {
    serializer: S,
    place: WritePosition<'c>,
}

macro_rules! integers {
    ($($method:ident($integer:ty))+) => {$(
        #[inline]
        fn $method(self, value: $integer) -> Result<S::Ok, S::Error> {
            let accepts = |check: &Check| i64::try_from(value).is_ok_and(|it| accepts_integer(check, it));
            self.place.expect(accepts);
            self.serializer.$method(value)
        }
    )+};
}

impl<'c, S: Serializer> Serializer for Checking<'c, S> {
    type Ok = S::Ok;
    type Error = S::Error;
    type SerializeSeq = Items<'c, S::SerializeSeq>;
    type SerializeTuple = Items<'c, S::SerializeTuple>;
    type SerializeTupleStruct = Items<'c, S::SerializeTupleStruct>;
    type SerializeTupleVariant = S::SerializeTupleVariant;
    type SerializeMap = Members<'c, S::SerializeMap>;
    type SerializeStruct = Members<'c, S::SerializeStruct>;
    type SerializeStructVariant = S::SerializeStructVariant;

    integers! {
        serialize_i8(i8)
        serialize_i16(i16)
        serialize_i32(i32)
        serialize_i64(i64)
        serialize_i128(i128)
        serialize_u8(u8)
        serialize_u16(u16)
        serialize_u32(u32)
        serialize_u64(u64)
        serialize_u128(u128)
    }

    #[inline]
    fn serialize_bool(self, value: bool) -> Result<S::Ok, S::Error> {
        self.place.expect(|check| accepts_boolean(check, value));
        self.serializer.serialize_bool(value)
    }

    fn serialize_f32(self, value: f32) -> Result<S::Ok, S::Error> {
        // The text of an `f32` is shortened, and read back as a number other than the value, which could be on the
        // other side of a limit.
        let has_limits = |typed: &Typed| typed.numbers.is_some();
        self.place.expect(|check| {
            !check.typed(kind::FRACTION).is_some_and(has_limits)
                && accepts_float(check, value.into())
        });
        self.serializer.serialize_f32(value)
    }

    #[inline]
    fn serialize_f64(self, value: f64) -> Result<S::Ok, S::Error> {
        self.place.expect(|check| accepts_float(check, value));
        self.serializer.serialize_f64(value)
    }

    fn serialize_char(self, value: char) -> Result<S::Ok, S::Error> {
        self.serialize_str(value.encode_utf8(&mut [0; 4]))
    }

    #[inline]
    fn serialize_str(self, value: &str) -> Result<S::Ok, S::Error> {
        self.place.expect(|check| accepts_string(check, value));
        self.serializer.serialize_str(value)
    }

    fn serialize_bytes(self, value: &[u8]) -> Result<S::Ok, S::Error> {
        self.place.leave();
        self.serializer.serialize_bytes(value)
    }

    fn serialize_none(self) -> Result<S::Ok, S::Error> {
        self.place.expect(accepts_null);
        self.serializer.serialize_none()
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<S::Ok, S::Error> {
        self.serializer.serialize_some(&self.place.of(value))
    }

    fn serialize_unit(self) -> Result<S::Ok, S::Error> {
        self.place.expect(accepts_null);
        self.serializer.serialize_unit()
    }

    fn serialize_unit_struct(self, name: &'static str) -> Result<S::Ok, S::Error> {
        self.place.expect(accepts_null);
        self.serializer.serialize_unit_struct(name)
    }

    fn serialize_unit_variant(
        self,
        name: &'static str,
        index: u32,
        variant: &'static str,
    ) -> Result<S::Ok, S::Error> {
        self.place.expect(|check| accepts_string(check, variant));
        self.serializer.serialize_unit_variant(name, index, variant)
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        name: &'static str,
        value: &T,
    ) -> Result<S::Ok, S::Error> {
        let value = self.place.of(value);
        self.serializer.serialize_newtype_struct(name, &value)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        name: &'static str,
        index: u32,
        variant: &'static str,
        value: &T,
    ) -> Result<S::Ok, S::Error> {
        self.place.leave();
        self.serializer
            .serialize_newtype_variant(name, index, variant, value)
    }

    fn serialize_seq(self, len: Option<usize>) -> Result<Self::SerializeSeq, S::Error> {
        Ok(Items::new(self.serializer.serialize_seq(len)?, self.place))
    }

    fn serialize_tuple(self, len: usize) -> Result<Self::SerializeTuple, S::Error> {
        Ok(Items::new(
            self.serializer.serialize_tuple(len)?,
            self.place,
        ))
    }

    fn serialize_tuple_struct(
        self,
        name: &'static str,
        len: usize,
    ) -> Result<Self::SerializeTupleStruct, S::Error> {
        let inner = self.serializer.serialize_tuple_struct(name, len)?;
        Ok(Items::new(inner, self.place))
    }

    fn serialize_tuple_variant(
        self,
        name: &'static str,
        index: u32,
        variant: &'static str,
        len: usize,
    ) -> Result<Self::SerializeTupleVariant, S::Error> {
        self.place.leave();
        self.serializer
            .serialize_tuple_variant(name, index, variant, len)
    }

    fn serialize_map(self, len: Option<usize>) -> Result<Self::SerializeMap, S::Error> {
        let inner = self.serializer.serialize_map(len)?;
        Ok(Members::new(inner, self.place, self.place.properties()))
    }

    #[inline]
    fn serialize_struct(
        self,
        name: &'static str,
        len: usize,
    ) -> Result<Self::SerializeStruct, S::Error> {
        let inner = self.serializer.serialize_struct(name, len)?;
        // No Rust type has such a name: it is a `RawValue`, whose text can be any JSON.
        let properties = if name.starts_with('$') {
            self.place.leave();
            None
        } else {
            self.place.properties()
        };
        Ok(Members::new(inner, self.place, properties))
    }

    fn serialize_struct_variant(
        self,
        name: &'static str,
        index: u32,
        variant: &'static str,
        len: usize,
    ) -> Result<Self::SerializeStructVariant, S::Error> {
        self.place.leave();
        self.serializer
            .serialize_struct_variant(name, index, variant, len)
    }

    fn is_human_readable(&self) -> bool {
        self.serializer.is_human_readable()
    }
}

/// Numbers that are not finite are written as null.
fn accepts_float(check: &Check, value: f64) -> bool {
    if value.is_finite() {
        accepts_fraction(check, value)
    } else {
        accepts_null(check)
    }
}

/// An array that is being written.
struct Items<'c, A> {
    inner: A,
    place: WritePosition<'c>,
    typed: Option<&'c Typed>,
    count: usize,
}

impl<'c, A> Items<'c, A> {
    fn new(inner: A, place: WritePosition<'c>) -> Self {
        Self {
            inner,
            place,
            typed: place.typed(kind::ARRAY),
            count: 0,
        }
    }

    fn next(&mut self) -> WritePosition<'c> {
        self.count += 1;
        WritePosition {
            check: self.typed.map_or(&ANYTHING, |typed| &typed.items),
            ..self.place
        }
    }

    fn finish(self) -> A {
        let Self { typed, count, .. } = self;
        if !typed.is_none_or(|typed| typed.accepts_count(count)) {
            self.place.leave();
        }
        self.inner
    }
}

macro_rules! items {
    ($($trait:ident::$method:ident)+) => {$(
        impl<A: $trait> $trait for Items<'_, A> {
            type Ok = A::Ok;
            type Error = A::Error;

            fn $method<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), A::Error> {
                let place = self.next();
                self.inner.$method(&place.of(value))
            }

            fn end(self) -> Result<A::Ok, A::Error> {
                self.finish().end()
            }
        }
    )+};
}

items! {
    SerializeSeq::serialize_element
    SerializeTuple::serialize_element
    SerializeTupleStruct::serialize_field
}

/// An object that is being written.
struct Members<'c, O> {
    inner: O,
    place: WritePosition<'c>,
    properties: Option<Properties<'c>>,
    /// The check for the value whose key was just written.
    value: &'c Check,
}

impl<'c, O> Members<'c, O> {
    fn new(inner: O, place: WritePosition<'c>, properties: Option<Properties<'c>>) -> Self {
        Self {
            inner,
            place,
            properties,
            value: &ANYTHING,
        }
    }

    #[inline]
    fn next(&mut self, name: &str) -> &'c Check {
        let Some(properties) = &mut self.properties else {
            return &ANYTHING;
        };
        properties.meet(name).unwrap_or_else(|| {
            self.place.leave();
            &ANYTHING
        })
    }

    fn finish(self) -> O {
        let properties = self.properties;
        if !properties.is_none_or(|it| it.are_complete()) {
            self.place.leave();
        }
        self.inner
    }
}

impl<O: SerializeStruct> SerializeStruct for Members<'_, O> {
    type Ok = O::Ok;
    type Error = O::Error;

    #[inline]
    fn serialize_field<T: Serialize + ?Sized>(
        &mut self,
        key: &'static str,
        value: &T,
    ) -> Result<(), O::Error> {
        let check = self.next(key);
        let place = WritePosition {
            check,
            ..self.place
        };
        self.inner.serialize_field(key, &place.of(value))
    }

    fn skip_field(&mut self, key: &'static str) -> Result<(), O::Error> {
        self.inner.skip_field(key)
    }

    fn end(self) -> Result<O::Ok, O::Error> {
        self.finish().end()
    }
}

impl<O: SerializeMap> SerializeMap for Members<'_, O> {
    type Ok = O::Ok;
    type Error = O::Error;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), O::Error> {
        self.value = match self.properties.is_some().then(|| to_value(key)) {
            None => &ANYTHING,
            Some(Ok(Value::String(name))) => self.next(&name),
            // Keys that are not strings are written as strings.
            Some(_) => {
                self.place.leave();
                &ANYTHING
            }
        };
        self.inner.serialize_key(key)
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), O::Error> {
        let place = WritePosition {
            check: self.value,
            ..self.place
        };
        self.inner.serialize_value(&place.of(value))
    }

    fn end(self) -> Result<O::Ok, O::Error> {
        self.finish().end()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::schema::Schema;

    // The path that derived code uses.
    use crate as oxmcp_schema;

    #[derive(Clone, Copy, Serialize, oxmcp_schema::JsonSchema)]
    #[serde(rename_all = "snake_case")]
    enum Kind {
        /// Documented.
        First,
        Second,
    }

    #[derive(Serialize, oxmcp_schema::JsonSchema)]
    struct Wrapper(String);

    #[derive(Serialize, oxmcp_schema::JsonSchema)]
    struct Part {
        name: String,
        #[schemars(range(min = 1, max = 9))]
        count: u8,
    }

    /// A field for most ways in which serde writes a value.
    #[derive(Serialize, oxmcp_schema::JsonSchema)]
    struct Everything {
        flag: bool,
        small: i8,
        large: u64,
        single: f32,
        #[schemars(range(min = 0.1, max = 1.7))]
        double: f64,
        char: char,
        #[schemars(length(min = 1, max = 3))]
        text: String,
        unit: Kind,
        wrapper: Wrapper,
        none: Option<i32>,
        some: Option<Part>,
        parts: Vec<Part>,
        map: BTreeMap<String, Part>,
        any: Value,
        #[serde(skip_serializing_if = "Option::is_none")]
        skipped: Option<i32>,
        #[serde(rename = "r\"n")]
        renamed: u16,
        #[serde(flatten)]
        more: Flattened,
    }

    #[derive(Serialize, oxmcp_schema::JsonSchema)]
    struct Flattened {
        inner: u32,
    }

    fn part(count: u8) -> Part {
        let name = "ä\n".to_owned();
        Part { name, count }
    }

    fn everything() -> Everything {
        Everything {
            flag: true,
            small: -7,
            large: 7,
            single: 0.1,
            double: 1.5,
            char: 'ü',
            text: "äöü".to_owned(),
            unit: Kind::First,
            wrapper: Wrapper(String::new()),
            none: None,
            some: Some(part(1)),
            parts: vec![part(1), part(9)],
            map: BTreeMap::from([("a".to_owned(), part(3))]),
            any: json!([{"a": null}, 1e300]),
            skipped: None,
            renamed: 3,
            more: Flattened { inner: 5 },
        }
    }

    /// Writes the value, and compares the verdict with those of both validators.
    fn is_valid<T: Serialize + ?Sized>(schema: &Schema, value: &T) -> bool {
        let written = Schema::write(Some(schema), value).unwrap();
        assert_eq!(written.json.get(), serde_json::to_string(value).unwrap());
        let is_valid = schema.validate_by_full(&written.json).is_ok();
        assert!(is_valid || !written.is_valid, "{schema:?} {}", written.json);
        written.is_valid
    }

    #[test]
    fn common_outputs_are_proven_valid_while_written() {
        let schema = Schema::of_output::<Everything>();
        assert!(is_valid(&schema, &everything()));
        assert!(is_valid(&Schema::of_output::<Vec<Part>>(), &[part(2)]));
        assert!(is_valid(&Schema::of_output::<f64>(), &2.0));
        assert!(is_valid(
            &Schema::of_output::<Value>(),
            &vec![json!({"a": []})]
        ));
        assert!(is_valid(&Schema::of_output::<()>(), &()));
    }

    /// A change that breaks the schema of [`Everything`].
    type Break = fn(&mut Everything);

    #[test]
    fn each_violation_is_found() {
        let schema = Schema::of_output::<Everything>();
        let mut other = everything();
        other.unit = Kind::Second;
        assert!(is_valid(&schema, &other));
        let breaks: [Break; 8] = [
            |it| it.double = 1.8,
            |it| it.single = f32::NAN,
            |it| it.double = f64::INFINITY,
            |it| it.text.push('a'),
            |it| it.text.clear(),
            |it| it.some = Some(part(0)),
            |it| it.parts.push(part(10)),
            |it| it.map = BTreeMap::from([("b".to_owned(), part(11))]),
        ];
        for (index, change) in breaks.into_iter().enumerate() {
            let mut broken = everything();
            change(&mut broken);
            let json = to_raw_value(&broken).unwrap();
            assert!(schema.validate(&json).is_err(), "{index}");
            assert!(!is_valid(&schema, &broken), "{index}");
        }
    }

    /// Its schema is derived, and its output does not match.
    #[derive(oxmcp_schema::JsonSchema)]
    struct Liar {
        /// Never read.
        #[expect(dead_code, reason = "only the schema is made of it")]
        count: u32,
    }

    impl Serialize for Liar {
        fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            let mut object = serializer.serialize_struct("Liar", 1)?;
            object.serialize_field("count", "many")?;
            object.end()
        }
    }

    #[test]
    fn values_are_checked_whatever_their_type_declares() {
        let liar = Liar { count: 1 };
        assert!(!is_valid(&Schema::of_output::<Liar>(), &liar));
        assert!(!is_valid(&Schema::of_output::<Vec<Liar>>(), &[liar]));
        // A text that is written unchanged.
        let raw = RawValue::from_string(r#"{"name":1}"#.to_owned()).unwrap();
        assert!(!is_valid(&Schema::of_output::<Part>(), &raw));
        assert!(!is_valid(&Schema::of_output::<Vec<Part>>(), &[raw]));
    }

    #[test]
    fn undecided_values_are_not_called_valid() {
        #[derive(Serialize)]
        enum Variant {
            Newtype(u8),
            Tuple(u8, u8),
            Struct { a: u8 },
        }
        let schema = Schema::from_json(json!({
            "type": "object", "properties": {"Newtype": {"type": "null"}},
        }));
        let schema = schema.unwrap();
        assert!(!is_valid(&schema, &Variant::Newtype(1)));
        assert!(!is_valid(&schema, &Variant::Tuple(1, 2)));
        assert!(!is_valid(&schema, &Variant::Struct { a: 1 }));
        assert!(!is_valid(&schema, &BTreeMap::from([(1, 2)])));
        let twice = Schema::from_json(json!({"type": "object", "properties": {"a": {}}})).unwrap();
        assert!(!is_valid(&twice, &Twice));
        let bytes =
            Schema::from_json(json!({"type": "array", "items": {"type": "string"}})).unwrap();
        assert!(!is_valid(&bytes, &Bytes));
    }

    struct Twice;

    impl Serialize for Twice {
        fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            serializer.collect_map([("a", 1), ("a", 2)])
        }
    }

    struct Bytes;

    impl Serialize for Bytes {
        fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            serializer.serialize_bytes(b"ab")
        }
    }

    #[test]
    fn float_is_compared_with_limit_as_written() {
        let schema = json!({"type": "number", "exclusiveMinimum": 2_805_103.25});
        let schema = Schema::from_json(schema).unwrap();
        // The value is written as 2805103.2.
        assert!(!is_valid(&schema, &2_805_103.3_f32));
        assert!(is_valid(&schema, &2_805_103.3));
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn numbers_at_a_limit_equal_their_text(single: f32, double: f64, large: u64, limit in -2..2_i32) {
            let limit = f64::from(limit) / 10.0;
            for schema in [
                json!({"type": "number", "maximum": limit}),
                json!({"type": "number", "exclusiveMinimum": single}),
                json!({"type": "number", "minimum": single, "maximum": single}),
                json!({"type": "integer", "maximum": large}),
                json!({"type": "integer"}),
            ] {
                let Ok(schema) = Schema::from_json(schema) else { continue };
                is_valid(&schema, &single);
                is_valid(&schema, &double);
                is_valid(&schema, &large);
                is_valid(&schema, &i128::from(large));
            }
        }
    }
}
