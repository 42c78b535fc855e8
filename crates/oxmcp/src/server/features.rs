//! A server's features and settings, as they are at one moment.

use std::{sync::Arc, time::Duration};

use crate::{
    Limits, Revision,
    extension::Extensions,
    protocol::{
        CacheHint, Implementation, JsonObject, PromptsCapability, ResourcesCapability,
        ServerCapabilities, ToolsCapability,
    },
    server::{
        ask::{AskSettings, OnRootsChanged},
        completion::can_complete,
        logging::LogOptions,
        opening::Openings,
        prompt::RegisteredPrompt,
        registry::Registry,
        resource::{RegisteredResource, RegisteredTemplate, Routes},
        subscription::Subscribing,
        tool::RegisteredTool,
    },
    session::middleware::Stack,
};

/// How many entries a page of a list holds, unless told otherwise: few servers have more, so that most clients get all
/// at once.
pub(crate) const PAGE_SIZE: usize = 1000;

/// Everything that a server is made of. It never changes; a change makes a new one, so that whoever serves a request
/// sees one state and needs no lock.
#[derive(Clone, Debug)]
pub(crate) struct Features {
    pub(crate) info: Implementation,
    pub(crate) instructions: Option<String>,
    pub(crate) tools: Registry<RegisteredTool>,
    pub(crate) prompts: Registry<RegisteredPrompt>,
    pub(crate) resources: Registry<RegisteredResource>,
    pub(crate) templates: Registry<RegisteredTemplate>,
    /// `templates`, in the order in which they are asked.
    pub(crate) routes: Routes,
    /// Whether resources can be watched, and who wants to know.
    pub(crate) subscribing: Option<Subscribing>,
    /// Whether there ever was something that can be completed: a capability that was declared is kept.
    pub(crate) completes: bool,
    pub(crate) extensions: Extensions,
    /// How it logs to clients; `None` where it does not.
    pub(crate) logging: Option<LogOptions>,
    pub(crate) page_size: usize,
    /// What is said of the answer to `server/discover`.
    pub(crate) discover_cache: CacheHint,
    pub(crate) limits: Arc<Limits>,
    /// The revisions that are served, the newest first.
    pub(crate) revisions: Vec<Revision>,
    pub(crate) keep_alive: Option<Duration>,
    pub(crate) ask: AskSettings,
    pub(crate) on_roots_changed: Option<OnRootsChanged>,
    pub(crate) incoming: Stack,
    pub(crate) outgoing: Stack,
    /// What clients that open sessions were answered. It is of this state alone.
    pub(super) openings: Arc<Openings>,
    /// `info` as JSON.
    pub(crate) stamp: Arc<str>,
}

impl Features {
    pub(crate) fn new(info: Implementation) -> Self {
        Self {
            stamp: stamp(&info),
            openings: Arc::default(),
            info,
            instructions: None,
            tools: Registry::default(),
            prompts: Registry::default(),
            resources: Registry::default(),
            templates: Registry::default(),
            routes: Routes::default(),
            subscribing: None,
            completes: false,
            extensions: Extensions::default(),
            logging: None,
            page_size: PAGE_SIZE,
            discover_cache: CacheHint::default(),
            limits: Arc::default(),
            revisions: Revision::ALL.into_iter().rev().collect(),
            keep_alive: None,
            ask: AskSettings::default(),
            on_roots_changed: None,
            incoming: Stack::incoming(),
            outgoing: Stack::outgoing(),
        }
    }

    /// Brings what is derived up to date.
    pub(crate) fn refresh(&mut self) {
        self.stamp = stamp(&self.info);
        self.openings = Arc::default();
        self.tools.refresh();
        self.prompts.refresh();
        if self.resources.is_declared() || self.templates.is_declared() {
            // They are one capability.
            self.resources.declare();
            self.templates.declare();
        }
        self.resources.refresh();
        self.templates.refresh();
        self.routes = Routes::of(&self.templates);
        self.completes |= can_complete(&self.prompts) || can_complete(&self.templates);
    }

    /// What the server says it can do: what it was given, and nothing else.
    pub(crate) fn capabilities(&self) -> ServerCapabilities {
        let mut capabilities = ServerCapabilities::default();
        if self.tools.is_declared() {
            let mut tools = ToolsCapability::default();
            tools.list_changed = true;
            capabilities.tools = Some(tools);
        }
        if self.prompts.is_declared() {
            let mut prompts = PromptsCapability::default();
            prompts.list_changed = true;
            capabilities.prompts = Some(prompts);
        }
        if self.resources.is_declared() {
            let mut resources = ResourcesCapability::default();
            resources.subscribe = self.subscribing.is_some();
            resources.list_changed = true;
            capabilities.resources = Some(resources);
        }
        if self.completes {
            capabilities.completions = Some(JsonObject::default());
        }
        if self.logging.is_some() {
            capabilities.logging = Some(JsonObject::new());
        }
        capabilities.extensions = self.extensions.declared();
        capabilities
    }
}

fn stamp(info: &Implementation) -> Arc<str> {
    serde_json::to_string(info)
        .expect("strings are always JSON")
        .into()
}
