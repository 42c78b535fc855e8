use std::borrow::Cow;

use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

use super::{
    specials::{Specials, next_special},
    strings::read_string,
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

    /// The same for a string, of which is known whether something in it is escaped.
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
        Members(Walk::into(self.text, b'{'))
    }

    /// The items of an array. Anything else has none.
    pub(crate) fn items(self) -> Items<'a> {
        Items(Walk::into(self.text, b'['))
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

/// The members of an object.
pub(crate) struct Members<'a>(Option<Walk<'a>>);

impl<'a> Members<'a> {
    /// The next key, whose value is taken next.
    pub(crate) fn key(&mut self) -> Option<Text<'a>> {
        self.0.as_mut()?.value()
    }

    /// Whether the value that is next is a string.
    pub(crate) fn is_string(&mut self) -> bool {
        self.0.as_mut().is_some_and(Walk::is_string)
    }

    /// The value of the key that was taken.
    pub(crate) fn value(&mut self) -> Option<Text<'a>> {
        self.0.as_mut()?.value()
    }

    /// The same, where it is a string: it is read while it is walked over.
    pub(crate) fn string(&mut self) -> Option<Cow<'a, str>> {
        self.0.as_mut()?.string()
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

/// The items of an array.
pub(crate) struct Items<'a>(Option<Walk<'a>>);

impl<'a> Iterator for Items<'a> {
    type Item = Text<'a>;

    fn next(&mut self) -> Option<Text<'a>> {
        self.0.as_mut()?.value()
    }
}

/// A place in a text that has been checked.
struct Walk<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Walk<'a> {
    /// Behind the bracket that `text` begins with, where it is this one.
    fn into(text: &'a str, bracket: u8) -> Option<Self> {
        (text.as_bytes().first() == Some(&bracket)).then_some(Self { text, at: 1 })
    }

    /// Takes the next value, a key being one, whatever stands before it. `None` at the end of what is open.
    fn value(&mut self) -> Option<Text<'a>> {
        let start = self.next()?;
        let bytes = self.text.as_bytes();
        let mut plain = false;
        self.at = match bytes.get(start)? {
            b'"' => {
                let (end, unescaped) = string_end(bytes, start)?;
                plain = unescaped;
                end
            }
            b'{' | b'[' => nested_end(bytes, start)?,
            _ => scalar_end(bytes, start),
        };
        let text = self.text.get(start..self.at)?;
        Some(Text { text, plain })
    }

    fn is_string(&mut self) -> bool {
        let start = self.next();
        start.and_then(|start| self.text.as_bytes().get(start)) == Some(&b'"')
    }

    /// Takes the next value, which is a string.
    fn string(&mut self) -> Option<Cow<'a, str>> {
        let start = self.next()? + 1;
        let (string, length) = read_string(self.text.get(start..)?)?;
        self.at = start + length + 1;
        Some(string)
    }

    /// Where the next value begins.
    fn next(&mut self) -> Option<usize> {
        loop {
            match self.text.as_bytes().get(self.at)? {
                b' ' | b'\n' | b'\r' | b'\t' | b',' | b':' => self.at += 1,
                b'}' | b']' => return None,
                _ => return Some(self.at),
            }
        }
    }
}

/// Behind the string that begins at `start`, and whether nothing in it is escaped.
fn string_end(bytes: &[u8], start: usize) -> Option<(usize, bool)> {
    // Control characters do not stand in strings that were checked.
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

/// Behind the object or array that begins at `start`: where as many brackets are closed as were opened.
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

/// Behind the number or word that begins at `start`.
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
