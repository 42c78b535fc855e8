//! The files of the repository, and their code without comments and tests.

use std::{
    fs,
    path::{Path, PathBuf},
};

/// Directories of build output and installed packages.
const NOT_OURS: &[&str] = &["target", "node_modules", ".venv", ".git"];

/// A file of the repository.
pub(super) struct Source {
    /// The path from the root of the repository, with slashes.
    pub(super) path: String,
    pub(super) text: String,
}

impl Source {
    /// The lines, with their numbers, that are neither comments nor tests.
    pub(super) fn code(&self) -> impl Iterator<Item = (usize, &str)> {
        let mut in_tests = false;
        let mut after_cfg = false;
        self.text
            .lines()
            .enumerate()
            .filter_map(move |(index, line)| {
                in_tests |= after_cfg && line.starts_with("mod ") && line.ends_with('{');
                after_cfg = is_test_attribute(line);
                let is_code = !in_tests && !line.trim_start().starts_with("//");
                in_tests &= line != "}";
                let code = line.split(" // ").next().unwrap_or(line);
                is_code.then_some((index + 1, code))
            })
    }

    /// The lines of code as one text.
    pub(super) fn code_text(&self) -> String {
        self.code().map(|(_, line)| format!("{line}\n")).collect()
    }

    /// The child modules that exist for tests only: paths without an extension.
    fn modules_of_tests(&self) -> impl Iterator<Item = String> {
        let (directory, file) = self.path.rsplit_once('/').unwrap();
        let directory = match file.strip_suffix(".rs").unwrap_or(file) {
            "mod" | "lib" => directory.to_owned(),
            name => format!("{directory}/{name}"),
        };
        let lines = self.text.lines().zip(self.text.lines().skip(1));
        lines
            .filter(|(line, _)| is_test_attribute(line))
            .filter_map(move |(_, next)| {
                let name = next.strip_prefix("mod ")?.strip_suffix(';')?;
                Some(format!("{directory}/{name}"))
            })
    }

    /// The path within `crates/oxmcp/src`, if the file is there.
    pub(super) fn in_crate(&self) -> Option<&str> {
        self.path.strip_prefix("crates/oxmcp/src/")
    }

    /// The crate in `crates/` whose source the file belongs to.
    pub(super) fn crate_name(&self) -> Option<&str> {
        let (name, path) = self.path.strip_prefix("crates/")?.split_once('/')?;
        path.starts_with("src/").then_some(name)
    }

    /// The module below the root of the crate that the file belongs to.
    pub(super) fn module(&self) -> Option<&str> {
        let first = self.in_crate()?.split('/').next()?;
        Some(first.strip_suffix(".rs").unwrap_or(first))
    }
}

fn is_test_attribute(line: &str) -> bool {
    line == "#[cfg(test)]" || line.starts_with("#[cfg(all(test,")
}

pub(super) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

pub(super) fn read(path: &str) -> Source {
    let text = fs::read_to_string(root().join(path));
    Source {
        text: text.unwrap_or_else(|error| panic!("{path}: {error}")),
        path: path.to_owned(),
    }
}

/// All text files, in the order of their paths.
pub(super) fn files() -> Vec<Source> {
    let mut found = Vec::new();
    walk(&root(), "", &mut found);
    found.sort_by(|a, b| a.path.cmp(&b.path));
    assert!(
        found.len() > 100,
        "the files of the repository are not here"
    );
    found
}

/// The code of the SDK's crates, without files that contain only tests.
pub(super) fn library() -> Vec<Source> {
    let mut sources = files();
    sources.retain(|source| source.crate_name().is_some() && source.path.ends_with(".rs"));
    let tests: Vec<_> = sources.iter().flat_map(Source::modules_of_tests).collect();
    let is_of = |source: &Source, module: &String| {
        let rest = source.path.strip_prefix(module.as_str());
        rest.is_some_and(|rest| rest == ".rs" || rest.starts_with('/'))
    };
    sources.retain(|source| !tests.iter().any(|module| is_of(source, module)));
    sources
}

fn walk(directory: &Path, prefix: &str, found: &mut Vec<Source>) {
    for entry in fs::read_dir(directory).unwrap() {
        let entry = entry.unwrap();
        let name = entry.file_name().into_string().unwrap();
        let path = format!("{prefix}{name}");
        if entry.file_type().unwrap().is_dir() {
            if !NOT_OURS.contains(&name.as_str()) {
                walk(&entry.path(), &format!("{path}/"), found);
            }
        } else if let Ok(text) = fs::read_to_string(entry.path()) {
            found.push(Source { path, text });
        }
    }
}

#[test]
fn separate_test_files_are_not_code() {
    let source = |path: &str| Source {
        path: path.to_owned(),
        text: "#[cfg(test)]\nmod proof;\n#[cfg(all(test, unix))]\nmod sockets;\nmod code;\n"
            .to_owned(),
    };
    let found = |path: &str| source(path).modules_of_tests().collect::<Vec<_>>();
    assert_eq!(found("a/b.rs"), ["a/b/proof", "a/b/sockets"]);
    assert_eq!(found("a/mod.rs"), ["a/proof", "a/sockets"]);
}
