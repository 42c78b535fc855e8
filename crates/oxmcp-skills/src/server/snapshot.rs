//! The skills of all sources of a server at one moment. Requests read one snapshot, so that digests and contents agree.

use std::{
    collections::{BTreeMap, btree_map::Entry},
    ops::Bound,
    sync::Arc,
};

use oxmcp::protocol::Resource;

use super::source::{File, SKILL_MD, Skill, Source};
use crate::uri::decode;

/// The MIME type of directories.
pub(crate) const DIRECTORY: &str = "inode/directory";

/// See the [module](self).
#[derive(Debug, Default)]
pub(super) struct Snapshot {
    skills: BTreeMap<String, Arc<Skill>>,
    files: BTreeMap<String, Arc<File>>,
    /// The children of each directory, by their URIs.
    directories: BTreeMap<String, BTreeMap<String, Resource>>,
}

/// A part of a list, and the cursor of the next part.
#[derive(Debug)]
pub(super) struct Page<T> {
    pub(super) items: Vec<T>,
    pub(super) next: Option<String>,
}

impl Snapshot {
    /// Combines sources.
    ///
    /// # Errors
    /// If two sources have a file with the same URI.
    pub(super) fn of<'a>(sources: impl IntoIterator<Item = &'a Source>) -> Result<Self, String> {
        let mut all = Self::default();
        for source in sources {
            for (uri, file) in &source.files {
                match all.files.entry(uri.clone()) {
                    Entry::Occupied(_) => {
                        return Err(format!(
                            "two sources of skills have {uri:?}; set a `prefix` for one of them"
                        ));
                    }
                    Entry::Vacant(vacant) => vacant.insert(Arc::clone(file)),
                };
                all.add_to_directory(&file.resource);
            }
            let skills = source.skills.iter();
            let skills = skills.map(|it| (it.entry.uri.clone(), Arc::clone(it)));
            all.skills.extend(skills);
        }
        Ok(all)
    }

    /// Adds a file to its directory, and each directory to the one above it.
    fn add_to_directory(&mut self, file: &Resource) {
        let mut child = file.clone();
        while let Some((parent, _)) = child.uri.rsplit_once('/') {
            if parent.ends_with('/') {
                return;
            }
            let parent = parent.to_owned();
            let children = self.directories.entry(parent.clone()).or_default();
            if children.contains_key(&child.uri) {
                return;
            }
            children.insert(child.uri.clone(), child);
            let name = parent.rsplit('/').next().and_then(decode);
            child = Resource::new(parent, name.unwrap_or_default()).with_mime_type(DIRECTORY);
        }
    }

    pub(super) fn skill(&self, uri: &str) -> Option<&Arc<Skill>> {
        self.skills.get(uri)
    }

    pub(super) fn file(&self, uri: &str) -> Option<&Arc<File>> {
        self.files.get(uri)
    }

    pub(super) fn has_directory(&self, uri: &str) -> bool {
        self.directories.contains_key(uri)
    }

    /// The resources of all `SKILL.md`s, for the listing of resources.
    pub(super) fn listed(&self) -> Vec<Resource> {
        let files = self.skills.keys().filter_map(|uri| self.files.get(uri));
        files.map(|file| file.resource.clone()).collect()
    }

    /// A page of skills after a cursor, the URI of the last skill before.
    pub(super) fn page(&self, cursor: Option<&str>, size: usize) -> Page<Arc<Skill>> {
        page(&self.skills, cursor, size)
    }

    /// A page of the children of a directory.
    pub(super) fn children(
        &self,
        directory: &str,
        cursor: Option<&str>,
        size: usize,
    ) -> Option<Page<Resource>> {
        let children = self.directories.get(directory)?;
        Some(page(children, cursor, size))
    }

    /// The URIs of the files that another snapshot has differently, or not at all.
    pub(super) fn changed<'a>(&'a self, now: &'a Self) -> impl Iterator<Item = &'a str> {
        self.files.iter().filter_map(|(uri, file)| {
            let same = now.file(uri).is_some_and(|now| now.digest == file.digest);
            (!same).then_some(&**uri)
        })
    }

    /// Whether both snapshots have the same entries.
    pub(super) fn has_same_entries(&self, other: &Self) -> bool {
        let entries = |it: &'_ Self| it.skills.values().cloned().collect::<Vec<_>>();
        let (own, others) = (entries(self), entries(other));
        own.len() == others.len() && own.iter().zip(&others).all(|(a, b)| a.entry == b.entry)
    }

    /// The name of a skill's prompt: its name, or its whole path if another skill has the same name.
    pub(super) fn prompt_name(&self, skill: &Skill) -> String {
        let mut same = self.skills.values().filter(|it| it.name == skill.name);
        if same.nth(1).is_none() {
            return skill.name.clone();
        }
        let path = skill.entry.uri.trim_start_matches("skill://");
        let path = path.trim_end_matches(SKILL_MD).trim_end_matches('/');
        path.replace('/', "_")
    }
}

fn page<T: Clone>(all: &BTreeMap<String, T>, cursor: Option<&str>, size: usize) -> Page<T> {
    let start = cursor.map_or(Bound::Unbounded, Bound::Excluded);
    let mut rest = all.range::<str, _>((start, Bound::Unbounded));
    let mut items = Vec::new();
    let mut last = None;
    for (uri, item) in rest.by_ref().take(size) {
        items.push(item.clone());
        last = Some(uri.clone());
    }
    let next = rest.next().and(last);
    Page { items, next }
}
