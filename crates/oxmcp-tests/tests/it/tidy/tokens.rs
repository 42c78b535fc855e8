//! Rust's tokens without comments, literals and tests: as much of a lexer as the reading of imports needs.

/// A token of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Token<'a> {
    Word(&'a str),
    /// `::`
    Path,
    Sign(char),
    /// A string, a character or a number.
    Literal,
}

/// The tokens of a text, without items that are `#[cfg(test)]`.
pub(crate) fn tokens(text: &str) -> Vec<Token<'_>> {
    without_tests(&lex(text))
}

fn lex(mut rest: &str) -> Vec<Token<'_>> {
    let mut found = Vec::new();
    while let Some(first) = rest.chars().next() {
        let (token, length) = next_token(rest, first);
        found.extend(token);
        rest = rest.get(length..).unwrap_or_default();
    }
    found
}

/// The token at the beginning, if there is one, and the length of the text in bytes.
fn next_token(rest: &str, first: char) -> (Option<Token<'_>>, usize) {
    if rest.starts_with("//") {
        return (None, rest.find('\n').unwrap_or(rest.len()));
    }
    if rest.starts_with("/*") {
        return (None, block_comment(rest));
    }
    if let Some(length) = string(rest) {
        return (Some(Token::Literal), length);
    }
    if first == '\'' {
        return character(rest).map_or((None, 1), |length| (Some(Token::Literal), length));
    }
    if is_word(first) {
        let length = rest.find(|c| !is_word(c)).unwrap_or(rest.len());
        let word = rest.get(..length).unwrap_or_default();
        let token = match first.is_ascii_digit() {
            true => Token::Literal,
            false => Token::Word(word),
        };
        return (Some(token), length);
    }
    if rest.starts_with("::") {
        return (Some(Token::Path), 2);
    }
    let token = (!first.is_whitespace()).then_some(Token::Sign(first));
    (token, first.len_utf8())
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

fn block_comment(rest: &str) -> usize {
    let mut depth = 0;
    let mut at = 0;
    while let Some(here) = rest.get(at..).filter(|here| !here.is_empty()) {
        if here.starts_with("/*") {
            (depth, at) = (depth + 1, at + 2);
        } else if here.starts_with("*/") {
            (depth, at) = (depth - 1, at + 2);
            if depth == 0 {
                break;
            }
        } else {
            at += here.chars().next().map_or(1, char::len_utf8);
        }
    }
    at
}

/// The length of the string at the beginning: plain, raw, of bytes.
fn string(rest: &str) -> Option<usize> {
    let prefix = ["br", "cr", "b", "c", "r", ""].into_iter().find(|prefix| {
        let after = rest.strip_prefix(prefix).unwrap_or_default();
        after.starts_with('"')
            || prefix.ends_with('r') && after.trim_start_matches('#').starts_with('"')
    })?;
    let after = rest.get(prefix.len()..)?;
    if prefix.ends_with('r') {
        let hashes = after.find('"')?;
        let end = format!("\"{}", "#".repeat(hashes));
        let text = after.get(hashes + 1..)?;
        let length = text.find(&end)? + end.len();
        return Some(prefix.len() + hashes + 1 + length);
    }
    let mut escaped = false;
    let inner = after.get(1..)?;
    let end = inner.char_indices().find(|(_, c)| {
        let is_end = *c == '"' && !escaped;
        escaped = *c == '\\' && !escaped;
        is_end
    })?;
    Some(prefix.len() + 1 + end.0 + 1)
}

/// The length of the character literal at the beginning. A lifetime is not one.
fn character(rest: &str) -> Option<usize> {
    let mut chars = rest.char_indices().skip(1);
    let (_, first) = chars.next()?;
    let end = match first {
        '\\' => {
            chars.next()?;
            chars.find(|(_, c)| *c == '\'')?
        }
        _ => chars.next().filter(|(_, c)| *c == '\'')?,
    };
    Some(end.0 + 1)
}

fn without_tests<'a>(all: &[Token<'a>]) -> Vec<Token<'a>> {
    let mut kept = Vec::with_capacity(all.len());
    let mut at = 0;
    while let Some(token) = all.get(at) {
        let here = all.get(at..).unwrap_or_default();
        if is_test_attribute(here) {
            at += attribute(here);
            at += item(all.get(at..).unwrap_or_default());
        } else {
            kept.push(*token);
            at += 1;
        }
    }
    kept
}

fn is_test_attribute(tokens: &[Token<'_>]) -> bool {
    use Token::{Sign, Word};
    let begins = |with: &[Token<'_>]| tokens.starts_with(with);
    begins(&[Sign('#'), Sign('['), Word("test"), Sign(']')])
        || begins(&[
            Sign('#'),
            Sign('['),
            Word("cfg"),
            Sign('('),
            Word("test"),
            Sign(')'),
        ])
        || begins(&[
            Sign('#'),
            Sign('['),
            Word("cfg"),
            Sign('('),
            Word("all"),
            Sign('('),
            Word("test"),
        ])
}

/// The length of the attribute at the beginning.
fn attribute(tokens: &[Token<'_>]) -> usize {
    1 + group(tokens.get(1..).unwrap_or_default())
}

/// The length of the group in brackets at the beginning.
pub(crate) fn group(tokens: &[Token<'_>]) -> usize {
    let mut depth = 0_usize;
    for (index, token) in tokens.iter().enumerate() {
        match token {
            Token::Sign('(' | '[' | '{') => depth += 1,
            Token::Sign(')' | ']' | '}') => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth == 0 {
            return index + 1;
        }
    }
    tokens.len()
}

/// The length of the item, statement or field at the beginning.
fn item(tokens: &[Token<'_>]) -> usize {
    let is_field = matches!(tokens, [Token::Word(_), Token::Sign(':'), ..]);
    let mut at = 0;
    while let Some(token) = tokens.get(at) {
        match token {
            Token::Sign(';') => return at + 1,
            Token::Sign(',') if is_field => return at + 1,
            Token::Sign('}' | ')' | ']') => return at,
            Token::Sign('{') => return at + group(tokens.get(at..).unwrap_or_default()),
            Token::Sign('(' | '[') => at += group(tokens.get(at..).unwrap_or_default()),
            _ => at += 1,
        }
    }
    at
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<&str> {
        let word = |token: &Token<'_>| match *token {
            Token::Word(word) => Some(word.to_owned()),
            _ => None,
        };
        let found: Vec<_> = tokens(text).iter().filter_map(word).collect();
        found.into_iter().map(|word| &*word.leak()).collect()
    }

    #[test]
    fn comments_literals_and_lifetimes_are_not_words() {
        let text = r##"a /* b /* c */ d */ e "f \" g" r#"h " i"# 'j' '\'' 'k: loop // l
            b"m" m::n 12u8"##;
        assert_eq!(words(text), ["a", "e", "k", "loop", "m", "n"]);
    }

    #[test]
    fn tests_are_skipped() {
        let text = "#[cfg(test)]\nmod tests { use a; fn b() {} }\nfn c() {}\n#[cfg(test)] use d;\n#[test]\nfn e(f: [u8; 3]) {}\nstruct G { #[cfg(test)] h: u8, i: u8 }";
        assert_eq!(words(text), ["fn", "c", "struct", "G", "i", "u8"]);
        assert_eq!(
            words("#[cfg(any(test, fuzzing))] mod a;"),
            ["cfg", "any", "test", "fuzzing", "mod", "a"]
        );
    }
}
