//! [`Extension`], the builder of one side of an extension.

#[cfg(feature = "server")]
use std::time::Duration;
use std::{any::Any, ops::RangeBounds, sync::Arc};

#[cfg(feature = "server")]
use oxmcp_protocol::method;
use oxmcp_protocol::{JsonObject, Meta, Method, Notification, Revision};
use serde::Serialize;
use serde_json::Value;

#[cfg(feature = "server")]
use crate::extension::feature_check::FeatureCheck;
#[cfg(feature = "http-server")]
use crate::extension::handlers::Republished;
#[cfg(feature = "server")]
use crate::session::task::BoxFuture;
use crate::{
    debug::opaque_debug,
    error::Result,
    extension::{
        functions::{IntoMethodResult, MethodArguments},
        handlers::{
            ExtensionArguments, FilterKey, IntoAnswer, MirroredHeader, ServedMethod,
            ServedNotification, VersionedName,
        },
    },
    session::{
        connection::RequestContext,
        handler::traits::{Handler, HandlerFuture},
        middleware::{MiddlewareLayer, stack::Stack},
    },
};

/// The member of the settings that names the revision of an extension.
pub(crate) const REVISION: &str = "revision";

/// Whether a peer may declare a revision of an extension.
type RevisionCheck = Arc<dyn Fn(Option<&str>) -> bool + Send + Sync>;

/// A hook that runs before the process ends, within the given time.
#[cfg(feature = "server")]
type ShutdownHook = Arc<dyn Fn(Duration) -> BoxFuture<()> + Send + Sync>;

/// A requirement of an extension on its own side.
#[derive(Clone)]
pub(crate) enum Requirement {
    /// Another extension, by its identifier.
    Extension(String),
    /// A capability, by its path.
    Capability(String),
}

/// One side of a protocol extension, for [`Server::extension`](crate::Server::extension) or
/// [`Client::extension`](crate::Client::extension).
///
/// The [module](crate::extension) has an example. Mistakes in an extension are reported when the server or client connects.
#[derive(Clone)]
pub struct Extension {
    pub(crate) id: Arc<str>,
    pub(crate) settings: JsonObject,
    pub(crate) requires_client: bool,
    pub(crate) methods: Vec<ServedMethod>,
    /// The core methods that the extension serves, in the revisions that have them.
    #[cfg(feature = "server")]
    pub(crate) core_methods: Vec<ServedMethod>,
    pub(crate) notifications: Vec<ServedNotification>,
    /// The requests and notifications that this side sends.
    pub(crate) sent: Vec<VersionedName>,
    pub(crate) listen_keys: Vec<FilterKey>,
    #[cfg(feature = "http-server")]
    pub(crate) republished: Vec<Republished>,
    pub(crate) result_types: Vec<String>,
    pub(crate) meta_keys: Vec<String>,
    pub(crate) headers: Vec<MirroredHeader>,
    /// The requirements on this side.
    pub(crate) requirements: Vec<Requirement>,
    /// Decides which revisions of the extension the peer may declare. `None` means only the revision of this side.
    pub(crate) accepted: Option<RevisionCheck>,
    /// The first revision of the protocol that contains the extension.
    pub(crate) core_since: Option<Revision>,
    /// The hook that runs before the process ends.
    #[cfg(feature = "server")]
    pub(crate) on_shutdown: Option<ShutdownHook>,
    /// The shared state of the extension's code.
    pub(crate) state: Option<Arc<dyn Any + Send + Sync>>,
    /// The hook that runs when the server begins to serve, in a type of the server module.
    #[cfg(feature = "server")]
    pub(crate) on_serve: Option<Arc<dyn Any + Send + Sync>>,
    /// The checks of the server's features.
    #[cfg(feature = "server")]
    pub(crate) feature_checks: Vec<FeatureCheck>,
    incoming: Vec<Arc<dyn MiddlewareLayer>>,
    outgoing: Vec<Arc<dyn MiddlewareLayer>>,
    /// The first mistake in the extension.
    pub(crate) problem: Option<String>,
}

impl Extension {
    /// Creates an extension that is declared and does nothing yet. The identifier is a vendor, as a reversed domain name, and a
    /// name: `com.example/clock`.
    /// See [identifiers](https://modelcontextprotocol.io/specification/2026-07-28/basic/versioning#extension-negotiation).
    #[must_use]
    pub fn new(id: impl Into<Arc<str>>) -> Self {
        let id = id.into();
        let problem = (!is_id(&id)).then(|| {
            format!(
                "invalid identifier {id:?}; expected a vendor and a name, as in \"com.example/clock\""
            )
        });
        Self {
            id,
            settings: JsonObject::new(),
            requires_client: false,
            methods: Vec::new(),
            #[cfg(feature = "server")]
            core_methods: Vec::new(),
            notifications: Vec::new(),
            sent: Vec::new(),
            listen_keys: Vec::new(),
            #[cfg(feature = "http-server")]
            republished: Vec::new(),
            result_types: Vec::new(),
            meta_keys: Vec::new(),
            headers: Vec::new(),
            requirements: Vec::new(),
            accepted: None,
            core_since: None,
            #[cfg(feature = "server")]
            on_shutdown: None,
            state: None,
            #[cfg(feature = "server")]
            on_serve: None,
            #[cfg(feature = "server")]
            feature_checks: Vec::new(),
            incoming: Vec::new(),
            outgoing: Vec::new(),
            problem,
        }
    }

    /// Sets the settings that this side declares: an object whose members the extension defines. The peer finds it under
    /// `extensions` in the capabilities.
    #[must_use]
    pub fn settings(mut self, settings: impl Serialize) -> Self {
        match serde_json::to_value(settings) {
            Ok(Value::Object(mut settings)) => {
                if let Some(revision) = self.settings.remove(REVISION) {
                    settings.entry(REVISION).or_insert(revision);
                }
                self.settings = settings;
            }
            _ => self.report("the settings must be a JSON object".into()),
        }
        self
    }

    /// Sets the revision of the extension that this side declares, as the member `revision` of its settings. Without it, this
    /// side declares the first revision, which has no name.
    ///
    /// A peer that declares a different revision counts as not having declared the extension, unless
    /// [`accepts_revision`](Self::accepts_revision) accepts that revision.
    ///
    /// ```
    /// use oxmcp::Extension;
    ///
    /// // Peers of the first revision are served, too.
    /// let clock = Extension::new("com.example/clock")
    ///     .revision("2026-09")
    ///     .accepts_revision(|declared| matches!(declared, None | Some("2026-09")));
    /// # let _ = clock;
    /// ```
    #[must_use]
    pub fn revision(mut self, revision: impl Into<String>) -> Self {
        let revision = Value::String(revision.into());
        self.settings.insert(REVISION.to_owned(), revision);
        self
    }

    /// Sets a function that decides which revisions of the extension a peer may declare. `None` is the first revision, which
    /// has no name.
    #[must_use]
    pub fn accepts_revision(
        mut self,
        accepts: impl Fn(Option<&str>) -> bool + Send + Sync + 'static,
    ) -> Self {
        self.accepted = Some(Arc::new(accepts));
        self
    }

    /// Requires another extension on this side. They may be added in any order: the requirement is checked before the server
    /// serves or the client connects, and [`Server::check`](crate::Server::check) names both extensions if it is not met. If an
    /// extension is added to a server that is already serving, its methods fail with
    /// [`INTERNAL_ERROR`](crate::ErrorCode::INTERNAL_ERROR) until its requirements are met.
    ///
    /// For requirements on the peer see [`requires_client`](Self::requires_client).
    #[must_use]
    pub fn requires(mut self, extension: impl Into<String>) -> Self {
        self.requirements
            .push(Requirement::Extension(extension.into()));
        self
    }

    /// Requires a protocol capability on this side, as [`requires`](Self::requires) requires an extension: `tools`, or with a
    /// dot a part of one, as in `resources.subscribe`.
    /// See [capabilities](https://modelcontextprotocol.io/specification/2026-07-28/server/discover).
    ///
    /// ```
    /// use oxmcp::{Extension, Server, Tool};
    ///
    /// let skills = || Extension::new("com.example/skills").requires_capability("tools");
    /// let error = Server::new("s", "1.0.0").extension(skills()).check().unwrap_err();
    /// assert!(error.to_string().contains("com.example/skills requires the capability tools"));
    ///
    /// let tool = Tool::new("now", "Tell the time", || async { "ten past two" });
    /// assert!(Server::new("s", "1.0.0").extension(skills()).tool(tool).check().is_ok());
    /// ```
    #[must_use]
    pub fn requires_capability(mut self, path: impl Into<String>) -> Self {
        self.requirements.push(Requirement::Capability(path.into()));
        self
    }

    /// Declares that the core protocol includes the extension from this protocol revision on. From there on the extension is
    /// not declared, and its methods and notifications are neither served nor sent, even if their own ranges of revisions
    /// include it.
    ///
    /// ```
    /// use oxmcp::{Extension, Revision};
    /// # use oxmcp::protocol::{EmptyParams, EmptyResult, Method};
    /// # struct Wind;
    /// # impl Method for Wind { const NAME: &'static str = "clock/wind"; type Params = EmptyParams; type Result = EmptyResult; }
    ///
    /// // Up to 2025-11-25 it is negotiated.
    /// let clock = Extension::new("com.example/clock")
    ///     .core_since(Revision::V2026_07_28)
    ///     .method::<Wind, _>(.., || async { EmptyResult::default() });
    /// # let _ = clock;
    /// ```
    #[must_use]
    pub fn core_since(mut self, revision: Revision) -> Self {
        self.core_since = Some(revision);
        self
    }

    /// Sets the shared state of the extension's code on a server, for code that cannot capture it in a handler, such as a
    /// [layer of a tool](crate::Tool::layer). [`RequestContext::extension_state`](crate::RequestContext::extension_state) and
    /// [`Server::extension_state`](crate::Server::extension_state) return it.
    #[must_use]
    pub fn state<T: Send + Sync + 'static>(mut self, state: Arc<T>) -> Self {
        self.state = Some(state);
        self
    }

    /// For servers: sets a hook that runs when the process shuts down, for work that outlives its request.
    /// [`StreamableHttp::close`](crate::http::StreamableHttp) of the server's endpoint calls it. So does
    /// [`Server::run`](crate::Server::run) over stdio when its client has disconnected, unless the server has other clients or
    /// an HTTP endpoint. The hook runs in its own task, and is awaited for at most [`Limits::drain`](crate::Limits::drain),
    /// which is passed to it.
    ///
    /// ```
    /// use oxmcp::Extension;
    ///
    /// let queue = Extension::new("com.example/queue").on_shutdown(|_drain| async {
    ///     // … give back what was taken from the queue …
    /// });
    /// # let _ = queue;
    /// ```
    #[cfg(feature = "server")]
    #[must_use]
    pub fn on_shutdown<F>(mut self, hook: impl Fn(Duration) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        self.on_shutdown = Some(Arc::new(move |drain| Box::pin(hook(drain))));
        self
    }

    /// Adds a middleware for incoming messages. Its position is that of the extension: inside the layers and extensions that
    /// were added before, and outside those that are added later. So the application decides the order.
    /// See [`middleware`](crate::session::middleware).
    ///
    /// ```
    /// use oxmcp::{Extension, Server, middleware};
    ///
    /// let quota = Extension::new("com.example/quota").layer(middleware::from_fn(|request, next| next.run(request)));
    /// let log = middleware::from_fn(|request, next| next.run(request));
    /// // Requests that the quota refuses are logged, too.
    /// let server = Server::new("s", "1.0.0").layer(log).extension(quota);
    /// # let _ = server;
    /// ```
    #[must_use]
    pub fn layer(mut self, layer: impl MiddlewareLayer) -> Self {
        self.incoming.push(Arc::new(layer));
        self
    }

    /// Adds a middleware for outgoing messages, as [`layer`](Self::layer) does for incoming ones.
    #[must_use]
    pub fn outgoing_layer(mut self, layer: impl MiddlewareLayer) -> Self {
        self.outgoing.push(Arc::new(layer));
        self
    }

    /// For servers: requires that clients declare the extension. For other clients, its methods and filter keys fail with
    /// [`MISSING_CLIENT_CAPABILITY`](crate::ErrorCode::MISSING_CLIENT_CAPABILITY) and the missing extension, and modern ones
    /// receive none of its [notifications](Self::notifies). Without this, the handlers decide, by the capabilities that the
    /// client has declared ([`client_capabilities`](crate::RequestContext::client_capabilities)).
    #[must_use]
    pub fn requires_client(mut self) -> Self {
        self.requires_client = true;
        self
    }

    /// Serves a method in these revisions; `..` means all. In other revisions it does not exist. Core methods cannot be
    /// replaced.
    ///
    /// The handler is an async function of `(Params)` or `(RequestContext, Params)`, and returns the method's result, or a
    /// `Result` of it. Only legacy servers call a client's methods: modern ones make no requests.
    ///
    /// ```
    /// use oxmcp::{Extension, Revision};
    /// # use oxmcp::protocol::{EmptyParams, EmptyResult, Method};
    /// # struct Wind;
    /// # impl Method for Wind { const NAME: &'static str = "com.example/clock/wind"; type Params = EmptyParams; type Result = EmptyResult; }
    ///
    /// let clock = Extension::new("com.example/clock")
    ///     .method::<Wind, _>(Revision::V2025_06_18.., |_params: EmptyParams| async { EmptyResult::default() });
    /// # let _ = clock;
    /// ```
    #[must_use]
    pub fn method<M: Method, Arguments>(
        mut self,
        revisions: impl RangeBounds<Revision>,
        handler: impl Handler<
            Arguments,
            Returned: HandlerFuture<Output: IntoAnswer<M::Result>> + Send + 'static,
        >,
    ) -> Self
    where
        Arguments: ExtensionArguments<M::Params>,
    {
        let revisions = self.revisions(M::NAME, &revisions);
        self.methods
            .push(ServedMethod::new::<M, Arguments, _>(revisions, handler));
        self
    }

    /// Serves a core method that is optional for servers, in the revisions that have it: for features that are an extension in
    /// other revisions. Clients need not declare the extension there.
    #[cfg(feature = "server")]
    pub(crate) fn core_method<M: Method, Arguments>(
        mut self,
        handler: impl Handler<
            Arguments,
            Returned: HandlerFuture<Output: IntoAnswer<M::Result>> + Send + 'static,
        >,
    ) -> Self
    where
        Arguments: ExtensionArguments<M::Params>,
    {
        let revisions = Revision::ALL.into_iter();
        let revisions =
            revisions.filter(|it| method::is_in(method::REQUESTS_TO_SERVER, M::NAME, *it));
        self.core_methods.push(ServedMethod::new::<M, Arguments, _>(
            revisions.collect(),
            handler,
        ));
        self
    }

    /// Serves a function as a method, in these revisions. The function determines the types of params and result, and the
    /// params are validated against their schema. Only a client that is written with this SDK needs a [`Method`] type for the
    /// request.
    ///
    /// ```
    /// use oxmcp::{Extension, JsonSchema};
    ///
    /// #[derive(serde::Deserialize, JsonSchema)]
    /// struct Search { query: String }
    ///
    /// #[derive(serde::Serialize)]
    /// struct Found { names: Vec<String> }
    ///
    /// async fn search(Search { query }: Search) -> oxmcp::Result<Found> {
    ///     Ok(Found { names: vec![query] })
    /// }
    ///
    /// let acme = Extension::new("com.example/acme").method_fn("com.example/acme/search", .., search);
    /// # let _ = acme;
    /// ```
    #[must_use]
    pub fn method_fn<Arguments: MethodArguments>(
        mut self,
        name: &'static str,
        revisions: impl RangeBounds<Revision>,
        handler: impl Handler<
            Arguments,
            Returned: HandlerFuture<Output: IntoMethodResult> + Send + 'static,
        >,
    ) -> Self {
        let revisions = self.revisions(name, &revisions);
        self.methods
            .push(ServedMethod::of_function(name, revisions, handler));
        self
    }

    /// Creates an extension without a name, for a custom method of a server.
    #[cfg(feature = "server")]
    pub(crate) fn of_method<Arguments: MethodArguments>(
        name: &'static str,
        handler: impl Handler<
            Arguments,
            Returned: HandlerFuture<Output: IntoMethodResult> + Send + 'static,
        >,
    ) -> Self {
        let mut own = Self::new("");
        own.problem = name
            .is_empty()
            .then(|| "a method has an empty name".to_owned());
        own.method_fn(name, .., handler)
    }

    /// Whether the extension has a name, by which it is declared.
    pub(crate) fn is_named(&self) -> bool {
        !self.id.is_empty()
    }

    /// Handles a notification in these revisions; `..` means all. The handler is an async function with the same arguments as
    /// that of a [`method`](Self::method), and returns nothing. The handlers of one session run one at a time, in the order in
    /// which the peer sent the notifications.
    #[must_use]
    pub fn notification<N: Notification, Arguments>(
        mut self,
        revisions: impl RangeBounds<Revision>,
        handler: impl Handler<Arguments, Returned: HandlerFuture<Output = ()> + Send + 'static>,
    ) -> Self
    where
        Arguments: ExtensionArguments<N::Params>,
    {
        let revisions = self.revisions(N::NAME, &revisions);
        self.notifications
            .push(ServedNotification::new::<N, Arguments, _>(
                revisions, handler,
            ));
        self
    }

    /// Declares that this side makes a request in these revisions. In other revisions, or if the peer has not declared the
    /// extension, the request fails with [`Error::is_unsupported`](crate::Error::is_unsupported), and nothing is sent. A
    /// request that no extension declares is sent in every revision.
    #[must_use]
    pub fn calls<M: Method>(mut self, revisions: impl RangeBounds<Revision>) -> Self {
        let revisions = self.revisions(M::NAME, &revisions);
        self.sent.push(VersionedName {
            name: M::NAME,
            revisions,
        });
        self
    }

    /// Declares that this side sends a notification in these revisions, as [`calls`](Self::calls) does for a request. A client
    /// is notified even if it has not declared the extension, unless the server [requires it](Self::requires_client) and the
    /// revision is 2026-07-28 or later: clients of older revisions cannot declare extensions, and ignore unknown notifications.
    #[must_use]
    pub fn notifies<N: Notification>(mut self, revisions: impl RangeBounds<Revision>) -> Self {
        let revisions = self.revisions(N::NAME, &revisions);
        self.sent.push(VersionedName {
            name: N::NAME,
            revisions,
        });
        self
    }

    /// Adds a key for subscription filters. A server acknowledges the key with any value, and notifies subscribers with
    /// [`Server::publish`](crate::Server::publish). A client's session subscribes to it automatically, with the value `true`,
    /// for the handlers of this extension's notifications; [`ClientSession::listen`](crate::ClientSession::listen) subscribes
    /// to it with any value.
    /// See [subscriptions](https://modelcontextprotocol.io/specification/2026-07-28/basic/patterns/subscriptions#notification-filter).
    #[must_use]
    pub fn listen_key(self, key: impl Into<String>) -> Self {
        self.listen_key_with(key, |_, asked| Some(asked))
    }

    /// Adds a key for subscription filters, with a function that reduces the requested value to the granted one, or to `None`.
    /// The server acknowledges the granted value.
    ///
    /// ```
    /// use oxmcp::Extension;
    ///
    /// // Only names are granted, and at most ten.
    /// let rooms = Extension::new("com.example/rooms").listen_key_with("com.example/rooms", |_cx, asked| {
    ///     let mut names = asked.as_array()?.clone();
    ///     names.truncate(10);
    ///     Some(names.into())
    /// });
    /// # let _ = rooms;
    /// ```
    #[must_use]
    pub fn listen_key_with(
        self,
        key: impl Into<String>,
        grant: impl Fn(&RequestContext, Value) -> Option<Value> + Send + Sync + 'static,
    ) -> Self {
        self.try_listen_key_with(key, move |cx, asked| Ok(grant(cx, asked)))
    }

    /// Adds a key for subscription filters, as [`listen_key_with`](Self::listen_key_with) does. If the function returns an
    /// error, the whole request fails with it: this is for invalid values.
    ///
    /// ```
    /// use oxmcp::{Error, Extension};
    ///
    /// let rooms = Extension::new("com.example/rooms").try_listen_key_with("com.example/rooms", |_cx, asked| {
    ///     match asked.is_array() {
    ///         true => Ok(Some(asked)),
    ///         false => Err(Error::invalid_params("com.example/rooms: expected an array of names")),
    ///     }
    /// });
    /// # let _ = rooms;
    /// ```
    #[must_use]
    pub fn try_listen_key_with(
        mut self,
        key: impl Into<String>,
        grant: impl Fn(&RequestContext, Value) -> Result<Option<Value>> + Send + Sync + 'static,
    ) -> Self {
        self.listen_keys.push(FilterKey {
            key: key.into(),
            grant: Arc::new(grant),
        });
        self
    }

    /// For servers with several nodes, connected by a [`Server::bus`](crate::Server::bus): sets the function that creates the
    /// params of a notification when another node has published something for a value under the key. The node sends the
    /// notification to its own subscriptions to the value.
    ///
    /// The function looks up the value in a store that the nodes share; if it returns `None`, nothing is sent. Nodes notify
    /// each other only that something changed. So after frequent changes the notification has the newest state, and after lost
    /// bus messages the function is called for all values with a subscription.
    ///
    /// ```
    /// use oxmcp::{Extension, protocol::{JsonObject, Notification}};
    ///
    /// struct Entered;
    /// impl Notification for Entered {
    ///     const NAME: &'static str = "notifications/com.example/rooms/entered";
    ///     type Params = JsonObject;
    /// }
    ///
    /// let rooms = Extension::new("com.example/rooms")
    ///     .listen_key("com.example/rooms")
    ///     .republishes::<Entered, _>("com.example/rooms", |room| async move {
    ///         // … look up in the database who is in the room …
    ///         Some(JsonObject::from_iter([("room".to_owned(), room)]))
    ///     });
    /// # let _ = rooms;
    /// ```
    #[cfg(feature = "http-server")]
    #[must_use]
    pub fn republishes<N: Notification, F>(
        mut self,
        key: impl Into<String>,
        params: impl Fn(Value) -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = Option<N::Params>> + Send + 'static,
    {
        self.republished
            .push(Republished::new::<N, F>(key.into(), params));
        self
    }

    /// Adds a `resultType` to those of the protocol. A client accepts it for methods that list it in [`Method::RESULT_TYPES`];
    /// the Rust type of their result distinguishes its variants by it. That type should keep the JSON as it was received, and
    /// deserialize it once `resultType` is known: an enum that serde tags cannot hold the structured content of a
    /// [`CallToolResult`](oxmcp_protocol::CallToolResult). A server returns it with
    /// [`ToolResponse::from_extension`](crate::ToolResponse::from_extension), and only if the request declares the extension.
    /// See [result types](https://modelcontextprotocol.io/specification/2026-07-28/basic#result-responses).
    #[must_use]
    pub fn result_type(mut self, name: impl Into<String>) -> Self {
        let name = name.into();
        if matches!(&*name, "complete" | "input_required") {
            self.report(format!(
                "the result type {name:?} is reserved by the protocol"
            ));
        }
        self.result_types.push(name);
        self
    }

    /// Reserves a key of `_meta` for the extension, so that no other extension can use it. Handlers find its value in
    /// [`RequestContext::meta`](crate::RequestContext::meta).
    /// See [`_meta`](https://modelcontextprotocol.io/specification/2026-07-28/basic#meta).
    #[must_use]
    pub fn meta_key(mut self, key: impl Into<String>) -> Self {
        let key = key.into();
        // Official extensions have the protocol's prefix.
        if !Meta::is_valid_key(&key)
            || Meta::is_reserved_key(&key) && !Meta::is_reserved_key(&self.id)
        {
            self.report(format!(
                "invalid _meta key {key:?}; expected a vendor prefix, as in \"com.example/zone\""
            ));
        }
        self.meta_keys.push(key);
        self
    }

    /// Adds an HTTP header that repeats a member of a method's params, for proxies that route requests without reading bodies;
    /// for example the member `taskId` as `Mcp-Name`. Clients send it. A server rejects a header that differs from the member,
    /// and accepts requests without it, unless it is [strict](crate::Server::strict).
    /// See [standard headers](https://modelcontextprotocol.io/specification/2026-07-28/basic/transports/streamable-http#standard-mcp-request-headers).
    #[must_use]
    pub fn header<M: Method>(
        mut self,
        member: impl Into<String>,
        header: impl Into<String>,
    ) -> Self {
        const TAKEN: [&str; 3] = ["mcp-method", "mcp-protocol-version", "mcp-session-id"];
        let header = header.into();
        let name = header.to_ascii_lowercase();
        let is_token =
            |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
        if !name.starts_with("mcp-") || !name.bytes().all(is_token) {
            self.report(format!(
                "invalid header {header:?}; its name must begin with \"Mcp-\" and be a valid token"
            ));
        }
        if TAKEN.contains(&&*name) {
            self.report(format!("the header {header:?} is reserved by the protocol"));
        }
        self.headers.push(MirroredHeader {
            method: M::NAME,
            member: member.into(),
            header,
        });
        self
    }

    /// Returns the identifier of the extension.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Returns the keys of `_meta` that belong to the extension.
    pub fn meta_keys(&self) -> impl Iterator<Item = &str> {
        self.meta_keys.iter().map(String::as_str)
    }

    /// Returns the HTTP headers of a method, as pairs of the repeated member of the params and the header.
    pub fn headers_for<'a>(&'a self, method: &'a str) -> impl Iterator<Item = (&'a str, &'a str)> {
        let headers = self.headers.iter().filter(move |it| it.method == method);
        headers.map(|it| (&*it.member, &*it.header))
    }

    fn revisions(&mut self, name: &str, range: &impl RangeBounds<Revision>) -> Vec<Revision> {
        let revisions = Revision::within(range);
        if revisions.is_empty() {
            self.report(format!("{name} has an empty range of revisions"));
        }
        revisions
    }

    /// Adds the middleware of the extension inside the layers that were added before.
    pub(crate) fn push_layers(&self, incoming: &mut Stack, outgoing: &mut Stack) {
        for layer in &self.incoming {
            incoming.push_shared(Arc::clone(layer));
        }
        for layer in &self.outgoing {
            outgoing.push_shared(Arc::clone(layer));
        }
    }

    /// Removes the revisions that contain the extension.
    pub(crate) fn cut_core(&mut self) {
        let Some(first) = self.core_since else { return };
        let core = Revision::within(&(first..));
        let names = self.methods.iter_mut().map(|it| &mut it.name);
        let names = names.chain(self.notifications.iter_mut().map(|it| &mut it.name));
        for name in names.chain(&mut self.sent) {
            name.revisions.retain(|it| !core.contains(it));
        }
    }

    /// Whether a revision of the protocol contains the extension.
    pub(crate) fn is_core_in(&self, revision: Revision) -> bool {
        let core = self.core_since.map(|first| Revision::within(&(first..)));
        core.is_some_and(|core| core.contains(&revision))
    }

    /// Records a problem, which is reported when a server or client connects. Only the first is kept.
    fn report(&mut self, problem: String) {
        self.problem.get_or_insert(problem);
    }
}

/// Whether an identifier follows the rules for keys of `_meta`, with a prefix and a name.
fn is_id(id: &str) -> bool {
    Meta::is_valid_key(id) && id.split_once('/').is_some_and(|(_, name)| !name.is_empty())
}

opaque_debug!(Extension, |it| { id: it.id, settings: it.settings });
