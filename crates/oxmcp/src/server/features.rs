//! Features and settings of a server, and the results of `initialize` and `server/discover`.

use std::{
    collections::BTreeSet,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use arc_swap::{ArcSwap, Guard};
use oxmcp_json::Text;
use oxmcp_protocol::{
    CacheHint, DiscoverResult, Implementation, InitializeParams, InitializeResult, JsonObject,
    Method, PromptsCapability, ResourcesCapability, Revision, ServerCapabilities,
    ServerTasksCapability, SubscriptionFilter, ToolsCapability,
    internal::{encode_result, into_text, unsupported_version},
    method,
};
use serde_json::json;

#[cfg(feature = "http-server")]
use crate::server::tool::ExpectedHeaders;
use crate::{
    error::{Error, Result},
    extension::{feature_check::ServedFeatures, registry::Extensions},
    limits::Limits,
    logged::Logged,
    server::{
        ask::AskSettings,
        completion::can_complete,
        definitions::{
            findings::{Finding, of_prompts, of_resources, of_tools},
            options::misuse_of,
        },
        dispatch::{RecentCache, SessionHook, keep_within},
        logging::LogOptions,
        prompt::RegisteredPrompt,
        registry::{Feature, Registry},
        resource::{Reader, RegisteredResource, RegisteredTemplate, Routes},
        subscriptions::{ResourceSubscriptions, Topics},
        tool::{RegisteredTool, ToolSearch},
    },
    session::{
        connection::{Peer, RequestContext},
        inbound::body::Line,
        middleware::stack::Stack,
        panics::catch_panic,
        tolerance::Tolerance,
    },
    sync::Mutex,
};

/// The default number of entries per page of a listing. Few servers have more, so most clients get the whole listing at once.
pub(crate) const PAGE_SIZE: usize = 1000;

/// The features and settings of a server. Once served, they are immutable: a change makes a new state, so that a request sees
/// one state and needs no lock.
#[derive(Clone, Debug)]
pub(crate) struct Features {
    pub(crate) info: Implementation,
    /// `info` as JSON, which is added to results.
    pub(crate) info_json: Arc<str>,
    pub(crate) instructions: Option<String>,
    pub(crate) tools: Registry<RegisteredTool>,
    /// The search over the tools, which replaces their listing. `None` if all tools are listed.
    pub(crate) tool_search: Option<Arc<ToolSearch>>,
    pub(crate) prompts: Registry<RegisteredPrompt>,
    pub(crate) resources: Registry<RegisteredResource>,
    pub(crate) templates: Registry<RegisteredTemplate>,
    /// `templates`, in the order in which they are matched.
    pub(crate) routes: Routes,
    /// The reader of URIs that no resource or template matches.
    pub(crate) resource_fallback: Option<Arc<Reader>>,
    /// The hooks for subscriptions to resources; `None` if clients cannot subscribe.
    pub(crate) subscriptions: Option<ResourceSubscriptions>,
    /// Whether an argument can be completed. A declared capability stays.
    pub(crate) has_completions: bool,
    /// The first problem with the `_meta` of a feature or the requirements of an extension; `None` if there is none.
    problem: Option<Box<str>>,
    pub(crate) extensions: Extensions,
    /// The experimental capabilities: those that the protocol does not define.
    pub(crate) experimental: JsonObject,
    /// Whether clients are notified when lists change.
    pub(crate) tells_list_changes: bool,
    pub(crate) on_initialized: Option<SessionHook>,
    /// `None` if the server does not log to clients.
    pub(crate) logging: Option<LogOptions>,
    pub(crate) page_size: usize,
    /// Whether invalid arguments are refused, even if they could be repaired.
    pub(crate) has_strict_arguments: bool,
    /// The cache hint of the `server/discover` response.
    pub(crate) discover_cache: CacheHint,
    pub(crate) limits: Arc<Limits>,
    /// The revisions that are served, the newest first.
    pub(crate) revisions: Vec<Revision>,
    pub(crate) keep_alive: Option<Duration>,
    pub(crate) ask: AskSettings,
    pub(crate) on_roots_changed: Option<SessionHook>,
    pub(crate) incoming: Stack,
    pub(crate) outgoing: Stack,
    pub(crate) tolerance: Arc<Tolerance>,
    /// The cached results of `initialize` and `server/discover`, valid only for this state.
    handshakes: Arc<HandshakeCache>,
}

/// The outcome of `initialize`: the client and the announced list changes.
#[derive(Debug)]
pub(crate) struct Negotiated {
    pub(crate) peer: Arc<Peer>,
    /// The list changes that were announced to the client.
    pub(crate) list_changes: Topics,
    /// The memory of the stored client metadata, in bytes.
    #[cfg(feature = "http-server")]
    pub(crate) client_bytes: usize,
}

#[cfg(feature = "http-server")]
impl Negotiated {
    /// A negotiation that knows only the revision of the client.
    pub(crate) fn unknown(revision: Revision) -> Arc<Self> {
        let peer = Peer {
            revision,
            implementation: None,
            capabilities: Default::default(),
        };
        Arc::new(Self {
            peer: Arc::new(peer),
            list_changes: Topics::default(),
            client_bytes: 0,
        })
    }

    /// The same negotiation without the client's capabilities, so that it cannot be asked anything.
    pub(crate) fn without_capabilities(&self) -> Arc<Self> {
        let peer = Peer {
            revision: self.peer.revision,
            implementation: self.peer.implementation.clone(),
            capabilities: Default::default(),
        };
        Arc::new(Self {
            peer: Arc::new(peer),
            list_changes: Topics::default(),
            client_bytes: self.client_bytes,
        })
    }
}

/// Cache of handshake results: clients with the same metadata get the same result, encoded once.
#[derive(Debug, Default)]
struct HandshakeCache {
    /// The results of `initialize`, by its params.
    initialized: RecentCache<Box<str>, (Arc<Negotiated>, Line)>,
    /// The results of `initialize` for authenticated clients, by its params.
    identified: RecentCache<Box<str>, (Arc<Negotiated>, Line)>,
    /// The result of `server/discover` for the revision that was requested first, which most clients request.
    discovered: OnceLock<(Revision, Line)>,
}

/// A kind of feature, which has its own registry.
pub(crate) trait Registered: Feature {
    fn registry(features: &Features) -> &Registry<Self>;

    fn registry_mut(features: &mut Features) -> &mut Registry<Self>;
}

macro_rules! registries {
    ($($feature:ident: $registry:ident;)+) => {$(
        impl Registered for $feature {
            fn registry(features: &Features) -> &Registry<Self> {
                &features.$registry
            }

            fn registry_mut(features: &mut Features) -> &mut Registry<Self> {
                &mut features.$registry
            }
        }
    )+};
}

registries! {
    RegisteredTool: tools;
    RegisteredPrompt: prompts;
    RegisteredResource: resources;
    RegisteredTemplate: templates;
}

impl Features {
    pub(crate) fn new(info: Implementation) -> Self {
        Self {
            info_json: to_json(&info),
            info,
            instructions: None,
            tools: Registry::default(),
            tool_search: None,
            prompts: Registry::default(),
            resources: Registry::default(),
            templates: Registry::default(),
            routes: Routes::default(),
            resource_fallback: None,
            subscriptions: None,
            has_completions: false,
            problem: None,
            extensions: Extensions::default(),
            experimental: JsonObject::new(),
            tells_list_changes: true,
            on_initialized: None,
            logging: None,
            page_size: PAGE_SIZE,
            has_strict_arguments: false,
            discover_cache: CacheHint::default(),
            limits: Arc::default(),
            revisions: Revision::ALL.into_iter().rev().collect(),
            keep_alive: None,
            tolerance: Arc::default(),
            ask: AskSettings::default(),
            on_roots_changed: None,
            incoming: Stack::incoming(),
            outgoing: Stack::outgoing(),
            handshakes: Arc::default(),
        }
    }

    /// Updates everything that is derived from other fields.
    pub(crate) fn refresh(&mut self) {
        self.info_json = to_json(&self.info);
        self.handshakes = Arc::default();
        if let Some(search) = &self.tool_search {
            self.tool_search = Some(Arc::new(search.renewed(&mut self.tools)));
        }
        self.tools.refresh();
        self.prompts.refresh();
        if self.resources.is_declared() || self.templates.is_declared() {
            // Resources and templates are one capability.
            self.resources.declare();
            self.templates.declare();
        }
        self.resources.refresh();
        self.templates.refresh();
        self.routes = Routes::of(&self.templates);
        self.has_completions |= can_complete(&self.prompts) || can_complete(&self.templates);
        let capabilities = self.capabilities(Revision::LATEST);
        self.extensions.note_unmet(&capabilities);
        let checked = self.extensions.check_requirements();
        let checked = checked.and_then(|()| self.check_tools());
        let checked = checked.and_then(|()| self.check_metadata());
        self.problem = checked.err().map(|error| error.message().into());
    }

    /// Checks that the extensions that tools require were added.
    ///
    /// # Errors
    /// The first tool whose extension is missing, with the extension.
    fn check_tools(&self) -> Result<()> {
        for tool in self.tools.after(None) {
            let mut requires = tool.requires().iter();
            if let Some(id) = requires.find(|id| !self.extensions.has(id)) {
                let problem = format!("it requires the extension {id}, which was not added");
                return Err(misuse_of::<RegisteredTool>(tool.id(), &problem));
            }
        }
        Ok(())
    }

    /// Checks that a draft can be served.
    ///
    /// # Errors
    /// The first problem.
    fn check_draft(&self) -> Result<()> {
        let mut draft = self.clone();
        draft.end_draft();
        draft.check()
    }

    /// Prepares the features to be served: derives what [`refresh`](Self::refresh) does, and runs the checks of extensions.
    fn end_draft(&mut self) {
        self.refresh();
        if self.problem.is_none() {
            let checked = self.check_by_extensions();
            self.problem = checked.err().map(|error| error.message().into());
        }
    }

    /// Runs the checks that extensions make of the features.
    ///
    /// # Errors
    /// The first problem.
    fn check_by_extensions(&self) -> Result<()> {
        if !self.extensions.checks_features() {
            return Ok(());
        }
        let tools = self.tools.after(None).map(|it| it.definition());
        let resources = self.resources.after(None).map(|it| it.definition());
        let templates = self.templates.after(None).map(|it| it.definition());
        self.extensions.check_features(&ServedFeatures {
            tools: tools.collect(),
            resources: resources.collect(),
            templates: templates.collect(),
            matches: &|uri| self.routes.has_match(uri),
        })
    }

    /// Reports the problem that the last [`refresh`](Self::refresh) has found.
    ///
    /// # Errors
    /// The first problem.
    fn check(&self) -> Result<()> {
        let problem = self.problem.as_deref();
        problem.map_or(Ok(()), |problem| Err(Error::misuse(problem.to_owned())))
    }

    /// Checks that the `_meta` of features has no keys that features must not set.
    ///
    /// # Errors
    /// The first feature with such a key.
    pub(crate) fn check_metadata(&self) -> Result<()> {
        self.check_metadata_of(self.tools.after(None))?;
        self.check_metadata_of(self.prompts.after(None))?;
        self.check_metadata_of(self.resources.after(None))?;
        self.check_metadata_of(self.templates.after(None))
    }

    /// The same check for features of one kind. A feature does not know the allowed keys, since extensions add their own.
    pub(crate) fn check_metadata_of<'a, T: Feature>(
        &self,
        features: impl IntoIterator<Item = &'a Arc<T>>,
    ) -> Result<()> {
        for feature in features {
            let meta = feature.metadata();
            if meta.is_empty() {
                continue;
            }
            let checked = meta.check_keys(|key| self.extensions.has_meta_key(key));
            checked.map_err(|problem| misuse_of::<T>(feature.id(), &problem))?;
        }
        Ok(())
    }

    /// The capabilities of the registered features in a revision, and no others.
    pub(crate) fn capabilities(&self, revision: Revision) -> ServerCapabilities {
        let mut capabilities = ServerCapabilities::default();
        if self.tools.is_declared() {
            let mut tools = ToolsCapability::default();
            tools.list_changed = self.tells_list_changes;
            capabilities.tools = Some(tools);
        }
        if self.prompts.is_declared() {
            let mut prompts = PromptsCapability::default();
            prompts.list_changed = self.tells_list_changes;
            capabilities.prompts = Some(prompts);
        }
        if self.resources.is_declared() {
            let mut resources = ResourcesCapability::default();
            resources.subscribe = self.subscriptions.is_some();
            resources.list_changed = self.tells_list_changes;
            capabilities.resources = Some(resources);
        }
        if self.has_completions {
            capabilities.completions = Some(JsonObject::default());
        }
        if self.logging.is_some() {
            capabilities.logging = Some(JsonObject::new());
        }
        if self.has_core_tasks(revision) {
            let mut tasks = ServerTasksCapability::default();
            let call = JsonObject::from_iter([("call".to_owned(), json!({}))]);
            tasks.requests = Some(JsonObject::from_iter([("tools".to_owned(), call.into())]));
            tasks.cancel = Some(JsonObject::new());
            tasks.list = Some(JsonObject::new());
            capabilities.tasks = Some(tasks);
        }
        capabilities.extensions = self.extensions.declared(revision);
        let experimental = Some(&self.experimental).filter(|it| !it.is_empty());
        capabilities.experimental = experimental.cloned();
        capabilities
    }

    /// Whether clients can ask that calls of tools run as tasks: in 2025-11-25, if the tasks extension was added.
    pub(crate) fn has_core_tasks(&self, revision: Revision) -> bool {
        let name = method::GetTask::NAME;
        self.extensions.core_method(name, revision).is_some()
    }

    /// The negotiation with a client that sends these params with `initialize`, and the encoded result. `is_identified` tells
    /// whether the client is authenticated.
    ///
    /// # Errors
    /// If the params are invalid, or the server serves no legacy revision.
    pub(crate) fn initialize(
        &self,
        params: Text<'_>,
        is_identified: bool,
    ) -> Result<(Arc<Negotiated>, Line)> {
        self.check_initialize(params)?;
        let params = params.get();
        let cache = match is_identified {
            false => &self.handshakes.initialized,
            true => &self.handshakes.identified,
        };
        cache.get_or_try_insert(
            |known| **known == *params,
            params.len(),
            || {
                let (negotiated, result) = self.negotiate(Text::checked(params), is_identified)?;
                Ok((params.into(), (Arc::new(negotiated), result)))
            },
        )
    }

    /// Checks the length of the params of `initialize`, which have the client's metadata, before they are parsed.
    ///
    /// # Errors
    /// If they are too long.
    pub(crate) fn check_initialize(&self, params: Text<'_>) -> Result<()> {
        let limit = self.limits.max_initialize_bytes;
        if params.get().len() <= limit {
            return Ok(());
        }
        let name = method::Initialize::NAME;
        Err(Error::invalid_params(format!(
            "params of {name} too long: the limit is {limit} bytes; give icons as links instead of data"
        )))
    }

    /// Agrees on the revision that the client asked for, or the newest legacy one that is served.
    fn negotiate(&self, params: Text<'_>, is_identified: bool) -> Result<(Negotiated, Line)> {
        let name = method::Initialize::NAME;
        // These params identify the client.
        let params = self.tolerance.read(|| None, name, params.get(), |_| ());
        let mut params: InitializeParams = params
            .map_err(|error| Error::invalid_params(format!("invalid params of {name}: {error}")))?;
        let served = self.revisions.iter().copied();
        let mut served = served.filter(|revision| !revision.is_modern());
        let asked = params.protocol_version.parse().ok();
        let asked = asked.filter(|asked| served.clone().any(|revision| revision == *asked));
        let Some(revision) = asked.or_else(|| served.next()) else {
            let refusal = unsupported_version(&self.revisions, &params.protocol_version);
            return Err(refusal.into());
        };
        let mut capabilities = self.capabilities(revision);
        if let Some(tasks) = &mut capabilities.tasks
            && !is_identified
        {
            // An unauthenticated client has no tasks, and must not see those of others.
            tasks.list = None;
        }
        let list_changes = SubscriptionFilter::default()
            .with_tools_list_changed(true)
            .with_prompts_list_changed(true)
            .with_resources_list_changed(true)
            .narrowed(&capabilities);
        let limit = self.limits.max_client_bytes;
        let info = &mut params.client_info;
        let kept = keep_within(limit, &mut params.capabilities, info);
        if !kept.is_all {
            tracing::warn!(client = %Logged(&info.name), kept = kept.bytes, "client metadata exceeds the limit");
        }
        let peer = Peer {
            revision,
            implementation: Some(params.client_info),
            capabilities: params.capabilities,
        };
        let negotiated = Negotiated {
            peer: Arc::new(peer),
            list_changes: list_changes.into(),
            #[cfg(feature = "http-server")]
            client_bytes: kept.bytes,
        };
        let mut result = InitializeResult::new(revision, capabilities, self.info.clone());
        result.instructions.clone_from(&self.instructions);
        let mut out = Vec::new();
        encode_result(&mut out, &mut result, revision, None)?;
        Ok((negotiated, into_text(out)?.into()))
    }

    /// The result of `server/discover`.
    ///
    /// # Errors
    /// If it cannot be encoded.
    pub(crate) fn discover(&self, revision: Revision) -> Result<Line> {
        let known = self.handshakes.discovered.get();
        if let Some((_, known)) = known.filter(|(known, _)| *known == revision) {
            return Ok(known.clone());
        }
        let mut result = DiscoverResult::new(self.revisions.clone(), self.capabilities(revision));
        result.instructions.clone_from(&self.instructions);
        result.ttl_ms = Some(self.discover_cache.ttl_ms());
        result.cache_scope = Some(self.discover_cache.scope);
        let mut out = Vec::new();
        encode_result(&mut out, &mut result, revision, Some(&self.info_json))?;
        let json = Line::from(into_text(out)?);
        let _ = self.handshakes.discovered.set((revision, json.clone()));
        Ok(json)
    }

    /// The arguments of a tool that HTTP headers repeat. `None` if there are none, or if there is no such tool.
    #[cfg(feature = "http-server")]
    pub(crate) fn param_headers(&self, tool: &str) -> Option<ExpectedHeaders<'_>> {
        self.tools.get_any(tool)?.expected_headers()
    }
}

/// Visibility of resources that clients subscribe to.
///
/// A subscription to a hidden resource is treated like one to a resource that does not exist yet: it is accepted, and no updates
/// are sent. A refusal would reveal that the resource exists.
impl Features {
    /// The features that need scopes: the kind of each, its name or URI, and its scopes.
    #[cfg(all(feature = "auth", feature = "http-server"))]
    pub(crate) fn scopes(
        &self,
    ) -> impl Iterator<Item = (&'static str, &str, &oxmcp_auth::ScopeSet)> {
        fn of<T: Feature>(
            all: &Registry<T>,
        ) -> impl Iterator<Item = (&'static str, &str, &oxmcp_auth::ScopeSet)> {
            let all = all.after(None).filter(|it| !it.access().scopes.is_empty());
            all.map(|it| (T::KIND, it.id(), &it.access().scopes))
        }
        let resources = of(&self.resources).chain(of(&self.templates));
        of(&self.tools).chain(of(&self.prompts)).chain(resources)
    }

    /// Whether the resource exists, but is not visible to this caller.
    fn is_hidden(&self, uri: &str, cx: &RequestContext) -> bool {
        if self.resources.contains(uri) {
            return self.resources.get(uri, cx).is_none();
        }
        self.templates.is_restricted_for(cx) && self.routes.hides(uri, cx)
    }

    /// Whether to call the server author's hook when the caller subscribes to the resource. The hook could tell a hidden resource
    /// from a missing one, so it is called for neither.
    pub(crate) fn calls_subscribe_hook(&self, uri: &str, cx: &RequestContext) -> bool {
        let depends = self.resources.is_restricted_for(cx) || self.templates.is_restricted_for(cx);
        !depends
            || self.resources.get(uri, cx).is_some()
            || !self.resources.contains(uri) && self.routes.find(uri, cx).is_some()
    }

    /// Whether these resources are visible to all callers or to none.
    pub(crate) fn are_visible(&self, uris: &BTreeSet<Arc<str>>) -> bool {
        let may_depend = self.resources.may_be_restricted() || self.templates.may_be_restricted();
        uris.is_empty() || !may_depend
    }

    /// Removes the resources that the caller does not see; without a context, all.
    pub(crate) fn retain_visible(
        &self,
        uris: &mut BTreeSet<Arc<str>>,
        cx: impl FnOnce() -> Option<RequestContext>,
    ) {
        if self.are_visible(uris) {
            return;
        }
        let Some(cx) = cx() else {
            return uris.clear();
        };
        // A visibility function that panics hides the resource.
        uris.retain(|uri| catch_panic(|| Ok(!self.is_hidden(uri, &cx))).unwrap_or(false));
    }
}

/// The features of a server: first a draft that the builder methods change in place, and once the server is shared, a sequence
/// of immutable states.
///
/// Each change of a shared server copies all of its features. Before the server is shared, copying would be wasted work: adding
/// 10 000 tools one by one would copy them 10 000 times.
pub(crate) struct FeatureStates {
    /// `None` once it is frozen.
    draft: Mutex<Option<Features>>,
    frozen: OnceLock<ArcSwap<Features>>,
    /// Whether the log has warned of a late call of a builder method.
    is_warned: AtomicBool,
}

impl FeatureStates {
    pub(crate) fn new(features: Features) -> Self {
        Self {
            draft: Mutex::new(Some(features)),
            frozen: OnceLock::new(),
            is_warned: AtomicBool::new(false),
        }
    }

    /// Changes the draft. Returns the change if the draft has ended.
    pub(crate) fn edit<F: FnOnce(&mut Features)>(&self, change: F) -> Result<(), F> {
        match &mut *self.draft.lock() {
            Some(draft) => change(draft),
            None => return Err(change),
        }
        Ok(())
    }

    /// The current state. Ends the draft.
    #[inline]
    pub(crate) fn load(&self) -> Guard<Arc<Features>> {
        self.frozen().load()
    }

    pub(crate) fn store(&self, features: Features) {
        self.frozen().store(Arc::new(features));
    }

    /// Ends the draft, if it has not ended yet.
    #[inline]
    pub(crate) fn frozen(&self) -> &ArcSwap<Features> {
        self.frozen.get_or_init(|| {
            let draft = self.draft.lock().take();
            let mut features = draft.expect("the draft is taken once, here");
            features.end_draft();
            ArcSwap::from_pointee(features)
        })
    }

    /// The current state, unless it is a draft.
    pub(crate) fn serving(&self) -> Option<Guard<Arc<Features>>> {
        self.frozen.get().map(ArcSwap::load)
    }

    /// Checks that the features can be served. Features that are already served were checked when they changed last.
    ///
    /// # Errors
    /// The first problem: a forbidden key in the `_meta` of a feature, or an extension that lacks one of its requirements.
    pub(crate) fn check(&self) -> Result<()> {
        match self.serving() {
            Some(serving) => serving.check(),
            None => self.peek(Features::check_draft),
        }
    }

    /// The parts of the definitions that hosts are known to reject or handle badly.
    pub(crate) fn findings(&self) -> Vec<Finding> {
        self.peek(|features| {
            let mut findings = Vec::new();
            let tools = features.tools.after(None).map(|it| it.definition());
            of_tools(&features.info.name, tools, &mut findings);
            of_prompts(
                features.prompts.after(None).map(|it| it.definition()),
                &mut findings,
            );
            let resources = features.resources.after(None).map(|it| it.definition());
            let resources = resources.map(|it| (&*it.uri, it.title.as_deref()));
            of_resources("resource", resources, &mut findings);
            let templates = features.templates.after(None).map(|it| it.definition());
            let templates = templates.map(|it| (&*it.uri_template, it.title.as_deref()));
            of_resources("template", templates, &mut findings);
            findings
        })
    }

    /// Runs `look` with the current features; a draft stays a draft.
    pub(crate) fn peek<T>(&self, look: impl FnOnce(&Features) -> T) -> T {
        if let Some(draft) = &*self.draft.lock() {
            return look(draft);
        }
        look(&self.load())
    }

    /// Logs a warning, once, that a builder method has changed a shared server.
    pub(crate) fn warn_of_late_change(&self) {
        if !self.is_warned.swap(true, Ordering::Relaxed) {
            tracing::warn!(
                "builder method called on a shared server changed all of its clones; \
                 use methods that take `&self`, such as `add_tools`"
            );
        }
    }
}

fn to_json(info: &Implementation) -> Arc<str> {
    serde_json::to_string(info)
        .expect("strings are always JSON")
        .into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server::{
        Server,
        dispatch::{MAX_ENTRIES, MAX_KEY_BYTES},
    };

    fn params(name: &str) -> String {
        format!(
            r#"{{"protocolVersion":"2025-11-25","capabilities":{{}},"clientInfo":{{"name":"{name}","version":"1"}}}}"#
        )
    }

    fn open(features: &Features, name: &str) -> Arc<Negotiated> {
        let params = params(name);
        features
            .initialize(Text::checked(&params), false)
            .unwrap()
            .0
    }

    #[test]
    fn identical_clients_share_their_negotiation() {
        let server = Server::new("s", "1");
        let features = server.features();
        let first = open(&features, "a");
        assert!(Arc::ptr_eq(&first, &open(&features, "a")));
        let other = open(&features, "b");
        assert_eq!(other.peer.implementation.as_ref().unwrap().name, "b");
        for number in 0..MAX_ENTRIES {
            open(&features, &number.to_string());
        }
        assert_eq!(features.handshakes.initialized.keys().len(), MAX_ENTRIES);
        assert!(!Arc::ptr_eq(&first, &open(&features, "a")));
        open(&features, &"x".repeat(MAX_KEY_BYTES));
        let known = features.handshakes.initialized.keys();
        assert!(known.iter().all(|params| params.len() <= MAX_KEY_BYTES));
    }

    #[test]
    fn server_change_alters_its_handshake_results() {
        let server = Server::new("s", "1");
        let said = |server: &Server| {
            let features = server.features();
            let revision = Revision::LATEST;
            let params = params("a");
            let (_, opened) = features.initialize(Text::checked(&params), false).unwrap();
            [features.discover(revision).unwrap(), opened]
        };
        let before = said(&server);
        assert_eq!(before, said(&server));
        let server = server.instructions("be kind");
        for (said, before) in said(&server).iter().zip(&before) {
            assert!(said.contains("be kind") && !before.contains("be kind"));
        }
    }
}
