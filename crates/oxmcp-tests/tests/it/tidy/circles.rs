//! Circles of imports between the files of a crate, with the names that form them.

use std::collections::{BTreeMap, BTreeSet};

use super::modules::{File, Import, Modules, Target};

/// The names that one file takes from another, by the two files.
pub(crate) type Edges<'a> = BTreeMap<(&'a str, &'a str), BTreeSet<String>>;

/// The edges between the files of a crate. A re-exported name counts for the file that defines it.
pub(crate) fn edges<'a>(files: &'a [File<'a>]) -> Edges<'a> {
    let modules = Modules::of(files);
    let mut edges = Edges::new();
    let mut tie = |from: &'a str, to: &'a str, name: &str| {
        if from != to {
            edges.entry((from, to)).or_default().insert(name.to_owned());
        }
    };
    for (id, module) in modules.iter() {
        for import in &module.imports {
            for (to, name) in taken(&modules, id, import) {
                tie(module.file, to, &name);
            }
        }
    }
    for named in &modules.named {
        let target = modules.resolve(named.module, &named.path);
        let from = modules.get(named.module).map_or("", |module| module.file);
        if let Some(Target::Item(to)) = target {
            tie(from, to, &item_of(&named.path).join("::"));
        }
    }
    edges
}

/// The path of an item without the names inside the item: variants and functions of a type.
fn item_of(path: &[String]) -> &[String] {
    let of_type = path
        .iter()
        .position(|name| name.starts_with(char::is_uppercase));
    let end = of_type.map_or(path.len(), |index| index + 1);
    path.get(..end).unwrap_or(path)
}

/// The names that an import takes, with their files. An imported module counts for nothing: only the paths through it count.
fn taken<'a>(modules: &Modules<'a>, id: usize, import: &Import) -> Vec<(&'a str, String)> {
    let Some(module) = modules.get(id) else {
        return Vec::new();
    };
    let is_used = |name: &str| modules.says(module.file, name);
    if import.alias == "*" {
        return match modules.resolve(id, &import.path) {
            Some(Target::Module(from)) => {
                let names = modules.names(from);
                let used = names.into_iter().filter(|name| is_used(name));
                let item =
                    |name: String| match modules.resolve(from, std::slice::from_ref(&name))? {
                        Target::Item(file) => Some((file, name)),
                        Target::Module(_) => None,
                    };
                used.filter_map(item).collect()
            }
            Some(Target::Item(file)) => vec![(file, "*".to_owned())],
            None => Vec::new(),
        };
    }
    match modules.resolve(id, &import.path) {
        Some(Target::Item(file)) if !import.is_public || is_used(&import.alias) => {
            vec![(file, import.path.last().cloned().unwrap_or_default())]
        }
        _ => Vec::new(),
    }
}

/// The circles: sets of files that all reach each other.
pub(crate) fn circles<'a>(edges: &Edges<'a>) -> Vec<BTreeSet<&'a str>> {
    let mut next: BTreeMap<&str, Vec<&'a str>> = BTreeMap::new();
    for (from, to) in edges.keys() {
        next.entry(from).or_default().push(to);
    }
    let reached: BTreeMap<&'a str, BTreeSet<&'a str>> = edges
        .keys()
        .map(|(from, _)| (*from, reach(&next, from)))
        .collect();
    let mut found: Vec<BTreeSet<&'a str>> = Vec::new();
    for (file, all) in &reached {
        if all.contains(file) && !found.iter().any(|circle| circle.contains(file)) {
            let leads_back =
                |other: &&&str| reached.get(**other).is_some_and(|it| it.contains(file));
            found.push(all.iter().filter(leads_back).copied().collect());
        }
    }
    found
}

fn reach<'a>(next: &BTreeMap<&str, Vec<&'a str>>, from: &str) -> BTreeSet<&'a str> {
    let mut reached = BTreeSet::new();
    let mut open = vec![from];
    while let Some(file) = open.pop() {
        for to in next.get(file).into_iter().flatten() {
            if reached.insert(*to) {
                open.push(to);
            }
        }
    }
    reached
}

/// A description of each circle of a crate.
pub(crate) fn report(files: &[File<'_>]) -> Vec<String> {
    let edges = edges(files);
    let describe = |circle: BTreeSet<&str>| {
        let within = edges
            .iter()
            .filter(|((from, to), _)| circle.contains(from) && circle.contains(to));
        let lines = within.map(|((from, to), names)| {
            let names: Vec<_> = names.iter().map(String::as_str).collect();
            format!("\n  {from} -> {to}: {}", names.join(", "))
        });
        format!(
            "a circle of {} files:{}",
            circle.len(),
            lines.collect::<String>()
        )
    };
    circles(&edges).into_iter().map(describe).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(files: &[(&str, &str)]) -> Vec<String> {
        let files: Vec<_> = files
            .iter()
            .map(|(path, text)| File { path, text })
            .collect();
        report(&files)
    }

    #[test]
    fn circle_through_reexports_is_found() {
        let circles = found(&[
            ("lib.rs", "mod a; mod b; pub use a::A;"),
            ("a.rs", "use crate::b::B; pub struct A(B);"),
            ("b/mod.rs", "mod inner; pub(crate) use inner::*;"),
            ("b/inner.rs", "pub struct B; fn f() { crate::A::new() }"),
        ]);
        assert_eq!(
            circles,
            ["a circle of 2 files:\n  a.rs -> b/inner.rs: B\n  b/inner.rs -> a.rs: crate::A"]
        );
    }

    #[test]
    fn globs_siblings_and_nested_modules_count() {
        let circles = found(&[
            ("main.rs", "mod a; mod b; mod c;"),
            (
                "a.rs",
                "use super::b::*; mod inner { use super::super::c; fn f() { c::g() } } struct A; fn f(_: B) {}",
            ),
            ("b.rs", "pub struct B(super::a::A); pub struct Unused;"),
            (
                "c.rs",
                "pub fn g() {} #[cfg(test)] mod tests { use crate::a::A; }",
            ),
        ]);
        assert_eq!(
            circles,
            ["a circle of 2 files:\n  a.rs -> b.rs: B\n  b.rs -> a.rs: super::a::A"]
        );
    }

    #[test]
    fn tests_and_exports_make_no_circle() {
        let circles = found(&[
            ("lib.rs", "mod a; pub use a::A; pub struct Root;"),
            (
                "a.rs",
                "use crate::Root; pub struct A(Root); #[cfg(test)] mod tests;",
            ),
            ("a/tests.rs", "use crate::Nothing;"),
        ]);
        assert_eq!(circles, [""; 0]);
    }
}
