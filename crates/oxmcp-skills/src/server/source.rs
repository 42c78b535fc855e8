//! The skills of one source: found in its files, checked, with their digests.

use std::{collections::BTreeMap, ops::Bound, sync::Arc};

use bytes::Bytes;
use oxmcp::{
    file_mime_type,
    protocol::{JsonObject, Resource, ResourceContents},
};
use serde_json::Value;

use crate::{
    digest::Digest,
    entry::{MAX_FILES, MAX_TOTAL_BYTES, SkillEntry, SkillResource, SkillResources},
    frontmatter,
    uri::{MAX_URI, check_name, encode, is_file_name},
};

/// The file that makes a directory a skill.
pub(super) const SKILL_MD: &str = "SKILL.md";

/// The maximum length of a description in characters, by the rules of Agent Skills.
const MAX_DESCRIPTION: usize = 1024;

/// The files of a source, and the names before their paths.
pub(super) struct Input<'a> {
    pub(super) prefix: &'a [String],
    pub(super) files: Vec<(String, Bytes)>,
}

/// The skills of a source, and their files by URI.
#[derive(Debug, Default)]
pub(super) struct Source {
    pub(super) skills: Vec<Arc<Skill>>,
    pub(super) files: BTreeMap<String, Arc<File>>,
}

/// A skill that is served.
#[derive(Debug)]
pub(super) struct Skill {
    pub(super) entry: SkillEntry,
    pub(super) name: String,
    pub(super) description: String,
}

/// A file that is served.
#[derive(Debug)]
pub(super) struct File {
    pub(super) resource: Resource,
    pub(super) bytes: Bytes,
    pub(super) digest: Digest,
}

impl File {
    /// The contents: text if it is UTF-8 without NUL, which is then exactly the bytes of the file, and bytes otherwise.
    pub(super) fn contents(&self) -> ResourceContents {
        let text = std::str::from_utf8(&self.bytes);
        let text = text.ok().filter(|it| !it.contains('\0'));
        let mut contents = match text {
            Some(text) => ResourceContents::text(&*self.resource.uri, text),
            None => ResourceContents::blob(&*self.resource.uri, self.bytes.clone()),
        };
        contents.mime_type = self.resource.mime_type.clone();
        if contents.mime_type.is_none() {
            let otherwise = match text {
                Some(_) => "text/plain",
                None => "application/octet-stream",
            };
            contents.mime_type = Some(otherwise.to_owned());
        }
        contents
    }
}

/// Finds the skills in the files of a source.
///
/// # Errors
/// The first mistake, with the path of the file.
pub(super) fn load(input: Input<'_>) -> Result<Source, String> {
    let Input { prefix, files } = input;
    let mut by_path = BTreeMap::new();
    for (path, bytes) in files {
        if !path.split('/').all(is_file_name) {
            return Err(format!(
                "invalid path {path:?}; use the names of files and directories with \"/\" between them"
            ));
        }
        if by_path.insert(path.clone(), bytes).is_some() {
            return Err(format!("duplicate file {path:?}; add each file once"));
        }
    }
    let by_path = below_its_name(by_path)?;
    let mut source = Source::default();
    for path in by_path.keys() {
        if let Some(directory) = path.strip_suffix("/SKILL.md") {
            add_skill(&mut source, prefix, &by_path, directory)?;
        }
    }
    source.skills.sort_by(|a, b| a.entry.uri.cmp(&b.entry.uri));
    Ok(source)
}

/// If the files are those of one skill, moves them into a directory with its name.
fn below_its_name(files: BTreeMap<String, Bytes>) -> Result<BTreeMap<String, Bytes>, String> {
    let Some(bytes) = files.get(SKILL_MD) else {
        return Ok(files);
    };
    let frontmatter = read_frontmatter(SKILL_MD, bytes)?;
    let name = string(&frontmatter, "name").map_err(|it| at(SKILL_MD, &it))?;
    check_name(name).map_err(|it| at(SKILL_MD, &it))?;
    let files = files.into_iter();
    Ok(files
        .map(|(path, bytes)| (format!("{name}/{path}"), bytes))
        .collect())
}

fn at(path: &str, problem: &str) -> String {
    format!("{path}: {problem}")
}

fn uri_of(prefix: &[String], path: &str) -> String {
    let prefix = prefix.iter().map(|it| encode(it));
    let names = prefix.chain(path.split('/').map(encode));
    let names: Vec<_> = names.collect();
    format!("skill://{}", names.join("/"))
}

fn add_skill(
    source: &mut Source,
    prefix: &[String],
    files: &BTreeMap<String, Bytes>,
    directory: &str,
) -> Result<(), String> {
    let path = format!("{directory}/{SKILL_MD}");
    let bytes = files.get(&path).ok_or_else(|| at(&path, "not found"))?;
    let frontmatter = read_frontmatter(&path, bytes)?;
    let (name, description) =
        check(&frontmatter, directory).map_err(|problem| at(&path, &problem))?;
    let below = format!("{directory}/");
    let all = files.range::<str, _>((Bound::Included(&*below), Bound::Unbounded));
    let all = all.take_while(|(path, _)| path.starts_with(&below));
    let mut resources = Vec::new();
    let mut total = 0;
    for (path, bytes) in all {
        let uri = uri_of(prefix, path);
        if uri.len() > MAX_URI {
            return Err(at(path, &format!("the URI is longer than {MAX_URI} bytes")));
        }
        let file = source
            .files
            .entry(uri)
            .or_insert_with_key(|uri| Arc::new(file_of(uri, path, bytes)));
        let size = bytes.len() as u64;
        total += size;
        resources.push(SkillResource {
            uri: file.resource.uri.clone(),
            digest: file.digest,
            size,
        });
    }
    if resources.len() > MAX_FILES {
        let count = resources.len();
        return Err(at(
            directory,
            &format!("{count} files; a skill can have at most {MAX_FILES}"),
        ));
    }
    if total > MAX_TOTAL_BYTES {
        return Err(at(
            directory,
            &format!("{total} bytes; the files of a skill can have at most {MAX_TOTAL_BYTES}"),
        ));
    }
    let uri = uri_of(prefix, &path);
    if let Some(file) = source.files.get_mut(&uri) {
        let mut skill_md = file_of(&uri, &path, bytes);
        skill_md.resource.name.clone_from(&name);
        skill_md.resource.description = Some(description.clone());
        *file = Arc::new(skill_md);
    }
    source.skills.push(Arc::new(Skill {
        entry: SkillEntry {
            uri,
            frontmatter,
            resources: SkillResources::Listed(resources),
        },
        name,
        description,
    }));
    Ok(())
}

fn file_of(uri: &str, path: &str, bytes: &Bytes) -> File {
    let name = path.rsplit('/').next().unwrap_or(path);
    let mut resource = Resource::new(uri, name);
    resource.mime_type = file_mime_type(name).map(str::to_owned);
    resource.size = Some(bytes.len() as u64);
    File {
        resource,
        digest: Digest::of(bytes),
        bytes: bytes.clone(),
    }
}

fn read_frontmatter(path: &str, bytes: &Bytes) -> Result<JsonObject, String> {
    let text = std::str::from_utf8(bytes).map_err(|_| at(path, "not UTF-8; save it as UTF-8"))?;
    if text.contains('\0') {
        return Err(at(path, "contains NUL bytes; save it as plain text"));
    }
    frontmatter::read(text).map_err(|problem| at(path, &problem))
}

/// Checks the fields that the rules of Agent Skills and of the extension are about, and returns the name and the description.
fn check(frontmatter: &JsonObject, directory: &str) -> Result<(String, String), String> {
    let name = string(frontmatter, "name")?;
    check_name(name)?;
    let own = directory.rsplit('/').next().unwrap_or(directory);
    if name != own {
        return Err(format!(
            "the name {name:?} is not the directory's name, {own:?}; rename one of them"
        ));
    }
    let description = string(frontmatter, "description")?;
    let length = description.chars().count();
    if description.trim().is_empty() || length > MAX_DESCRIPTION {
        return Err(format!(
            "the description has {length} characters; use 1 to {MAX_DESCRIPTION}"
        ));
    }
    let metadata = frontmatter.get("metadata").and_then(Value::as_object);
    let mut keys = metadata.into_iter().flat_map(|it| it.keys());
    match keys.find(|key| key.starts_with("io.modelcontextprotocol/")) {
        Some(key) => Err(format!(
            "the key {key:?} of `metadata` is reserved by MCP; rename it"
        )),
        None => Ok((name.to_owned(), description.to_owned())),
    }
}

fn string<'a>(frontmatter: &'a JsonObject, field: &str) -> Result<&'a str, String> {
    match frontmatter.get(field) {
        Some(Value::String(text)) => Ok(text),
        Some(_) => Err(format!("`{field}` is not a string; quote the value")),
        None => Err(format!("no `{field}` in the frontmatter; add it")),
    }
}
