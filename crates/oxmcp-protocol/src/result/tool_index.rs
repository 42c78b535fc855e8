//! Index of a tool's result: the positions of its parts, found while its message is checked.
//!
//! See [tool results](https://modelcontextprotocol.io/specification/2026-07-28/server/tools#tool-result).

use std::{mem, num::NonZeroU64, ops::Range};

use oxmcp_json::{Checked, Cursor, SyntaxError, Text};

use crate::{
    meta::object::Meta,
    types::{content::ContentBlock, tools::CallToolResult},
};

/// The maximum number of unused bytes in the allocation of a text that takes over the allocation of its result.
pub(crate) const LARGEST_WASTE: usize = 128;

/// The positions of the parts of a tool's result in its text, if the result has the usual form: text, with or without
/// structured content.
///
/// It is found while the message is checked, so that reading the result takes no second pass. It is passed on several
/// times, so it is small.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ResultIndex {
    /// The text of the only block, as a JSON string; the whole array if `several` is set.
    content: Option<Part>,
    structured: Option<Part>,
    meta: Option<Part>,
    several: bool,
    is_error: bool,
}

/// A range of the result's text that does not begin at its start: the start, the end, and a bit for whether it is known
/// to be a string without escapes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Part(NonZeroU64);

impl Part {
    #[inline]
    fn new(range: Range<usize>, plain: bool) -> Checked<Self> {
        let start = u32::try_from(range.start).map_err(|_| SyntaxError)?;
        let end = u32::try_from(range.end).ok().filter(|end| end >> 31 == 0);
        let end = end.ok_or(SyntaxError)?;
        let bits = u64::from(start) << 32 | u64::from(end) << 1 | u64::from(plain);
        NonZeroU64::new(bits).map(Self).ok_or(SyntaxError)
    }

    /// The part for a value that the cursor has just passed, in a text that begins at `origin`.
    #[inline]
    fn behind(cursor: &Cursor<'_>, value: Text<'_>, origin: usize) -> Checked<Self> {
        let end = cursor.at() - origin;
        Self::new(end - value.get().len()..end, value.as_plain().is_some())
    }

    fn start(self) -> usize {
        (self.0.get() >> 32) as usize
    }

    fn end(self) -> usize {
        (self.0.get() & 0xffff_ffff) as usize >> 1
    }

    fn is_plain(self) -> bool {
        self.0.get() & 1 == 1
    }

    fn of(self, text: &str) -> Option<Text<'_>> {
        let text = text.get(self.start()..self.end())?;
        Some(Text::string(text, self.is_plain()))
    }

    /// Takes a string out of the text. If the string is nearly all of the text, the allocation of the text is reused
    /// for it.
    fn take_out(self, text: &mut Box<str>) -> Option<String> {
        let (start, end) = (self.start() + 1, self.end() - 1);
        if !self.is_plain() || text.len() - (end - start) > LARGEST_WASTE {
            return Some(self.of(text)?.as_str()?.into_owned());
        }
        let mut whole = String::from(mem::take(text));
        whole.truncate(end);
        whole.drain(..start);
        Some(whole)
    }
}

impl ResultIndex {
    const CONTENT: u8 = 1;
    const STRUCTURED: u8 = 2;
    const IS_ERROR: u8 = 4;
    const META: u8 = 8;
    const RESULT_TYPE: u8 = 16;

    /// Reads the result at the cursor, fills in the index, which must be empty, and returns the text. An error means
    /// that the result has other parts or is invalid; then the index is meaningless.
    #[inline]
    pub(crate) fn find<'a>(&mut self, cursor: &mut Cursor<'a>) -> Checked<Text<'a>> {
        let origin = cursor.at();
        // The usual order of the first members: their names need no parsing.
        let mut seen = if cursor.enter_literal(r#"{"content":"#) {
            Self::CONTENT
        } else if cursor.enter_literal(r#"{"resultType":"complete","content":"#) {
            Self::CONTENT | Self::RESULT_TYPE
        } else {
            0
        };
        let is_usual = seen != 0;
        if is_usual {
            self.take_content(cursor, origin)?;
        }
        let member = |key: Text<'a>, cursor: &mut Cursor<'a>| {
            let member = self.take(key.as_plain().ok_or(SyntaxError)?, cursor, origin)?;
            let again = seen & member != 0;
            seen |= member;
            if again { Err(SyntaxError) } else { Ok(()) }
        };
        if is_usual {
            cursor.finish_object(member)?;
        } else if !cursor.members(member)?.is_object() {
            return Err(SyntaxError);
        }
        cursor.since(origin).map(Text::checked)
    }

    /// Takes a member. Returns the bit of the member, or zero for a member without meaning.
    fn take(&mut self, key: &str, cursor: &mut Cursor<'_>, origin: usize) -> Checked<u8> {
        if key == "content" {
            self.take_content(cursor, origin)?;
            return Ok(Self::CONTENT);
        }
        let value = cursor.value()?;
        match (key, value.get()) {
            ("structuredContent", _) => {
                self.structured = Some(Part::behind(cursor, value, origin)?);
                Ok(Self::STRUCTURED)
            }
            ("isError", is_error @ ("true" | "false")) => {
                self.is_error = is_error == "true";
                Ok(Self::IS_ERROR)
            }
            ("_meta", _) if value.is_object() => {
                self.meta = Some(Part::behind(cursor, value, origin)?);
                Ok(Self::META)
            }
            ("resultType", r#""complete""#) => Ok(Self::RESULT_TYPE),
            ("isError" | "_meta" | "resultType", _) => Err(SyntaxError),
            _ => Ok(0),
        }
    }

    #[inline]
    fn take_content(&mut self, cursor: &mut Cursor<'_>, origin: usize) -> Checked<()> {
        if let Some(text) = find_usual(cursor, origin) {
            self.content = Some(text);
            return Ok(());
        }
        let start = cursor.at() - origin;
        let mut texts = 0_usize;
        cursor.items(|cursor| {
            texts += 1;
            self.content = Some(find_text(cursor, origin)?);
            Ok(())
        })?;
        if texts > 1 {
            self.several = true;
            self.content = Some(Part::new(start..cursor.at() - origin, false)?);
        }
        Ok(())
    }

    /// Takes the content out of the text of the result, which may be consumed.
    fn take_out(self, result: &mut Box<str>) -> Option<Vec<ContentBlock>> {
        let Some(content) = self.content else {
            return Some(Vec::new());
        };
        if !self.several {
            return Some(vec![ContentBlock::text(content.take_out(result)?)]);
        }
        let text_of = |block: Text<'_>| {
            let (_, text) = block.members().find(|(key, _)| key.is_str("text"))?;
            Some(ContentBlock::text(text.as_str()?))
        };
        content.of(result)?.items().map(text_of).collect()
    }
}

/// The text of the only block at the cursor, if it is written exactly as nearly all servers write it.
#[inline]
fn find_usual(cursor: &mut Cursor<'_>, origin: usize) -> Option<Part> {
    let before = cursor.mark();
    if cursor.skip_literal(r#"[{"type":"text","text":"#)
        && let Ok(text) = cursor.string()
        && let Ok(text) = Part::behind(cursor, text, origin)
        && cursor.skip_literal("}]")
    {
        return Some(text);
    }
    cursor.go_back(before);
    None
}

/// The text of a block that has no members but its type and its text.
fn find_text(cursor: &mut Cursor<'_>, origin: usize) -> Checked<Part> {
    let (mut is_text, mut text) = (false, None);
    let block = cursor.members(|key, cursor| {
        let value = cursor.value()?;
        match key.as_str().as_deref() {
            Some("type") if !is_text && value.is_str("text") => is_text = true,
            Some("text") if text.is_none() && value.is_string() => {
                text = Some(Part::behind(cursor, value, origin)?);
            }
            _ => return Err(SyntaxError),
        }
        Ok(())
    })?;
    match text {
        Some(text) if is_text && block.is_object() => Ok(text),
        _ => Err(SyntaxError),
    }
}

impl CallToolResult {
    /// Reads a result of the usual form: text, with or without structured content, and nothing else. `None` if the
    /// result has other parts or is invalid: then `Deserialize` must read it or report the error.
    #[doc(hidden)]
    pub fn read_plain(result: &mut Box<str>) -> Option<Self> {
        let mut index = ResultIndex::default();
        index.find(&mut Cursor::new(result)).ok()?;
        Self::read_indexed(result, index)
    }

    /// Reads a result whose index is known. The text may be consumed, but not if the return value is `None`.
    #[doc(hidden)]
    pub fn read_indexed(result: &mut Box<str>, index: ResultIndex) -> Option<Self> {
        let structured_content = match index.structured {
            Some(structured) => Some(structured.of(result)?.to_raw()),
            None => None,
        };
        let meta = match index.meta {
            Some(meta) => Meta::of_raw(meta.of(result)?.to_raw())?,
            None => Meta::default(),
        };
        Some(Self {
            content: index.take_out(result)?,
            structured_content,
            is_error: index.is_error,
            meta,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn part_position_is_representable_or_refused() {
        let last = (1_usize << 31) - 1;
        for range in [1..2, 1..last, last - 2..last] {
            for plain in [false, true] {
                let part = Part::new(range.clone(), plain).unwrap();
                assert_eq!(
                    (part.start()..part.end(), part.is_plain()),
                    (range.clone(), plain)
                );
            }
        }
        for range in [1..last + 1, 1..usize::MAX, usize::MAX..usize::MAX] {
            assert!(Part::new(range, true).is_err());
        }
    }
}
