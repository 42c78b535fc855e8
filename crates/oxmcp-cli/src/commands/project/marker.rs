//! The marks by which the registry recognizes that a package and a server have the same owner.

use std::{fs, path::Path};

use super::manifest::Manifest;
use crate::args::Registry;

/// The mark in a README, before the name.
const MARK: &str = "mcp-name:";
/// The label of an image.
const LABEL: &str = "io.modelcontextprotocol.server.name";
/// The maximum size of a file that is searched.
const MAX_BYTES: u64 = 16 << 20;

/// Returns what the registry would refuse in a package.
pub(super) fn problem(manifest: &Manifest, name: &str) -> Option<String> {
    if manifest.registry == Registry::Npm {
        return match manifest.mcp_name.as_deref() {
            Some(own) if own == name => None,
            Some(own) => Some(format!(
                "package.json has the `mcpName` {own:?}; the registry expects {name:?}"
            )),
            None => Some(format!(
                "package.json has no `mcpName`; add `\"mcpName\": \"{name}\"`, which the registry compares"
            )),
        };
    }
    let readme = manifest.readme.as_deref().and_then(read);
    let Some(readme) = readme else {
        return Some(format!(
            "{} has no README; write one with the line `{MARK} {name}`",
            manifest.file
        ));
    };
    // The page of a crate, which the registry reads, has no comments.
    let is_visible = manifest.registry == Registry::Cargo;
    let text = if is_visible {
        without_comments(&readme)
    } else {
        readme.clone()
    };
    match marked(&text, name) {
        Mark::Right => None,
        Mark::Missing if is_visible && marked(&readme, name) == Mark::Right => Some(format!(
            "the README has `{MARK} {name}` in a comment, which the page of a crate does not have; write it as visible text"
        )),
        Mark::Missing => Some(format!(
            "the README has no line `{MARK} {name}`, by which the registry recognizes the owner; add it"
        )),
        Mark::Other(other) => Some(format!(
            "the README has `{MARK} {other}`; the registry expects `{name}`, followed by white space"
        )),
    }
}

/// Returns what the registry would refuse in the images that are built in this folder.
pub(super) fn problem_of_image(folder: &Path, name: &str) -> Option<String> {
    let file = ["Dockerfile", "Containerfile"]
        .iter()
        .find_map(|it| read(&folder.join(it)))?;
    let mut lines = file.lines().filter(|it| it.contains(LABEL));
    let is_right = lines.any(|it| {
        it.contains(&format!("{LABEL}=\"{name}\"")) || it.contains(&format!("{LABEL}={name}"))
    });
    (!is_right).then(|| {
        format!("the Dockerfile has no label with the name of the server; add `LABEL {LABEL}=\"{name}\"`")
    })
}

/// The name that a README has.
pub(super) fn name_in(readme: &Path) -> Option<String> {
    match marked(&read(readme)?, "") {
        Mark::Other(name) => Some(name),
        Mark::Right | Mark::Missing => None,
    }
}

fn read(path: &Path) -> Option<String> {
    let length = fs::metadata(path).ok()?.len();
    (length <= MAX_BYTES)
        .then(|| fs::read_to_string(path).ok())
        .flatten()
}

#[derive(Debug, PartialEq, Eq)]
enum Mark {
    Right,
    Other(String),
    Missing,
}

/// The mark in a text. The name ends with white space, with a tag, or with the end of code.
fn marked(text: &str, name: &str) -> Mark {
    let mut other = None;
    for after in text.split(MARK).skip(1) {
        let after = after.trim_start_matches([' ', '\t', '*']);
        let end = after.find(|it: char| it.is_whitespace() || matches!(it, '<' | '`'));
        let found = after.get(..end.unwrap_or(after.len())).unwrap_or_default();
        let found = found.strip_suffix("-->").unwrap_or(found);
        if found == name {
            return Mark::Right;
        }
        if found.contains('/') {
            other.get_or_insert_with(|| found.to_owned());
        }
    }
    other.map_or(Mark::Missing, Mark::Other)
}

fn without_comments(text: &str) -> String {
    let mut visible = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("<!--") {
        visible.push_str(before);
        rest = after.split_once("-->").map_or("", |(_, after)| after);
    }
    visible + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_end_where_the_registry_ends_them() {
        let name = "io.github.me/tea";
        for text in [
            "mcp-name: io.github.me/tea\n",
            "<!-- mcp-name: io.github.me/tea -->",
            "<!--mcp-name:io.github.me/tea-->",
            "- Name: `mcp-name: io.github.me/tea`",
            "mcp-name: io.github.me/other and mcp-name: io.github.me/tea",
        ] {
            assert_eq!(marked(text, name), Mark::Right, "{text}");
        }
        for text in [
            "mcp-name: io.github.me/tea.",
            "mcp-name: io.github.me/tea-2 x",
        ] {
            assert!(matches!(marked(text, name), Mark::Other(_)), "{text}");
        }
        assert_eq!(marked("the mcp-name: line", name), Mark::Missing);
        assert_eq!(without_comments("a<!-- b -->c<!-- d"), "ac");
    }
}
