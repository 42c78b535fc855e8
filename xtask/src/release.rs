//! `cargo xtask release`: what a release still needs, and a dry run of the rest. It publishes nothing and makes no tag.

use std::{fs, process::Command};

use serde_json::Value;

use crate::step::{self, Outcome, THIRD_PARTY, cargo, root};

/// The files that each package must contain.
const PACKAGED: [&str; 3] = ["LICENSE-APACHE", "LICENSE-MIT", "README.md"];

/// The pages that say that there is no release yet: the path, the words, and the change that a release needs.
const BEFORE_RELEASE: [(&str, &str, &str); 3] = [
    (
        "README.md",
        " --path ",
        "remove `--path …` and the comment from `cargo add oxmcp`",
    ),
    (
        "crates/oxmcp/guide/getting-started.md",
        " --path ",
        "remove the sentence about the time until the first release",
    ),
    (
        "crates/oxmcp/guide/comparison.md",
        "need a published release",
        "remove the line about the missing release",
    ),
];

/// The workspaces, each with its own lock file.
const WORKSPACES: [&str; 4] = [".", "bench", "fuzz", THIRD_PARTY];

/// Prints one line for each thing that is missing, then packages and builds every crate as `cargo publish` would.
pub(crate) fn run() -> Outcome {
    let workspace = Workspace::read()?;
    step::headline("what is missing");
    let mut findings = workspace.findings();
    findings.extend(pages(&workspace)?);
    findings.extend(workflows()?);
    findings.extend(locks());
    findings.extend(repository_state(&workspace.version)?);
    for package in &workspace.packages {
        findings.extend(packaged_files(package)?);
    }
    for finding in &findings {
        println!("missing: {finding}");
    }
    println!("{} missing", findings.len());
    // Findings do not stop the dry run, so that one run shows everything.
    let arguments = ["publish", "--workspace", "--dry-run", "--locked"];
    let mut publish = cargo(arguments.into_iter().chain(["--allow-dirty"]));
    let published = step::run("every package, without the upload", &mut publish);
    match findings.len() {
        0 => published,
        count => Err(format!(
            "{}not ready to release: {count} missing, listed above; fix them and run `cargo xtask release` again",
            published.err().map(|it| it + "\n").unwrap_or_default()
        )),
    }
}

/// The published packages, and the two values that are written once for all of them.
#[derive(Debug)]
struct Workspace {
    version: String,
    repository: String,
    security_contact: String,
    packages: Vec<Package>,
}

#[derive(Debug)]
struct Package {
    name: String,
    version: String,
    repository: String,
    /// The members of the manifest that the registry shows, and that are empty here.
    absent: Vec<&'static str>,
    docs_rs: bool,
    /// The path of the library's root file.
    library: String,
    /// Name and requirement of each dependency in this workspace.
    dependencies: Vec<(String, String)>,
}

impl Workspace {
    fn read() -> Outcome<Self> {
        let output = read_output(&mut cargo([
            "metadata",
            "--format-version=1",
            "--no-deps",
            "--locked",
        ]))?;
        let metadata = serde_json::from_str(&output)
            .map_err(|error| format!("could not read the output of `cargo metadata`: {error}"))?;
        Ok(Self::from_metadata(&metadata))
    }

    fn from_metadata(metadata: &Value) -> Self {
        let packages = array(metadata, "packages");
        let packages: Vec<_> = packages
            .iter()
            .filter(|package| package["publish"].is_null())
            .map(Package::from_metadata)
            .collect();
        let main = packages.iter().find(|package| package.name == "oxmcp");
        Self {
            version: main.map(|it| it.version.clone()).unwrap_or_default(),
            repository: main.map(|it| it.repository.clone()).unwrap_or_default(),
            security_contact: metadata
                .pointer("/metadata/oxmcp/security-contact")
                .and_then(Value::as_str)
                .unwrap_or_default()
                .to_owned(),
            packages,
        }
    }

    fn findings(&self) -> Vec<String> {
        let mut findings = Vec::new();
        if self.repository.is_empty() {
            findings.push(
                "repository address: set `workspace.package.repository` in Cargo.toml".to_owned(),
            );
        }
        if self.security_contact.is_empty() {
            findings.push(
                "security contact: set `workspace.metadata.oxmcp.security-contact` in Cargo.toml"
                    .to_owned(),
            );
        }
        for package in &self.packages {
            let manifest = format!("crates/{}/Cargo.toml", package.name);
            if package.repository != self.repository {
                findings.push(format!(
                    "{manifest}: add `repository.workspace = true`; its address differs from the workspace's"
                ));
            }
            for member in &package.absent {
                findings.push(format!("{manifest}: add `{member}`; the registry shows it"));
            }
            if !package.docs_rs {
                findings.push(format!(
                    "{manifest}: add `[package.metadata.docs.rs]` with `all-features = true` and `rustdoc-args = [\"--cfg\", \"docsrs\"]`"
                ));
            }
            for (name, requirement) in &package.dependencies {
                let dependency = self.packages.iter().find(|it| it.name == *name);
                let version = dependency.map(|it| it.version.as_str());
                if version.is_some_and(|version| !accepts(requirement, version)) {
                    findings.push(format!(
                        "{manifest}: `{name} = \"{requirement}\"` does not accept version {}; raise it",
                        version.unwrap_or_default()
                    ));
                }
            }
        }
        findings
    }
}

impl Package {
    fn from_metadata(package: &Value) -> Self {
        let absent = [
            "description",
            "license",
            "readme",
            "documentation",
            "rust_version",
        ];
        let lists = ["keywords", "categories"];
        let absent = absent.into_iter().filter(|it| text(package, it).is_empty());
        let lists = lists.into_iter().filter(|it| array(package, it).is_empty());
        let docs_rs = package.pointer("/metadata/docs/rs").unwrap_or(&Value::Null);
        let targets = array(package, "targets");
        let library = targets.iter().find(|target| {
            let kinds = array(target, "kind");
            kinds
                .iter()
                .any(|kind| *kind == "lib" || *kind == "proc-macro")
        });
        let dependencies = array(package, "dependencies");
        let local = dependencies.iter().filter(|it| it["path"].is_string());
        Self {
            name: text(package, "name"),
            version: text(package, "version"),
            repository: text(package, "repository"),
            absent: absent.chain(lists).collect(),
            docs_rs: docs_rs["all-features"] == true
                && array(docs_rs, "rustdoc-args") == ["--cfg", "docsrs"],
            library: library.map(|it| text(it, "src_path")).unwrap_or_default(),
            // A dev-dependency without a version is removed from what is published.
            dependencies: local
                .map(|it| (text(it, "name"), text(it, "req")))
                .filter(|(_, requirement)| requirement != "*")
                .collect(),
        }
    }
}

/// Whether an exact (`=1.2.3`) or a caret (`1.2.3`, `^1.2.3`) requirement accepts the version of a crate that is released with it: a
/// caret accepts the same leading number that is not zero.
fn accepts(requirement: &str, version: &str) -> bool {
    if let Some(exact) = requirement.strip_prefix('=') {
        return exact.trim() == version;
    }
    let series = |version: &str| {
        let numbers: Vec<_> = version.split('.').map(str::to_owned).collect();
        let zeros = numbers.iter().take_while(|it| *it == "0").count();
        numbers.into_iter().take(zeros + 1).collect::<Vec<_>>()
    };
    series(requirement.trim_start_matches('^')) == series(version)
}

/// The findings about pages for users and documentation: the changelog's section, the README's badges, sentences about the missing
/// release, the contact, and the attribute for docs.rs.
fn pages(workspace: &Workspace) -> Outcome<Vec<String>> {
    let mut findings = Vec::new();
    findings.extend(changelog(&read("CHANGELOG.md")?, &workspace.version));
    findings.extend(badges(&read("README.md")?, &workspace.repository));
    for (path, words, change) in BEFORE_RELEASE {
        findings.extend(outdated(path, &read(path)?, words, change));
    }
    let contact = &workspace.security_contact;
    if !contact.is_empty() && !read("SECURITY.md")?.contains(contact.as_str()) {
        findings.push(format!(
            "SECURITY.md: name the security contact, {contact}, under \"Reporting\""
        ));
    }
    for package in &workspace.packages {
        let library = fs::read_to_string(&package.library)
            .map_err(|error| format!("could not read {}: {error}", package.library))?;
        if !library.contains("#![cfg_attr(docsrs, feature(doc_cfg))]") {
            findings.push(format!(
                "crates/{}/src/lib.rs: add `#![cfg_attr(docsrs, feature(doc_cfg))]`, so that docs.rs shows features",
                package.name
            ));
        }
    }
    Ok(findings)
}

fn changelog(page: &str, version: &str) -> Option<String> {
    let mut headings = page.lines().filter_map(|it| it.strip_prefix("## "));
    let section = headings.find(|it| it.split_whitespace().next() == Some(version));
    match section {
        None => Some(format!(
            "CHANGELOG.md: add a section `## {version} (YYYY-MM-DD)`"
        )),
        Some(heading) if heading.split([' ', '(', ')']).any(is_date) => None,
        Some(heading) => Some(format!(
            "CHANGELOG.md: put the date of the release into the heading `## {heading}`, as `## {version} (YYYY-MM-DD)`"
        )),
    }
}

fn is_date(word: &str) -> bool {
    let parts: Vec<_> = word.split('-').collect();
    let lengths: Vec<_> = parts.iter().map(|it| it.len()).collect();
    lengths == [4, 2, 2] && parts.concat().bytes().all(|it| it.is_ascii_digit())
}

/// The finding about a page that still has these words.
fn outdated(path: &str, page: &str, words: &str, change: &str) -> Option<String> {
    page.contains(words).then(|| format!("{path}: {change}"))
}

/// The badges that the README lacks. They need the address, so they are not asked for while it is unknown.
fn badges(readme: &str, repository: &str) -> Vec<String> {
    if repository.is_empty() {
        return Vec::new();
    }
    let badges = [
        format!(
            "[![ci]({repository}/actions/workflows/ci.yml/badge.svg)]({repository}/actions/workflows/ci.yml)"
        ),
        "[![docs.rs](https://docs.rs/oxmcp/badge.svg)](https://docs.rs/oxmcp)".to_owned(),
    ];
    let absent = badges.into_iter().filter(|badge| !readme.contains(badge));
    absent
        .map(|badge| format!("README.md: add the badge `{badge}`"))
        .collect()
}

/// Actions that are not pinned by the hash of a commit.
fn workflows() -> Outcome<Vec<String>> {
    let directory = root().join(".github/workflows");
    let failed = |error| format!("could not read .github/workflows: {error}");
    let mut findings = Vec::new();
    for file in fs::read_dir(directory).map_err(failed)? {
        let path = file.map_err(failed)?.path();
        let workflow = fs::read_to_string(&path).map_err(failed)?;
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        findings.extend(unpinned(&name, &workflow));
    }
    Ok(findings)
}

fn unpinned(name: &str, workflow: &str) -> Vec<String> {
    let uses = workflow.lines().filter_map(|line| {
        let line = line.trim_start().trim_start_matches("- ");
        line.strip_prefix("uses:")?.split_whitespace().next()
    });
    let is_hash = |it: &str| it.len() == 40 && it.bytes().all(|it| it.is_ascii_hexdigit());
    let is_pinned = |action: &str| action.split_once('@').is_some_and(|(_, it)| is_hash(it));
    uses.filter(|action| !is_pinned(action))
        .map(|action| {
            format!(".github/workflows/{name}: pin `{action}` by the hash of its commit, with the version as a comment")
        })
        .collect()
}

/// Lock files that no longer fit their manifests.
fn locks() -> Vec<String> {
    let is_stale = |directory: &str| {
        let mut command = cargo(["update", "--workspace", "--locked", "--quiet"]);
        read_output(command.current_dir(root().join(directory))).err()
    };
    let stale = WORKSPACES.iter().filter_map(|directory| {
        let reason = is_stale(directory)?;
        Some(format!(
            "{directory}/Cargo.lock: run `cargo update --workspace` in {directory} and commit it ({reason})"
        ))
    });
    stale.collect()
}

/// Uncommitted changes, and a tag that exists already.
fn repository_state(version: &str) -> Outcome<Vec<String>> {
    let changes = read_output(&mut git(&["status", "--porcelain"]))?;
    let tags = read_output(&mut git(&["tag", "--list", &format!("v{version}")]))?;
    let mut findings = Vec::new();
    if !changes.is_empty() {
        findings.push(format!(
            "clean checkout: commit or remove what `git status` lists (files: {})",
            changes.lines().count()
        ));
    }
    if !tags.is_empty() {
        findings.push(format!(
            "new version: tag v{version} exists; raise `workspace.package.version` in Cargo.toml"
        ));
    }
    Ok(findings)
}

fn packaged_files(package: &Package) -> Outcome<Vec<String>> {
    let arguments = [
        "package",
        "--list",
        "--allow-dirty",
        "--locked",
        "--package",
    ];
    let list = read_output(&mut cargo(
        arguments.into_iter().chain([package.name.as_str()]),
    ))?;
    Ok(absent_files(&package.name, &list))
}

fn absent_files(package: &str, list: &str) -> Vec<String> {
    let absent = PACKAGED
        .iter()
        .filter(|file| !list.lines().any(|line| line == **file));
    absent
        .map(|file| format!("crates/{package}: add {file}, and name it in `include` of Cargo.toml"))
        .collect()
}

fn git(args: &[&str]) -> Command {
    let mut command = Command::new("git");
    command.args(args).current_dir(root());
    command
}

/// The output of a command that succeeds; the error is the first line that the command reported.
fn read_output(command: &mut Command) -> Outcome<String> {
    let output = command
        .output()
        .map_err(|error| format!("could not start {command:?}: {error}"))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let errors = String::from_utf8_lossy(&output.stderr);
    let reason = errors.lines().find(|line| line.starts_with("error"));
    Err(reason
        .or_else(|| errors.lines().next())
        .unwrap_or_default()
        .to_owned())
}

fn read(path: &str) -> Outcome<String> {
    fs::read_to_string(root().join(path)).map_err(|error| format!("could not read {path}: {error}"))
}

fn text(value: &Value, member: &str) -> String {
    value[member].as_str().unwrap_or_default().to_owned()
}

fn array<'a>(value: &'a Value, member: &str) -> &'a [Value] {
    value[member]
        .as_array()
        .map(Vec::as_slice)
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn workspace(change: impl FnOnce(&mut Value)) -> Vec<String> {
        let mut metadata = json!({
            "metadata": { "oxmcp": { "security-contact": "security@example.org" } },
            "packages": [
                {
                    "name": "oxmcp", "version": "0.2.0", "publish": null, "license": "MIT OR Apache-2.0",
                    "description": "d", "readme": "README.md", "documentation": "https://docs.rs/oxmcp", "rust_version": "1.88",
                    "repository": "https://example.org/oxmcp", "keywords": ["mcp"], "categories": ["c"],
                    "metadata": { "docs": { "rs": { "all-features": true, "rustdoc-args": ["--cfg", "docsrs"] } } },
                    "targets": [{ "kind": ["lib"], "src_path": "lib.rs" }],
                    "dependencies": [{ "name": "oxmcp", "req": "=0.2.0", "path": "crates/oxmcp" }],
                },
                { "name": "examples", "publish": [] },
            ],
        });
        change(&mut metadata);
        Workspace::from_metadata(&metadata).findings()
    }

    #[test]
    fn complete_workspace_has_no_findings() {
        assert_eq!(workspace(|_| {}), Vec::<String>::new());
    }

    #[test]
    fn each_absent_value_is_one_finding() {
        type Change = fn(&mut Value);
        let cases: [(Change, &str); 6] = [
            (
                |it| it["packages"][0]["repository"] = json!(""),
                "repository address: set `workspace.package.repository`",
            ),
            (|it| it["metadata"] = Value::Null, "security contact: set"),
            (
                |it| it["packages"][0]["keywords"] = json!([]),
                "crates/oxmcp/Cargo.toml: add `keywords`",
            ),
            (
                |it| it["packages"][0]["readme"] = Value::Null,
                "crates/oxmcp/Cargo.toml: add `readme`",
            ),
            (
                |it| it["packages"][0]["metadata"] = Value::Null,
                "crates/oxmcp/Cargo.toml: add `[package.metadata.docs.rs]`",
            ),
            (
                |it| it["packages"][0]["dependencies"][0]["req"] = json!("=0.1.0"),
                "crates/oxmcp/Cargo.toml: `oxmcp = \"=0.1.0\"` does not accept version 0.2.0",
            ),
        ];
        for (change, expected) in cases {
            let findings = workspace(change);
            assert!(
                matches!(findings.as_slice(), [finding] if finding.starts_with(expected)),
                "{findings:?} for {expected}"
            );
        }
    }

    #[test]
    fn requirement_accepts_its_own_series() {
        let accepted = [("=0.1.0", "0.1.0"), ("^0.1.0", "0.1.7"), ("1.2", "1.9.0")];
        let refused = [("=0.1.0", "0.1.1"), ("^0.1.0", "0.2.0"), ("^1.2", "2.0.0")];
        assert!(accepted.iter().all(|(it, version)| accepts(it, version)));
        assert!(!refused.iter().any(|(it, version)| accepts(it, version)));
    }

    #[test]
    fn changelog_needs_section_and_date() {
        assert_eq!(changelog("## 0.1.0 (2026-11-27)", "0.1.0"), None);
        assert_eq!(changelog("## 0.1.0 - 2026-11-27", "0.1.0"), None);
        let undated = changelog("## 0.1.0 (unreleased)", "0.1.0");
        assert!(undated.is_some_and(|it| it.contains("put the date")));
        let absent = changelog("## 0.1.0 (2026-11-27)", "0.2.0");
        assert!(absent.is_some_and(|it| it.contains("add a section `## 0.2.0")));
    }

    #[test]
    fn pages_must_not_deny_the_release() {
        let found = |page: &str| outdated("README.md", page, " --path ", "remove it");
        let local = found("$ cargo add oxmcp --path ../oxmcp    # no release yet");
        assert_eq!(local.as_deref(), Some("README.md: remove it"));
        assert_eq!(found("$ cargo add oxmcp"), None);
        for (path, words, _) in BEFORE_RELEASE {
            let page = read(path).unwrap();
            let says = page.contains("release yet")
                || page.contains("first release")
                || page.contains("none yet");
            assert_eq!(page.contains(words), says, "{path}");
        }
    }

    #[test]
    fn badges_are_required_once_address_is_known() {
        assert!(badges("", "").is_empty());
        let needed = badges("", "https://example.org/oxmcp");
        assert_eq!(needed.len(), 2);
        assert!(badges(&needed.join("\n"), "https://example.org/oxmcp").is_empty());
    }

    #[test]
    fn action_without_commit_hash_is_found() {
        let pinned = "- uses: a/b@0123456789012345678901234567890123456789 # v1";
        assert!(unpinned("ci.yml", pinned).is_empty());
        for action in ["a/b@v1", "a/b", "a/b@main"] {
            assert_eq!(unpinned("ci.yml", &format!("  - uses: {action}")).len(), 1);
        }
    }

    #[test]
    fn package_without_license_file_is_found() {
        assert!(absent_files("oxmcp", "LICENSE-APACHE\nLICENSE-MIT\nREADME.md").is_empty());
        let absent = absent_files("oxmcp", "LICENSE-APACHE\nREADME.md");
        assert!(matches!(absent.as_slice(), [it] if it.contains("add LICENSE-MIT")));
    }
}
