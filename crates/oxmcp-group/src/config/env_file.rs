//! The file of environment variables that a server names with `envFile`.

use std::{fs::File, io::Read, path::Path};

/// The maximum size of the file.
const MAX_BYTES: u64 = 1 << 20;

/// Reads the variables of a file.
///
/// # Errors
/// The mistake, if the file cannot be read, or a line of it.
pub(super) fn read(path: &Path) -> Result<Vec<(String, String)>, String> {
    let failed =
        |reason: &dyn std::fmt::Display| format!("could not read {}: {reason}", path.display());
    let mut text = String::new();
    let file = File::open(path).map_err(|error| failed(&error))?;
    let read = file.take(MAX_BYTES + 1).read_to_string(&mut text);
    read.map_err(|error| failed(&error))?;
    if text.len() as u64 > MAX_BYTES {
        return Err(failed(&format!("it has more than {MAX_BYTES} bytes")));
    }
    parse(&text).map_err(|line| format!("{}:{line}: expected NAME=VALUE", path.display()))
}

/// The variables in a text, or the number of the line that is none.
fn parse(text: &str) -> Result<Vec<(String, String)>, usize> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut variables = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let line = line.strip_prefix("export ").unwrap_or(line);
        let (name, value) = line.split_once('=').ok_or(index + 1)?;
        let name = name.trim();
        if name.is_empty() {
            return Err(index + 1);
        }
        variables.push((name.to_owned(), unquoted(value.trim()).to_owned()));
    }
    Ok(variables)
}

/// A value without its quotes, or without the comment behind it.
fn unquoted(value: &str) -> &str {
    for quote in ['"', '\''] {
        let inner = value
            .strip_prefix(quote)
            .and_then(|it| it.split_once(quote));
        if let Some((inner, _)) = inner {
            return inner;
        }
    }
    value
        .split_once(" #")
        .map_or(value, |(value, _)| value.trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_variables() {
        let text = "\u{feff}# comment\n\nA=1\r\nexport B = two words # comment\nC=\"a # b\" # c\nD='x'\nE=\nF=a=b#c\n";
        let expected = [
            ("A", "1"),
            ("B", "two words"),
            ("C", "a # b"),
            ("D", "x"),
            ("E", ""),
            ("F", "a=b#c"),
        ];
        let expected = expected.map(|(name, value)| (name.to_owned(), value.to_owned()));
        assert_eq!(parse(text), Ok(expected.to_vec()));
        assert_eq!(parse("A=1\nB\n"), Err(2));
        assert_eq!(parse("=1"), Err(1));
    }
}
