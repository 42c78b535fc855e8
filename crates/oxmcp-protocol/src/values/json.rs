//! Raw JSON, and shared helpers for the (de)serialization of types.

use std::{fmt, ops::Deref, sync::Arc};

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{
    Map, Value,
    value::{RawValue, to_raw_value},
};

/// A JSON object whose members the protocol leaves open.
pub type JsonObject = Map<String, Value>;

/// A JSON text that is shared and never parsed again: cloning and serializing it cost next to nothing.
///
/// The protocol's types hold JSON Schemas in this form. Values are equal if their texts are equal.
///
/// ```
/// use oxmcp_protocol::RawJson;
///
/// let schema = RawJson::from(serde_json::json!({"type": "object"}));
/// assert_eq!(schema.get(), r#"{"type":"object"}"#);
/// ```
#[derive(Clone)]
pub struct RawJson(Arc<RawValue>);

impl From<&RawValue> for RawJson {
    fn from(raw: &RawValue) -> Self {
        Self(raw.to_owned().into())
    }
}

impl RawJson {
    /// Serializes `value`.
    ///
    /// # Errors
    /// If `value` cannot be serialized as JSON, for example a map whose keys are not strings.
    pub fn new(value: &impl Serialize) -> serde_json::Result<Self> {
        to_raw_value(value).map(Self::from)
    }
}

impl Deref for RawJson {
    type Target = RawValue;

    fn deref(&self) -> &RawValue {
        &self.0
    }
}

impl From<Box<RawValue>> for RawJson {
    fn from(raw: Box<RawValue>) -> Self {
        Self(Arc::from(raw))
    }
}

impl From<Value> for RawJson {
    fn from(value: Value) -> Self {
        to_raw_value(&value)
            .expect("a Value is always JSON: its keys are strings and its numbers finite")
            .into()
    }
}

impl PartialEq for RawJson {
    fn eq(&self, other: &Self) -> bool {
        self.get() == other.get()
    }
}

impl Eq for RawJson {}

impl fmt::Debug for RawJson {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.get())
    }
}

impl Serialize for RawJson {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        (*self.0).serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for RawJson {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Box::<RawValue>::deserialize(deserializer).map(Self::from)
    }
}

/// Whether `value` is false, for members that are left out if false.
#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "the signature that serde asks for"
)]
pub(crate) fn is_false(value: &bool) -> bool {
    !value
}

/// Reads a raw member in which `null` is a value, and not the same as an absent member.
pub(crate) fn present<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Box<RawValue>>, D::Error> {
    Box::<RawValue>::deserialize(deserializer).map(Some)
}

/// The bound below which an `f64` represents each integer, so that no neighbor has the same value.
pub(crate) const EXACT: i64 = 1 << 53;

/// The number as an integer, if it is whole and below [`EXACT`] in magnitude.
#[expect(
    clippy::cast_possible_truncation,
    reason = "below 2^53 a whole f64 is an i64"
)]
pub(crate) fn whole(value: f64) -> Option<i64> {
    let whole = value as i64;
    (whole as f64 == value && value.abs() < EXACT as f64).then_some(whole)
}

/// Appends a number as [`number`] serializes it.
pub(crate) fn write_number(out: &mut Vec<u8>, value: f64) {
    match whole(value) {
        Some(whole) => out.extend_from_slice(itoa::Buffer::new().format(whole).as_bytes()),
        None => serde_json::to_writer(out, &value).expect("every number is written somehow"),
    }
}

/// (De)serialization of numbers: whole numbers are written without a fraction.
pub(crate) mod number {
    use serde::{Deserialize, Deserializer, Serializer};

    #[expect(
        clippy::trivially_copy_pass_by_ref,
        reason = "the signature that serde asks for"
    )]
    pub(crate) fn serialize<S: Serializer>(value: &f64, serializer: S) -> Result<S::Ok, S::Error> {
        match super::whole(*value) {
            Some(whole) => serializer.serialize_i64(whole),
            None => serializer.serialize_f64(*value),
        }
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
        f64::deserialize(deserializer)
    }
}

/// (De)serialization of optional numbers in the same form.
pub(crate) mod optional_number {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    #[derive(Serialize, Deserialize)]
    struct Number(#[serde(with = "super::number")] f64);

    pub(crate) fn serialize<S: Serializer>(
        value: &Option<f64>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        value.map(Number).serialize(serializer)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<f64>, D::Error> {
        Ok(Option::<Number>::deserialize(deserializer)?.map(|Number(value)| value))
    }
}
