//! Which module imports which.

use std::collections::{BTreeMap, BTreeSet};

use super::source::{self, Source};

/// The layers, the lowest first. A module imports from lower layers, and from those beside it that are named with it.
const LAYERS: &[&[&str]] = &[
    &[
        "json",
        "logged",
        "oxmcp_json",
        "oxmcp_macros",
        "oxmcp_protocol",
        "oxmcp_schema",
    ],
    &["error jsonrpc", "limits"],
    &["protocol", "codec", "schema"],
    &["transport", "store"],
    &["session"],
    &["extension"],
    &["server", "client"],
    &["http"],
    &["testing"],
];

#[test]
fn invariant_1_imports_follow_the_drawing() {
    let names = root_names();
    let mut wrong = Vec::new();
    for source in source::library() {
        let Some(from) = source.module().filter(|module| *module != "lib") else {
            continue;
        };
        for name in imports(&source.code_text()) {
            let to = names.get(&name).unwrap_or(&name);
            if !may_import(from, to) {
                wrong.push(format!(
                    "{}: {from} must not import from {to} (crate::{name})",
                    source.path
                ));
            }
        }
    }
    super::none(&wrong);
}

fn may_import(from: &str, to: &str) -> bool {
    let place = |module: &str| {
        LAYERS.iter().enumerate().find_map(|(height, layer)| {
            let group = layer
                .iter()
                .position(|group| group.split(' ').any(|it| it == module))?;
            Some((height, group))
        })
    };
    let (Some(from), Some(to)) = (place(from), place(to)) else {
        panic!("the layer of {from} or of {to} is not known: add it to LAYERS");
    };
    from == to || to.0 < from.0
}

/// What `lib.rs` re-exports, and from which module.
fn root_names() -> BTreeMap<String, String> {
    let lib = source::read("crates/oxmcp/src/lib.rs").code_text();
    let mut names = BTreeMap::new();
    for item in lib.split("\npub use ").skip(1) {
        let item = item.split(';').next().unwrap_or_default();
        let Some((module, exported)) = item.split_once("::") else {
            continue;
        };
        for name in exported.split(|c: char| !c.is_alphanumeric() && c != '_') {
            names.insert(name.to_owned(), module.to_owned());
        }
    }
    names
}

/// The first name of every path that begins with `crate::`, in groups too.
fn imports(code: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for rest in code.split("crate::").skip(1) {
        match rest.strip_prefix('{') {
            None => found.extend(first_name(rest)),
            Some(group) => found.extend(members(group)),
        }
    }
    found
}

fn members(group: &str) -> Vec<String> {
    let mut depth = 0;
    let mut names = Vec::new();
    let mut begins = true;
    for (index, c) in group.char_indices() {
        match c {
            '{' => depth += 1,
            '}' if depth == 0 => break,
            '}' => depth -= 1,
            ',' if depth == 0 => begins = true,
            c if begins && !c.is_whitespace() => {
                names.extend(group.get(index..).and_then(first_name));
                begins = false;
            }
            _ => {}
        }
    }
    names
}

fn first_name(text: &str) -> Option<String> {
    let name = text
        .split(|c: char| !c.is_alphanumeric() && c != '_')
        .next()?;
    (!name.is_empty()).then(|| name.to_owned())
}

/// Deciding is kept apart from doing: what these modules know of the world outside is what they are given.
#[test]
fn invariant_1_what_decides_knows_no_io() {
    const PURE: &[&str] = &["protocol", "error", "limits", "logged"];
    const WORLD: &[&str] = &[
        "tokio",
        "std::net",
        "std::fs",
        "std::process",
        "std::thread",
        "io::stdin",
        "io::stdout",
        "Instant::now",
        "SystemTime::now",
    ];
    let is_pure = |source: &Source| {
        source.is_below_the_sdk() || source.module().is_some_and(|module| PURE.contains(&module))
    };
    let pure: Vec<_> = source::library().into_iter().filter(is_pure).collect();
    super::none(&super::mentions(&pure, WORLD));
}

/// The compiler keeps the SDK out of the crates below it. This keeps out what would let them do something.
#[test]
fn invariant_1_the_crates_below_depend_on_nothing_that_does_io() {
    const WORLD: &[&str] = &[
        "tokio",
        "mio",
        "socket2",
        "rustix",
        "libc",
        "getrandom",
        "hyper",
        "tracing",
    ];
    const BELOW: &[&str] = &["oxmcp-json", "oxmcp-schema", "oxmcp-protocol"];
    let lock = source::read("Cargo.lock").text;
    let dependencies: BTreeMap<&str, Vec<&str>> = lock
        .split("[[package]]")
        .filter_map(|package| {
            let name = package.split("name = \"").nth(1)?.split('"').next()?;
            let list = package.split("dependencies = [").nth(1).unwrap_or_default();
            let list = list.split(']').next()?.split('"').skip(1).step_by(2);
            let names = list.filter_map(|entry| entry.split(' ').next());
            Some((name, names.collect()))
        })
        .collect();
    for crate_ in BELOW {
        let manifest = source::read(&format!("crates/{crate_}/Cargo.toml")).text;
        let section = manifest.split("[dependencies]").nth(1).unwrap();
        let section = section.split("\n[").next().unwrap();
        let mut waiting: Vec<&str> = section
            .lines()
            .filter(|line| !line.starts_with('#'))
            .filter_map(|line| Some(line.split_once(" = ")?.0))
            .collect();
        let mut seen = BTreeSet::new();
        while let Some(name) = waiting.pop() {
            if seen.insert(name) && !BELOW.contains(&name) {
                waiting.extend(&dependencies[name]);
            }
        }
        assert!(seen.contains("serde_json"), "{seen:?}");
        let world: Vec<_> = seen.iter().filter(|name| WORLD.contains(name)).collect();
        assert!(world.is_empty(), "{crate_} depends on {world:?}");
    }
}

#[test]
fn groups_of_imports_are_understood() {
    let code = "use crate::{\n    Error, session::{Connection, middleware::Next},\n    protocol,\n};\nlet x = crate::server::y();";
    let found: Vec<_> = imports(code).into_iter().collect();
    assert_eq!(found, ["Error", "protocol", "server", "session"]);
    assert!(may_import("server", "protocol") && may_import("error", "jsonrpc"));
    assert!(!may_import("server", "client") && !may_import("schema", "protocol"));
}
