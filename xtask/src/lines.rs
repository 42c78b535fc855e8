//! `cargo xtask lines`: lines of code of each crate and of each folder in it, without blank lines, comments and tests.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use crate::step::{Outcome, root};

/// The files and lines of a folder, or of a crate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Count {
    files: usize,
    lines: usize,
}

impl Count {
    fn add(&mut self, other: Self) {
        self.files += other.files;
        self.lines += other.lines;
    }
}

/// Counts the crates of this repository, or of a copy of it elsewhere.
pub(crate) fn run(of: Option<&str>) -> Outcome {
    let root = of.map_or_else(root, PathBuf::from);
    let mut total = Count::default();
    for folder in entries(&root.join("crates"))? {
        let modules = modules(&folder.join("src"))?;
        let mut all = Count::default();
        modules.values().for_each(|module| all.add(*module));
        total.add(all);
        println!("{}", row(&name_of(&folder), all));
        for (name, module) in modules {
            println!("{}", row(&format!("  {name}"), module));
        }
    }
    println!("{}", row("all crates", total));
    Ok(())
}

fn row(name: &str, count: Count) -> String {
    format!(
        "{name:<28} {:>5} files {:>7} lines",
        count.files, count.lines
    )
}

/// The counts of a crate by module: one for each folder in `src/`, and one for the files next to the folders.
fn modules(src: &Path) -> Outcome<BTreeMap<String, Count>> {
    let mut modules: BTreeMap<String, Count> = BTreeMap::new();
    let mut open = entries(src)?;
    let mut tests = Vec::new();
    let mut files = Vec::new();
    while let Some(path) = open.pop() {
        if path.is_dir() {
            open.extend(entries(&path)?);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = fs::read_to_string(&path)
                .map_err(|error| format!("{}: {error}", path.display()))?;
            tests.extend(modules_of_tests(&path, &text));
            files.push((path, text));
        }
    }
    for (path, text) in files {
        if is_test_file(&path) || tests.iter().any(|module| is_of(&path, module)) {
            continue;
        }
        let below = path.strip_prefix(src).unwrap_or(&path);
        let is_in_folder = below.components().count() > 1;
        let module = below.components().next().filter(|_| is_in_folder);
        let module = module.map_or_else(|| "(files)".into(), |it| it.as_os_str().to_string_lossy());
        let lines = lines_of_code(&text);
        modules
            .entry(module.into_owned())
            .or_default()
            .add(Count { files: 1, lines });
    }
    Ok(modules)
}

fn entries(folder: &Path) -> Outcome<Vec<PathBuf>> {
    let read = fs::read_dir(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let mut paths: Vec<_> = read.filter_map(|entry| Some(entry.ok()?.path())).collect();
    paths.sort();
    Ok(paths)
}

fn name_of(path: &Path) -> String {
    path.file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned()
}

fn is_test_file(path: &Path) -> bool {
    let name = name_of(path);
    name == "tests.rs" || name.ends_with("_tests.rs")
}

/// The test modules of a file that are in separate files, as paths without an extension.
fn modules_of_tests(path: &Path, text: &str) -> Vec<PathBuf> {
    let stem = path.file_stem().unwrap_or_default();
    let directory = path.parent().unwrap_or(path);
    let is_module_root = stem == "mod" || stem == "lib";
    let directory = if is_module_root {
        directory.to_owned()
    } else {
        directory.join(stem)
    };
    let lines = text.lines().zip(text.lines().skip(1));
    let child = |(line, next): (&str, &str)| {
        let name = next.strip_prefix("mod ")?.strip_suffix(';')?;
        is_test_attribute(line).then(|| directory.join(name))
    };
    lines.filter_map(child).collect()
}

fn is_of(path: &Path, module: &Path) -> bool {
    path.with_extension("") == module || path.starts_with(module)
}

fn is_test_attribute(line: &str) -> bool {
    line.starts_with("#[cfg(test)]") || line.starts_with("#[cfg(all(test")
}

/// The number of lines that are neither blank, nor a comment, nor in a module of tests.
fn lines_of_code(text: &str) -> usize {
    let mut lines = 0;
    let mut in_tests = false;
    let mut in_comment = false;
    let mut is_next_test = false;
    for line in text.lines() {
        let code = line.trim_start();
        if in_tests {
            in_tests = line != "}";
            continue;
        }
        if is_next_test && line.starts_with("mod ") && line.ends_with('{') {
            (in_tests, is_next_test) = (true, false);
            continue;
        }
        in_comment |= code.starts_with("/*");
        let is_code = !in_comment && !code.is_empty() && !code.starts_with("//");
        in_comment &= !code.contains("*/");
        is_next_test = is_test_attribute(line);
        lines += usize::from(is_code && !is_next_test);
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blank_lines_comments_and_tests_do_not_count() {
        let text = "//! A module.\n\nuse a::b; // why\n/* long\n   comment */\n#[derive(Debug)]\nstruct C;\n\n#[cfg(test)]\nmod tests {\n    fn d() {}\n}\nfn e() {}\n";
        assert_eq!(lines_of_code(text), 4);
    }

    #[test]
    fn test_modules_next_to_their_file_are_found() {
        let text = "#[cfg(test)]\nmod proof;\nmod code;\n";
        let found = modules_of_tests(Path::new("src/module/mod.rs"), text);
        assert_eq!(found, [Path::new("src/module/proof")]);
        assert!(is_of(
            Path::new("src/module/proof.rs"),
            Path::new("src/module/proof")
        ));
        assert!(
            is_test_file(Path::new("src/a_tests.rs"))
                && !is_test_file(Path::new("src/contests.rs"))
        );
    }
}
