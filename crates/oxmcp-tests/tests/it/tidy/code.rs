//! Invariants of the code: one place compares revisions, one place makes error objects, and no code
//! ends the process or writes to its output.

use super::{
    none,
    source::{Source, files, library},
};

/// The lines of code that contain one of the words.
pub(super) fn mentions(sources: &[Source], words: &[&str]) -> Vec<String> {
    let mut found = Vec::new();
    for source in sources {
        for (number, line) in source.code() {
            found.extend(
                words
                    .iter()
                    .filter(|word| line.contains(*word))
                    .map(|word| format!("{}:{number}: {word}", source.path)),
            );
        }
    }
    found
}

/// Code elsewhere that compares revisions duplicates the table, and would be missed when the next revision is added.
#[test]
fn one_place_compares_revisions() {
    let knows = |source: &Source| {
        let places = ["crates/oxmcp-protocol/src/revision/"];
        places.iter().any(|place| source.path.starts_with(place))
    };
    let others: Vec<_> = library()
        .into_iter()
        .filter(|source| !knows(source))
        .collect();
    let words = [
        "Revision::V20",
        "revision < ",
        "revision <= ",
        "revision > ",
        "revision >= ",
        "< revision",
        "<= revision",
        "> revision",
        ">= revision",
        "Self::V20",
    ];
    none(&mentions(&others, &words));
}

#[test]
fn one_function_creates_error_objects() {
    let count = |word: &str| mentions(&library(), &[word]).len();
    assert_eq!(count("impl From<&Error> for ErrorObject"), 1);
}

#[test]
fn only_stdio_writes_to_stdout_without_unwraps() {
    let words = ["println!(", "print!(", "dbg!(", ".unwrap()", "unsafe "];
    none(&mentions(&library(), &words));
    // The command is a program: its results go to stdout.
    let places = ["/transport/stdio/", "/oxmcp-cli/"];
    let is_stdio = |source: &Source| places.iter().any(|it| source.path.contains(it));
    let others: Vec<_> = library()
        .into_iter()
        .filter(|source| !is_stdio(source))
        .collect();
    none(&mentions(&others, &["io::stdout", "rustix::stdio"]));
}

/// A comment that begins with one of these words has a riddle for a subject, in place of a thing in the code.
#[test]
fn comments_start_with_their_subject() {
    let riddles = ["What ", "Who ", "Whom ", "Whose "];
    let mut found = Vec::new();
    for source in library() {
        for (number, line) in source.text.lines().enumerate() {
            let Some(comment) = line.trim_start().strip_prefix("//") else {
                continue;
            };
            let text = comment.trim_start_matches(['/', '!', ' ']);
            if riddles.iter().any(|word| text.starts_with(word)) {
                found.push(format!("{}:{}: {text}", source.path, number + 1));
            }
        }
    }
    none(&found);
}

/// A runtime task is compiled for each type of future, unless the future is boxed.
#[test]
fn http_spawns_boxed_tasks() {
    let is_http = |source: &Source| source.path.contains("/http/");
    let http: Vec<_> = library().into_iter().filter(is_http).collect();
    assert!(!http.is_empty());
    none(&mentions(
        &http,
        &["tokio::spawn(", "task::spawn(", "Handle::spawn"],
    ));
}

/// std, then other crates, then this crate: a blank line between the blocks, and none within them.
#[test]
fn imports_form_three_blocks() {
    let mut wrong = Vec::new();
    for source in files() {
        if source.path.ends_with(".rs") && !blocks_in_order(&source.text) {
            wrong.push(format!(
                "{}: its imports are not in three blocks: std, others, crate",
                source.path
            ));
        }
    }
    none(&wrong);
}

fn blocks_in_order(text: &str) -> bool {
    let mut last: Option<u8> = None;
    let mut blank = false;
    let mut within = false;
    for line in text.lines() {
        if within {
            within = !line.ends_with(';');
        } else if line.is_empty() {
            blank = true;
        } else if let Some(path) = line.strip_prefix("use ") {
            let block = block_of(path, text);
            let fits = match last {
                None => true,
                Some(last) if blank => block > last,
                Some(last) => block == last,
            };
            if !fits {
                return false;
            }
            (last, blank, within) = (Some(block), false, !line.ends_with(';'));
        } else if last.is_some() && !line.starts_with('#') {
            break;
        }
    }
    true
}

fn block_of(path: &str, text: &str) -> u8 {
    let first = path.split("::").next().unwrap_or(path);
    let is_sibling = text.contains(&format!("\nmod {first};"))
        || text.contains(&format!("mod {first} {{"))
        || text.contains(&format!("enum {first} {{"));
    match first {
        "std" | "core" | "alloc" => 0,
        "crate" | "super" | "self" => 2,
        _ if is_sibling => 2,
        _ => 1,
    }
}

#[test]
fn code_has_no_todos_or_registry_names() {
    // The words are joined here, so that this file does not contain them.
    let words = [
        ["TO", "DO"],
        ["FIX", "ME"],
        ["XX", "X "],
        ["crates", ".io"],
        ["pypi", ".org"],
        ["npmjs", ".org"],
        ["npmjs", ".com"],
    ];
    let words = words.map(|parts| parts.concat());
    let mut wrong = Vec::new();
    for source in files() {
        if source.path.ends_with("Cargo.lock") {
            continue;
        }
        for (index, line) in source.text.lines().enumerate() {
            let found = words.iter().filter(|word| line.contains(word.as_str()));
            wrong.extend(found.map(|word| format!("{}:{}: {word}", source.path, index + 1)));
        }
    }
    none(&wrong);
}

#[test]
fn disordered_imports_are_detected() {
    assert!(blocks_in_order(
        "use std::fmt;\n\nuse serde::Serialize;\n\nuse crate::Error;\n"
    ));
    assert!(blocks_in_order(
        "mod a;\n\nuse std::{\n    fmt,\n};\n\nuse a::B;\n\nfn f() {}\nuse std::io;\n"
    ));
    assert!(!blocks_in_order("use serde::Serialize;\n\nuse std::fmt;\n"));
    assert!(!blocks_in_order(
        "use serde::Serialize;\nuse crate::Error;\n"
    ));
    assert!(!blocks_in_order("use std::fmt;\n\nuse std::io;\n"));
}

#[test]
fn words_are_found_only_in_code() {
    let source = Source {
        path: "a.rs".to_owned(),
        text: "let a = b.unwrap(); // print!(\n// .unwrap()\n#[cfg(test)]\nmod tests {\n    c.unwrap()\n}\n"
            .to_owned(),
    };
    assert_eq!(
        mentions(&[source], &[".unwrap()", "print!("]),
        ["a.rs:1: .unwrap()"]
    );
}

/// A lenient deserializer reads a list entry by entry, and an empty array as a schema, only if the field asks for it.
#[test]
fn lists_and_schemas_have_lenient_readers() {
    const READERS: [(&str, &[&str]); 2] = [
        (
            "Vec<",
            &["lenient::list", "lenient::optional_list", "one_or_many"],
        ),
        ("RawJson", &["lenient::schema", "lenient::optional_schema"]),
    ];
    let mut wrong = Vec::new();
    let mut checked = 0;
    for source in library() {
        if !source.path.starts_with("crates/oxmcp-protocol/src/types/") {
            continue;
        }
        let (mut is_read, mut attributes) = (false, String::new());
        for (number, line) in source.code() {
            let field = line.trim().strip_prefix("pub ");
            let field = field.and_then(|field| field.rsplit_once(": "));
            if line.contains("#[derive(") {
                is_read = line.contains("Deserialize");
            } else if line == "}" {
                is_read = false;
            }
            let Some((name, kind)) = field else {
                attributes.push_str(line);
                if line.ends_with('{') {
                    attributes.clear();
                }
                continue;
            };
            let kind = kind.strip_prefix("Option<").unwrap_or(kind);
            let readers = READERS.iter().find(|(it, _)| kind.starts_with(it));
            if let (true, Some((_, readers))) = (is_read, readers) {
                checked += 1;
                if !readers.iter().any(|reader| attributes.contains(reader)) {
                    wrong.push(format!(
                        "{}:{number}: `{name}` has none of the readers {readers:?}",
                        source.path
                    ));
                }
            }
            attributes.clear();
        }
    }
    assert!(checked > 20, "only {checked} fields were found");
    none(&wrong);
}
