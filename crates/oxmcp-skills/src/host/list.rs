//! The skills of a server, as it has listed them.

use std::{
    collections::{BTreeMap, HashSet},
    sync::Arc,
};

use serde_json::Value;

use super::{id::SkillId, skill::Skill};

/// The maximum number of skills of a list: far more than a model can choose from.
const MAX_SKILLS: usize = 10_000;

/// The maximum number of files of all skills of a list, at some 200 bytes each.
const MAX_LISTED_FILES: usize = 100_000;

/// The maximum size of the frontmatter of all skills of a list in bytes.
const MAX_LISTED_BYTES: usize = 16 << 20;

/// The maximum number of entries of a list that are reported because they cannot be used.
const MAX_REJECTED: usize = 200;

/// The skills that a server has listed. Servers need not list all that they serve: [`ServerSkills::get`](super::ServerSkills::get)
/// gets any skill by its URI.
#[derive(Clone, Debug, Default)]
pub struct SkillList {
    pub(super) skills: Vec<Skill>,
    pub(super) rejected: Vec<RejectedEntry>,
    pub(super) is_complete: bool,
}

/// An entry that breaks a rule and must not be used.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RejectedEntry {
    /// The URI, if it has one.
    pub uri: Option<String>,
    /// The rule that it breaks, for the author of the server.
    pub problem: String,
}

impl SkillList {
    /// Returns the skills, in the order of the server.
    #[must_use]
    pub fn skills(&self) -> &[Skill] {
        &self.skills
    }

    /// Returns the entries that must not be used, at most 200.
    #[must_use]
    pub fn rejected(&self) -> &[RejectedEntry] {
        &self.rejected
    }

    /// Returns whether these are all that the server lists. If not, it lists more than a host keeps: 10,000 skills, 100,000
    /// files, 16 MiB of frontmatter or 1,000 pages; or it repeats pages.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.is_complete
    }

    /// Returns the skill with this identity.
    #[must_use]
    pub fn find(&self, id: &SkillId) -> Option<&Skill> {
        self.skills.iter().find(|skill| skill.id() == id)
    }
}

/// Returns the names that several of these skills share, each with its skills, sorted by name. Pass the skills of all servers. A
/// host must let users tell such skills apart, by their servers and paths.
///
/// See [names](https://github.com/modelcontextprotocol/ext-skills/blob/main/specification/stable/skills.mdx#names).
pub fn collisions<'a>(
    skills: impl IntoIterator<Item = &'a Skill>,
) -> Vec<(&'a str, Vec<&'a Skill>)> {
    let mut by_name = BTreeMap::<_, Vec<_>>::new();
    for skill in skills {
        by_name.entry(skill.name()).or_default().push(skill);
    }
    let names = by_name.into_iter();
    names.filter(|(_, skills)| skills.len() > 1).collect()
}

/// A list that is being read, within its bounds.
#[derive(Default)]
pub(super) struct ListReader {
    pub(super) list: SkillList,
    seen: HashSet<String>,
    files: usize,
    bytes: usize,
}

impl ListReader {
    /// Adds the entries of a page. Returns whether the list is within its bounds.
    pub(super) fn add(&mut self, server: &Arc<str>, entries: Vec<Value>) -> bool {
        for entry in entries {
            let uri = entry.get("uri").and_then(Value::as_str);
            let uri = uri.map(|it| it.chars().take(256).collect::<String>());
            match Skill::of(server, entry) {
                Ok(skill) if !self.seen.insert(skill.uri().to_owned()) => {
                    self.reject(uri, "it is listed twice".to_owned());
                }
                Ok(skill) => {
                    self.files += skill.files().len();
                    let frontmatter = serde_json::to_vec(&skill.entry().frontmatter);
                    self.bytes += frontmatter.map_or(0, |it| it.len());
                    if self.list.skills.len() >= MAX_SKILLS
                        || self.files > MAX_LISTED_FILES
                        || self.bytes > MAX_LISTED_BYTES
                    {
                        return false;
                    }
                    self.list.skills.push(skill);
                }
                Err(problem) => self.reject(uri, problem),
            }
        }
        true
    }

    fn reject(&mut self, uri: Option<String>, problem: String) {
        if self.list.rejected.len() < MAX_REJECTED {
            self.list.rejected.push(RejectedEntry { uri, problem });
        }
    }
}
