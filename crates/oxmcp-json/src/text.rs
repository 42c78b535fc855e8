//! JSON values as borrowed text, and iterators over their members and items.

use std::borrow::Cow;

use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

use crate::strings::{Specials, next_special, read_string};

/// The white space characters of JSON.
pub const SPACE: [char; 4] = [' ', '\n', '\r', '\t'];

/// The text of one JSON value that was checked, so that no reader has to check it again.
///
/// It has the same role as `&RawValue`, but a `RawValue` cannot be created without parsing the text once more.
#[derive(Clone, Copy, Debug)]
pub struct Text<'a> {
    text: &'a str,
    /// Whether the value is known to be a string without escapes.
    plain: bool,
}

impl<'a> Text<'a> {
    /// An object without members.
    pub const EMPTY: Self = Self {
        text: "{}",
        plain: false,
    };

    /// Wraps a text that must be one JSON value without white space around it. Any other text leads to wrong results
    /// later, but never to a panic.
    #[must_use]
    pub fn checked(text: &'a str) -> Self {
        Self { text, plain: false }
    }

    /// Wraps a checked text like [`checked`](Self::checked); `plain` says whether it is known to be a string without
    /// escapes.
    #[inline]
    #[must_use]
    pub fn string(text: &'a str, plain: bool) -> Self {
        Self { text, plain }
    }

    /// Returns the JSON text of the value.
    #[must_use]
    pub fn get(self) -> &'a str {
        self.text
    }

    /// Returns whether the value is a string.
    #[must_use]
    pub fn is_string(self) -> bool {
        self.text.starts_with('"')
    }

    /// Returns whether the value is `null`.
    #[must_use]
    pub fn is_null(self) -> bool {
        self.text == "null"
    }

    /// Returns whether the value is an object.
    #[must_use]
    pub fn is_object(self) -> bool {
        self.text.starts_with('{')
    }

    /// Returns the decoded string, borrowed if it has no escapes. `None` if the value is not a string, or has a lone surrogate.
    #[inline]
    #[must_use]
    pub fn as_str(self) -> Option<Cow<'a, str>> {
        match self.as_plain() {
            Some(plain) => Some(Cow::Borrowed(plain)),
            None => self.read_string(),
        }
    }

    /// Returns the string, if the value is known to be one without escapes.
    #[inline]
    #[must_use]
    pub fn as_plain(self) -> Option<&'a str> {
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

    /// Returns whether the value is the string `text`.
    #[must_use]
    pub fn is_str(self, text: &str) -> bool {
        self.as_str().as_deref() == Some(text)
    }

    /// Deserializes the value.
    ///
    /// # Errors
    /// If the value does not fit the type.
    pub fn parse<T: DeserializeOwned>(self) -> serde_json::Result<T> {
        serde_json::from_str(self.text)
    }

    /// Returns an owned copy of the value.
    #[must_use]
    #[expect(
        clippy::missing_panics_doc,
        reason = "it cannot happen, as the message says"
    )]
    pub fn to_raw(self) -> Box<RawValue> {
        RawValue::from_string(self.text.to_owned()).expect("the text has been checked")
    }

    /// Returns the members of an object, as keys and values. Values of other types have none.
    #[must_use]
    pub fn members(self) -> Members<'a> {
        Members::of(self.text)
    }

    /// Returns the items of an array. Values of other types have none.
    #[must_use]
    pub fn items(self) -> Items<'a> {
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

/// The maximum number of digits of integers that are read; so many digits fit into an `i64`.
const MAX_DIGITS: usize = 18;

/// Iterator over the members of an object, in order, as keys and values.
#[derive(Debug)]
pub struct Members<'a>(Option<Walk<'a>>);

impl<'a> Members<'a> {
    fn of(text: &'a str) -> Self {
        Self(Walk::into(text, b'{'))
    }

    /// Returns the next key. Its value must be read next, by [`value`](Self::value).
    pub fn key(&mut self) -> Option<Text<'a>> {
        self.0.as_mut()?.value()
    }

    /// Returns the value of the key that was read last.
    pub fn value(&mut self) -> Option<Text<'a>> {
        self.0.as_mut()?.value()
    }
}

impl<'a> Iterator for Members<'a> {
    type Item = (Text<'a>, Text<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        let walk = self.0.as_mut()?;
        let key = walk.value()?;
        let value = walk.value()?;
        Some((key, value))
    }
}

/// Iterator over the items of an array.
#[derive(Debug)]
pub struct Items<'a>(Option<Walk<'a>>);

impl<'a> Items<'a> {
    fn of(text: &'a str) -> Self {
        Self(Walk::into(text, b'['))
    }
}

impl<'a> Iterator for Items<'a> {
    type Item = Text<'a>;

    fn next(&mut self) -> Option<Text<'a>> {
        self.0.as_mut()?.value()
    }
}

/// A position in a JSON text that was checked. Entering nested values, instead of taking them whole, passes over each
/// byte only once at any depth.
#[derive(Debug)]
pub struct Walk<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Walk<'a> {
    /// Creates a walk that begins before the value.
    #[must_use]
    pub fn new(text: Text<'a>) -> Self {
        Self {
            text: text.get(),
            at: 0,
        }
    }

    /// A walk that begins inside the object or array `text`, if its first byte is `bracket`.
    fn into(text: &'a str, bracket: u8) -> Option<Self> {
        (text.as_bytes().first() == Some(&bracket)).then_some(Self { text, at: 1 })
    }

    /// Returns the first byte of the next value or key; separators before it are skipped. `None` at the end of the open object
    /// or array.
    #[inline]
    pub fn peek(&mut self) -> Option<u8> {
        loop {
            match *self.text.as_bytes().get(self.at)? {
                b' ' | b'\n' | b'\r' | b'\t' | b',' | b':' => self.at += 1,
                b'}' | b']' => return None,
                byte => return Some(byte),
            }
        }
    }

    /// Enters the object or array that [`peek`](Self::peek) has seen.
    #[inline]
    pub fn enter(&mut self) {
        self.at += 1;
    }

    /// Leaves the open object or array. The walk must be at its end.
    #[inline]
    pub fn close(&mut self) {
        self.at += 1;
    }

    /// Returns the position of the walk, in bytes. After [`peek`](Self::peek), the next value begins there.
    #[inline]
    #[must_use]
    pub fn at(&self) -> usize {
        self.at
    }

    /// Returns the value that began at `start` and ends at the position of the walk.
    #[inline]
    #[must_use]
    pub fn since(&self, start: usize) -> Option<Text<'a>> {
        self.text.get(start..self.at).map(Text::checked)
    }

    /// Returns the next value or key. `None` at the end of the open object or array.
    #[inline]
    pub fn value(&mut self) -> Option<Text<'a>> {
        let first = self.peek()?;
        let (bytes, start) = (self.text.as_bytes(), self.at);
        let (end, plain) = match first {
            b'"' => string_end(bytes, start)?,
            b'{' | b'[' => (nested_end(bytes, start)?, false),
            _ => (scalar_end(bytes, start), false),
        };
        self.at = end;
        Some(Text::string(self.text.get(start..end)?, plain))
    }

    /// Returns the next value if it is a string.
    pub fn string(&mut self) -> Option<Cow<'a, str>> {
        self.peek().filter(|first| *first == b'"')?;
        let start = self.at + 1;
        let (string, length) = read_string(self.text.get(start..)?)?;
        self.at = start + length + 1;
        Some(string)
    }

    /// Returns the next value if it is an integer of at most 18 digits that all readers read alike, unlike `-0`. The integer
    /// is read in the same pass that skips it.
    #[inline]
    pub fn integer(&mut self) -> Option<i64> {
        let first = self.peek()?;
        let start = self.at + usize::from(first == b'-');
        let digits = self.text.as_bytes().get(start..)?;
        let (mut integer, mut length) = (0, 0);
        for byte in digits {
            match byte {
                b'0'..=b'9' if length == MAX_DIGITS => return None,
                b'0'..=b'9' => integer = integer * 10 + i64::from(byte - b'0'),
                b'.' | b'e' | b'E' => return None,
                _ => break,
            }
            length += 1;
        }
        if length == 0 || (first == b'-' && integer == 0) {
            return None;
        }
        self.at = start + length;
        Some(if first == b'-' { -integer } else { integer })
    }
}

/// The position after the string that begins at `start`, and whether the string has no escapes.
fn string_end(bytes: &[u8], start: usize) -> Option<(usize, bool)> {
    // Strings that were checked contain no control characters.
    let mut at = next_special(bytes, start + 1)?;
    if bytes.get(at)? == &b'"' {
        return Some((at + 1, true));
    }
    let mut specials = Specials::new(bytes, at);
    loop {
        at = specials.next()?;
        if bytes.get(at)? == &b'"' {
            return Some((at + 1, false));
        }
        specials.pass(at + 2);
    }
}

/// The position after the object or array that begins at `start`, found by counting brackets.
fn nested_end(bytes: &[u8], start: usize) -> Option<usize> {
    let (mut at, mut depth) = (start, 0_usize);
    loop {
        match bytes.get(at)? {
            b'"' => {
                at = string_end(bytes, at)?.0;
                continue;
            }
            b'{' | b'[' => depth += 1,
            b'}' | b']' if depth == 1 => return Some(at + 1),
            b'}' | b']' => depth -= 1,
            _ => {}
        }
        at += 1;
    }
}

/// The position after the number or literal that begins at `start`.
fn scalar_end(bytes: &[u8], start: usize) -> usize {
    let rest = bytes.get(start..).unwrap_or_default();
    let ends = |byte: &u8| {
        matches!(
            byte,
            b',' | b'}' | b']' | b' ' | b'\n' | b'\r' | b'\t' | b':'
        )
    };
    rest.iter()
        .position(ends)
        .map_or(bytes.len(), |offset| start + offset)
}

/// Returns a name escaped as a reference token of a [JSON pointer](https://www.rfc-editor.org/rfc/rfc6901#section-3).
#[must_use]
pub fn pointer_token(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
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
        fn walking_finds_the_same_values_as_parsing(value in json(), pretty in any::<bool>()) {
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
    fn raw_value_is_borrowed_text() {
        let raw = to_raw_value(&"a\n").unwrap();
        assert!(Text::from(&*raw).is_str("a\n"));
        assert!(Text::EMPTY.is_object());
        assert_eq!(Text::EMPTY.to_raw().get(), "{}");
    }

    #[test]
    fn only_true_integers_are_read_as_integers() {
        for (value, integer) in [
            ("0", Some(0)),
            ("-7", Some(-7)),
            ("999999999999999999", Some(999_999_999_999_999_999)),
            ("-999999999999999999", Some(-999_999_999_999_999_999)),
            ("1000000000000000000", None),
            ("-0", None),
            ("1.0", None),
            ("1e3", None),
            ("1E3", None),
            ("\"1\"", None),
            ("[1]", None),
            ("null", None),
        ] {
            for (before, after) in [("", ""), (" ", " "), ("", ",\"b\":2")] {
                let object = format!("{{\"a\":{before}{value}{after}}}");
                let mut walk = Walk::new(Text::checked(&object));
                assert_eq!(walk.peek(), Some(b'{'));
                walk.enter();
                assert!(walk.value().is_some_and(|key| key.is_str("a")));
                assert_eq!(walk.peek(), value.bytes().next());
                let start = walk.at();
                let read = walk.integer();
                assert_eq!(read, integer, "{object}");
                let text = match read {
                    Some(_) => walk.since(start),
                    None => walk.value(),
                };
                assert_eq!(text.map(Text::get), Some(value), "{object}");
                assert_eq!(walk.peek().is_some(), after.len() > 1, "{object}");
            }
        }
    }
}
