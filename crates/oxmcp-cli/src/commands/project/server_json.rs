//! `server.json`, the description of a server for the registry of MCP.

use serde::Serialize;
use serde_json::{Map, Value, json};

use super::manifest::Manifest;
use crate::{
    args::Registry,
    failure::{Failure, Result},
};

/// The schema of the file.
const SCHEMA: &str = "https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json";
/// The longest description that the registry accepts.
const MAX_DESCRIPTION: usize = 100;

/// The file, in the order in which people read it.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ServerJson {
    #[serde(rename = "$schema")]
    pub(super) schema: &'static str,
    pub(super) name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) title: Option<Value>,
    pub(super) description: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) repository: Option<Value>,
    pub(super) version: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) website_url: Option<Value>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) packages: Vec<Value>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) remotes: Vec<Value>,
    /// The members of the existing file that this version does not know.
    #[serde(flatten)]
    pub(super) others: Map<String, Value>,
}

impl ServerJson {
    /// Describes the server. What the existing file has, and the manifests do not, stays. Returns what the registry would refuse.
    pub(super) fn new(
        name: String,
        manifests: &[Manifest],
        existing: &Map<String, Value>,
    ) -> Result<(Self, Vec<String>)> {
        const KNOWN: [&str; 9] = [
            "$schema",
            "name",
            "title",
            "description",
            "repository",
            "version",
            "websiteUrl",
            "packages",
            "remotes",
        ];
        let mut problems = Vec::new();
        let first =
            |member: fn(&Manifest) -> Option<&String>| manifests.iter().find_map(member).cloned();
        let kept = |name: &str| existing.get(name).cloned();
        let text = |name: &str| kept(name).and_then(|it| it.as_str().map(str::to_owned));
        let version = manifests
            .first()
            .map(|it| it.version.clone())
            .or_else(|| text("version"));
        let version = version.ok_or_else(|| {
            Failure::usage("found no version; write one into a manifest, or into `server.json`")
        })?;
        for it in manifests.iter().filter(|it| it.version != version) {
            problems.push(format!(
                "{} has the version {}, and another manifest {version}; use one version",
                it.file, it.version
            ));
        }
        if version == "latest" || version.contains(['^', '~', '*', '<', '>']) {
            problems.push(format!(
                "the version {version:?} is none; the registry accepts no ranges"
            ));
        }
        let description = text("description").or_else(|| first(|it| it.description.as_ref()));
        let mut description = description.unwrap_or_default();
        if description.is_empty() {
            problems.push("there is no description; write one into the manifest".to_owned());
        }
        let length = description.chars().count();
        if length > MAX_DESCRIPTION {
            problems.push(format!(
                "the description has {length} characters, of which the registry accepts {MAX_DESCRIPTION}: it was cut; write a shorter one into server.json"
            ));
            description = cut(&description);
        }
        let repository = kept("repository").or_else(|| {
            let url = first(|it| it.repository.as_ref())
                .as_deref()
                .and_then(web_url)?;
            let source = ["github", "gitlab"]
                .into_iter()
                .find(|it| url.contains(&format!("//{it}.com/")))?;
            Some(json!({"url": url, "source": source}))
        });
        let website = kept("websiteUrl").or_else(|| {
            first(|it| it.homepage.as_ref())
                .filter(|it| it.starts_with("https://"))
                .map(Value::from)
        });
        let others = existing
            .iter()
            .filter(|(name, _)| !KNOWN.contains(&name.as_str()));
        let file = Self {
            schema: SCHEMA,
            name,
            title: kept("title"),
            description,
            repository,
            version,
            website_url: website,
            packages: Vec::new(),
            remotes: list(existing, "remotes"),
            others: others
                .map(|(name, value)| (name.clone(), value.clone()))
                .collect(),
        };
        Ok((file, problems))
    }

    /// Adds the packages of the manifests and the images. Other packages in the existing file stay, without bundles,
    /// which belong to one version.
    pub(super) fn add_packages(
        &mut self,
        manifests: &[Manifest],
        images: &[String],
        existing: &Map<String, Value>,
    ) {
        let old = list(existing, "packages");
        for manifest in manifests {
            let registry = registry(manifest.registry);
            let fresh = json!({
                "registryType": registry,
                "identifier": manifest.identifier,
                "version": manifest.version,
                "transport": {"type": "stdio"},
            });
            let same = old.iter().find(|it| {
                is(it, "registryType", registry) && is(it, "identifier", &manifest.identifier)
            });
            self.packages.push(merged(fresh, same));
        }
        for image in images {
            let fresh =
                json!({"registryType": "oci", "identifier": image, "transport": {"type": "stdio"}});
            let same = old.iter().find(|it| is(it, "registryType", "oci"));
            self.packages.push(merged(fresh, same));
        }
        for package in old {
            let kind = package
                .get("registryType")
                .and_then(Value::as_str)
                .unwrap_or_default();
            let is_replaced = kind == "mcpb"
                || (kind == "oci" && !images.is_empty())
                || manifests.iter().any(|it| {
                    registry(it.registry) == kind && is(&package, "identifier", &it.identifier)
                });
            if !is_replaced {
                self.packages.push(package);
            }
        }
    }

    /// Adds a bundle. Members of the existing entry for the same target stay, such as its variables. The registry accepts no version:
    /// the URL has it.
    pub(super) fn add_bundle(
        &mut self,
        url: &str,
        sha256: &str,
        target: &str,
        existing: &Map<String, Value>,
    ) {
        let fresh = json!({
            "registryType": "mcpb",
            "identifier": url,
            "fileSha256": sha256,
            "transport": {"type": "stdio"},
        });
        let old = list(existing, "packages");
        let is_same = |it: &&Value| {
            let url = it.get("identifier").and_then(Value::as_str);
            is(it, "registryType", "mcpb")
                && url.is_some_and(|it| it.ends_with(&format!("-{target}.mcpb")))
        };
        let mut package = merged(fresh, old.iter().find(is_same));
        if let Some(members) = package.as_object_mut() {
            members.remove("version");
        }
        self.packages.push(package);
    }

    /// The bundles that the registry refuses because of their URLs.
    pub(super) fn problems_of_bundles(&self) -> Option<String> {
        let of_bundle = |it: &&Value| is(it, "registryType", "mcpb");
        let mut urls = self
            .packages
            .iter()
            .filter(of_bundle)
            .filter_map(|it| it.get("identifier")?.as_str());
        let url = urls.find(|it| !is_release(it))?;
        Some(format!(
            "the bundle {url} is in no release; the registry accepts those of releases on github.com and gitlab.com: pass such a URL with `--bundle-url`"
        ))
    }
}

/// Whether the URL is that of a file of a release.
fn is_release(url: &str) -> bool {
    if let Some(path) = url.strip_prefix("https://github.com/") {
        let parts: Vec<&str> = path.split('/').collect();
        return matches!(parts.as_slice(), [owner, name, "releases", "download", tag, file]
            if [owner, name, tag, file].iter().all(|it| !it.is_empty()));
    }
    let path = url.strip_prefix("https://gitlab.com/");
    path.is_some_and(|it| it.contains("/-/releases/") || it.contains("/-/package_files/"))
}

fn registry(registry: Registry) -> &'static str {
    match registry {
        Registry::Cargo => "cargo",
        Registry::Npm => "npm",
        Registry::Pypi => "pypi",
    }
}

fn is(package: &Value, member: &str, value: &str) -> bool {
    package.get(member).is_some_and(|it| it == value)
}

fn list(existing: &Map<String, Value>, name: &str) -> Vec<Value> {
    existing
        .get(name)
        .and_then(Value::as_array)
        .cloned()
        .unwrap_or_default()
}

/// The members of a package that are known now, and the others of the existing one, such as its variables and its transport.
fn merged(fresh: Value, old: Option<&Value>) -> Value {
    let (Value::Object(fresh), Some(Value::Object(old))) = (&fresh, old) else {
        return fresh;
    };
    let mut merged = old.clone();
    for (name, value) in fresh {
        if name != "transport" || !old.contains_key(name) {
            merged.insert(name.clone(), value.clone());
        }
    }
    Value::Object(merged)
}

/// The beginning of a text, to the end of a word.
fn cut(text: &str) -> String {
    let short: String = text.chars().take(MAX_DESCRIPTION - 1).collect();
    let short = short
        .rsplit_once(' ')
        .map_or(short.as_str(), |(short, _)| short);
    format!("{short}…")
}

/// The URL of a repository as a page: manifests have it in several forms.
pub(super) fn web_url(url: &str) -> Option<String> {
    let url = url
        .trim_start_matches("git+")
        .trim_end_matches('/')
        .trim_end_matches(".git");
    let url = url
        .replace("git@github.com:", "https://github.com/")
        .replace("ssh://git@", "https://")
        .replace("git://", "https://");
    if let Some(short) = url.strip_prefix("github:") {
        return Some(format!("https://github.com/{short}"));
    }
    url.starts_with("https://").then_some(url)
}

/// The name of a server whose repository is on GitHub, in the namespace of the owner.
pub(super) fn github_name(manifest: &Manifest) -> Option<String> {
    let url = web_url(manifest.repository.as_deref()?)?;
    let owner = url.strip_prefix("https://github.com/")?.split('/').next()?;
    let name = manifest.identifier.rsplit('/').next()?;
    Some(format!("io.github.{owner}/{name}"))
}

/// Checks the name of a server: a namespace as a reversed domain, and a name.
///
/// # Errors
/// The registry does not accept the name.
pub(super) fn check_name(name: &str) -> Result<()> {
    let is_plain = |it: char| it.is_ascii_alphanumeric() || matches!(it, '.' | '-');
    let is_right = name.len() <= 200
        && name.split_once('/').is_some_and(|(space, name)| {
            !space.is_empty()
                && !name.is_empty()
                && space.chars().all(is_plain)
                && name.chars().all(|it| is_plain(it) || it == '_')
        });
    match is_right {
        true => Ok(()),
        false => Err(Failure::usage(format!(
            "{name:?} cannot be a name in the registry; expected a namespace and a name, such as `io.github.me/weather`"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_of_repositories_have_one_form() {
        for url in [
            "git+https://github.com/me/tea.git",
            "git@github.com:me/tea.git",
            "github:me/tea",
            "https://github.com/me/tea/",
            "ssh://git@github.com/me/tea",
        ] {
            assert_eq!(
                web_url(url).as_deref(),
                Some("https://github.com/me/tea"),
                "{url}"
            );
        }
        assert_eq!(web_url("svn://x"), None);
    }

    #[test]
    fn bundles_are_in_releases() {
        for (url, expected) in [
            (
                "https://github.com/me/tea/releases/download/v1/tea.mcpb",
                true,
            ),
            (
                "https://gitlab.com/me/tea/-/releases/v1/downloads/tea.mcpb",
                true,
            ),
            ("https://github.com/me/tea/raw/main/tea.mcpb", false),
            (
                "https://github.com.evil.example/me/tea/releases/download/v1/tea.mcpb",
                false,
            ),
            ("https://example.com/tea.mcpb", false),
        ] {
            assert_eq!(is_release(url), expected, "{url}");
        }
    }

    #[test]
    fn names_have_a_namespace() {
        for name in ["io.github.me/tea", "com.example/tea_1.x"] {
            check_name(name).unwrap();
        }
        for name in ["tea", "io.github.me/", "/tea", "a/b/c", "io github/tea"] {
            assert!(check_name(name).is_err(), "{name}");
        }
    }
}
