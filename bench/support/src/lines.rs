//! A buffer of lines.

/// A buffer that is filled with bytes and emptied line by line, and scans each byte only once.
#[derive(Debug, Default)]
pub struct Lines {
    buffer: Vec<u8>,
    /// The bytes of `buffer` before this index were returned.
    start: usize,
    /// The index up to which there is no newline after `start`.
    scanned: usize,
}

impl Lines {
    /// The buffer to which received bytes are appended, with room for at least the contents of a pipe.
    pub fn room(&mut self) -> &mut Vec<u8> {
        if self.start > 0 {
            self.buffer.drain(..self.start);
            self.scanned -= self.start;
            self.start = 0;
        }
        self.buffer.reserve(64 * 1024);
        &mut self.buffer
    }

    /// The next complete line, without its newline.
    pub fn next_line(&mut self) -> Option<&[u8]> {
        let fresh = self.buffer.get(self.scanned..)?;
        let Some(index) = memchr::memchr(b'\n', fresh) else {
            self.scanned = self.buffer.len();
            return None;
        };
        let (start, end) = (self.start, self.scanned + index);
        self.start = end + 1;
        self.scanned = end + 1;
        self.buffer.get(start..end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_whole_for_any_chunking() {
        let text = b"one\ntwo\n\nthe fourth one\nhalf";
        for size in 1..text.len() {
            let (mut lines, mut out) = (Lines::default(), Vec::new());
            for chunk in text.chunks(size) {
                lines.room().extend_from_slice(chunk);
                while let Some(line) = lines.next_line() {
                    out.push(String::from_utf8(line.to_vec()).unwrap());
                }
            }
            assert_eq!(
                out,
                ["one", "two", "", "the fourth one"],
                "in pieces of {size}"
            );
        }
    }
}
