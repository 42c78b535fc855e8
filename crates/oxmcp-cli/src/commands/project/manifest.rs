//! The manifests of packages: `Cargo.toml`, `package.json` and `pyproject.toml`.

use std::{
    fs,
    path::{Path, PathBuf},
};

use serde_json::Value;

use crate::{
    args::Registry,
    failure::{Failure, Result},
    hosts,
};

/// A package, as its manifest describes it.
#[derive(Clone, Debug)]
pub(super) struct Manifest {
    pub(super) registry: Registry,
    /// The file name of the manifest.
    pub(super) file: &'static str,
    /// The name in the registry of packages.
    pub(super) identifier: String,
    pub(super) version: String,
    pub(super) description: Option<String>,
    pub(super) license: Option<String>,
    pub(super) author: Option<String>,
    pub(super) repository: Option<String>,
    pub(super) homepage: Option<String>,
    pub(super) readme: Option<PathBuf>,
    /// The name in the registry of MCP.
    pub(super) mcp_name: Option<String>,
}

/// Reads the manifests of a folder, those of all registries if none is wanted. Packages that are not published are left out.
///
/// # Errors
/// A manifest cannot be read, or has no name or version.
pub(super) fn read(folder: &Path, wanted: &[Registry]) -> Result<Vec<Manifest>> {
    let mut manifests = Vec::new();
    for (registry, file, read) in [
        (
            Registry::Cargo,
            "Cargo.toml",
            cargo as fn(&Path, &Value) -> Option<Manifest>,
        ),
        (Registry::Npm, "package.json", npm),
        (Registry::Pypi, "pyproject.toml", pypi),
    ] {
        let path = folder.join(file);
        let is_wanted = wanted.is_empty() || wanted.contains(&registry);
        if !is_wanted || !path.is_file() {
            continue;
        }
        let text = fs::read_to_string(&path).map_err(|error| {
            Failure::usage(format!("could not read {}: {error}", path.display()))
        })?;
        let value = hosts::parse(&text, &path)?;
        // A workspace, or the settings of tools.
        if file != "package.json"
            && value
                .get("package")
                .or_else(|| value.get("project"))
                .is_none()
        {
            continue;
        }
        let is_private = value.get("private").is_some_and(|it| it == true)
            || value
                .pointer("/package/publish")
                .is_some_and(|it| it == false);
        if is_private && wanted.is_empty() {
            continue;
        }
        let manifest = read(folder, &value).ok_or_else(|| {
            Failure::usage(format!(
                "{} has no name or no version that can be read; write both into it",
                path.display()
            ))
        })?;
        manifests.push(manifest);
    }
    Ok(manifests)
}

fn text(value: &Value, pointer: &str) -> Option<String> {
    value.pointer(pointer)?.as_str().map(str::to_owned)
}

fn cargo(folder: &Path, value: &Value) -> Option<Manifest> {
    let found = workspace(folder, value);
    let (root, workspace) = match &found {
        Some((root, workspace)) => (root.as_path(), Some(workspace)),
        None => (folder, None),
    };
    // `version.workspace = true`
    let member = |name: &str| {
        let own = value.pointer(&format!("/package/{name}"))?;
        match own.get("workspace") {
            Some(_) => workspace?
                .pointer(&format!("/workspace/package/{name}"))
                .cloned(),
            None => Some(own.clone()),
        }
    };
    let text_of = |name: &str| {
        member(name)?
            .as_str()
            .filter(|it| !it.is_empty())
            .map(str::to_owned)
    };
    let authors = member("authors");
    let author = authors.as_ref().and_then(|it| it.get(0)?.as_str());
    // The path of an inherited README is relative to the workspace.
    let is_inherited = value.pointer("/package/readme/workspace").is_some();
    let readme_folder = if is_inherited { root } else { folder };
    let readme = text_of("readme").unwrap_or_else(|| "README.md".to_owned());
    Some(Manifest {
        registry: Registry::Cargo,
        file: "Cargo.toml",
        identifier: text_of("name")?,
        version: text_of("version")?,
        description: text_of("description"),
        license: text_of("license"),
        author: author.map(without_address),
        repository: text_of("repository"),
        homepage: text_of("homepage"),
        readme: Some(readme_folder.join(readme)),
        mcp_name: text(value, "/package/metadata/mcp/name"),
    })
}

/// The folder and the manifest of the workspace that the package inherits from.
fn workspace(folder: &Path, value: &Value) -> Option<(PathBuf, Value)> {
    if value.get("workspace").is_some() {
        return Some((folder.to_owned(), value.clone()));
    }
    let folder = fs::canonicalize(folder).ok()?;
    let mut parents = folder.ancestors().skip(1);
    parents.find_map(|it| {
        let path = it.join("Cargo.toml");
        let value = hosts::parse(&fs::read_to_string(&path).ok()?, &path).ok()?;
        value
            .get("workspace")
            .is_some()
            .then(|| (it.to_owned(), value))
    })
}

fn npm(folder: &Path, value: &Value) -> Option<Manifest> {
    let repository = text(value, "/repository/url").or_else(|| text(value, "/repository"));
    let author = text(value, "/author/name").or_else(|| text(value, "/author"));
    Some(Manifest {
        registry: Registry::Npm,
        file: "package.json",
        identifier: text(value, "/name")?,
        version: text(value, "/version")?,
        description: text(value, "/description"),
        license: text(value, "/license"),
        author: author.as_deref().map(without_address),
        repository,
        homepage: text(value, "/homepage"),
        readme: Some(folder.join("README.md")),
        mcp_name: text(value, "/mcpName"),
    })
}

fn pypi(folder: &Path, value: &Value) -> Option<Manifest> {
    let urls = value.pointer("/project/urls").and_then(Value::as_object);
    let url = |names: &[&str]| {
        let mut all = urls.into_iter().flatten();
        let found = all.find(|(name, _)| names.contains(&name.to_lowercase().as_str()));
        found.and_then(|(_, url)| url.as_str()).map(str::to_owned)
    };
    let readme = text(value, "/project/readme").or_else(|| text(value, "/project/readme/file"));
    Some(Manifest {
        registry: Registry::Pypi,
        file: "pyproject.toml",
        identifier: text(value, "/project/name")?,
        version: text(value, "/project/version")?,
        description: text(value, "/project/description"),
        license: text(value, "/project/license").or_else(|| text(value, "/project/license/text")),
        author: text(value, "/project/authors/0/name"),
        repository: url(&["repository", "source", "source code", "github", "code"]),
        homepage: url(&["homepage", "documentation"]),
        readme: readme.map(|it| folder.join(it)),
        mcp_name: text(value, "/tool/mcp/name"),
    })
}

/// The name of an author, without an email address and a URL.
fn without_address(author: impl AsRef<str>) -> String {
    let name = author.as_ref().split(['<', '(']).next().unwrap_or_default();
    name.trim().to_owned()
}
