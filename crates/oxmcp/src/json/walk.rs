//! Walking over the members and items of JSON that has been checked.

use std::borrow::Cow;

use super::{
    Text,
    specials::{Specials, next_special},
    strings::read_string,
};

/// Integers of so many digits fit into an `i64`.
const MAX_DIGITS: usize = 18;

/// The members of an object.
pub(crate) struct Members<'a>(Option<Walk<'a>>);

impl<'a> Members<'a> {
    pub(super) fn of(text: &'a str) -> Self {
        Self(Walk::into(text, b'{'))
    }

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

    /// The same, where it is an integer of few digits: it is read while it is walked over.
    #[inline]
    pub(crate) fn integer(&mut self) -> Option<(Text<'a>, i64)> {
        self.0.as_mut()?.integer()
    }

    /// The same, where it is a string.
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

impl<'a> Items<'a> {
    pub(super) fn of(text: &'a str) -> Self {
        Self(Walk::into(text, b'['))
    }
}

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
        let (end, plain) = match bytes.get(start)? {
            b'"' => string_end(bytes, start)?,
            b'{' | b'[' => (nested_end(bytes, start)?, false),
            _ => (scalar_end(bytes, start), false),
        };
        self.at = end;
        Some(Text::string(self.text.get(start..end)?, plain))
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

    /// Takes the next value where it is an integer that is nothing else for any reader, as `-0` is.
    #[inline]
    fn integer(&mut self) -> Option<(Text<'a>, i64)> {
        let start = self.next()?;
        let value = self.text.as_bytes().get(start..)?;
        let (sign, digits) = match value.split_first()? {
            (b'-', digits) => (-1, digits),
            _ => (1, value),
        };
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
        if length == 0 || (sign < 0 && integer == 0) {
            return None;
        }
        self.at = start + length + usize::from(sign < 0);
        let text = self.text.get(start..self.at)?;
        Some((Text::checked(text), sign * integer))
    }

    /// Where the next value begins.
    #[inline]
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
    use super::*;

    #[test]
    fn integers_are_read_where_they_are_nothing_else() {
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
                let mut members = Members::of(&object);
                assert!(members.key().is_some_and(|key| key.is_str("a")));
                let read = members.integer();
                assert_eq!(read.map(|(_, integer)| integer), integer, "{object}");
                let text = read.map(|(text, _)| text).or_else(|| members.value());
                assert_eq!(text.map(Text::get), Some(value), "{object}");
                assert_eq!(members.key().is_some(), after.len() > 1, "{object}");
            }
        }
    }
}
