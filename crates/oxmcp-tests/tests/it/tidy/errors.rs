//! The page of errors: it lists the text of each error that the SDK makes, and no other.

use std::collections::BTreeSet;

use super::{
    none,
    source::{Source, library, read},
};

/// The functions that make an error of the SDK from a text.
const CONSTRUCTORS: &[&str] = &[
    "protocol",
    "invalid_params",
    "invalid_request",
    "internal",
    "timeout",
    "cancelled",
    "closed",
    "decode",
    "unsupported",
    "misuse",
    "tool",
    "limit",
    "declined",
    "network",
    "unreachable",
    "http",
    "failed_login",
    "interaction_required",
    "new",
];

/// The texts of the errors that some code makes, each value in them as `…`.
fn texts(code: &str) -> Vec<String> {
    let calls = CONSTRUCTORS.iter().flat_map(|constructor| {
        let call = format!("Error::{constructor}(");
        let starts: Vec<_> = code
            .match_indices(&call)
            .filter(|(start, _)| !is_of_another_type(code, *start))
            .map(|(start, call)| start + call.len())
            .collect();
        starts
    });
    calls
        .filter_map(|start| literal(code.get(start..)?))
        .collect()
}

/// Whether the name before `Error::` is longer, as in `ToolError::`.
fn is_of_another_type(code: &str, start: usize) -> bool {
    let before = code.get(..start).and_then(|it| it.chars().next_back());
    before.is_some_and(|it| it.is_alphanumeric() || it == '_' || it == ':')
}

/// The first string in the arguments of a call, as the page shows it.
fn literal(arguments: &str) -> Option<String> {
    let mut depth = 1_usize;
    let mut chars = arguments.chars();
    loop {
        match chars.next()? {
            '(' => depth += 1,
            ')' => {
                depth -= 1;
                if depth == 0 {
                    return None;
                }
            }
            '"' => return shown(chars.as_str()),
            _ => {}
        }
    }
}

/// A string from behind its first quotation mark to the last, each value in it as `…`.
fn shown(string: &str) -> Option<String> {
    let mut text = String::new();
    let mut chars = string.chars().peekable();
    loop {
        match chars.next()? {
            '"' => return Some(text),
            '\\' => match chars.next()? {
                '\n' => while chars.next_if(|it| it.is_whitespace()).is_some() {},
                'n' => text.push(' '),
                escaped => text.push(escaped),
            },
            '{' if chars.next_if_eq(&'{').is_some() => text.push('{'),
            '}' if chars.next_if_eq(&'}').is_some() => text.push('}'),
            '{' => {
                text.push('…');
                let _value = chars.by_ref().take_while(|it| *it != '}').count();
            }
            other => text.push(other),
        }
    }
}

/// The texts in the first column of the page's tables.
fn rows(page: &str) -> Vec<String> {
    let rows = page.lines().filter_map(|line| line.strip_prefix("| ``"));
    let rows = rows.filter_map(|row| row.split_once("`` |"));
    rows.map(|(text, _)| text.trim().replace("\\|", "|"))
        .collect()
}

#[test]
fn each_error_has_its_row() {
    let sources = library();
    let sdk = sources.iter().filter(|it| it.in_crate().is_some());
    let made: BTreeSet<_> = sdk.flat_map(|it| texts(&it.code_text())).collect();
    assert!(made.len() > 200, "the errors of the SDK are not here");
    let listed = rows(&read("crates/oxmcp/guide/errors.md").text);
    let mut wrong = Vec::new();
    for text in &made {
        if !listed.contains(text) {
            wrong.push(format!("no row: {text}"));
        }
    }
    for (index, text) in listed.iter().enumerate() {
        if !made.contains(text) {
            wrong.push(format!("no such error: {text}"));
        }
        if listed.iter().skip(index + 1).any(|it| it == text) {
            wrong.push(format!("two rows: {text}"));
        }
    }
    none(&wrong);
}

#[test]
fn error_texts_are_found() {
    let code = r#"
        Error::limit(format!("the {kind} {name:?} is \"too\" \
            long:\n{{}}"))
        ToolError::new("another type")
        Error::closed(reason)
        Error::protocol(ErrorCode::from(3), "a code (of one's own)")
    "#;
    let found = texts(code);
    assert_eq!(
        found,
        ["a code (of one's own)", r#"the … … is "too" long: {}"#]
    );
    let page = "| text | cause |\n| `` a \\| b `` | c |\n| ``d`` | e |\n";
    assert_eq!(rows(page), ["a | b", "d"]);
    let source = Source {
        path: String::new(),
        text: code.to_owned(),
    };
    assert_eq!(texts(&source.code_text()), found);
}
