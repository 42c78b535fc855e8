//! The MCP server: a handle to its features, settings and sessions.

#[cfg(feature = "http-server")]
use std::sync::OnceLock;
use std::{
    fmt,
    sync::{
        Arc, Weak,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use arc_swap::Guard;
use oxmcp_protocol::{CacheHint, Icon, Implementation, Revision};
use serde::Serialize;
use serde_json::Value;
use tokio::runtime::Handle;

#[cfg(feature = "http-server")]
use crate::server::subscriptions::BusMember;
use crate::{
    debug::opaque_debug,
    error::{Error, Result},
    extension::{Extension, IntoMethodResult, MethodArguments},
    limits::Limits,
    logged::metrics,
    server::{
        definitions::findings::Finding,
        dispatch::ClientCache,
        features::{FeatureStates, Features, PAGE_SIZE, Registered},
        subscriptions::{Changes, OpenSubscriptions},
    },
    session::{
        connection::{Connection, Side},
        driver::keep_alive::keep_alive,
        handler::{
            state_scope::StateScope,
            traits::{Handler, HandlerFuture},
        },
        inbound::inline_execution::InlineExecution,
        middleware::MiddlewareLayer,
        panics::catch_panic,
        task::spawn,
        tolerance::Tolerance,
    },
    sync::Mutex,
};

/// An MCP server: its tools, prompts and resources, its settings, and its sessions.
///
/// A server is a cheap handle: clones refer to the same server. It serves any number of sessions at once, in every revision.
/// It advertises the capabilities of the features that were added, and nothing by default.
///
/// Methods that take `self` are builder methods: call them before the server is cloned, connected or served. A later call
/// changes every clone, and logs a warning once. Methods that take `&self`, like [`add_tools`](Self::add_tools), change a
/// running server, including its open sessions. Mistakes in building the server are reported by [`check`](Self::check), and by
/// every method that begins to serve.
///
/// ```
/// use oxmcp::{JsonSchema, Server, Tool};
///
/// #[derive(serde::Deserialize, JsonSchema)]
/// struct Pair { a: f64, b: f64 }
///
/// let server = Server::new("calculator", "1.0.0")
///     .tool(Tool::new("add", "Add two numbers", |Pair { a, b }: Pair| async move { a + b }));
/// # async fn run(server: Server) -> oxmcp::Result<()> {
/// server.run(oxmcp::stdio()).await
/// # }
/// # let _ = run(server);
/// ```
pub struct Server(Arc<Inner>);

impl Clone for Server {
    /// Returns another handle to the same server.
    fn clone(&self) -> Self {
        self.0.features.frozen();
        Self(Arc::clone(&self.0))
    }
}

/// A handle to a server that does not keep it alive; made by [`Server::downgrade`].
#[derive(Clone)]
pub struct WeakServer(Weak<Inner>);

impl WeakServer {
    /// Returns the server, if a [`Server`] handle to it still exists.
    #[must_use]
    pub fn upgrade(&self) -> Option<Server> {
        self.0.upgrade().map(Server)
    }
}

opaque_debug!(WeakServer);

/// The state that all clones of a server share.
struct Inner {
    features: FeatureStates,
    /// The first mistake in building the server. The lock also serializes changes of the features.
    mistake: Mutex<Option<Error>>,
    /// The connections of the open sessions.
    connections: Mutex<Vec<Weak<Connection>>>,
    changes: Arc<Changes>,
    /// Whether middleware runs inline.
    inline: Arc<InlineExecution>,
    /// Cache of the modern clients that made requests recently.
    clients: ClientCache,
    /// The subscriptions of requests that each have their own connection.
    open_subscriptions: Arc<OpenSubscriptions>,
    /// The bus by which the nodes of the server notify each other of changes.
    #[cfg(feature = "http-server")]
    bus_member: OnceLock<BusMember>,
    /// Whether an HTTP endpoint serves the server.
    #[cfg(feature = "http-server")]
    has_endpoint: AtomicBool,
    /// Whether the server has begun to serve.
    is_serving: AtomicBool,
}

/// The hook of an extension that runs when its server begins to serve.
struct OnServe(Box<dyn Fn(&Server) + Send + Sync>);

impl Extension {
    /// For servers: sets a hook that runs once, when the server begins to serve, for example to resume unfinished work.
    ///
    /// A server begins to serve when it is first connected. Over HTTP, it begins when its endpoint is created within a runtime,
    /// or else with the first request. The hook must not block. Tasks that it spawns should hold a [`WeakServer`], so that they
    /// end with the server.
    ///
    /// ```
    /// use std::time::Duration;
    /// use oxmcp::{Extension, Server};
    ///
    /// let clock = Extension::new("com.example/clock").on_serve(|server| {
    ///     let server = server.downgrade();
    ///     tokio::spawn(async move {
    ///         while let Some(server) = server.upgrade() {
    ///             server.resource_updated("clock://now");
    ///             drop(server);
    ///             tokio::time::sleep(Duration::from_secs(60)).await;
    ///         }
    ///     });
    /// });
    /// let server = Server::new("clock", "1.0.0").extension(clock);
    /// # let _ = server;
    /// ```
    #[must_use]
    pub fn on_serve(mut self, hook: impl Fn(&Server) + Send + Sync + 'static) -> Self {
        self.on_serve = Some(Arc::new(OnServe(Box::new(hook))));
        self
    }
}

impl Server {
    /// Creates a server without any features.
    #[must_use]
    pub fn new(name: impl Into<String>, version: impl Into<String>) -> Self {
        Self(Arc::new(Inner {
            features: FeatureStates::new(Features::new(Implementation::new(name, version))),
            mistake: Mutex::default(),
            connections: Mutex::default(),
            changes: Arc::default(),
            inline: Arc::new(InlineExecution::new()),
            clients: ClientCache::default(),
            open_subscriptions: Arc::default(),
            #[cfg(feature = "http-server")]
            bus_member: OnceLock::new(),
            #[cfg(feature = "http-server")]
            has_endpoint: AtomicBool::new(false),
            is_serving: AtomicBool::new(false),
        }))
    }

    /// Returns a handle that does not keep the server alive, for background work that should end with the server.
    ///
    /// ```
    /// let server = oxmcp::Server::new("clock", "1.0.0");
    /// let weak = server.downgrade();
    /// assert!(weak.upgrade().is_some());
    /// drop(server);
    /// assert!(weak.upgrade().is_none());
    /// ```
    #[must_use]
    pub fn downgrade(&self) -> WeakServer {
        self.0.features.frozen();
        WeakServer(Arc::downgrade(&self.0))
    }

    /// Sets the instructions for using the server; many clients pass them to the model.
    #[must_use]
    pub fn instructions(self, instructions: impl Into<String>) -> Self {
        self.with(|features| features.instructions = Some(instructions.into()))
    }

    /// Adds a paragraph to the instructions, for extensions that explain their features. Call it after
    /// [`instructions`](Self::instructions), which replaces what was set before.
    ///
    /// ```
    /// let server = oxmcp::Server::new("library", "1.0.0")
    ///     .instructions("Lends books.")
    ///     .append_instructions("Returns are described in the resource library://returns.");
    /// # let _ = server;
    /// ```
    #[must_use]
    pub fn append_instructions(self, paragraph: impl Into<String>) -> Self {
        let paragraph = paragraph.into();
        self.with(|features| {
            features.instructions = Some(match features.instructions.take() {
                Some(before) => format!("{before}\n\n{paragraph}"),
                None => paragraph,
            });
        })
    }

    /// Sets the title: the name displayed to people.
    #[must_use]
    pub fn title(self, title: impl Into<String>) -> Self {
        self.with(|features| features.info.title = Some(title.into()))
    }

    /// Sets a description of the server for people.
    #[must_use]
    pub fn description(self, description: impl Into<String>) -> Self {
        self.with(|features| features.info.description = Some(description.into()))
    }

    /// Sets the URL of the server's website.
    #[must_use]
    pub fn website_url(self, url: impl Into<String>) -> Self {
        self.with(|features| features.info.website_url = Some(url.into()))
    }

    /// Adds an icon of the server.
    #[must_use]
    pub fn icon(self, icon: Icon) -> Self {
        self.note(icon.check().map_err(Error::misuse));
        self.with(|features| features.info.icons.push(icon))
    }

    /// Declares an experimental capability, which the protocol does not define; `settings` must be a JSON object. For a
    /// capability that other implementations should recognize, use an [`Extension`].
    /// See [capabilities](https://modelcontextprotocol.io/specification/2026-07-28/server/discover).
    ///
    /// ```
    /// use oxmcp::Server;
    /// use serde_json::json;
    ///
    /// let server = Server::new("lab", "1.0.0").experimental("com.example/tracing", json!({"level": 2}));
    /// # let _ = server;
    /// ```
    #[must_use]
    pub fn experimental(self, name: impl Into<String>, settings: impl Serialize) -> Self {
        let name = name.into();
        match serde_json::to_value(settings) {
            Ok(settings @ Value::Object(_)) => self.with(|features| {
                features.experimental.insert(name, settings);
            }),
            _ => {
                self.note(Err(Error::misuse(format!(
                    "invalid experimental capability {name:?}: the settings must be a JSON object"
                ))));
                self
            }
        }
    }

    /// Disables notifications of changed lists, and does not declare them.
    ///
    /// This is for a server whose lists are fixed: clients then need not subscribe.
    #[must_use]
    pub fn without_list_changes(self) -> Self {
        self.with(|features| features.tells_list_changes = false)
    }

    /// Sets the number of entries per page of a listing. 0 means the default, 1000.
    ///
    /// Listings are sorted by name (resources by URI), and not by the order of addition. So a cursor stays valid after a change,
    /// and on every node that serves the same features.
    #[must_use]
    pub fn page_size(self, entries: usize) -> Self {
        self.with(|features| {
            features.page_size = if entries == 0 { PAGE_SIZE } else { entries };
        })
    }

    /// Enables strict mode: refuses messages that deviate from the specification.
    ///
    /// By default, a server tolerates deviations by clients whose meaning is clear, and logs a warning: see the guide of
    /// tolerated deviations. Strict mode includes [`strict_arguments`](Self::strict_arguments). It is for tests, and for
    /// gateways that must not hide mistakes.
    ///
    /// ```
    /// let server = oxmcp::Server::new("calculator", "1.0.0").strict();
    /// # let _ = server;
    /// ```
    #[must_use]
    pub fn strict(self) -> Self {
        self.strict_arguments()
            .with(|features| features.tolerance = Arc::new(Tolerance::strict()))
    }

    /// Refuses invalid arguments of tools and prompts, even if their meaning is clear.
    ///
    /// By default, the server tries to repair them: see [`Tool::strict_arguments`](crate::Tool::strict_arguments). In the
    /// arguments of prompts, which are strings, it drops a null, and converts a number or a boolean to text.
    #[must_use]
    pub fn strict_arguments(self) -> Self {
        self.with(|features| features.has_strict_arguments = true)
    }

    /// Sets the revisions to serve; all by default.
    ///
    /// Open sessions continue. Without a legacy revision, `initialize` fails with an error that lists the served revisions.
    ///
    /// ```
    /// use oxmcp::{Revision, Server};
    ///
    /// let modern_only = Server::new("calculator", "1.0.0").revisions([Revision::LATEST]);
    /// # let _ = modern_only;
    /// ```
    #[must_use]
    pub fn revisions(self, revisions: impl IntoIterator<Item = Revision>) -> Self {
        let mut revisions: Vec<_> = revisions.into_iter().collect();
        revisions.sort_unstable_by(|a, b| b.cmp(a));
        revisions.dedup();
        if revisions.is_empty() {
            let error = Error::misuse(
                "the server needs at least one revision; set it with `Server::revisions`",
            );
            self.note(Err(error));
        }
        self.with(|features| features.revisions = revisions)
    }

    /// Sets the cache hint of the `server/discover` response: how long it stays fresh, and whether it may be shared.
    /// See [caching](https://modelcontextprotocol.io/specification/2026-07-28/server/utilities/caching).
    #[must_use]
    pub fn cache_discovery(self, hint: CacheHint) -> Self {
        self.with(|features| features.discover_cache = hint)
    }

    /// Sets the limits of new connections.
    #[must_use]
    pub fn limits(self, limits: Limits) -> Self {
        self.with(|features| features.limits = Arc::new(limits))
    }

    /// Sets the interval at which legacy clients are pinged. The session of a client that does not respond is closed. By
    /// default, and with zero, clients are not pinged.
    #[must_use]
    pub fn keep_alive(self, interval: Duration) -> Self {
        let interval = (!interval.is_zero()).then_some(interval);
        self.with(|features| features.keep_alive = interval)
    }

    /// Adds a middleware for incoming messages. See [`middleware`](crate::session::middleware).
    #[must_use]
    pub fn layer(self, layer: impl MiddlewareLayer) -> Self {
        self.with(|features| features.incoming.push(layer))
    }

    /// Adds a middleware for outgoing messages. See [`middleware`](crate::session::middleware).
    #[must_use]
    pub fn outgoing_layer(self, layer: impl MiddlewareLayer) -> Self {
        self.with(|features| features.outgoing.push(layer))
    }

    /// Adds an extension.
    ///
    /// The server declares it, serves its methods and handles its notifications. The extension's middleware goes inside the
    /// layers added earlier. A problem with the extension is reported when the server connects; nothing of the extension is
    /// added in that case.
    /// See [`extension`](crate::extension).
    #[must_use]
    pub fn extension(self, extension: Extension) -> Self {
        let mut added = Ok(());
        let server = self.with(|features| {
            let extension = features.extensions.add(extension, Side::Server);
            added =
                extension.map(|it| it.push_layers(&mut features.incoming, &mut features.outgoing));
        });
        server.note(added);
        server
    }

    /// Lets requests with methods that the server does not know reach its [middleware](crate::middleware), for proxies, which
    /// serve them there. Otherwise they are refused before, over HTTP. What the middleware passes on is refused as usual.
    #[must_use]
    pub fn pass_unknown_methods(self) -> Self {
        self.with(|features| features.extensions.passes_unknown = true)
    }

    /// Returns whether the server has the extension of this identifier.
    #[must_use]
    pub fn has_extension(&self, id: &str) -> bool {
        self.0.features.peek(|it| it.extensions.has(id))
    }

    /// Returns whether an extension or [`method`](Self::method) serves a method that the protocol does not have, in any revision.
    #[must_use]
    pub fn serves_method(&self, name: &str) -> bool {
        self.0.features.peek(|it| it.extensions.has_method(name))
    }

    /// Returns the [state](Extension::state) of an extension. `None` if the server has no such extension, or its state has
    /// another type.
    #[must_use]
    pub fn extension_state<T: Send + Sync + 'static>(&self, id: &str) -> Option<Arc<T>> {
        self.0.features.peek(|it| it.extensions.state(id))
    }

    /// Serves a custom method, in every revision.
    ///
    /// The handler's types are those of the params and the result; the params are validated. The method belongs to no
    /// extension and is not declared. To let clients discover it, add an [`Extension`] with a
    /// [`method_fn`](Extension::method_fn).
    ///
    /// ```
    /// use oxmcp::{JsonSchema, Server};
    ///
    /// #[derive(serde::Deserialize, JsonSchema)]
    /// struct Search { query: String }
    ///
    /// #[derive(serde::Serialize)]
    /// struct Found { names: Vec<String> }
    ///
    /// let server = Server::new("acme", "1.0.0").method("acme/search", |Search { query }: Search| async move {
    ///     Ok::<_, oxmcp::Error>(Found { names: vec![query] })
    /// });
    /// # let _ = server;
    /// ```
    #[must_use]
    pub fn method<Arguments: MethodArguments>(
        self,
        name: &'static str,
        handler: impl Handler<
            Arguments,
            Returned: HandlerFuture<Output: IntoMethodResult> + Send + 'static,
        >,
    ) -> Self {
        self.extension(Extension::of_method(name, handler))
    }

    /// Adds features that share state: tools, prompts, resources, templates and hooks.
    ///
    /// Their functions take the state as first argument. Each call gets a clone, so the state is usually an [`Arc`], or a
    /// struct of several.
    ///
    /// ```
    /// use std::sync::{Arc, Mutex};
    ///
    /// use oxmcp::{CompletionInput, Prompt, Server};
    ///
    /// #[derive(Default)]
    /// struct Notes(Mutex<Vec<String>>);
    ///
    /// /// Write a note.
    /// #[oxmcp::tool]
    /// async fn write(#[state] notes: Arc<Notes>, title: String) -> usize {
    ///     let mut notes = notes.0.lock().expect("not poisoned");
    ///     notes.push(title);
    ///     notes.len()
    /// }
    ///
    /// /// Read a note.
    /// #[oxmcp::resource("note://{title}")]
    /// async fn read(#[state] notes: Arc<Notes>, title: String) -> Option<String> {
    ///     let notes = notes.0.lock().expect("not poisoned");
    ///     notes.contains(&title).then(|| format!("the note {title}"))
    /// }
    ///
    /// // A prompt without the attribute gets the state from the scope.
    /// async fn summary(notes: Arc<Notes>) -> String {
    ///     format!("Sum up: {}", notes.0.lock().expect("not poisoned").join(", "))
    /// }
    ///
    /// let server = Server::new("notes", "1.0.0").state(Arc::new(Notes::default()), |s| {
    ///     s.tool(write::tool)
    ///         .resource_template(read::template)
    ///         .prompt(Prompt::new("summary", "Sum up all notes", s.with_state(summary)))
    ///         .on_initialized(|notes, _session| async move {
    ///             println!("{} notes", notes.0.lock().expect("not poisoned").len());
    ///         })
    /// });
    /// # let _ = server;
    /// ```
    #[must_use]
    pub fn state<State: Clone + Send + Sync + 'static>(
        self,
        state: State,
        add: impl FnOnce(&StateScope<Self, State>) -> &StateScope<Self, State>,
    ) -> Self {
        // Another handle, rather than a clone, which would end the draft.
        StateScope::run(Self(Arc::clone(&self.0)), state, add);
        self
    }

    /// Runs a builder method for a [`StateScope`], which holds a second handle.
    pub(crate) fn build(&self, build: impl FnOnce(Self) -> Self) {
        drop(build(Self(Arc::clone(&self.0))));
    }

    /// Checks that the server was built correctly, and reports what hosts are known to reject or handle badly.
    ///
    /// Call it in a test, and before you publish the server. Mistakes are, for example, a tool whose name or schema the protocol
    /// forbids, two tools with the same name, or conflicting extensions. [`run`](Self::run), [`connect`](Self::connect) and the
    /// `serve` methods of HTTP endpoints make this check themselves. For an endpoint mounted in a framework, call it at startup:
    /// otherwise a mistake surfaces only with the first request.
    ///
    /// Findings are not mistakes: the protocol allows more than hosts and model APIs support. They cover all tools and prompts,
    /// with derived and hand-written schemas. Severe findings are logged as warnings when the server begins to serve. Which scopes a
    /// caller can have is known only to the HTTP endpoint, which warns at startup of features that need others.
    ///
    /// ```
    /// use oxmcp::{Server, Tool};
    ///
    /// let now = || Tool::new("now", "Tell the time", || async { "ten past two" });
    /// assert_eq!(Server::new("clock", "1.0.0").tool(now()).check()?, []);
    ///
    /// let error = Server::new("clock", "1.0.0").tool(now()).tool(now()).check().unwrap_err();
    /// assert!(error.to_string().contains("duplicate tool \"now\""));
    ///
    /// let schema = r#"{"type": "object", "properties": {"zone": {"type": ["string", "null"]}}}"#;
    /// let findings = Server::new("clock", "1.0.0").tool(now().input_schema(schema)).check()?;
    /// assert_eq!(
    ///     findings[0].to_string(),
    ///     "tool \"now\" at /inputSchema/properties/zone/type: type-array: Gemini refuses the tool; \
    ///      use \"anyOf\" with one type in each form",
    /// );
    /// # Ok::<(), oxmcp::Error>(())
    /// ```
    ///
    /// # Errors
    /// The first mistake.
    pub fn check(&self) -> Result<Vec<Finding>> {
        self.check_built()?;
        Ok(self.0.features.findings())
    }

    /// Checks that the server was built correctly.
    ///
    /// # Errors
    /// The first mistake.
    pub(crate) fn check_built(&self) -> Result<()> {
        match &*self.0.mistake.lock() {
            Some(mistake) => Err(Error::misuse(mistake.message().to_owned())),
            None => self.0.features.check(),
        }
    }

    pub(crate) fn features(&self) -> Guard<Arc<Features>> {
        self.0.features.load()
    }

    pub(crate) fn inline_execution(&self) -> &Arc<InlineExecution> {
        &self.0.inline
    }

    /// Cache of the modern clients that made requests recently.
    pub(crate) fn clients(&self) -> &ClientCache {
        &self.0.clients
    }

    /// The subscriptions of requests that each have their own connection.
    pub(crate) fn open_subscriptions(&self) -> &Arc<OpenSubscriptions> {
        &self.0.open_subscriptions
    }

    pub(crate) fn changes(&self) -> &Arc<Changes> {
        &self.0.changes
    }

    /// Called when a client has connected or subscribes, within the current runtime: starts notifying it of changes.
    pub(crate) fn connected(&self) {
        self.0.changes.connected();
        #[cfg(feature = "http-server")]
        self.hear_nodes();
    }

    /// The bus by which the nodes of the server notify each other of changes, if there is one.
    #[cfg(feature = "http-server")]
    pub(crate) fn bus_member(&self) -> &OnceLock<BusMember> {
        &self.0.bus_member
    }

    /// Adds features, for the builder methods. While the server is built, a duplicate id is a mistake.
    pub(crate) fn extended<T: Registered>(self, added: Result<Vec<Arc<T>>>) -> Self {
        let added = match added {
            Ok(added) => added,
            Err(error) => {
                self.note(Err(error));
                return self;
            }
        };
        let (mut doubled, is_any) = (None, !added.is_empty());
        let extend = |features: &mut Features| {
            let registry = T::registry_mut(features);
            registry.declare();
            for feature in added {
                if registry.contains(feature.id()) {
                    doubled.get_or_insert_with(|| twice::<T>(feature.id()));
                }
                registry.insert(feature);
            }
        };
        if let Err(extend) = self.0.features.edit(extend) {
            self.0.features.warn_of_late_change();
            self.change(extend);
            if is_any {
                self.changed(T::list_changed());
            }
            return self;
        }
        self.note(doubled.map_or(Ok(()), Err));
        self
    }

    /// Reads the features as they are now.
    pub(crate) fn peek<T>(&self, look: impl FnOnce(&Features) -> T) -> T {
        self.0.features.peek(look)
    }

    /// The ids of the features of a kind.
    pub(crate) fn ids<T: Registered>(&self) -> Vec<String> {
        self.peek(|features| {
            let all = T::registry(features).after(None);
            all.map(|it| it.id().to_owned()).collect()
        })
    }

    /// Adds features, replacing those with the same ids, and notifies connected clients.
    ///
    /// # Errors
    /// If the server may be serving, and the metadata of a feature is not allowed. Then no feature is added. Before the server
    /// serves, an extension that allows the keys may still follow, so [`check`](Self::check) reports them.
    pub(crate) fn add<T: Registered>(&self, added: Vec<Arc<T>>) -> Result<()> {
        if let Some(features) = self.0.features.serving() {
            features.check_metadata_of(&added)?;
        }
        let changed = !added.is_empty();
        self.change(|features| {
            let registry = T::registry_mut(features);
            registry.declare();
            for feature in added {
                registry.insert(feature);
            }
        });
        if changed {
            self.changed(T::list_changed());
        }
        Ok(())
    }

    /// Removes features by their ids, and notifies connected clients if any existed.
    pub(crate) fn remove<T: Registered>(&self, ids: impl IntoIterator<Item = impl AsRef<str>>) {
        // The iterator is code of the caller, which must not run under the lock.
        let ids: Vec<_> = ids.into_iter().collect();
        let mut removed = false;
        self.change(|features| {
            let registry = T::registry_mut(features);
            for id in &ids {
                removed |= registry.remove(id.as_ref());
            }
        });
        if removed {
            self.changed(T::list_changed());
        }
    }

    /// Records a mistake in building the server, to report when it connects. Only the first one is kept.
    pub(crate) fn note(&self, done: Result<()>) {
        if let Err(error) = done {
            self.0.mistake.lock().get_or_insert(error);
        }
    }

    /// Changes the features, for the builder methods.
    pub(crate) fn with(self, change: impl FnOnce(&mut Features)) -> Self {
        if let Err(change) = self.0.features.edit(change) {
            self.0.features.warn_of_late_change();
            self.change(change);
        }
        self
    }

    /// Changes the features: a draft in place, and shared features by replacing them with a changed copy.
    pub(crate) fn change(&self, change: impl FnOnce(&mut Features)) {
        let _one_at_a_time = self.0.mistake.lock();
        let Err(change) = self.0.features.edit(change) else {
            return;
        };
        let mut features = Features::clone(&self.0.features.load());
        change(&mut features);
        features.refresh();
        self.0.features.store(features);
    }

    /// The connections of the sessions that are open now.
    pub(crate) fn connections(&self) -> Vec<Arc<Connection>> {
        let connections = self.0.connections.lock().clone();
        let open = connections.iter().filter_map(Weak::upgrade);
        open.filter(|connection| !connection.is_ended()).collect()
    }

    /// Runs the [`Extension::on_serve`] hooks, if called within a runtime and for the first time.
    pub(crate) fn begin_serving(&self) {
        let is_serving = &self.0.is_serving;
        if is_serving.load(Ordering::Relaxed)
            || Handle::try_current().is_err()
            || is_serving.swap(true, Ordering::Relaxed)
        {
            return;
        }
        for finding in self.0.features.findings() {
            if finding.is_severe {
                tracing::warn!(%finding, "some hosts reject features of this server");
            }
        }
        for hook in self.features().extensions.on_serve::<OnServe>() {
            // A panic of one hook is logged, and does not affect the others.
            let _ = catch_panic(|| {
                (hook.0)(self);
                Ok(())
            });
        }
    }

    /// Adds the connection of a session, which is notified of changes from now on.
    pub(crate) fn add_connection(&self, connection: &Arc<Connection>) {
        self.0.connections.lock().push(Arc::downgrade(connection));
        metrics::sessions(1);
        self.connected();
    }

    /// Removes a connection that has ended, and all others that were dropped.
    pub(crate) fn remove_connection(&self, ended: &Arc<Connection>) {
        let ended = Arc::downgrade(ended);
        let mut connections = self.0.connections.lock();
        let before = connections.len();
        connections
            .retain(|connection| connection.strong_count() > 0 && !connection.ptr_eq(&ended));
        let removed = before - connections.len();
        drop(connections);
        if let Ok(removed @ 1..) = i64::try_from(removed) {
            metrics::sessions(-removed);
        }
    }

    /// Whether the server has, or may have, clients: those of an HTTP endpoint need no session.
    pub(crate) fn serves_others(&self) -> bool {
        let has_sessions = !self.connections().is_empty();
        #[cfg(feature = "http-server")]
        return has_sessions || self.0.has_endpoint.load(Ordering::Relaxed);
        #[cfg(not(feature = "http-server"))]
        has_sessions
    }

    /// Records that an HTTP endpoint serves this server, and will shut it down.
    #[cfg(feature = "http-server")]
    pub(crate) fn note_endpoint(&self) {
        self.0.has_endpoint.store(true, Ordering::Relaxed);
    }

    /// Runs the shutdown hooks of the extensions, before the process ends. Cancel safe: the shutdown continues in the
    /// background.
    pub(crate) async fn shut_down(&self) {
        let server = self.clone();
        let shutting_down = spawn(async move {
            let features = server.features().clone();
            features.extensions.shut_down(features.limits.drain).await;
        });
        // The task is cancelled if the runtime shuts down.
        let _ = shutting_down.await;
    }

    /// Starts pinging the client of a session that was just opened, if keep-alive is enabled.
    pub(crate) fn keep_connection_alive(&self, connection: &Arc<Connection>) {
        if let Some(interval) = self.features().keep_alive {
            spawn(keep_alive(Arc::clone(connection), interval, 1));
        }
    }
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.features.peek(|features| {
            f.debug_struct("Server")
                .field("info", &features.info)
                .field("tools", &features.tools.len())
                .finish_non_exhaustive()
        })
    }
}

/// The error for two features with the same id.
fn twice<T: Registered>(id: &str) -> Error {
    let kind = T::KIND;
    Error::misuse(format!("duplicate {kind} {id:?}: add each {kind} once"))
}
