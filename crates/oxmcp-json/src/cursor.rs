//! Cursor over unchecked JSON text: one pass checks it and hands out its values.

use std::{error::Error, fmt};

use crate::{
    strings::{Specials, next_special},
    text::Text,
};

/// The maximum nesting depth of objects and arrays, which is the one up to which serde_json reads into types.
const DEEPEST: u32 = 128;
/// The maximum number of digits of a short integer, which fits into 64 bits for certain.
const SHORT: usize = 18;

/// A position in a JSON text that is being checked.
///
/// Its errors report only that the text is invalid; use serde_json to find the reason and the position.
#[derive(Debug)]
pub struct Cursor<'a> {
    text: &'a str,
    at: usize,
    /// The number of objects and arrays that the cursor has entered and not yet left.
    depth: u32,
}

/// A saved position of a [`Cursor`].
#[derive(Clone, Copy, Debug)]
pub struct Mark {
    at: usize,
    depth: u32,
}

/// The text is not JSON, or nested too deeply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(
    clippy::exhaustive_structs,
    reason = "callers of the cursor reject values with it"
)]
pub struct SyntaxError;

impl fmt::Display for SyntaxError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the text is not JSON, or is nested too deeply")
    }
}

impl Error for SyntaxError {}

/// The result of a check.
pub type Checked<T> = Result<T, SyntaxError>;

impl<'a> Cursor<'a> {
    /// Creates a cursor before the first value of a text.
    #[must_use]
    pub fn new(text: &'a str) -> Self {
        let mut cursor = Self {
            text,
            at: 0,
            depth: 0,
        };
        cursor.skip_space();
        cursor
    }

    /// Returns the current position, to [go back](Self::go_back) to.
    #[inline]
    #[must_use]
    pub fn mark(&self) -> Mark {
        Mark {
            at: self.at,
            depth: self.depth,
        }
    }

    /// Goes back to the position `to`.
    #[inline]
    pub fn go_back(&mut self, to: Mark) {
        self.at = to.at;
        self.depth = to.depth;
    }

    /// Returns the position of the cursor, in bytes from the beginning of the text.
    #[must_use]
    pub fn at(&self) -> usize {
        self.at
    }

    /// Skips `with` and the white space after it, if the text continues with exactly these bytes. `with` must consist
    /// of whole JSON tokens.
    #[inline]
    pub fn skip_literal(&mut self, with: &str) -> bool {
        let rest = self.text.as_bytes().get(self.at..).unwrap_or_default();
        let matches = rest.starts_with(with.as_bytes());
        if matches {
            self.at += with.len();
            self.skip_space();
        }
        matches
    }

    /// Validates the whole text and passes the members of its object to `member`. Returns `false` if the text is not an
    /// object; then it has not been validated.
    ///
    /// # Errors
    /// If the text is not valid JSON.
    pub fn read_object(
        mut self,
        member: impl FnMut(Text<'a>, &mut Self) -> Checked<()>,
    ) -> Checked<bool> {
        if self.peek() != Some(b'{') {
            return Ok(false);
        }
        self.members(member)?;
        self.is_over().map(|()| true)
    }

    /// Checks the rest of a text whose object was [entered](Self::enter_literal), as [`read_object`](Self::read_object)
    /// does.
    ///
    /// # Errors
    /// If the text is not valid JSON.
    pub fn rest(mut self, member: impl FnMut(Text<'a>, &mut Self) -> Checked<()>) -> Checked<()> {
        self.finish_object(member)?;
        self.is_over()
    }

    fn is_over(&mut self) -> Checked<()> {
        self.skip_space();
        (self.at == self.text.len())
            .then_some(())
            .ok_or(SyntaxError)
    }

    /// Reads the members of the object at the cursor, to the end of the object. `member` is called with each key and must
    /// read its value. A value that is not an object is skipped as by [`value`](Self::value).
    ///
    /// # Errors
    /// If the text is not valid JSON.
    #[inline]
    pub fn members(
        &mut self,
        mut member: impl FnMut(Text<'a>, &mut Self) -> Checked<()>,
    ) -> Checked<Text<'a>> {
        let start = self.at;
        if self.peek() != Some(b'{') {
            return self.value();
        }
        if !self.open(b'}') {
            self.depth += 1;
            self.remaining_members(&mut member)?;
        }
        self.since(start).map(Text::checked)
    }

    /// Reads the members of an object from the one at the cursor on, to the end of the object.
    #[inline]
    fn remaining_members(
        &mut self,
        member: &mut impl FnMut(Text<'a>, &mut Self) -> Checked<()>,
    ) -> Checked<()> {
        loop {
            let key = self.string()?;
            self.colon()?;
            member(key, self)?;
            if !self.has_another(b'}')? {
                break;
            }
        }
        self.depth -= 1;
        Ok(())
    }

    /// Enters the object at the cursor if it begins with exactly the bytes of `beginning`, which must end after a value
    /// or before one. This skips the usual first members of objects without parsing them.
    #[inline]
    pub fn enter_literal(&mut self, beginning: &str) -> bool {
        let entered = self.skip_literal(beginning);
        self.depth += u32::from(entered);
        entered
    }

    /// Reads the rest of an object that was [entered](Self::enter_literal), from the end of a value to the end of the
    /// object.
    ///
    /// # Errors
    /// If the text is not valid JSON.
    #[inline]
    pub fn finish_object(
        &mut self,
        mut member: impl FnMut(Text<'a>, &mut Self) -> Checked<()>,
    ) -> Checked<()> {
        if self.has_another(b'}')? {
            return self.remaining_members(&mut member);
        }
        self.depth -= 1;
        Ok(())
    }

    /// Reads the array at the cursor, to its end. `item` must read each item.
    ///
    /// # Errors
    /// If the text is not valid JSON, or the value is not an array.
    pub fn items(&mut self, mut item: impl FnMut(&mut Self) -> Checked<()>) -> Checked<()> {
        if self.peek() != Some(b'[') {
            return Err(SyntaxError);
        }
        if self.open(b']') {
            return Ok(());
        }
        self.depth += 1;
        loop {
            item(self)?;
            if !self.has_another(b']')? {
                break;
            }
        }
        self.depth -= 1;
        Ok(())
    }

    /// Moves on after an element: to the next one, or, returning `false`, out of the object or array, which `end`
    /// closes.
    #[inline]
    fn has_another(&mut self, end: u8) -> Checked<bool> {
        self.skip_space();
        match self.take()? {
            b',' => self.skip_space(),
            byte if byte == end => return Ok(false),
            _ => return Err(SyntaxError),
        }
        Ok(true)
    }

    /// Reads a value of any type.
    ///
    /// # Errors
    /// If the text is not valid JSON.
    #[inline]
    pub fn value(&mut self) -> Checked<Text<'a>> {
        let start = self.at;
        match self.peek() {
            Some(b'"') => return self.string(),
            Some(b'{' | b'[') => self.nested()?,
            _ => self.scalar()?,
        }
        self.since(start).map(Text::checked)
    }

    /// Reads the integer at the cursor if it has at most 18 digits, as nearly all numbers do, and a comma or a closing brace
    /// follows immediately. Otherwise the cursor does not move.
    #[inline]
    pub fn short_integer(&mut self) -> Option<i64> {
        let rest = self.text.as_bytes().get(self.at..)?;
        let digits = rest
            .iter()
            .take(SHORT)
            .take_while(|byte| byte.is_ascii_digit());
        let (mut length, mut number) = (0, 0);
        for digit in digits {
            number = number * 10 + i64::from(digit - b'0');
            length += 1;
        }
        let is_whole = matches!(rest.get(length), Some(b',' | b'}'));
        let is_plain = length == 1 || rest.first() != Some(&b'0');
        if length == 0 || !is_whole || !is_plain {
            return None;
        }
        self.at += length;
        Some(number)
    }

    /// Skips the object or array at the cursor.
    fn nested(&mut self) -> Checked<()> {
        // One bit for each open level: whether it is an object.
        let (mut objects, mut depth) = (0_u128, 0_u32);
        loop {
            match self.peek().ok_or(SyntaxError)? {
                bracket @ (b'{' | b'[') => {
                    if depth + self.depth == DEEPEST {
                        return Err(SyntaxError);
                    }
                    let object = bracket == b'{';
                    if !self.open(if object { b'}' } else { b']' }) {
                        depth += 1;
                        objects = objects << 1 | u128::from(object);
                        if object {
                            self.key()?;
                        }
                        continue;
                    }
                }
                b'"' => self.string_end().map(drop)?,
                _ => self.scalar()?,
            }
            if self.close(&mut objects, &mut depth)? {
                return Ok(());
            }
        }
    }

    /// Enters the object or array at the cursor. Returns `true` if it is empty; then the cursor is after `end`, its closing
    /// bracket.
    #[inline]
    fn open(&mut self, end: u8) -> bool {
        self.at += 1;
        self.skip_space();
        let empty = self.peek() == Some(end);
        self.at += usize::from(empty);
        empty
    }

    /// Moves on after a value: to the next one, or out of the objects and arrays that end there. Returns `true` if the
    /// outermost has ended.
    fn close(&mut self, objects: &mut u128, depth: &mut u32) -> Checked<bool> {
        while *depth > 0 {
            let object = *objects & 1 == 1;
            self.skip_space();
            match (self.take()?, object) {
                (b',', _) => {
                    self.skip_space();
                    if object {
                        self.key()?;
                    }
                    return Ok(false);
                }
                (b'}', true) | (b']', false) => {
                    *objects >>= 1;
                    *depth -= 1;
                }
                _ => return Err(SyntaxError),
            }
        }
        Ok(true)
    }

    /// Skips a key and the colon after it.
    #[inline]
    fn key(&mut self) -> Checked<()> {
        self.string_end()?;
        self.colon()
    }

    #[inline]
    fn colon(&mut self) -> Checked<()> {
        self.skip_space();
        if self.take()? != b':' {
            return Err(SyntaxError);
        }
        self.skip_space();
        Ok(())
    }

    /// Skips a number, a boolean, or `null`.
    fn scalar(&mut self) -> Checked<()> {
        match self.peek() {
            Some(b't') => self.word("true"),
            Some(b'f') => self.word("false"),
            Some(b'n') => self.word("null"),
            _ => self.number(),
        }
    }

    /// Reads the string at the cursor.
    ///
    /// # Errors
    /// If the text is not valid JSON, or the value is not a string.
    #[inline]
    pub fn string(&mut self) -> Checked<Text<'a>> {
        let start = self.at;
        let plain = self.string_end()?;
        Ok(Text::string(self.since(start)?, plain))
    }

    /// Skips the string at the cursor. Returns whether it has no escapes.
    #[inline]
    fn string_end(&mut self) -> Checked<bool> {
        if self.take()? != b'"' {
            return Err(SyntaxError);
        }
        self.at = next_special(self.text.as_bytes(), self.at).ok_or(SyntaxError)?;
        if self.peek() == Some(b'"') {
            self.at += 1;
            return Ok(true);
        }
        self.escaped_string_end().map(|()| false)
    }

    /// Skips the rest of a string, from its first special byte on.
    fn escaped_string_end(&mut self) -> Checked<()> {
        let mut specials = Specials::new(self.text.as_bytes(), self.at);
        loop {
            self.at = specials.next().ok_or(SyntaxError)?;
            match self.take()? {
                b'"' => return Ok(()),
                b'\\' => self.escape()?,
                // A control character, which must be escaped.
                _ => return Err(SyntaxError),
            }
            specials.pass(self.at);
        }
    }

    fn escape(&mut self) -> Checked<()> {
        match self.take()? {
            b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => Ok(()),
            b'u' => {
                let digits = self
                    .text
                    .as_bytes()
                    .get(self.at..self.at + 4)
                    .ok_or(SyntaxError)?;
                self.at += 4;
                digits
                    .iter()
                    .all(u8::is_ascii_hexdigit)
                    .then_some(())
                    .ok_or(SyntaxError)
            }
            _ => Err(SyntaxError),
        }
    }

    fn word(&mut self, word: &str) -> Checked<()> {
        let rest = self.text.get(self.at..).unwrap_or_default();
        self.at += word.len();
        rest.starts_with(word).then_some(()).ok_or(SyntaxError)
    }

    fn number(&mut self) -> Checked<()> {
        if self.peek() == Some(b'-') {
            self.at += 1;
        }
        if self.peek() == Some(b'0') {
            self.at += 1;
        } else {
            self.digits()?;
        }
        match self.peek() {
            Some(b'.' | b'e' | b'E') => self.fraction(),
            _ => Ok(()),
        }
    }

    /// Skips the fraction and the exponent of a number, if it has them.
    fn fraction(&mut self) -> Checked<()> {
        if self.peek() == Some(b'.') {
            self.at += 1;
            self.digits()?;
        }
        if matches!(self.peek(), Some(b'e' | b'E')) {
            self.at += 1;
            if matches!(self.peek(), Some(b'+' | b'-')) {
                self.at += 1;
            }
            self.digits()?;
        }
        Ok(())
    }

    fn digits(&mut self) -> Checked<()> {
        let rest = self.text.as_bytes().get(self.at..).unwrap_or_default();
        let digits = rest.iter().take_while(|byte| byte.is_ascii_digit());
        let length = digits.count();
        self.at += length;
        if length > 0 { Ok(()) } else { Err(SyntaxError) }
    }

    #[inline]
    fn skip_space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\n' | b'\r' | b'\t')) {
            self.at += 1;
        }
    }

    #[inline]
    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    #[inline]
    fn take(&mut self) -> Checked<u8> {
        let byte = self.peek().ok_or(SyntaxError)?;
        self.at += 1;
        Ok(byte)
    }

    /// Returns the text from `start` to the cursor.
    ///
    /// # Errors
    /// If `start` is not a position in the text up to the cursor.
    #[inline]
    pub fn since(&self, start: usize) -> Checked<&'a str> {
        self.text.get(start..self.at).ok_or(SyntaxError)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde::de::IgnoredAny;

    use super::*;

    fn accepts(text: &str) -> bool {
        Cursor::new(text)
            .read_object(|_, cursor| cursor.value().map(drop))
            .is_ok_and(|object| object)
    }

    fn is_object(text: &str) -> bool {
        text.trim_start().starts_with('{') && serde_json::from_str::<IgnoredAny>(text).is_ok()
    }

    proptest! {
        /// Random sequences of pieces of JSON, some of which are valid JSON.
        #[test]
        fn verdict_agrees_with_serde_json(
            pieces in prop::collection::vec(prop::sample::select(vec![
                "{", "}", "[", "]", ",", ":", " ", "\"a\"", "\"\\n\"", "\"\\u00e9\"", "\"\\u12\"", "\"", "\\",
                "0", "-1", "01", "1.5", "1.", ".5", "1e5", "1e", "-", "true", "false", "null", "nul", "é", "\t",
                "\u{1}", "{}", "[]", "\"b\":1", "\"c\":{\"d\":[1,2]}",
            ]), 0..12),
        ) {
            let text = format!("{{{}}}", pieces.concat());
            prop_assert_eq!(accepts(&text), is_object(&text), "{}", text);
        }

        /// A valid text with one byte changed or cut off.
        #[test]
        fn single_invalid_byte_is_detected(at in 0_usize..120, byte in 0_u8..128, cut in any::<bool>()) {
            let text = r#" {"a" : [1, -2.5e+10, "x\"\\\u0041é", {"b":{}, "c":[[]]}, true, false, null ], "d":"" } "#;
            let mut bytes = text.as_bytes().to_vec();
            if let Some(old) = bytes.get_mut(at) {
                *old = byte;
            }
            if cut {
                bytes.truncate(at);
            }
            if let Ok(text) = std::str::from_utf8(&bytes) {
                prop_assert_eq!(accepts(text), is_object(text), "{}", text);
            }
        }
    }

    #[test]
    fn members_are_returned_verbatim() {
        let mut seen = Vec::new();
        let text = r#" { "a" : [ 1 , "]" ] ,"b\"":{"c":{}}} "#;
        let object = Cursor::new(text).read_object(|key, cursor| {
            seen.push((key.get(), cursor.value()?.get()));
            Ok(())
        });
        assert_eq!(object, Ok(true));
        assert_eq!(
            seen,
            [(r#""a""#, r#"[ 1 , "]" ]"#), (r#""b\"""#, r#"{"c":{}}"#)]
        );
        assert_eq!(Cursor::new("[1]").read_object(|_, _| Ok(())), Ok(false));
    }

    #[test]
    fn items_are_returned_one_by_one() {
        let items = |text: &str| {
            let mut seen = Vec::new();
            let mut cursor = Cursor::new(text);
            let items = cursor.items(|cursor| {
                seen.push(cursor.value()?.get().to_owned());
                Ok(())
            });
            items.map(|()| seen)
        };
        assert_eq!(
            items(r#" [ 1 , "]", [2] ]"#).unwrap(),
            ["1", r#""]""#, "[2]"]
        );
        assert_eq!(items("[ ]").unwrap(), [""; 0]);
        for text in ["{}", "[1", "[1,]", "[1 2]", "[,]"] {
            assert_eq!(items(text), Err(SyntaxError), "{text}");
        }
    }

    #[test]
    fn nesting_depth_is_limited() {
        let nested = |depth: usize| format!("{{\"a\":{}{}}}", "[".repeat(depth), "]".repeat(depth));
        assert!(accepts(&nested(127)));
        assert!(!accepts(&nested(128)));
        assert!(!accepts(&nested(1_000_000)));
        let gone_into = |depth: usize| {
            let text = format!("{{\"a\":[{}]}}", "[".repeat(depth) + &"]".repeat(depth));
            Cursor::new(&text).read_object(|_, cursor| cursor.items(|item| item.value().map(drop)))
        };
        assert_eq!(gone_into(126), Ok(true), "what was gone into counts");
        assert_eq!(gone_into(127), Err(SyntaxError));
    }
}
