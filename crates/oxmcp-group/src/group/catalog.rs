//! The merged lists of all servers, and the tables by which calls are routed.

use std::{collections::BTreeMap, sync::OnceLock};

use oxmcp::protocol::{Prompt, Resource, ResourceTemplate, Tool, ToolIndex};

use super::lists::Lists;
use crate::router::{Hosts, NameTable, Naming, UriTable};

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
    pub(super) tools: Vec<Tool>,
    pub(super) prompts: Vec<Prompt>,
    pub(super) resources: Vec<Resource>,
    pub(super) templates: Vec<ResourceTemplate>,
    pub(super) tool_names: NameTable,
    pub(super) prompt_names: NameTable,
    pub(super) uris: UriTable,
    pub(super) template_uris: UriTable,
    pub(super) hosts: Hosts,
    index: OnceLock<ToolIndex>,
}

impl Catalog {
    pub(super) fn new<'a>(naming: &Naming, servers: &'a [Listed<'a>]) -> Self {
        fn names<'a, T: 'a>(
            servers: &'a [Listed<'a>],
            entries: fn(&Lists) -> &[T],
            name: fn(&T) -> &str,
        ) -> Vec<(&'a str, Vec<&'a str>)> {
            let of = |it: &'a Listed<'a>| (it.label, entries(it.lists).iter().map(name).collect());
            servers.iter().map(of).collect()
        }
        let without_labels = |lists: Vec<(&'a str, Vec<&'a str>)>| -> Vec<Vec<&'a str>> {
            lists.into_iter().map(|(_, it)| it).collect()
        };
        let labels: Vec<&str> = servers.iter().map(|it| it.label).collect();
        let hosts = Hosts::new(&labels);
        let tools = names(servers, |it| &it.tools.entries, |it| &it.name);
        let prompts = names(servers, |it| &it.prompts.entries, |it| &it.name);
        let uris = without_labels(names(servers, |it| &it.resources.entries, |it| &it.uri));
        let templates = names(servers, |it| &it.templates.entries, |it| &it.uri_template);
        let templates = without_labels(templates);
        let mut catalog = Self {
            tool_names: NameTable::new(naming, &tools),
            prompt_names: NameTable::new(naming, &prompts),
            uris: UriTable::new(&hosts, &uris),
            template_uris: UriTable::new(&hosts, &templates),
            hosts,
            ..Self::default()
        };
        for (server, listed) in servers.iter().enumerate().filter(|(_, it)| it.is_shown) {
            catalog.add(server, listed.lists);
        }
        catalog
    }

    fn add(&mut self, server: usize, lists: &Lists) {
        for tool in &lists.tools.entries {
            if let Some(name) = self.tool_names.exposed(server, &tool.name) {
                let mut tool = tool.clone();
                name.clone_into(&mut tool.name);
                self.tools.push(tool);
            }
        }
        for prompt in &lists.prompts.entries {
            if let Some(name) = self.prompt_names.exposed(server, &prompt.name) {
                let mut prompt = prompt.clone();
                name.clone_into(&mut prompt.name);
                self.prompts.push(prompt);
            }
        }
        for resource in &lists.resources.entries {
            if let Some(uri) = self.uris.exposed(server, &resource.uri) {
                let mut resource = resource.clone();
                uri.clone_into(&mut resource.uri);
                self.resources.push(resource);
            }
        }
        for template in &lists.templates.entries {
            if let Some(uri) = self.template_uris.exposed(server, &template.uri_template) {
                let mut template = template.clone();
                uri.clone_into(&mut template.uri_template);
                self.templates.push(template);
            }
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
        self.index.get_or_init(|| ToolIndex::new(&self.tools))
    }
}
