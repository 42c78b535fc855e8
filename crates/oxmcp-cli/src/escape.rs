//! Makes text of servers safe for a terminal. A server may be hostile: escape sequences in a description could rewrite what was
//! printed before, set the clipboard, or hide instructions.

use std::fmt::Write;

/// Escapes control characters and invisible formatting characters, except for line feeds and tabs.
pub(crate) fn block(text: &str) -> String {
    escape(text, |it| matches!(it, '\n' | '\t'))
}

/// Escapes control characters and invisible formatting characters, line feeds too.
pub(crate) fn line(text: &str) -> String {
    escape(text, |_| false)
}

/// JSON, with the characters that a terminal may act on escaped within its strings. It stays the same value.
pub(crate) fn json(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for it in text.chars() {
        if it == '\n' || !is_dangerous(it) {
            out.push(it);
            continue;
        }
        for unit in it.encode_utf16(&mut [0; 2]) {
            // Writing to a string never fails.
            let _ = write!(out, "\\u{unit:04x}");
        }
    }
    out
}

fn escape(text: &str, is_kept: impl Fn(char) -> bool) -> String {
    let mut out = String::with_capacity(text.len());
    for it in text.chars() {
        if is_kept(it) || !is_dangerous(it) {
            out.push(it);
        } else if it == '\n' {
            out.push_str("\\n");
        } else {
            // Writing to a string never fails.
            let _ = write!(out, "\\u{{{:x}}}", u32::from(it));
        }
    }
    out
}

/// Whether a terminal may act on the character, or show nothing or something else in its place.
pub(crate) fn is_dangerous(it: char) -> bool {
    it.is_control()
        || matches!(it,
            '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
            | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e0fff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escape_sequences_become_visible() {
        assert_eq!(block("a\u{1b}[2Jb\r\n\tc"), "a\\u{1b}[2Jb\\u{d}\n\tc");
        assert_eq!(line("a\nb"), "a\\nb");
        assert_eq!(line("\u{202e}abc\u{e0041}"), "\\u{202e}abc\\u{e0041}");
        assert_eq!(line("Grüße, 世界 👍"), "Grüße, 世界 👍");
    }
}
