//! JSON strings: reading, writing, and the search for their special bytes: the quote at the end, backslashes and
//! control characters.
//!
//! Most of the bytes in a session belong to strings, so the search looks at 16 or 64 bytes at a time.

use std::borrow::Cow;

/// Appends a string as JSON.
pub fn write_string(out: &mut Vec<u8>, text: &str) {
    let mut rest = text.as_bytes();
    // Some capacity for escapes: prose has a quote or a line break about every thirty bytes.
    out.reserve(rest.len() + rest.len() / 16 + 2);
    out.push(b'"');
    rest = write_blocks(out, rest);
    while let Some((chunk, more)) = rest.split_first_chunk::<CHUNK>() {
        // A chunk is copied first and truncated afterwards: a copy of fixed length is one instruction.
        let length = out.len();
        out.extend_from_slice(chunk);
        rest = match first_special(chunk) {
            None => more,
            Some(offset) => {
                out.truncate(length + offset);
                write_special(out, rest, offset)
            }
        };
    }
    while let Some(offset) = next_special(rest, 0) {
        out.extend_from_slice(rest.get(..offset).unwrap_or_default());
        rest = write_special(out, rest, offset);
    }
    out.extend_from_slice(rest);
    out.push(b'"');
}

/// Appends the whole blocks of a text, and returns the bytes after them.
fn write_blocks<'a>(out: &mut Vec<u8>, bytes: &'a [u8]) -> &'a [u8] {
    let (blocks, rest) = blocks(bytes);
    for (block, mut mask) in blocks {
        let mut from = 0;
        while mask != 0 {
            let at = mask.trailing_zeros() as usize;
            write_run(out, block, from, at);
            write_special(out, block, at);
            from = at + 1;
            mask &= mask - 1;
        }
        out.extend_from_slice(block.get(from..).unwrap_or_default());
    }
    rest
}

/// Appends the bytes between two escapes of a block. If they are few, as in JSON within a string, a whole chunk is
/// copied and truncated.
#[inline]
fn write_run(out: &mut Vec<u8>, block: &[u8; BLOCK], from: usize, to: usize) {
    let length = to.saturating_sub(from);
    match block.get(from..).and_then(<[u8]>::first_chunk::<CHUNK>) {
        Some(chunk) if length <= CHUNK => {
            let end = out.len() + length;
            out.extend_from_slice(chunk);
            out.truncate(end);
        }
        _ => out.extend_from_slice(block.get(from..to).unwrap_or_default()),
    }
}

/// Appends the byte at `offset`, escaped, and returns the bytes after it.
#[inline]
fn write_special<'a>(out: &mut Vec<u8>, bytes: &'a [u8], offset: usize) -> &'a [u8] {
    if let Some(byte) = bytes.get(offset) {
        write_escape(out, *byte);
    }
    bytes.get(offset + 1..).unwrap_or_default()
}

/// Reads the string whose opening quote is just before `text`. Returns the string and the length of its text in
/// bytes, up to the closing quote. `None` if the string has a lone surrogate. The text must have been checked; the
/// result for any other text is unspecified.
pub(crate) fn read_string(text: &str) -> Option<(Cow<'_, str>, usize)> {
    let bytes = text.as_bytes();
    let mut at = next_special(bytes, 0)?;
    if bytes.get(at)? == &b'"' {
        return Some((Cow::Borrowed(text.get(..at)?), at));
    }
    // The length is known only at the end. A separate search for it would take as long as the reading.
    let mut out = String::new();
    let mut specials = Specials::new(bytes, at);
    let mut from = 0;
    loop {
        at = specials.next()?;
        out.push_str(text.get(from..at)?);
        if bytes.get(at)? == &b'"' {
            return Some((Cow::Owned(out), at));
        }
        let (char, length) = escaped(text.get(at..)?)?;
        out.push(char);
        from = at + length;
        specials.pass(from);
    }
}

/// Decodes the escape at the beginning of `text`. Returns the character and the length of the escape in bytes.
fn escaped(text: &str) -> Option<(char, usize)> {
    let char = match text.as_bytes().get(1)? {
        b'n' => '\n',
        b'r' => '\r',
        b't' => '\t',
        b'b' => '\u{8}',
        b'f' => '\u{c}',
        b'u' => return escaped_unit(text),
        byte => char::from(*byte),
    };
    Some((char, 2))
}

/// Decodes `\u` and four digits, or two of these that form a surrogate pair.
fn escaped_unit(text: &str) -> Option<(char, usize)> {
    let unit = |at| u16::from_str_radix(text.get(at..at + 4)?, 16).ok();
    let first = unit(2)?;
    if let Some(char) = char::from_u32(first.into()) {
        return Some((char, 6));
    }
    let second = unit(8).filter(|_| text.get(6..8) == Some("\\u"))?;
    let char = char::decode_utf16([first, second]).next()?.ok()?;
    Some((char, 12))
}

fn write_escape(out: &mut Vec<u8>, byte: u8) {
    let short = match byte {
        b'"' | b'\\' => byte,
        b'\n' => b'n',
        b'\r' => b'r',
        b'\t' => b't',
        0x08 => b'b',
        0x0c => b'f',
        _ => return write_unit(out, byte),
    };
    out.extend_from_slice(&[b'\\', short]);
}

/// Writes a control character that has no short escape.
fn write_unit(out: &mut Vec<u8>, byte: u8) {
    let digit = |nibble: u8| {
        if nibble < 10 {
            b'0' + nibble
        } else {
            b'a' + nibble - 10
        }
    };
    out.extend_from_slice(b"\\u00");
    out.extend_from_slice(&[digit(byte >> 4), digit(byte & 15)]);
}

/// The number of bytes of a string that are examined together.
pub(crate) const CHUNK: usize = 16;
/// The number of bytes that are examined together in long strings: one bit of a word for each byte.
pub(crate) const BLOCK: usize = 64;

/// Whether a byte needs an escape in a string: a quote, a backslash, or a control character.
// Without short-circuiting between the comparisons, the compiler can vectorize them.
#[inline]
const fn is_special(byte: u8) -> bool {
    (byte < 0x20) | (byte == b'"') | (byte == b'\\')
}

/// The offset of the first special byte of a chunk.
#[inline]
pub(crate) fn first_special(chunk: &[u8; CHUNK]) -> Option<usize> {
    let mut marks = [0; CHUNK];
    for (mark, byte) in marks.iter_mut().zip(chunk) {
        *mark = if is_special(*byte) { u8::MAX } else { 0 };
    }
    let marks = u128::from_le_bytes(marks);
    (marks != 0).then(|| marks.trailing_zeros() as usize / 8)
}

const ONES: u64 = u64::MAX / 255;
const TOPS: u64 = ONES << 7;

/// Marks the special bytes among eight: sets the top bit of each, and sets none below the first of them.
#[inline]
const fn special_bits(word: u64) -> u64 {
    let controls = word.wrapping_sub(ONES * 0x20) & !word;
    let quote = word ^ (ONES * b'"' as u64);
    let quotes = quote.wrapping_sub(ONES) & !quote;
    let backslash = word ^ (ONES * b'\\' as u64);
    let backslashes = backslash.wrapping_sub(ONES) & !backslash;
    (controls | quotes | backslashes) & TOPS
}

/// The offset of the first special byte, from `at` on. `None` if there is none.
#[inline]
pub(crate) fn next_special(bytes: &[u8], at: usize) -> Option<usize> {
    // Most strings are keys and names, and end within eight bytes.
    if let Some(word) = bytes.get(at..)?.first_chunk() {
        let bits = special_bits(u64::from_le_bytes(*word));
        if bits != 0 {
            return Some(at + bits.trailing_zeros() as usize / 8);
        }
        return next_special_far(bytes, at + 8);
    }
    next_special_near(bytes, at)
}

fn next_special_far(bytes: &[u8], mut at: usize) -> Option<usize> {
    while let Some(chunk) = bytes.get(at..)?.first_chunk() {
        if let Some(offset) = first_special(chunk) {
            return Some(at + offset);
        }
        at += CHUNK;
    }
    next_special_near(bytes, at)
}

/// The same as [`next_special`], byte by byte.
fn next_special_near(bytes: &[u8], at: usize) -> Option<usize> {
    let mut rest = bytes.get(at..)?.iter();
    let offset = rest.position(|byte| is_special(*byte))?;
    Some(at + offset)
}

/// One bit for each byte of a block: whether it is special.
#[inline]
fn special_mask(block: &[u8; BLOCK]) -> u64 {
    let mut marks = [0; BLOCK];
    for (mark, byte) in marks.iter_mut().zip(block) {
        *mark = u8::from(is_special(*byte));
    }
    let (words, _) = marks.as_chunks::<8>();
    let mut mask = 0;
    for (index, word) in words.iter().enumerate() {
        // The lowest bits of the eight bytes are gathered in the topmost byte.
        let bits = u64::from_le_bytes(*word).wrapping_mul(0x0102_0408_1020_4080) >> 56;
        mask |= bits << (8 * index);
    }
    mask
}

/// Iterator over the special bytes of a text. If there are many, as in prose and code, it is much faster than a new
/// search for each.
pub(crate) struct Specials<'a> {
    bytes: &'a [u8],
    /// The offset up to which the text was searched.
    end: usize,
    /// One bit for each byte of the block before `end`: whether it is special and was not yet returned.
    mask: u64,
}

impl<'a> Specials<'a> {
    /// The special bytes from `at` on.
    pub(crate) fn new(bytes: &'a [u8], at: usize) -> Self {
        Self {
            bytes,
            end: at,
            mask: 0,
        }
    }

    /// The offset of the next special byte.
    #[inline]
    pub(crate) fn next(&mut self) -> Option<usize> {
        while self.mask == 0 {
            let Some(block) = self.bytes.get(self.end..)?.first_chunk() else {
                return self.next_near();
            };
            self.mask = special_mask(block);
            self.end += BLOCK;
        }
        let at = self.end - BLOCK + self.mask.trailing_zeros() as usize;
        self.mask &= self.mask - 1;
        Some(at)
    }

    /// The same as [`next`](Self::next), for the end of the text, where less than a block is left.
    #[inline(never)]
    fn next_near(&mut self) -> Option<usize> {
        let at = next_special(self.bytes, self.end)?;
        self.end = at + 1;
        Some(at)
    }

    /// Skips the special bytes before `to`, which must not be less than the offset that was returned last.
    #[inline]
    pub(crate) fn pass(&mut self, to: usize) {
        if to >= self.end {
            self.end = to;
            self.mask = 0;
        } else if self.mask != 0 {
            self.mask &= u64::MAX << (to + BLOCK - self.end);
        }
    }
}

/// The whole blocks of a text, each with its mask of special bytes, and the bytes after the last block.
pub(crate) fn blocks(bytes: &[u8]) -> (impl Iterator<Item = (&[u8; BLOCK], u64)>, &[u8]) {
    let (blocks, rest) = bytes.as_chunks();
    let marked = blocks.iter().map(|block| (block, special_mask(block)));
    (marked, rest)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn strings_are_written_like_serde_json(text in "(?s).{0,200}") {
            let mut out = Vec::new();
            write_string(&mut out, &text);
            prop_assert_eq!(String::from_utf8(out).unwrap(), serde_json::to_string(&text).unwrap());
        }

        #[test]
        fn strings_are_read_like_serde_json(
            pieces in prop::collection::vec(prop::sample::select(vec![
                "a", "é", "prose that is longer than a chunk of bytes", r#"\""#, r"\\", r"\/", r"\n", r"\r", r"\t",
                r"\b", r"\f", r"\u0041", r"\u00e9", r"\u0000", r"\ud83d", r"\ude00", r"\uD83D\uDE00",
            ]), 0..20),
        ) {
            let text = pieces.concat();
            let expected: Option<String> = serde_json::from_str(&format!("\"{text}\"")).ok();
            let quoted = format!("{text}\", and more");
            let read = read_string(&quoted);
            prop_assert_eq!(read.as_ref().map(|(read, _)| &**read), expected.as_deref(), "{}", text);
            prop_assert!(read.is_none_or(|(_, length)| length == text.len()));
        }
    }

    #[test]
    fn every_control_character_is_escaped() {
        let text: String = (0..0x80_u8).map(char::from).collect();
        let mut out = Vec::new();
        write_string(&mut out, &text);
        assert_eq!(
            String::from_utf8(out).unwrap(),
            serde_json::to_string(&text).unwrap()
        );
    }

    proptest! {
        #[test]
        fn first_special_byte_is_found(text in "[a-z\u{80}-\u{7ff}]{0,200}[\"\\\\\n\u{1f}]?[a-z]{0,100}", at in 0_usize..20) {
            let bytes = text.as_bytes();
            let expected = bytes.iter().enumerate().skip(at).find(|(_, byte)| is_special(**byte));
            prop_assert_eq!(next_special(bytes, at), expected.map(|(index, _)| index));
        }

        #[test]
        fn every_special_byte_that_matters_is_found(
            text in "([a-z\u{80}-\u{7ff}]{0,30}[\"\\\\\n\u{1f}]{0,3}){0,20}",
            at in 0_usize..20,
            passes in prop::collection::vec(1_usize..100, 1..8),
        ) {
            let bytes = text.as_bytes();
            let (mut specials, mut from) = (Specials::new(bytes, at), at);
            for pass in passes.iter().cycle() {
                let next = specials.next();
                prop_assert_eq!(next, (from..bytes.len()).find(|at| is_special(bytes[*at])));
                let Some(found) = next else { break };
                from = found + pass;
                if *pass > 1 {
                    specials.pass(from);
                }
            }
        }
    }
}
