//! Escapes: backslashes and what they begin.

use crate::full::pattern::{
    class::{Item, Set},
    syntax::{Assertion, Parser},
};

/// What an escape stands for.
pub(super) enum Escape {
    Char(char),
    Set(Item),
    Assert(Assertion),
}

impl Parser<'_> {
    /// What stands behind a backslash.
    pub(super) fn escape(&mut self, in_class: bool) -> Result<Escape, String> {
        let c = self.next().ok_or("a backslash stands at the end")?;
        Ok(match c {
            'd' | 'D' => Escape::Set(Item::Named(Set::Digit, c == 'D')),
            'w' | 'W' => Escape::Set(Item::Named(Set::Word, c == 'W')),
            's' | 'S' => Escape::Set(Item::Named(Set::Space, c == 'S')),
            'p' | 'P' => Escape::Set(Item::Named(self.property()?, c == 'P')),
            'b' if in_class => Escape::Char('\u{8}'),
            'b' => Escape::Assert(Assertion::Boundary),
            'B' if !in_class => Escape::Assert(Assertion::NoBoundary),
            'A' if !in_class => Escape::Assert(Assertion::Start),
            'z' if !in_class => Escape::Assert(Assertion::End),
            'n' => Escape::Char('\n'),
            'r' => Escape::Char('\r'),
            't' => Escape::Char('\t'),
            'v' => Escape::Char('\u{b}'),
            'f' => Escape::Char('\u{c}'),
            '0' => Escape::Char('\0'),
            'c' => Escape::Char(self.control()?),
            'x' => Escape::Char(self.code(2)?),
            'u' => Escape::Char(self.unicode()?),
            '1'..='9' | 'k' => {
                return Err(
                    "references to groups are not supported, since they cannot be matched in bounded time"
                        .to_owned(),
                );
            }
            c if c.is_alphanumeric() => return Err(format!("there is no escape \"\\{c}\"")),
            c => Escape::Char(c),
        })
    }

    fn property(&mut self) -> Result<Set, String> {
        if self.take("{") {
            let name = self.until('}')?;
            return Set::property(&name);
        }
        // Other languages have the short form, and ECMAScript nothing else in its place.
        let name = self.next().ok_or("a property is missing behind \"\\p\"")?;
        Set::property(&name.to_string())
    }

    fn control(&mut self) -> Result<char, String> {
        let letter = self.next().filter(char::is_ascii_alphabetic);
        let code = u32::from(letter.ok_or("a letter is missing behind \"\\c\"")?) % 32;
        char::from_u32(code).ok_or_else(|| "there is no such control character".to_owned())
    }

    fn code(&mut self, digits: usize) -> Result<char, String> {
        let code = self.hexadecimal(digits)?;
        char::from_u32(code).ok_or_else(|| format!("there is no character {code:#x}"))
    }

    fn hexadecimal(&mut self, digits: usize) -> Result<u32, String> {
        let text: String = self.rest.clone().take(digits).collect();
        let is_code = text.len() == digits && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        let code = u32::from_str_radix(&text, 16).ok().filter(|_| is_code);
        self.rest.nth(digits.saturating_sub(1));
        code.ok_or_else(|| format!("{digits} hexadecimal digits are missing"))
    }

    /// `\u0041`, `\u{1F600}`, and the two halves of a pair.
    fn unicode(&mut self) -> Result<char, String> {
        if self.take("{") {
            let text = self.until('}')?;
            let code = u32::from_str_radix(&text, 16).ok().and_then(char::from_u32);
            return code.ok_or_else(|| format!("there is no character {text:?}"));
        }
        let first = self.hexadecimal(4)?;
        if !(0xd800..0xdc00).contains(&first) || !self.take("\\u") {
            return char::from_u32(first)
                .ok_or_else(|| "half a pair of surrogates stands alone".to_owned());
        }
        let second = self.hexadecimal(4)?;
        let pair = [first, second].map(|half| u16::try_from(half).unwrap_or_default());
        match char::decode_utf16(pair).next() {
            Some(Ok(c)) => Ok(c),
            _ => Err("half a pair of surrogates stands alone".to_owned()),
        }
    }
}
