//! The lists of one server, read within bounds.

use std::collections::HashSet;

use oxmcp::{
    CacheMode, ClientSession, Listing, Result,
    protocol::{Prompt, Resource, ResourceTemplate, Tool},
};
use serde::Serialize;

use crate::filter::ToolFilter;

/// The maximum number of entries of one list. More tools than that are of no use to a model, and the rest is left out.
pub(super) const MAX_ENTRIES: usize = 2000;

/// The maximum length of the name of a tool or prompt, in bytes.
const MAX_NAME: usize = 512;

/// The maximum length of a URI, in bytes.
pub(super) const MAX_URI: usize = 8 << 10;

/// The kinds of lists, as bits.
pub(super) const TOOLS: u8 = 1;
pub(super) const PROMPTS: u8 = 2;
pub(super) const RESOURCES: u8 = 4;
pub(super) const ALL: u8 = TOOLS | PROMPTS | RESOURCES;

/// The lists of one server, under its own names.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Lists {
    pub(super) tools: List<Tool>,
    pub(super) prompts: List<Prompt>,
    pub(super) resources: List<Resource>,
    pub(super) templates: List<ResourceTemplate>,
    pub(super) denied: usize,
}

/// One list, and the problem with it.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct List<T> {
    pub(super) entries: Vec<T>,
    pub(super) problem: Option<String>,
}

impl<T> Default for List<T> {
    fn default() -> Self {
        Self {
            entries: Vec::new(),
            problem: None,
        }
    }
}

impl Lists {
    /// Reads the lists of some kinds again. A list that cannot be read keeps its entries. Returns the kinds that could not be read.
    pub(super) async fn read(
        &mut self,
        session: &ClientSession,
        kinds: u8,
        label: &str,
        filters: &[ToolFilter],
    ) -> u8 {
        let wants = |kind: u8| kinds & kind != 0;
        let done = tokio::join!(
            async {
                if !wants(TOOLS) {
                    return true;
                }
                let tools = read(session.tools(), |it: &Tool| &it.name, MAX_NAME).await;
                let is_read = self.tools.replace("tools", tools);
                if is_read {
                    let before = self.tools.entries.len();
                    let allows = |tool: &Tool| filters.iter().all(|it| it.allows(label, tool));
                    self.tools.entries.retain(allows);
                    self.denied = before - self.tools.entries.len();
                }
                is_read
            },
            async {
                if !wants(PROMPTS) {
                    return true;
                }
                let prompts = read(session.prompts(), |it: &Prompt| &it.name, MAX_NAME).await;
                self.prompts.replace("prompts", prompts)
            },
            async {
                if !wants(RESOURCES) {
                    return true;
                }
                let listing = session.resources();
                let resources = read(listing, |it: &Resource| &it.uri, MAX_URI).await;
                self.resources.replace("resources", resources)
            },
            async {
                if !wants(RESOURCES) {
                    return true;
                }
                // Many servers with resources have no templates, and do not know the method.
                let listing = session.resource_templates().or_none();
                let templates =
                    read(listing, |it: &ResourceTemplate| &it.uri_template, MAX_URI).await;
                self.templates.replace("resource templates", templates)
            },
        );
        let (tools, prompts, resources, templates) = done;
        let failed = |is_read: bool, kind: u8| if is_read { 0 } else { kind };
        failed(tools, TOOLS) | failed(prompts, PROMPTS) | failed(resources && templates, RESOURCES)
    }

    /// The problems with the lists.
    pub(super) fn problems(&self) -> Vec<String> {
        let all = [
            &self.tools.problem,
            &self.prompts.problem,
            &self.resources.problem,
            &self.templates.problem,
        ];
        all.into_iter().flatten().cloned().collect()
    }
}

impl<T> List<T> {
    /// Returns whether the entries were replaced.
    fn replace(&mut self, kind: &str, read: Result<ReadList<T>>) -> bool {
        match read {
            Ok(ReadList { entries, left_out }) => {
                self.entries = entries;
                self.problem = (left_out > 0).then(|| {
                    format!(
                        "{left_out} {kind} were left out: the group keeps {MAX_ENTRIES} with distinct names of limited length"
                    )
                });
                true
            }
            Err(error) => {
                self.problem = Some(format!("could not list {kind}: {error}"));
                false
            }
        }
    }
}

struct ReadList<T> {
    entries: Vec<T>,
    left_out: usize,
}

async fn read<T: Serialize + Send + Unpin + 'static>(
    listing: Listing<T>,
    key: fn(&T) -> &String,
    max_key: usize,
) -> Result<ReadList<T>> {
    // The group has its own copy, and reads a list only when it has changed.
    let mut listing = listing.cache(CacheMode::Refresh);
    let mut seen = HashSet::new();
    let mut list = ReadList {
        entries: Vec::new(),
        left_out: 0,
    };
    while let Some(entry) = listing.next().await {
        let entry = entry?;
        let name = key(&entry);
        let is_kept = list.entries.len() < MAX_ENTRIES
            && (1..=max_key).contains(&name.len())
            && seen.insert(name.clone());
        if is_kept {
            list.entries.push(entry);
        } else {
            list.left_out += 1;
        }
    }
    Ok(list)
}
