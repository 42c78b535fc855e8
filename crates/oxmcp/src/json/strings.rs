//! Strings: finding what ends or interrupts them, and writing them.

/// So many bytes are looked at together in a long string. The compiler makes vector instructions of it.
const CHUNK: usize = 64;
/// So many words are looked at before a string counts as long.
const SHORT: usize = 8;

/// Whether a byte of a string is anything but itself: a quote, a backslash, or a control character.
#[inline]
const fn is_special(byte: u8) -> bool {
    byte < 0x20 || byte == b'"' || byte == b'\\'
}

const ONES: u64 = u64::MAX / 255;
const TOPS: u64 = ONES << 7;

/// Eight bytes at once: the top bit of each quote and backslash is set, and none below the first such.
#[inline]
const fn quote_bits(word: u64) -> u64 {
    let quote = word ^ (ONES * b'"' as u64);
    let backslash = word ^ (ONES * b'\\' as u64);
    let quotes = quote.wrapping_sub(ONES) & !quote;
    let backslashes = backslash.wrapping_sub(ONES) & !backslash;
    (quotes | backslashes) & TOPS
}

/// The same for all special bytes.
#[inline]
const fn special_bits(word: u64) -> u64 {
    let controls = word.wrapping_sub(ONES * 0x20) & !word & TOPS;
    controls | quote_bits(word)
}

/// Where the first special byte is, from `at` on. `None` where there is none.
#[inline]
fn next_special(bytes: &[u8], mut at: usize) -> Option<usize> {
    let (words, tail) = bytes.get(at..)?.as_chunks::<8>();
    for (index, word) in words.iter().enumerate() {
        let bits = special_bits(u64::from_le_bytes(*word));
        if bits != 0 {
            return Some(at + bits.trailing_zeros() as usize / 8);
        }
        at += 8;
        if index == SHORT {
            return next_special_far(bytes, at);
        }
    }
    tail.iter()
        .position(|byte| is_special(*byte))
        .map(|offset| at + offset)
}

fn next_special_far(bytes: &[u8], at: usize) -> Option<usize> {
    let mut skipped = at;
    for chunk in bytes.get(at..)?.as_chunks::<CHUNK>().0 {
        if chunk
            .iter()
            .fold(false, |found, byte| found | is_special(*byte))
        {
            break;
        }
        skipped += CHUNK;
    }
    let tail = bytes.get(skipped..)?;
    tail.iter()
        .position(|byte| is_special(*byte))
        .map(|offset| skipped + offset)
}

/// Where the first quote or backslash is, from `at` on: in a string without control characters. Most strings end within
/// eight bytes.
#[inline]
pub(super) fn next_quote(bytes: &[u8], at: usize) -> Option<usize> {
    let rest = bytes.get(at..)?;
    if let Some(word) = rest.first_chunk::<8>() {
        let bits = quote_bits(u64::from_le_bytes(*word));
        if bits != 0 {
            return Some(at + bits.trailing_zeros() as usize / 8);
        }
    }
    memchr::memchr2(b'"', b'\\', rest).map(|offset| at + offset)
}

/// Appends a string as JSON.
pub(crate) fn write_string(out: &mut Vec<u8>, text: &str) {
    let bytes = text.as_bytes();
    out.reserve(bytes.len() + 2);
    out.push(b'"');
    let mut from = 0;
    while let Some(at) = next_special(bytes, from) {
        out.extend_from_slice(bytes.get(from..at).unwrap_or_default());
        if let Some(byte) = bytes.get(at) {
            write_escape(out, *byte);
        }
        from = at + 1;
    }
    out.extend_from_slice(bytes.get(from..).unwrap_or_default());
    out.push(b'"');
}

fn write_escape(out: &mut Vec<u8>, byte: u8) {
    let short = match byte {
        b'"' => b'"',
        b'\\' => b'\\',
        b'\n' => b'n',
        b'\r' => b'r',
        b'\t' => b't',
        0x08 => b'b',
        0x0c => b'f',
        _ => {
            let digit = |nibble: u8| {
                if nibble < 10 {
                    b'0' + nibble
                } else {
                    b'a' + nibble - 10
                }
            };
            out.extend_from_slice(b"\\u00");
            out.push(digit(byte >> 4));
            return out.push(digit(byte & 15));
        }
    };
    out.push(b'\\');
    out.push(short);
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
        fn the_first_special_byte_is_found(text in "[a-z\u{80}-\u{7ff}]{0,200}[\"\\\\\n\u{1f}]?[a-z]{0,100}", at in 0_usize..20) {
            let bytes = text.as_bytes();
            let expected = bytes.iter().enumerate().skip(at).find(|(_, byte)| is_special(**byte));
            prop_assert_eq!(next_special(bytes, at), expected.map(|(index, _)| index));
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
