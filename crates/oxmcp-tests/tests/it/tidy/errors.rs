//! The page of errors: it lists the text of each error that the SDK, its authorization, apps and its stores make, and no other.

use std::collections::BTreeSet;

use super::{
    none,
    source::{Source, library, read},
};

/// The heading of the errors whose texts are not arguments of a constructor. They only have to be in the code.
const WITH_CODES: &str = "\n## Errors with a code\n";

/// The functions of `Error` that make an error from a text.
const SDK: &[&str] = &[
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

/// The functions of `AuthError` that make an error from a text.
const AUTH: &[&str] = &[
    "configuration",
    "malformed",
    "untrusted",
    "unsupported",
    "unavailable",
    "limit",
    "invalid_token",
    "refused",
    "new",
];

/// What else stands before the text of an error in `oxmcp-auth`: a constructor, and the names of closures.
const OTHER_AUTH: &[&str] = &["Refusal::malformed(", "invalid(", "refuse("];

/// What else stands before the text of an error in `oxmcp-apps`: a function for misuse of a bridge.
const OTHER_APPS: &[&str] = &["misuse("];

/// What else stands before the text of an error in the stores. The kind of an I/O error precedes its text.
const OTHER_STORE: &[&str] = &[
    "io::ErrorKind::",
    "failure::io(",
    "unusable(",
    "failure::unusable(",
];

/// What stands before the text of an error in the code of a crate; nothing for crates whose errors users do not see.
fn beginnings(crate_name: &str) -> Vec<String> {
    let (kind, constructors, others) = match crate_name {
        "oxmcp" | "oxmcp-group" => ("Error", SDK, &[][..]),
        "oxmcp-auth" => ("AuthError", AUTH, OTHER_AUTH),
        "oxmcp-apps" => ("Error", SDK, OTHER_APPS),
        "oxmcp-redis" | "oxmcp-sqlite" => ("Error", SDK, OTHER_STORE),
        _ => return Vec::new(),
    };
    let constructors = constructors.iter().map(|it| format!("{kind}::{it}("));
    let others = others.iter().map(|it| (*it).to_owned());
    constructors.chain(others).collect()
}

/// The texts of the errors that some code of a crate makes, each value in them as `…`.
fn texts(crate_name: &str, code: &str) -> Vec<String> {
    let starts = |beginning: String| {
        let starts: Vec<_> = code
            .match_indices(&beginning)
            .filter(|(start, _)| !is_longer(code, *start))
            .map(|(start, it)| start + it.len())
            .collect();
        starts
    };
    beginnings(crate_name)
        .into_iter()
        .flat_map(starts)
        .filter_map(|start| literal(code.get(start..)?))
        .collect()
}

/// Whether a string in the code is this text.
fn is_in(code: &str, text: &str) -> bool {
    let constant = text.split('…').next().unwrap_or_default();
    let quoted = format!("\"{constant}");
    let mut strings = code.match_indices(&quoted);
    strings.any(|(start, _)| {
        let string = code.get(start + 1..).and_then(shown);
        string.is_some_and(|it| it == text)
    })
}

/// Whether the name that begins here is longer, as `ToolError::` for `Error::`.
fn is_longer(code: &str, start: usize) -> bool {
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
    let made = sources.iter().flat_map(|source| {
        let crate_name = source.crate_name().unwrap_or_default();
        texts(crate_name, &source.code_text())
    });
    let made: BTreeSet<_> = made.collect();
    assert!(made.len() > 400, "the errors of the SDK are not here");
    let page = read("crates/oxmcp/guide/errors.md").text;
    let (page, with_codes) = page.split_once(WITH_CODES).unwrap();
    let listed = rows(page);
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
    for text in rows(with_codes) {
        if !sources.iter().any(|it| is_in(&it.code_text(), &text)) {
            wrong.push(format!("no such error with a code: {text}"));
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
    let found = texts("oxmcp", code);
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
    assert_eq!(texts("oxmcp", &source.code_text()), found);
}

#[test]
fn errors_of_other_crates_are_found() {
    let auth = r#"
        AuthError::malformed(format!("invalid {what}"))
        return Err(invalid("no proof"))
        Refusal::invalid(error, "another function")
        Error::limit("another type")
    "#;
    assert_eq!(texts("oxmcp-auth", auth), ["invalid …", "no proof"]);
    let store = r#"
        Error::limit("too many")
        (ErrorKind::Server(_), _) => (io::ErrorKind::Other, format!("{address} refused")),
        failure::unusable("too old")
    "#;
    let found = texts("oxmcp-redis", store);
    assert_eq!(found, ["too many", "… refused", "too old"]);
    assert!(texts("oxmcp-json", store).is_empty());
}

#[test]
fn strings_in_code_are_compared_whole() {
    let code = r#"format!("Not found: {name}"), "Not found: it", "Not here""#;
    assert!(is_in(code, "Not found: …") && is_in(code, "Not here"));
    assert!(!is_in(code, "Not") && !is_in(code, "Not found: … here"));
}
