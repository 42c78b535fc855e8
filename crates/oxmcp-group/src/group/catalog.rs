//! The merged lists of all servers, and the tables by which calls are routed.

use std::{
    collections::BTreeMap,
    sync::{Arc, OnceLock},
};

use oxmcp::protocol::{Meta, Prompt, Resource, ResourceTemplate, Tool, ToolIndex};
use serde_json::Value;

use super::lists::Lists;
use crate::router::{Hosts, ListedUris, NameTable, Naming, UriTable};

/// A server as the catalog sees it.
pub(super) struct Listed<'a> {
    pub(super) label: &'a str,
    pub(super) lists: &'a Lists,
    /// Whether its entries are shown. The names of the others stay reserved, so that nothing else is called in their place.
    pub(super) is_shown: bool,
}

/// The merged lists under the names of the group.
#[derive(Debug, Default)]
pub(super) struct Catalog {
    pub(super) tools: Arc<[Tool]>,
    pub(super) prompts: Arc<[Prompt]>,
    pub(super) resources: Arc<[Resource]>,
    pub(super) templates: Arc<[ResourceTemplate]>,
    pub(super) tool_names: NameTable,
    pub(super) prompt_names: NameTable,
    pub(super) uris: UriTable,
    index: OnceLock<ToolIndex>,
}

impl Catalog {
    pub(super) fn new<'a>(naming: &Naming, servers: &'a [Listed<'a>]) -> Self {
        fn names<'a, T: 'a>(
            servers: &'a [Listed<'a>],
            entries: fn(&Lists) -> &[T],
            name: fn(&T) -> &str,
        ) -> Vec<(&'a str, Vec<&'a str>)> {
            let of = |it: &'a Listed<'a>| (it.label, texts(entries(it.lists), name));
            servers.iter().map(of).collect()
        }
        let labels: Vec<&str> = servers.iter().map(|it| it.label).collect();
        let tools = names(servers, |it| &it.tools.entries, |it| &it.name);
        let prompts = names(servers, |it| &it.prompts.entries, |it| &it.name);
        let listed = |it: &'a Listed<'a>| ListedUris {
            uris: texts(&it.lists.resources.entries, |it| &it.uri),
            templates: texts(&it.lists.templates.entries, |it| &it.uri_template),
        };
        let uris: Vec<ListedUris<'_>> = servers.iter().map(listed).collect();
        let (tool_names, prompt_names) = (
            NameTable::new(naming, &tools),
            NameTable::new(naming, &prompts),
        );
        let uris = UriTable::new(&Hosts::new(&labels), &uris);
        Self {
            tools: exposed(
                servers,
                |it| &it.tools.entries,
                |server, tool: &mut Tool| {
                    if servers.len() > 1 {
                        rewrite_pages(&mut tool.meta, |uri| {
                            uris.exposed_link(server, uri).into_owned()
                        });
                    }
                    rename(&mut tool.name, |name| tool_names.exposed(server, name))
                },
            ),
            prompts: exposed(
                servers,
                |it| &it.prompts.entries,
                |server, prompt: &mut Prompt| {
                    rename(&mut prompt.name, |name| prompt_names.exposed(server, name))
                },
            ),
            resources: exposed(
                servers,
                |it| &it.resources.entries,
                |server, resource: &mut Resource| {
                    rename(&mut resource.uri, |uri| uris.exposed(server, uri))
                },
            ),
            templates: exposed(
                servers,
                |it| &it.templates.entries,
                |server, template: &mut ResourceTemplate| {
                    let shown = |uri: &str| uris.exposed_template(server, uri);
                    rename(&mut template.uri_template, shown)
                },
            ),
            tool_names,
            prompt_names,
            uris,
            index: OnceLock::new(),
        }
    }

    /// The exposed names of a server's tools or prompts, by the original ones.
    pub(super) fn exposed_names<T>(
        table: &NameTable,
        server: usize,
        entries: &[T],
        name: fn(&T) -> &str,
    ) -> BTreeMap<String, String> {
        let pair = |entry| {
            let original = name(entry);
            let exposed = table.exposed(server, original)?;
            Some((original.to_owned(), exposed.to_owned()))
        };
        entries.iter().filter_map(pair).collect()
    }

    /// The index of the tools, which is made when it is first needed.
    pub(super) fn index(&self) -> &ToolIndex {
        self.index.get_or_init(|| ToolIndex::new(self.tools.iter()))
    }
}

fn texts<T>(entries: &[T], text: fn(&T) -> &str) -> Vec<&str> {
    entries.iter().map(text).collect()
}

/// The entries of all servers that are shown, those under which `rename` finds a name for them.
fn exposed<T: Clone>(
    servers: &[Listed<'_>],
    entries: fn(&Lists) -> &[T],
    rename: impl Fn(usize, &mut T) -> Option<()>,
) -> Arc<[T]> {
    let shown = servers.iter().enumerate().filter(|(_, it)| it.is_shown);
    let all = shown.flat_map(|(server, it)| entries(it.lists).iter().map(move |it| (server, it)));
    let renamed = all.filter_map(|(server, entry)| {
        let mut entry = entry.clone();
        rename(server, &mut entry)?;
        Some(entry)
    });
    renamed.collect()
}

/// Changes the URIs of a tool's page in its metadata.
fn rewrite_pages(meta: &mut Meta, exposed: impl Fn(&str) -> String) {
    const PAGE: &str = "resourceUri";
    const OLD_PAGE: &str = "ui/resourceUri";
    const UI: &str = "ui";
    if let Some(Value::String(uri)) = meta.get(OLD_PAGE) {
        let shown = exposed(uri);
        meta.insert(OLD_PAGE, shown);
    }
    if let Some(Value::Object(ui)) = meta.get(UI)
        && let Some(Value::String(uri)) = ui.get(PAGE)
    {
        let mut ui = ui.clone();
        ui.insert(PAGE.to_owned(), exposed(uri).into());
        meta.insert(UI, Value::Object(ui));
    }
}

fn rename<'a>(name: &mut String, exposed: impl Fn(&str) -> Option<&'a str>) -> Option<()> {
    let exposed = exposed(name)?.to_owned();
    *name = exposed;
    Some(())
}
