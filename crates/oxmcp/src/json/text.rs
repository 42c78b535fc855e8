use std::borrow::Cow;

use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

use super::{
    strings::read_string,
    walk::{Items, Members},
};

/// What JSON takes for white space.
pub(crate) const SPACE: [char; 4] = [' ', '\n', '\r', '\t'];

/// The text of one JSON value, which has been checked: walking over it needs no second look.
///
/// It is what `&RawValue` is, but a `RawValue` cannot be had without parsing the text once more.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Text<'a> {
    text: &'a str,
    /// Whether it is known to be a string in which nothing is escaped.
    plain: bool,
}

impl<'a> Text<'a> {
    /// An object without members.
    pub(crate) const EMPTY: Self = Self {
        text: "{}",
        plain: false,
    };

    /// `text` must be one JSON value without white space around it. Anything else gives wrong answers later, though never
    /// a panic.
    pub(crate) fn checked(text: &'a str) -> Self {
        Self { text, plain: false }
    }

    /// The same, where it is known whether it is a string in which nothing is escaped.
    #[inline]
    pub(crate) fn string(text: &'a str, plain: bool) -> Self {
        Self { text, plain }
    }

    pub(crate) fn get(self) -> &'a str {
        self.text
    }

    pub(crate) fn is_string(self) -> bool {
        self.text.starts_with('"')
    }

    pub(crate) fn is_null(self) -> bool {
        self.text == "null"
    }

    pub(crate) fn is_object(self) -> bool {
        self.text.starts_with('{')
    }

    /// The string that the value is. Borrowed where nothing in it is escaped. `None` where it is none, or has half a
    /// surrogate pair in it.
    #[inline]
    pub(crate) fn as_str(self) -> Option<Cow<'a, str>> {
        match self.as_plain() {
            Some(plain) => Some(Cow::Borrowed(plain)),
            None => self.read_string(),
        }
    }

    /// The string that the value is known to be, with nothing in it escaped.
    #[inline]
    pub(crate) fn as_plain(self) -> Option<&'a str> {
        if self.plain {
            self.text.get(1..self.text.len() - 1)
        } else {
            None
        }
    }

    fn read_string(self) -> Option<Cow<'a, str>> {
        let (string, _) = read_string(self.text.strip_prefix('"')?)?;
        Some(string)
    }

    /// Whether the value is this string.
    pub(crate) fn is_str(self, text: &str) -> bool {
        self.as_str().as_deref() == Some(text)
    }

    /// Reads the value into a type.
    pub(crate) fn parse<T: DeserializeOwned>(self) -> serde_json::Result<T> {
        serde_json::from_str(self.text)
    }

    /// A copy that others can hold.
    pub(crate) fn to_raw(self) -> Box<RawValue> {
        RawValue::from_string(self.text.to_owned()).expect("the text has been checked")
    }

    /// The members of an object: keys and values. Anything else has none.
    pub(crate) fn members(self) -> Members<'a> {
        Members::of(self.text)
    }

    /// The items of an array. Anything else has none.
    pub(crate) fn items(self) -> Items<'a> {
        Items::of(self.text)
    }
}

impl PartialEq for Text<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl<'a> From<&'a RawValue> for Text<'a> {
    fn from(raw: &'a RawValue) -> Self {
        Self::checked(raw.get().trim_matches(SPACE))
    }
}

#[cfg(test)]
mod tests {
    use proptest::{collection, prelude::*};
    use serde_json::{Value, value::to_raw_value};

    use super::*;

    fn json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            "[a-z\"\\\\{}\\[\\],: \n\u{e9}]{0,40}".prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 32, 4, |inner| {
            prop_oneof![
                collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                collection::hash_map("[a-z\"\\\\]{0,4}", inner, 0..4)
                    .prop_map(|map| Value::Object(map.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn walking_finds_what_parsing_finds(value in json(), pretty in any::<bool>()) {
            let text = if pretty {
                serde_json::to_string_pretty(&value).unwrap()
            } else {
                value.to_string()
            };
            let raw: Box<RawValue> = serde_json::from_str(&text).unwrap();
            let text = Text::from(&*raw);
            let members: Vec<(String, Value)> = text
                .members()
                .map(|(key, value)| (key.as_str().unwrap().into_owned(), value.parse().unwrap()))
                .collect();
            let expected: Vec<(String, Value)> =
                value.as_object().cloned().unwrap_or_default().into_iter().collect();
            prop_assert_eq!(members, expected);
            let items: Vec<Value> = text.items().map(|item| item.parse().unwrap()).collect();
            prop_assert_eq!(items, value.as_array().cloned().unwrap_or_default());
            let string = text.as_str();
            prop_assert_eq!(string.as_deref(), value.as_str());
        }
    }

    #[test]
    fn a_raw_value_is_text() {
        let raw = to_raw_value(&"a\n").unwrap();
        assert!(Text::from(&*raw).is_str("a\n"));
        assert!(Text::EMPTY.is_object());
        assert_eq!(Text::EMPTY.to_raw().get(), "{}");
    }
}
