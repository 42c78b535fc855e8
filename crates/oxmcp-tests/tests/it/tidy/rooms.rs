//! The folders and their files: the entries of a folder, the length of a file, its header, and the contents of a `mod.rs`.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    circles::report,
    modules::File,
    none,
    source::{Source, files, library, read},
};

/// The most entries of a folder, beside `mod.rs` and tests.
const ENTRIES: usize = 14;

/// The folder with one file for each page of the specification, which has no bound on its entries.
const PAGES: &str = "crates/oxmcp-protocol/src/types";

/// The most lines of a file, with its tests.
const LINES: usize = 800;

/// The most lines of ARCHITECTURE.md, and the most characters of one of them.
const LINES_OF_MAP: usize = 100;
const WIDTH_OF_MAP: usize = 140;

/// The most lines of a `mod.rs` that are neither documentation nor imports.
const LINES_IN_MOD: usize = 60;

/// The words that a header must not begin with: it names what the code is.
const NO_BEGINNING: &[&str] = &[
    "what", "who", "whom", "whose", "which", "how", "when", "where", "why",
];

/// All Rust files of the repository: the crates, their tests, the examples and the tools.
fn sources() -> Vec<Source> {
    let mut all = files();
    all.retain(|source| source.path.ends_with(".rs"));
    all
}

/// The folders with too many entries.
fn crowded<'a>(paths: impl Iterator<Item = &'a str>) -> Vec<String> {
    let mut folders: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for path in paths {
        let mut end = path.len();
        while let Some((folder, name)) = path.get(..end).and_then(|it| it.rsplit_once('/')) {
            let is_test = name == "tests" || name.ends_with("tests.rs");
            if !is_test && !["mod.rs", "lib.rs", "main.rs"].contains(&name) {
                // A folder and the file of its module count as one entry.
                folders
                    .entry(folder)
                    .or_default()
                    .insert(name.trim_end_matches(".rs"));
            }
            end = folder.len();
        }
    }
    let too_many =
        |(folder, names): &(&str, BTreeSet<&str>)| names.len() > ENTRIES && *folder != PAGES;
    let say =
        |(folder, names): (&str, BTreeSet<&str>)| format!("{folder}: {} entries", names.len());
    folders.into_iter().filter(too_many).map(say).collect()
}

#[test]
fn no_folder_has_more_than_fourteen_entries() {
    // The cases of `trybuild` are in one folder, each with the compiler's output.
    let sources: Vec<_> = sources()
        .into_iter()
        .filter(|source| !source.path.contains("/tests/ui/"))
        .collect();
    none(&crowded(sources.iter().map(|source| source.path.as_str())));
}

#[test]
fn files_have_a_bounded_number_of_lines() {
    let long = sources().into_iter().filter_map(|source| {
        let lines = source.text.lines().count();
        (lines > LINES).then(|| format!("{}: {lines} lines", source.path))
    });
    none(&long.collect::<Vec<_>>());
    let map = read("ARCHITECTURE.md").text;
    let lines = map.lines().count();
    assert!(
        lines <= LINES_OF_MAP,
        "ARCHITECTURE.md: {lines} lines; details live in the `mod.rs` of their module"
    );
    for line in map.lines() {
        let width = line.chars().count();
        assert!(
            width <= WIDTH_OF_MAP,
            "ARCHITECTURE.md: {width} characters in {line}"
        );
    }
}

/// Files that import each other in a circle can only be read together. A re-export counts for the file that defines the item.
#[test]
fn files_have_no_import_circles() {
    let all = sources();
    let mut folders: BTreeMap<&str, Vec<File<'_>>> = BTreeMap::new();
    for source in &all {
        if let Some((folder, path)) = source.path.split_once("/src/") {
            let file = File {
                path,
                text: &source.text,
            };
            folders.entry(folder).or_default().push(file);
        }
    }
    let wrong = folders.iter().flat_map(|(folder, files)| {
        let circles = report(files);
        circles
            .into_iter()
            .map(move |circle| format!("{folder}/src: {circle}"))
    });
    none(&wrong.collect::<Vec<_>>());
}

/// The violation in the header of a file, if there is one.
fn header(text: &str) -> Option<&'static str> {
    let Some(line) = text
        .lines()
        .next()
        .and_then(|line| line.strip_prefix("//! "))
    else {
        return Some("it does not begin with //!");
    };
    let first = line
        .split(|c: char| !c.is_alphabetic())
        .next()
        .unwrap_or_default()
        .to_lowercase();
    if NO_BEGINNING.contains(&first.as_str()) {
        return Some("its header does not say what the code is, but what, who, how, when or where");
    }
    let mut header = text.lines().take_while(|line| line.starts_with("//!"));
    let is_sentence = header.any(|line| line.contains(['.', ':', '?', '|']));
    (!is_sentence).then_some("its header is no sentence")
}

#[test]
fn each_file_has_a_header() {
    let wrong = sources().into_iter().filter_map(|source| {
        let is_case = source.path.contains("/tests/ui/") || source.path.starts_with("fuzz/");
        let wrong = header(&source.text).filter(|_| !is_case)?;
        Some(format!("{}: {wrong}", source.path))
    });
    none(&wrong.collect::<Vec<_>>());
}

/// The violations of a `mod.rs`, which says what its module is for, and repeats neither the headers of its files nor their code.
fn contents(text: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    let source = Source {
        path: String::new(),
        text: text.to_owned(),
    };
    let header: String = text
        .lines()
        .take_while(|line| line.starts_with("//!"))
        .collect();
    let mut lines = 0;
    let mut in_import = false;
    for (_, line) in source.code() {
        let item = ["pub(crate) ", "pub(super) ", "pub "]
            .iter()
            .find_map(|visibility| line.strip_prefix(visibility))
            .unwrap_or(line);
        if let Some(child) = item
            .strip_prefix("mod ")
            .and_then(|rest| rest.strip_suffix(';'))
        {
            let row = [".rs` |", "/` |", "` |"].map(|end| format!("| `{child}{end}"));
            if row.iter().any(|row| header.contains(row)) {
                wrong.push(format!("{child} has its own header"));
            }
            continue;
        }
        in_import |= item.starts_with("use ");
        if !in_import && !line.is_empty() && !line.starts_with('#') {
            lines += 1;
        }
        in_import &= !line.ends_with(';');
    }
    if lines > LINES_IN_MOD {
        wrong.push(format!(
            "{lines} lines that belong into a file of their own"
        ));
    }
    wrong
}

#[test]
fn mod_files_describe_their_module() {
    let modules = library()
        .into_iter()
        .filter(|source| source.path.ends_with("/mod.rs") && !source.path.starts_with(PAGES));
    let wrong = modules.flat_map(|source| {
        let wrong = contents(&source.text);
        wrong
            .into_iter()
            .map(move |wrong| format!("{}: {wrong}", source.path))
    });
    none(&wrong.collect::<Vec<_>>());
}

#[test]
fn crowded_folders_are_detected() {
    let many: Vec<_> = (0..15)
        .map(|index| format!("a/b/file_{index}.rs"))
        .collect();
    let few = [
        "a/mod.rs",
        "a/c/mod.rs",
        "a/c.rs",
        "a/tests.rs",
        "a/b/mod.rs",
    ];
    let paths = || many.iter().map(String::as_str).chain(few);
    assert_eq!(crowded(paths()), ["a/b: 15 entries"]);
    assert_eq!(crowded(paths().skip(1)), [""; 0]);
}

#[test]
fn empty_headers_are_detected() {
    assert_eq!(header("//! The pool of connections.\n\nuse a;\n"), None);
    assert!(header("//! What is in the pool.\n").is_some());
    assert!(header("//! How: a riddle.\n").is_some());
    assert!(header("//! A header without an end\n").is_some());
    assert!(header("use a;\n").is_some());
}

#[test]
fn file_tables_are_detected() {
    let module = "//! The module.\n//!\n//! | `a.rs` | first |\n\nmod a;\npub(crate) mod b;\n\npub use a::{\n    A,\n    B,\n};\n";
    assert_eq!(contents(module), ["a has its own header"]);
    let long = format!(
        "//! The module.\n{}",
        "fn f() {}\n".repeat(LINES_IN_MOD + 1)
    );
    assert_eq!(contents(&long).len(), 1);
}
