//! Newline framing: a decoder from bytes to borrowed lines of bounded length.

use std::ops::Range;

/// The initial room for a read, in bytes: enough for several ordinary messages.
const SMALL_BUFFER: usize = 8 << 10;
/// The room for a read if reads keep filling it, in bytes: the capacity of a Linux pipe.
const LARGE_BUFFER: usize = 64 << 10;
/// The minimum room for a read, in bytes; less is not worth the system call.
const MIN_SPARE: usize = 4 << 10;
/// The capacity in bytes above which the buffer is freed as soon as it is empty; a smaller one may serve the next large
/// line as well.
const KEPT_CAPACITY: usize = 2 << 20;
/// The number of bytes kept of a line that is too long: enough to see which message it is.
const KEPT_OF_TOO_LONG: usize = 256;
/// The number of reads after which the size of the buffer is compared with its use.
const REVIEW_READS: u32 = 64;

/// Splits a stream of bytes into lines.
///
/// The caller reads into [`read_buffer`](Self::read_buffer), then takes lines by [`next`](Self::next) and
/// [`line`](Self::line) until there are none, and calls [`finish`](Self::finish) at the end of the stream. Each byte is
/// scanned once and moved at most once. Lines end with `\n` or `\r\n`; blank lines are skipped.
#[derive(Debug)]
pub struct Lines {
    buffer: Vec<u8>,
    /// The offset in `buffer` of the first line that was not returned yet.
    start: usize,
    /// The offset up to which that line is known to have no newline.
    scanned: usize,
    /// The maximum length of a line, in bytes, without its line ending.
    limit: usize,
    state: State,
    sizing: BufferSizing,
    /// The beginning of the last line that was too long.
    beginning: Vec<u8>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Reading,
    /// Within a line longer than the limit. Bytes are dropped up to the next newline.
    Skipping,
    /// The stream has ended; the rest of the buffer is the last line.
    Ended,
}

/// Statistics of reads, by which the buffer is sized.
#[derive(Debug)]
struct BufferSizing {
    /// The minimum room for the next read, in bytes.
    target: usize,
    /// The length of the buffer and its spare capacity when the last read began.
    offered: Option<(usize, usize)>,
    /// The maximum length of the buffer since the last review.
    peak: usize,
    reads: u32,
}

/// A line, or the report that a line is too long.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(
    clippy::exhaustive_enums,
    reason = "the standard that it follows is final"
)]
pub enum NextLine {
    /// A line; [`Lines::line`] returns its bytes. The range is valid until the next call of [`Lines::read_buffer`].
    Line(Range<usize>),
    /// A line longer than the limit. It is reported once, as soon as its length is known to exceed the limit.
    TooLong,
}

impl Lines {
    /// Creates a splitter for lines of at most `limit` bytes.
    #[must_use]
    pub fn new(limit: usize) -> Self {
        Self {
            buffer: Vec::new(),
            start: 0,
            scanned: 0,
            limit,
            state: State::Reading,
            sizing: BufferSizing {
                target: SMALL_BUFFER,
                offered: None,
                peak: 0,
                reads: 0,
            },
            beginning: Vec::new(),
        }
    }

    /// Returns the buffer to which the caller appends the bytes that it reads, with spare capacity for the next read.
    pub fn read_buffer(&mut self) -> &mut Vec<u8> {
        // A pending read calls this many times.
        if self.is_unchanged() {
            return &mut self.buffer;
        }
        self.learn();
        self.compact();
        self.review();
        let spare = self.buffer.capacity() - self.buffer.len();
        if spare < MIN_SPARE || self.buffer.capacity() < self.sizing.target {
            self.grow();
        }
        let spare = self.buffer.capacity() - self.buffer.len();
        self.sizing.offered = Some((self.buffer.len(), spare));
        &mut self.buffer
    }

    /// Takes the next line, if it is complete.
    #[inline]
    #[expect(
        clippy::should_implement_trait,
        reason = "what follows `None` depends on what is read next"
    )]
    pub fn next(&mut self) -> Option<NextLine> {
        // The check for unscanned bytes is cheaper than the call of `find`.
        if self.scanned == self.buffer.len() && self.state == State::Reading {
            return None;
        }
        self.find()
    }

    fn find(&mut self) -> Option<NextLine> {
        loop {
            let unscanned = self.buffer.get(self.scanned..).unwrap_or_default();
            let Some(length) = memchr::memchr(b'\n', unscanned) else {
                return self.rest();
            };
            let line = self.start..self.scanned + length;
            self.start = line.end + 1;
            self.scanned = self.start;
            if self.state == State::Skipping {
                self.state = State::Reading;
            } else if let Some(found) = self.judge(line) {
                return Some(found);
            }
        }
    }

    /// Returns whether no complete line is left and the stream had no more bytes: the last read did not fill the buffer.
    #[must_use]
    pub fn is_drained(&self) -> bool {
        let had_no_more = |(length, room)| self.buffer.len() < length + room;
        self.scanned == self.buffer.len() && self.sizing.offered.is_some_and(had_no_more)
    }

    /// Returns the bytes of a line that [`next`](Self::next) returned, without its line ending.
    #[must_use]
    pub fn line(&self, line: Range<usize>) -> &[u8] {
        self.buffer.get(line).unwrap_or_default()
    }

    /// Returns the beginning of the last line that was too long.
    #[must_use]
    pub fn beginning(&self) -> &[u8] {
        &self.beginning
    }

    /// Marks the end of the stream: the remaining bytes are a line, although no newline follows.
    pub fn finish(&mut self) {
        if self.state == State::Skipping {
            self.drop_all();
        }
        self.state = State::Ended;
    }

    /// Handles the bytes after the last newline.
    fn rest(&mut self) -> Option<NextLine> {
        let rest = self.start..self.buffer.len();
        self.scanned = rest.end;
        match self.state {
            State::Ended => {
                self.start = rest.end;
                self.judge(rest)
            }
            State::Skipping => {
                self.drop_all();
                None
            }
            // One byte more than the limit can still be the `\r` of a line ending.
            State::Reading if rest.len() > self.limit.saturating_add(1) => {
                let found = self.too_long(rest);
                self.drop_all();
                self.state = State::Skipping;
                Some(found)
            }
            State::Reading => None,
        }
    }

    /// Classifies a complete line: too long, blank (`None`), or a line.
    fn judge(&mut self, mut line: Range<usize>) -> Option<NextLine> {
        if self.line(line.clone()).last() == Some(&b'\r') {
            line.end -= 1;
        }
        if line.len() > self.limit {
            return Some(self.too_long(line));
        }
        let blank = self.line(line.clone()).iter().all(u8::is_ascii_whitespace);
        (!blank).then_some(NextLine::Line(line))
    }

    fn too_long(&mut self, line: Range<usize>) -> NextLine {
        let end = line.end.min(line.start + KEPT_OF_TOO_LONG);
        let beginning = self.buffer.get(line.start..end).unwrap_or_default();
        self.beginning = beginning.to_vec();
        NextLine::TooLong
    }

    fn drop_all(&mut self) {
        self.buffer.clear();
        self.start = 0;
        self.scanned = 0;
    }

    /// Whether room was offered for a read, and the buffer has not changed since.
    fn is_unchanged(&self) -> bool {
        let now = (
            self.buffer.len(),
            self.buffer.capacity() - self.buffer.len(),
        );
        self.start == 0 && self.sizing.offered == Some(now)
    }

    /// Gives reads more room if the last one filled all of its room.
    fn learn(&mut self) {
        let Some((length, room)) = self.sizing.offered.take() else {
            return;
        };
        if self.buffer.len() >= length + room {
            self.sizing.target = (self.sizing.target * 2).min(LARGE_BUFFER);
        }
        self.sizing.peak = self.sizing.peak.max(self.buffer.len());
        self.sizing.reads += 1;
    }

    /// Moves the incomplete line to the front of the buffer. This happens at most once per line, since the line begins
    /// there from then on.
    fn compact(&mut self) {
        if self.start > 0 {
            self.buffer.drain(..self.start);
            self.scanned -= self.start;
            self.start = 0;
        }
    }

    /// Frees memory that is no longer needed.
    fn review(&mut self) {
        if self.buffer.is_empty() && self.buffer.capacity() > KEPT_CAPACITY {
            self.buffer = Vec::new();
        }
        if self.sizing.reads >= REVIEW_READS && self.buffer.is_empty() {
            if self.sizing.peak < self.buffer.capacity() / 4 {
                self.buffer = Vec::new();
                self.sizing.target = (self.sizing.peak * 2).clamp(SMALL_BUFFER, LARGE_BUFFER);
            }
            self.sizing.peak = 0;
            self.sizing.reads = 0;
        }
    }

    /// Doubles the buffer, up to the size that the longest line needs.
    fn grow(&mut self) {
        let longest = self.limit.saturating_add(LARGE_BUFFER);
        let least = self.buffer.len() + MIN_SPARE;
        let capacity = (self.buffer.capacity() * 2)
            .min(longest)
            .max(self.sizing.target)
            .max(least);
        self.buffer.reserve_exact(capacity - self.buffer.len());
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const TOO_LONG: &str = "<too long>";

    /// The lines of `input` when it arrives in chunks of the sizes `chunks`, which repeat.
    fn split(input: &[u8], limit: usize, chunks: &[usize]) -> Vec<String> {
        let mut lines = Lines::new(limit);
        let mut found = Vec::new();
        let mut sizes = chunks.iter().cycle();
        let mut rest = input;
        loop {
            while let Some(next) = lines.next() {
                found.push(match next {
                    NextLine::Line(line) => String::from_utf8_lossy(lines.line(line)).into_owned(),
                    NextLine::TooLong => TOO_LONG.to_owned(),
                });
            }
            if lines.state == State::Ended {
                return found;
            }
            let buffer = lines.read_buffer();
            let spare = buffer.capacity() - buffer.len();
            assert!(spare >= MIN_SPARE);
            let (chunk, tail) = rest.split_at((*sizes.next().unwrap()).min(rest.len()).min(spare));
            buffer.extend_from_slice(chunk);
            rest = tail;
            if chunk.is_empty() {
                lines.finish();
            }
        }
    }

    /// The simplest implementation that gives the same lines.
    fn model(input: &[u8], limit: usize) -> Vec<String> {
        let mut lines = Vec::new();
        for line in input.split(|byte| *byte == b'\n') {
            let line = line.strip_suffix(b"\r").unwrap_or(line);
            if line.len() > limit {
                lines.push(TOO_LONG.to_owned());
            } else if !line.trim_ascii().is_empty() {
                lines.push(String::from_utf8_lossy(line).into_owned());
            }
        }
        lines
    }

    #[test]
    fn fully_consumed_short_read_drains_the_stream() {
        let mut lines = Lines::new(1 << 20);
        assert!(!lines.is_drained(), "the stream has not been polled");
        lines.read_buffer().extend_from_slice(b"{}\n[]\n{\"half");
        assert!(lines.next().is_some() && !lines.is_drained());
        assert!(lines.next().is_some() && !lines.is_drained());
        assert!(lines.next().is_none() && lines.is_drained());
        let buffer = lines.read_buffer();
        let spare = buffer.capacity() - buffer.len();
        buffer.extend(std::iter::repeat_n(b'\n', spare));
        while lines.next().is_some() {}
        assert!(!lines.is_drained(), "the stream may have had more");
    }

    #[test]
    fn streams_are_split_into_lines() {
        let cases: &[(&str, &[&str])] = &[
            ("", &[]),
            ("\n\n \t\r\n", &[]),
            ("{}\n", &["{}"]),
            ("{}\r\n[]\n", &["{}", "[]"]),
            ("{}\n\n{\"a\":1}", &["{}", "{\"a\":1}"]),
            ("{\"half", &["{\"half"]),
            ("12345678\n12345678\r\n", &["12345678", "12345678"]),
            ("123456789\nok\n", &[TOO_LONG, "ok"]),
            ("123456789\r\nok", &[TOO_LONG, "ok"]),
            ("ok\n12345678901234567890", &["ok", TOO_LONG]),
            ("1234567\r\r\n", &["1234567\r"]),
        ];
        for (input, expected) in cases {
            for size in 1..=input.len().max(1) {
                assert_eq!(
                    split(input.as_bytes(), 8, &[size]),
                    *expected,
                    "{input:?} by {size}"
                );
            }
        }
    }

    #[test]
    fn line_beyond_the_limit_is_not_buffered() {
        let mut lines = Lines::new(1 << 20);
        let mut reported = 0;
        for _ in 0..100 {
            let buffer = lines.read_buffer();
            buffer.resize(buffer.len() + 64 * 1024, b'x');
            while let Some(found) = lines.next() {
                assert_eq!(found, NextLine::TooLong);
                reported += 1;
            }
        }
        assert_eq!(reported, 1);
        assert!(lines.buffer.capacity() <= (1 << 20) + 2 * LARGE_BUFFER);
        lines.read_buffer().extend_from_slice(b"\n{}\n");
        let Some(NextLine::Line(line)) = lines.next() else {
            panic!("the next line is whole again");
        };
        assert_eq!(lines.line(line), b"{}");
    }

    #[test]
    fn buffer_shrinks_after_a_huge_line() {
        let mut lines = Lines::new(usize::MAX);
        let huge = vec![b'x'; 8 << 20];
        lines.read_buffer().extend_from_slice(&huge);
        lines.read_buffer().push(b'\n');
        assert!(matches!(lines.next(), Some(NextLine::Line(line)) if line.len() == huge.len()));
        assert!(lines.read_buffer().capacity() <= LARGE_BUFFER);
    }

    #[test]
    fn buffer_shrinks_after_large_lines() {
        let mut lines = Lines::new(usize::MAX);
        let mut large = vec![b'x'; 1 << 20];
        large.push(b'\n');
        for _ in 0..3 {
            lines.read_buffer().extend_from_slice(&large);
            assert!(lines.next().is_some());
            assert!(
                lines.read_buffer().capacity() > 1 << 20,
                "it is kept for the next one"
            );
        }
        for _ in 0..2 * REVIEW_READS {
            lines.read_buffer().extend_from_slice(b"{}\n");
            assert!(lines.next().is_some());
        }
        assert!(lines.read_buffer().capacity() <= LARGE_BUFFER);
    }

    #[test]
    fn buffer_grows_after_full_reads() {
        let mut lines = Lines::new(usize::MAX);
        let mut capacities = Vec::new();
        for _ in 0..5 {
            let buffer = lines.read_buffer();
            capacities.push(buffer.capacity());
            let full = buffer.capacity();
            buffer.resize(full - 1, b'x');
            buffer.push(b'\n');
            assert!(lines.next().is_some());
        }
        assert_eq!(
            capacities,
            [8 << 10, 16 << 10, 32 << 10, 64 << 10, 64 << 10]
        );
    }

    /// Random text with many newlines and carriage returns.
    fn text() -> impl Strategy<Value = Vec<u8>> {
        let piece = prop_oneof![
            3 => Just(b"\n".to_vec()),
            2 => Just(b"\r\n".to_vec()),
            1 => Just(b"\r".to_vec()),
            1 => Just(b" ".to_vec()),
            4 => prop::collection::vec(any::<u8>(), 0..12),
        ];
        prop::collection::vec(piece, 0..60).prop_map(|pieces| pieces.concat())
    }

    proptest! {
        #[test]
        fn any_chunking_gives_the_same_lines(
            input in text(),
            limit in 0usize..20,
            chunks in prop::collection::vec(1usize..40, 1..8),
        ) {
            prop_assert_eq!(split(&input, limit, &chunks), model(&input, limit));
        }
    }
}
