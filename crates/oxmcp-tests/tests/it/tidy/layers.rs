//! The layers of modules within `oxmcp`: imports go downwards, and name the module that defines the item.

use std::collections::{BTreeMap, BTreeSet};

use super::source::{self, Source};

/// The layers of `oxmcp`, the lowest first. A module imports from lower layers, and from the modules that are named in the same
/// string. The re-export `protocol` is for users: modules import from `oxmcp_protocol`.
const LAYERS: &[&[&str]] = &[
    &["debug", "error", "limits", "logged", "sync"],
    &["transport", "store"],
    &["session"],
    &["extension"],
    &["server", "client"],
    &["tasks"],
    &["http"],
    &["testing", "fuzzing"],
];

#[test]
fn imports_follow_the_layer_diagram() {
    let names = root_names();
    let library = source::library();
    let modules: BTreeSet<_> = library.iter().filter_map(Source::module).collect();
    let mut wrong = Vec::new();
    for source in &library {
        let Some(from) = source.module().filter(|module| *module != "lib") else {
            continue;
        };
        for name in imports(&source.code_text()) {
            let to = names.get(&name).unwrap_or(&name);
            // Items of other crates that `lib.rs` re-exports are below all layers.
            let is_of_another_crate = names.contains_key(&name) && !modules.contains(to.as_str());
            if !is_of_another_crate && !may_import(from, to) {
                wrong.push(format!(
                    "{}: {from} must not import from {to} (crate::{name}), by LAYERS",
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
        return false;
    };
    from == to || to.0 < from.0
}

/// The names that `lib.rs` re-exports, each with its module.
fn root_names() -> BTreeMap<String, String> {
    let lib = source::read("crates/oxmcp/src/lib.rs").code_text();
    let mut names = BTreeMap::new();
    for item in lib.split("\npub use ").skip(1) {
        let item = item.split(';').next().unwrap_or_default();
        let Some((module, exported)) = item.split_once("::") else {
            continue;
        };
        // A module within the path of a name is not exported itself.
        for path in exported.split(|c: char| !c.is_alphanumeric() && c != '_' && c != ':') {
            let name = path.rsplit("::").next().unwrap_or_default();
            names.insert(name.to_owned(), module.to_owned());
        }
    }
    names
}

/// The first name of every path that begins with `crate::`, including paths in groups.
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

/// The names that are imported from the crate's root, though a module defines them.
fn from_root(code: &str, names: &BTreeMap<String, String>) -> Vec<String> {
    let from = |name: &String| {
        Some(format!(
            "crate::{name} lives in crate::{}",
            names.get(name)?
        ))
    };
    imports(code).iter().filter_map(from).collect()
}

#[test]
fn imports_name_the_defining_module() {
    let names = root_names();
    let mut wrong = Vec::new();
    for source in source::library() {
        if source.module().is_some_and(|module| module != "lib") {
            let found = from_root(&source.code_text(), &names);
            wrong.extend(
                found
                    .iter()
                    .map(|found| format!("{}: {found}", source.path)),
            );
        }
    }
    super::none(&wrong);
}

#[test]
fn imports_from_the_root_are_detected() {
    let names = BTreeMap::from([("Error".to_owned(), "error".to_owned())]);
    let found = from_root(
        "use crate::{Error, error::Result};\nuse crate::error::Error;",
        &names,
    );
    assert_eq!(found, ["crate::Error lives in crate::error"]);
}

#[test]
fn groups_of_imports_are_understood() {
    let code = "use crate::{\n    Error, session::{Connection, middleware::Next},\n    protocol,\n};\nlet x = crate::server::y();";
    let found: Vec<_> = imports(code).into_iter().collect();
    assert_eq!(found, ["Error", "protocol", "server", "session"]);
    assert!(may_import("server", "session") && may_import("http", "client"));
    assert!(
        !may_import("server", "client")
            && !may_import("session", "server")
            && !may_import("error", "unknown")
    );
}
