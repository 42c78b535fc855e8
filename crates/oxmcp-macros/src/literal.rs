//! The text of string literals, and of doc comments.

use proc_macro::{TokenStream, TokenTree};

use crate::tokens::{flatten, punct, word};

/// The text of a string literal, `"…"` or `r"…"`, with its escapes decoded. `None` for every other token.
pub(crate) fn text(literal: &str) -> Option<String> {
    if let Some(raw) = literal.strip_prefix('r') {
        let raw = raw.trim_matches('#');
        return raw.strip_prefix('"')?.strip_suffix('"').map(str::to_owned);
    }
    let inner = literal.strip_prefix('"')?.strip_suffix('"')?;
    let mut text = String::new();
    let mut chars = inner.chars();
    while let Some(c) = chars.next() {
        if c != '\\' {
            text.push(c);
            continue;
        }
        match chars.next()? {
            'n' => text.push('\n'),
            'r' => text.push('\r'),
            't' => text.push('\t'),
            '0' => text.push('\0'),
            'x' => {
                let code: String = chars.by_ref().take(2).collect();
                text.push(char::from(u8::from_str_radix(&code, 16).ok()?));
            }
            'u' => {
                let code: String = chars.by_ref().take_while(|c| *c != '}').collect();
                let code = u32::from_str_radix(&code.replace(['{', '_'], ""), 16).ok()?;
                text.push(char::from_u32(code)?);
            }
            // A line that continues in the next one.
            '\n' => {
                let rest = chars.as_str().trim_start();
                chars = rest.chars();
            }
            other => text.push(other),
        }
    }
    Some(text)
}

/// The text of `doc = "…"`, the attribute that a doc comment becomes.
pub(crate) fn doc(attribute: TokenStream) -> Option<String> {
    let tokens = flatten(attribute);
    let (name, equals) = (word(tokens.first()), punct(tokens.get(1)));
    match tokens.get(2) {
        Some(TokenTree::Literal(literal))
            if name.as_deref() == Some("doc") && equals == Some('=') && tokens.len() == 3 =>
        {
            text(&literal.to_string())
        }
        _ => None,
    }
}

/// The description in a doc comment: the text before the first heading. Sections such as `# Errors` or `# Examples` are for
/// developers.
pub(crate) fn description(docs: &[String]) -> String {
    let mut lines = Vec::new();
    for doc in docs {
        if doc.contains('\n') {
            lines.extend(block(doc));
        } else {
            lines.push(doc.strip_prefix(' ').unwrap_or(doc).trim_end());
        }
    }
    let mut fence = None;
    let is_heading = |line: &&str| {
        let text = line.trim_start();
        match (fence, opening(text)) {
            (None, opened) => fence = opened,
            // The closing fence is at least as long, and nothing follows it.
            (Some((mark, length)), Some((it, count)))
                if it == mark && count >= length && text.len() == count =>
            {
                fence = None;
            }
            _ => {}
        }
        // Four spaces make the line code.
        fence.is_none() && text.starts_with("# ") && indentation(line) < 4
    };
    let end = lines.iter().position(is_heading).unwrap_or(lines.len());
    let text = lines.get(..end).unwrap_or_default().join("\n");
    text.trim_start_matches('\n').trim_end().to_owned()
}

/// The character that a fence consists of, and how often it is repeated, if the line is a fence.
fn opening(text: &str) -> Option<(char, usize)> {
    let mark = text.chars().next().filter(|it| matches!(it, '`' | '~'))?;
    let count = text.chars().take_while(|it| *it == mark).count();
    // Inline code may be quoted by three backticks, too.
    let is_fence = count >= 3 && !(mark == '`' && text.trim_start_matches('`').contains('`'));
    is_fence.then_some((mark, count))
}

/// The lines of a block comment, without the stars at its side and without the common indentation.
fn block(doc: &str) -> Vec<&str> {
    let mut lines: Vec<_> = doc.lines().map(str::trim_end).collect();
    if lines.last().is_some_and(|last| last.is_empty()) {
        lines.pop();
    }
    // The first line follows the comment's own stars.
    let Some((first, rest)) = lines.split_first_mut() else {
        return lines;
    };
    *first = first.trim_start();
    // As in rustdoc, stars are at the side if each line has one in the same column.
    let star = |line: &&str| {
        line.trim_start()
            .starts_with('*')
            .then(|| indentation(line))
    };
    let column = rest.first().and_then(star);
    if column.is_some() && rest.iter().all(|line| star(line) == column) {
        for line in &mut *rest {
            *line = line.trim_start().strip_prefix('*').unwrap_or(line);
        }
    }
    let indented = rest.iter().filter(|line| !line.is_empty());
    let least = indented.map(|line| indentation(line)).min().unwrap_or(0);
    for line in rest {
        *line = line.get(least..).unwrap_or_default();
    }
    lines
}

/// The number of spaces and tabs with which a line begins.
fn indentation(line: &str) -> usize {
    line.len() - line.trim_start_matches([' ', '\t']).len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn string_literals_are_decoded() {
        for (literal, expected) in [
            (r#""plain""#, Some("plain")),
            (r#""a \"word\" \\ \n\t""#, Some("a \"word\" \\ \n\t")),
            (r#""\u{e9}\x41""#, Some("éA")),
            ("\"two \\\n   lines\"", Some("two lines")),
            ("r#\"raw \\n\"#", Some("raw \\n")),
            ("12", None),
            ("b\"bytes\"", None),
        ] {
            assert_eq!(text(literal).as_deref(), expected, "{literal}");
        }
    }

    #[test]
    fn descriptions_end_at_the_first_heading() {
        let lines = |docs: &[&str]| {
            let docs: Vec<_> = docs.iter().map(|&doc| doc.to_owned()).collect();
            description(&docs)
        };
        assert_eq!(
            lines(&[" One.", "", " Two.", "", " # Errors", " No."]),
            "One.\n\nTwo."
        );
        assert_eq!(lines(&["\n * One.\n * Two.\n "]), "One.\nTwo.");
        assert_eq!(lines(&[" #[1] is not a heading"]), "#[1] is not a heading");
        assert_eq!(
            lines(&[
                " ```sh",
                " # is a comment",
                " ~~~",
                " # too",
                " ```",
                " # Errors"
            ]),
            "```sh\n# is a comment\n~~~\n# too\n```"
        );
        assert_eq!(
            lines(&[" ````", " ```", " # not yet", " `````", " # Errors"]),
            "````\n```\n# not yet\n`````"
        );
    }

    #[test]
    fn descriptions_keep_indentation_and_lists() {
        let lines = |docs: &[&str]| {
            let docs: Vec<_> = docs.iter().map(|&doc| doc.to_owned()).collect();
            description(&docs)
        };
        assert_eq!(
            lines(&[" - One:  ", "   - two", "", "     code"]),
            "- One:\n  - two\n\n    code"
        );
        // Blocks with stars at the side, without, and with bullets only.
        assert_eq!(
            lines(&["\n * One:\n *   * two\n *\n * Three.\n "]),
            "One:\n  * two\n\nThree."
        );
        assert_eq!(
            lines(&["\n    One:\n    * two\n      more\n    "]),
            "One:\n* two\n  more"
        );
        assert_eq!(lines(&[" One:\n * two\n * three "]), "One:\ntwo\nthree");
        // A star in another column shows that they are bullets.
        assert_eq!(
            lines(&[" One:\n * two\n   * three\n "]),
            "One:\n* two\n  * three"
        );
        assert_eq!(lines(&["\n * One.\n * # Errors\n "]), "One.");
        assert_eq!(lines(&[" # Errors"]), "");
    }
}
