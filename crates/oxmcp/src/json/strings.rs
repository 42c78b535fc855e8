//! Strings: reading and writing them.

use std::borrow::Cow;

use super::specials::{CHUNK, Specials, blocks, first_special, next_special};

/// Appends a string as JSON.
pub(crate) fn write_string(out: &mut Vec<u8>, text: &str) {
    let mut rest = text.as_bytes();
    // Some room for escapes: prose has a quote or a line break in every thirty bytes or so.
    out.reserve(rest.len() + rest.len() / 16 + 2);
    out.push(b'"');
    rest = write_blocks(out, rest);
    while let Some((chunk, more)) = rest.split_first_chunk::<CHUNK>() {
        // A chunk is copied first and cut off afterwards: it is one instruction, as long as nobody asks how many bytes.
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

/// Appends the whole blocks of a text, and returns what follows them.
fn write_blocks<'a>(out: &mut Vec<u8>, bytes: &'a [u8]) -> &'a [u8] {
    let (blocks, rest) = blocks(bytes);
    for (block, mut mask) in blocks {
        let mut from = 0;
        while mask != 0 {
            let at = mask.trailing_zeros() as usize;
            out.extend_from_slice(block.get(from..at).unwrap_or_default());
            write_special(out, block, at);
            from = at + 1;
            mask &= mask - 1;
        }
        out.extend_from_slice(block.get(from..).unwrap_or_default());
    }
    rest
}

/// Appends the byte at `offset`, escaped, and returns what follows it.
#[inline]
fn write_special<'a>(out: &mut Vec<u8>, bytes: &'a [u8], offset: usize) -> &'a [u8] {
    if let Some(byte) = bytes.get(offset) {
        write_escape(out, *byte);
    }
    bytes.get(offset + 1..).unwrap_or_default()
}

/// Reads the string whose text begins behind the quote at the beginning of `text`, and says how long the text is before
/// the quote that ends it. `None` where half a surrogate pair is in it. The text must have been checked; of any other,
/// something is made.
pub(super) fn read_string(text: &str) -> Option<(Cow<'_, str>, usize)> {
    let bytes = text.as_bytes();
    let mut at = next_special(bytes, 0)?;
    if bytes.get(at)? == &b'"' {
        return Some((Cow::Borrowed(text.get(..at)?), at));
    }
    // How long it is shows in the end. To look for that first would take as long as to read it.
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

/// What the escape at the beginning stands for, and how long it is.
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

/// The same for `\u` and four digits, or two such that are one character together.
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

/// A control character that has no short escape.
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_string_is_written_as_serde_json_writes_it(text in "(?s).{0,200}") {
            let mut out = Vec::new();
            write_string(&mut out, &text);
            prop_assert_eq!(String::from_utf8(out).unwrap(), serde_json::to_string(&text).unwrap());
        }

        #[test]
        fn a_string_is_read_as_serde_json_reads_it(
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
}
