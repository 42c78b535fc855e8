//! A skill as a host knows it: its entry, checked.

use std::{collections::HashSet, sync::Arc};

use oxmcp::protocol::JsonObject;
use serde::Deserialize;
use serde_json::Value;

use super::{approval::Approval, id::SkillId};
use crate::{
    entry::{MAX_FILES, MAX_TOTAL_BYTES, SkillEntry, SkillResource, SkillResources},
    frontmatter::MAX_BYTES,
    uri::{check_name, is_within, skill_directory},
};

/// The maximum length of the description of a problem in characters.
const MAX_PROBLEM: usize = 500;

/// A skill of a server: its identity, and the entry that the server has sent. None of its files has been read.
#[derive(Clone, Debug, PartialEq)]
pub struct Skill {
    id: SkillId,
    entry: Arc<SkillEntry>,
}

impl Skill {
    /// Checks an entry.
    ///
    /// # Errors
    /// The rule that it breaks.
    pub(super) fn of(server: &Arc<str>, entry: Value) -> Result<Self, String> {
        // The text may quote the entry, which can be long.
        let checked = Self::check(server, entry);
        checked.map_err(|problem| problem.chars().take(MAX_PROBLEM).collect())
    }

    fn check(server: &Arc<str>, entry: Value) -> Result<Self, String> {
        let Value::Object(mut entry) = entry else {
            return Err("it is not an object".to_owned());
        };
        let Some(Value::String(uri)) = entry.remove("uri") else {
            return Err("it has no `uri`".to_owned());
        };
        let (directory, name) = skill_directory(&uri)?;
        check_name(name)?;
        let Some(Value::Object(frontmatter)) = entry.remove("frontmatter") else {
            return Err("it has no `frontmatter`".to_owned());
        };
        check_frontmatter(&frontmatter, name)?;
        let resources = match entry.remove("resources") {
            Some(Value::Array(files)) => SkillResources::Listed(read_files(files)?),
            Some(Value::String(word)) if word == "dynamic" => SkillResources::Dynamic,
            _ => return Err("its `resources` are neither a list nor \"dynamic\"".to_owned()),
        };
        if let SkillResources::Listed(files) = &resources {
            check_files(files, &uri, directory)?;
        }
        Ok(Self {
            id: SkillId::new(Arc::clone(server), &*uri),
            entry: Arc::new(SkillEntry {
                uri,
                frontmatter,
                resources,
            }),
        })
    }

    /// Returns the identity.
    #[must_use]
    pub fn id(&self) -> &SkillId {
        &self.id
    }

    /// Returns the URI of the `SKILL.md`. It identifies the skill only together with the server: see [`id`](Self::id).
    #[must_use]
    pub fn uri(&self) -> &str {
        &self.entry.uri
    }

    /// Returns the name. It is a label: other skills, of this server and of others, may have the same.
    #[must_use]
    pub fn name(&self) -> &str {
        self.field("name")
    }

    /// Returns the description.
    #[must_use]
    pub fn description(&self) -> &str {
        self.field("description")
    }

    fn field(&self, key: &str) -> &str {
        let field = self.entry.frontmatter.get(key);
        field.and_then(Value::as_str).unwrap_or_default()
    }

    /// Returns the entry.
    #[must_use]
    pub fn entry(&self) -> &SkillEntry {
        &self.entry
    }

    /// Returns whether the server generates the content, so that it cannot be verified.
    #[must_use]
    pub fn is_dynamic(&self) -> bool {
        self.entry.resources == SkillResources::Dynamic
    }

    /// Returns the files, the `SKILL.md` included. Empty for a [dynamic](Self::is_dynamic) skill.
    #[must_use]
    pub fn files(&self) -> &[SkillResource] {
        match &self.entry.resources {
            SkillResources::Listed(files) => files,
            SkillResources::Dynamic => &[],
        }
    }

    /// Returns the total size of the files in bytes. 0 for a [dynamic](Self::is_dynamic) skill.
    #[must_use]
    pub fn total_size(&self) -> u64 {
        self.files().iter().map(|file| file.size).sum()
    }

    /// Returns an approval of this skill as it is now; store it when the user agrees. `None` for a
    /// [dynamic](Self::is_dynamic) skill, whose content may change at any time.
    #[must_use]
    pub fn approval(&self) -> Option<Approval> {
        (!self.is_dynamic()).then(|| Approval::of(&self.id, self.files()))
    }

    /// The URI of the directory.
    pub(super) fn directory(&self) -> &str {
        self.uri().strip_suffix("/SKILL.md").unwrap_or_default()
    }

    pub(super) fn file(&self, uri: &str) -> Option<&SkillResource> {
        self.files().iter().find(|file| file.uri == uri)
    }
}

fn check_frontmatter(frontmatter: &JsonObject, name: &str) -> Result<(), String> {
    let text = |key: &str| frontmatter.get(key).and_then(Value::as_str);
    if text("name") != Some(name) {
        return Err(format!(
            "the name in its frontmatter is not that of its directory, {name:?}"
        ));
    }
    if text("description").is_none_or(str::is_empty) {
        return Err("its frontmatter has no `description`".to_owned());
    }
    let size = serde_json::to_vec(frontmatter).map_or(usize::MAX, |it| it.len());
    match size > MAX_BYTES {
        true => Err(format!("its frontmatter is longer than {MAX_BYTES} bytes")),
        false => Ok(()),
    }
}

fn read_files(files: Vec<Value>) -> Result<Vec<SkillResource>, String> {
    if files.len() > MAX_FILES {
        let count = files.len();
        return Err(format!("it has {count} files; the limit is {MAX_FILES}"));
    }
    let files = files.into_iter().map(SkillResource::deserialize);
    let files: Result<_, _> = files.collect();
    files.map_err(|error| format!("it has an invalid file: {error}"))
}

fn check_files(files: &[SkillResource], uri: &str, directory: &str) -> Result<(), String> {
    let mut seen = HashSet::new();
    let mut total = 0_u64;
    for file in files {
        let own = &file.uri;
        if !is_within(directory, own) {
            return Err(format!("the file {own:?} is outside its directory"));
        }
        if !seen.insert(&**own) {
            return Err(format!("the file {own:?} is listed twice"));
        }
        total = total.saturating_add(file.size);
    }
    if !seen.contains(uri) {
        return Err("its SKILL.md is not in its `resources`".to_owned());
    }
    match total > MAX_TOTAL_BYTES {
        true => Err(format!(
            "its files have {total} bytes; the limit is {MAX_TOTAL_BYTES}"
        )),
        false => Ok(()),
    }
}
