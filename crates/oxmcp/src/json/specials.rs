//! Special bytes of strings: finding what ends or interrupts them.

/// So many bytes of a string are looked at together.
pub(super) const CHUNK: usize = 16;
/// The same where much is to be looked at: one bit of a word for each byte.
pub(super) const BLOCK: usize = 64;

/// Whether a byte of a string is anything but itself: a quote, a backslash, or a control character.
// Without short cuts between the comparisons, the compiler makes vector instructions of many of them.
#[inline]
const fn is_special(byte: u8) -> bool {
    (byte < 0x20) | (byte == b'"') | (byte == b'\\')
}

/// Where the first special byte of a chunk is.
#[inline]
pub(super) fn first_special(chunk: &[u8; CHUNK]) -> Option<usize> {
    let mut marks = [0; CHUNK];
    for (mark, byte) in marks.iter_mut().zip(chunk) {
        *mark = if is_special(*byte) { u8::MAX } else { 0 };
    }
    let marks = u128::from_le_bytes(marks);
    (marks != 0).then(|| marks.trailing_zeros() as usize / 8)
}

const ONES: u64 = u64::MAX / 255;
const TOPS: u64 = ONES << 7;

/// Eight bytes at once: the top bit of each special byte is set, and none below the first such.
#[inline]
const fn special_bits(word: u64) -> u64 {
    let controls = word.wrapping_sub(ONES * 0x20) & !word;
    let quote = word ^ (ONES * b'"' as u64);
    let quotes = quote.wrapping_sub(ONES) & !quote;
    let backslash = word ^ (ONES * b'\\' as u64);
    let backslashes = backslash.wrapping_sub(ONES) & !backslash;
    (controls | quotes | backslashes) & TOPS
}

/// Where the first special byte is, from `at` on. `None` where there is none.
#[inline]
pub(super) fn next_special(bytes: &[u8], at: usize) -> Option<usize> {
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

/// The same byte by byte.
fn next_special_near(bytes: &[u8], at: usize) -> Option<usize> {
    let mut rest = bytes.get(at..)?.iter();
    let offset = rest.position(|byte| is_special(*byte))?;
    Some(at + offset)
}

/// A bit for each byte of a block: whether it is special.
#[inline]
fn special_mask(block: &[u8; BLOCK]) -> u64 {
    let mut marks = [0; BLOCK];
    for (mark, byte) in marks.iter_mut().zip(block) {
        *mark = u8::from(is_special(*byte));
    }
    let (words, _) = marks.as_chunks::<8>();
    let mut mask = 0;
    for (index, word) in words.iter().enumerate() {
        // The lowest bits of the eight bytes meet in the topmost byte.
        let bits = u64::from_le_bytes(*word).wrapping_mul(0x0102_0408_1020_4080) >> 56;
        mask |= bits << (8 * index);
    }
    mask
}

/// The special bytes of a text one after the other. Where there are many, as in prose and code, this is much faster than
/// to set out for each anew.
pub(super) struct Specials<'a> {
    bytes: &'a [u8],
    /// Up to where it has looked.
    end: usize,
    /// A bit for each byte of the block before that: whether it is special, and was not given yet.
    mask: u64,
}

impl<'a> Specials<'a> {
    /// Those from `at` on.
    pub(super) fn new(bytes: &'a [u8], at: usize) -> Self {
        Self {
            bytes,
            end: at,
            mask: 0,
        }
    }

    /// Where the next one is.
    #[inline]
    pub(super) fn next(&mut self) -> Option<usize> {
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

    /// The same where less than a block is left.
    #[inline(never)]
    fn next_near(&mut self) -> Option<usize> {
        let at = next_special(self.bytes, self.end)?;
        self.end = at + 1;
        Some(at)
    }

    /// Passes over what is before `to`, which is not before what was given last.
    #[inline]
    pub(super) fn pass(&mut self, to: usize) {
        if to >= self.end {
            self.end = to;
            self.mask = 0;
        } else if self.mask != 0 {
            self.mask &= u64::MAX << (to + BLOCK - self.end);
        }
    }
}

/// The whole blocks of a text, each with a bit for each of its bytes that is special, and what follows them.
pub(super) fn blocks(bytes: &[u8]) -> (impl Iterator<Item = (&[u8; BLOCK], u64)>, &[u8]) {
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
        fn the_first_special_byte_is_found(text in "[a-z\u{80}-\u{7ff}]{0,200}[\"\\\\\n\u{1f}]?[a-z]{0,100}", at in 0_usize..20) {
            let bytes = text.as_bytes();
            let expected = bytes.iter().enumerate().skip(at).find(|(_, byte)| is_special(**byte));
            prop_assert_eq!(next_special(bytes, at), expected.map(|(index, _)| index));
        }

        #[test]
        fn all_special_bytes_are_found_but_those_that_are_passed(
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
