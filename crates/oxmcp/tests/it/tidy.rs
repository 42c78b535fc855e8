//! The invariants of ARCHITECTURE.md that a program can check.

#![expect(clippy::unwrap_used, reason = "these are tests")]

mod documents;
mod layers;
mod source;

use source::{Source, files, library};

/// Fails where something is wrong, with all of it.
#[track_caller]
fn none(wrong: &[String]) {
    assert!(wrong.is_empty(), "\n{}\n", wrong.join("\n"));
}

/// The lines of code that have one of the words in them.
fn mentions(sources: &[Source], words: &[&str]) -> Vec<String> {
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

/// Who compares revisions has a copy of what the table knows, and is forgotten when the next revision comes.
#[test]
fn invariant_2_one_place_compares_revisions() {
    let knows = |source: &Source| {
        let path = source.path.strip_prefix("crates/oxmcp-protocol/src/");
        path.is_some_and(|path| path == "method.rs" || path.starts_with("revision/"))
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
fn invariant_4_one_function_turns_an_error_into_the_wires() {
    let count = |word: &str| mentions(&library(), &[word]).len();
    assert_eq!(count("impl From<&Error> for ErrorObject"), 1);
}

#[test]
fn invariant_7_only_stdio_writes_to_stdout_and_nothing_unwraps() {
    let words = ["println!(", "print!(", "dbg!(", ".unwrap()", "unsafe "];
    none(&mentions(&library(), &words));
    let is_stdio = |source: &Source| source.path.contains("/transport/stdio/");
    let others: Vec<_> = library()
        .into_iter()
        .filter(|source| !is_stdio(source))
        .collect();
    none(&mentions(&others, &["io::stdout", "rustix::stdio"]));
}

#[test]
fn invariant_8_files_are_short() {
    const END: usize = 800;
    let sources: Vec<_> = files()
        .into_iter()
        .filter(|source| source.path.ends_with(".rs"))
        .collect();
    let longer_than = |lines: usize| {
        let long = sources
            .iter()
            .filter(move |source| source.text.lines().count() > lines);
        long.map(|source| source.path.clone()).collect::<Vec<_>>()
    };
    none(&longer_than(END));
}

#[test]
fn invariant_8_a_mod_file_is_a_table_of_contents() {
    let mut tables = library();
    tables.retain(|source| source.path.ends_with("/mod.rs"));
    none(&mentions(&tables, &["fn ", "struct ", "enum ", "impl "]));
}

/// std, then others, then this crate: a blank line between blocks, and none within.
#[test]
fn imports_stand_in_three_blocks() {
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
fn nothing_is_left_to_be_done_and_no_registry_is_named() {
    // Put together here, so that this file does not have them in it.
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
fn imports_in_disorder_are_seen() {
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
