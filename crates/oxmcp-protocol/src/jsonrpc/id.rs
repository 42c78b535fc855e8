//! JSON-RPC request ids.

use std::{fmt, marker::PhantomData};

use oxmcp_json::{Text, write_string};
use serde::{
    Deserialize, Deserializer, Serialize,
    de::{self, Visitor},
};
use serde_json::Value;

use crate::values::json::whole;

/// The id of a JSON-RPC request: a string or an integer, never null.
///
/// ```
/// use oxmcp_protocol::RequestId;
///
/// assert_eq!(RequestId::from(7).to_string(), "7");
/// assert_eq!(RequestId::from("a-7").to_string(), "a-7");
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(untagged)]
#[non_exhaustive]
pub enum RequestId {
    /// An integer.
    Number(i64),
    /// A string.
    String(Box<str>),
}

impl RequestId {
    /// Reads an id. `None` if the value is neither a string nor an integer.
    #[doc(hidden)]
    pub fn from_text(text: Text<'_>) -> Option<Self> {
        match text.as_str() {
            Some(string) => Some(Self::String(string.into())),
            None => number(text.get()).map(Self::Number),
        }
    }

    /// Converts a value to an id. `None` if it is neither a string nor an integer.
    pub(crate) fn of(value: &Value) -> Option<Self> {
        match value {
            Value::String(text) => Some(Self::String(text.as_str().into())),
            other => whole_number(other).map(Self::Number),
        }
    }

    /// Returns the same ID in its other form: a number as text, or the number that a text spells. Some peers return IDs so.
    #[doc(hidden)]
    #[must_use]
    pub fn respelled(&self) -> Option<Self> {
        match self {
            Self::Number(number) => Some(Self::String(number.to_string().into())),
            Self::String(text) => number(text.trim()).map(Self::Number),
        }
    }

    /// Returns the number of one of our own requests, all of whose ids are numbers: the id itself, or the number that it spells.
    #[doc(hidden)]
    #[must_use]
    pub fn own_number(&self) -> Option<i64> {
        match self {
            Self::Number(number) => Some(*number),
            Self::String(text) => number(text.trim()),
        }
    }

    /// Returns the number, if the id is one.
    #[must_use]
    pub fn as_number(&self) -> Option<i64> {
        match self {
            Self::Number(number) => Some(*number),
            Self::String(_) => None,
        }
    }

    /// Returns the string, if the id is one.
    #[must_use]
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Self::Number(_) => None,
            Self::String(text) => Some(text),
        }
    }

    /// Appends the id as JSON.
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        match self {
            Self::Number(number) => {
                out.extend_from_slice(itoa::Buffer::new().format(*number).as_bytes());
            }
            Self::String(text) => write_string(out, text),
        }
    }
}

/// Reads an integer, which may be written as a floating-point number: `3.0` is 3.
pub(crate) fn number(text: &str) -> Option<i64> {
    text.parse().ok().or_else(|| whole(text.parse().ok()?))
}

/// The integer that a JSON number is.
pub(crate) fn whole_number(value: &Value) -> Option<i64> {
    value.as_i64().or_else(|| whole(value.as_f64()?))
}

/// Reads a string or an integer. `name` says what the value is, for errors.
pub(crate) fn string_or_integer<'de, T, D>(
    name: &'static str,
    deserializer: D,
) -> Result<T, D::Error>
where
    T: From<i64> + for<'a> From<&'a str>,
    D: Deserializer<'de>,
{
    struct StringOrInteger<T>(&'static str, PhantomData<T>);

    impl<T: From<i64> + for<'a> From<&'a str>> Visitor<'_> for StringOrInteger<T> {
        type Value = T;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            write!(f, "{}, which is a string or an integer", self.0)
        }

        fn visit_i64<E>(self, number: i64) -> Result<T, E> {
            Ok(number.into())
        }

        fn visit_u64<E: de::Error>(self, number: u64) -> Result<T, E> {
            i64::try_from(number).map(T::from).map_err(|_| {
                E::custom(format_args!(
                    "{} must fit into a signed 64-bit integer",
                    self.0
                ))
            })
        }

        fn visit_f64<E: de::Error>(self, number: f64) -> Result<T, E> {
            whole(number)
                .map(T::from)
                .ok_or_else(|| E::invalid_type(de::Unexpected::Float(number), &self))
        }

        fn visit_str<E>(self, text: &str) -> Result<T, E> {
            Ok(text.into())
        }
    }

    deserializer.deserialize_any(StringOrInteger(name, PhantomData))
}

impl<'de> Deserialize<'de> for RequestId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        string_or_integer("a request ID", deserializer)
    }
}

impl From<i64> for RequestId {
    fn from(number: i64) -> Self {
        Self::Number(number)
    }
}

impl From<&str> for RequestId {
    fn from(text: &str) -> Self {
        Self::String(text.into())
    }
}

impl From<String> for RequestId {
    fn from(text: String) -> Self {
        Self::String(text.into_boxed_str())
    }
}

impl fmt::Display for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => number.fmt(f),
            Self::String(text) => text.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_ids_are_found_in_each_spelling() {
        for (json, own) in [
            ("3", Some(3)),
            ("3.0", Some(3)),
            ("3e0", Some(3)),
            (r#""3""#, Some(3)),
            (r#"" 3 ""#, Some(3)),
            (r#""3.0""#, Some(3)),
            (r#""-3""#, Some(-3)),
            (r#""9223372036854775807""#, Some(i64::MAX)),
            (r#""a3""#, None),
            (r#""3.5""#, None),
            (r#""""#, None),
            (r#""NaN""#, None),
            (r#""1e400""#, None),
        ] {
            let read = RequestId::from_text(Text::checked(json)).unwrap();
            assert_eq!(read.own_number(), own, "{json}");
            let decoded: RequestId = serde_json::from_str(json).unwrap();
            assert_eq!(decoded, read, "{json}");
        }
        for json in ["3.5", "1e30", "null", "true", "[]", "{}"] {
            assert_eq!(RequestId::from_text(Text::checked(json)), None, "{json}");
            assert!(serde_json::from_str::<RequestId>(json).is_err(), "{json}");
        }
    }

    #[test]
    fn numeric_and_text_ids_are_respelled() {
        let (number, text) = (RequestId::from(3), RequestId::from("3"));
        assert_eq!(number.respelled(), Some(text.clone()));
        assert_eq!(text.respelled(), Some(number));
        assert_eq!(RequestId::from("a").respelled(), None);
    }
}
