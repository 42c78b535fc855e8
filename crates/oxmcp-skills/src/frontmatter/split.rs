//! The boundaries of the frontmatter in a `SKILL.md`.

/// Returns the text between the lines `---`, and the text after them. `None` if the file does not begin with such a block.
///
/// The first line is exactly `---`, perhaps after a byte order mark, as most hosts require; the last one may end in blanks.
pub(super) fn split(text: &str) -> Option<(&str, &str)> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let inner = text.strip_prefix("---")?;
    let inner = inner
        .strip_prefix("\r\n")
        .or_else(|| inner.strip_prefix('\n'))?;
    let mut at = 0;
    for line in inner.split_inclusive('\n') {
        let end = at + line.len();
        let bare = line.strip_suffix('\n').unwrap_or(line);
        let bare = bare.strip_suffix('\r').unwrap_or(bare);
        if bare.trim_end_matches([' ', '\t']) == "---" {
            return Some((inner.get(..at)?, inner.get(end..)?));
        }
        at = end;
    }
    None
}
