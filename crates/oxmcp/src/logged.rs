//! Display of untrusted text in log lines, and truncation. `logged/` has the metrics.

#[cfg(feature = "server")]
pub(crate) mod metrics;

use std::{
    borrow::Cow,
    fmt::{self, Display, Write},
};

/// The maximum number of characters that are written.
const MAX_LENGTH: usize = 1000;

/// Displays a text that may come from a peer, so that it cannot forge other log lines: characters that control a terminal,
/// break a line or change its direction are escaped, and long texts are truncated.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Logged<T>(pub(crate) T);

impl<T: Display> Display for Logged<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut tame = Tame {
            out: f,
            room: MAX_LENGTH,
            is_cut: false,
        };
        // Writing fails beyond the limit, or if the log fails, which `write_char` then reports.
        let written = write!(tame, "{}", self.0);
        if tame.is_cut {
            return f.write_char('…');
        }
        written
    }
}

/// Truncates a text that may come from a peer to this number of characters.
pub(crate) fn cut<'a>(text: impl Into<Cow<'a, str>>, length: usize) -> Cow<'a, str> {
    let text = text.into();
    match text.char_indices().nth(length) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()).into(),
        None => text,
    }
}

struct Tame<'a, 'f> {
    out: &'a mut fmt::Formatter<'f>,
    room: usize,
    is_cut: bool,
}

impl Write for Tame<'_, '_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for c in text.chars() {
            let Some(room) = self.room.checked_sub(1) else {
                self.is_cut = true;
                return Err(fmt::Error);
            };
            self.room = room;
            if is_wild(c) {
                write!(self.out, "{}", c.escape_default())?;
            } else {
                self.out.write_char(c)?;
            }
        }
        Ok(())
    }
}

fn is_wild(c: char) -> bool {
    let turns =
        matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    c.is_control() || turns || matches!(c, '\u{2028}' | '\u{2029}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logged_text_stays_on_one_line() {
        let table = [
            ("plain ä 🐲 \\ \"", "plain ä 🐲 \\ \""),
            ("a\r\nERROR b", "a\\r\\nERROR b"),
            ("\u{1b}[2K\u{9b}1A\u{85}", "\\u{1b}[2K\\u{9b}1A\\u{85}"),
            ("\u{2028}\u{202e}x", "\\u{2028}\\u{202e}x"),
        ];
        for (text, logged) in table {
            assert_eq!(Logged(text).to_string(), logged);
        }
        let long = Logged("é".repeat(1 << 20)).to_string();
        assert_eq!(long, "é".repeat(MAX_LENGTH) + "…");
        let whole = "é".repeat(MAX_LENGTH);
        assert_eq!(Logged(&whole).to_string(), whole);
        assert_eq!(cut("éé", 2), "éé");
        assert_eq!(cut("ééé", 2), "éé…");
    }
}
