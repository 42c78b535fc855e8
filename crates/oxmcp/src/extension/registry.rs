//! The registry of the extensions of a server or a client, and sending their notifications.

#[cfg(feature = "server")]
use std::time::Duration;
use std::{borrow::Cow, fmt, sync::Arc};

#[cfg(feature = "server")]
use futures_util::future::join_all;
use oxmcp_json::Text;
use oxmcp_protocol::{
    ClientCapabilities, ErrorCode, JsonObject, Meta, MissingClientCapabilityData, Notification,
    OrderedMap, RawJson, Revision, SubscriptionFilter,
    method::{self, Row},
};
use serde::Serialize;
use serde_json::{Map, Value, value::RawValue};

#[cfg(feature = "http-server")]
use crate::extension::handlers::Republished;
use crate::{
    error::{Error, Result},
    extension::{
        definition::Extension,
        functions::own_params,
        handlers::{FilterKey, ServedMethod, VersionedName},
    },
    session::{
        connection::{Connection, RequestContext, Side},
        task::BoxFuture,
    },
};
#[cfg(feature = "server")]
use crate::{logged::Logged, session::panics};

/// The extensions of a server or a client, without conflicts with each other or with the protocol.
#[derive(Clone, Default)]
pub(crate) struct Extensions {
    pub(crate) all: Vec<Arc<Extension>>,
    /// The IDs of the extensions with an unmet requirement, each with a description of it.
    pub(crate) unmet: Vec<(Arc<str>, String)>,
    /// Whether the middleware serves methods that are not known in advance.
    pub(crate) passes_unknown: bool,
}

impl Extensions {
    #[cfg(feature = "http-server")]
    pub(crate) const NONE: Self = Self {
        all: Vec::new(),
        unmet: Vec::new(),
        passes_unknown: false,
    };

    /// Adds an extension on one side, and returns it.
    ///
    /// # Errors
    /// The problem with the extension, of which nothing was added.
    pub(crate) fn add(&mut self, mut extension: Extension, side: Side) -> Result<Arc<Extension>> {
        extension.cut_core();
        let id = &extension.id;
        let problem = extension.problem.clone();
        let problem = problem.or_else(|| replaces_core(&extension, side));
        let problem = problem.or_else(|| self.clash(&extension));
        if let Some(problem) = problem {
            return Err(Error::misuse(if extension.is_named() {
                format!("the extension {id}: {problem}")
            } else {
                problem
            }));
        }
        let extension = Arc::new(extension);
        self.all.push(Arc::clone(&extension));
        Ok(extension)
    }

    /// Describes the first name or key that another extension also has.
    fn clash(&self, new: &Extension) -> Option<String> {
        for old in &self.all {
            let id = &old.id;
            if old.id == new.id && new.is_named() {
                return Some("duplicate extension; add each extension once".to_owned());
            }
            let names = |it: &Extension| it.names().cloned().collect::<Vec<_>>();
            let (old_names, new_names) = (names(old), names(new));
            let mut clashes = new_names
                .iter()
                .filter(|new| old_names.iter().any(|old| old.clashes(new)));
            if let Some(clash) = clashes.next() {
                let by = if old.is_named() {
                    format!(" by {id}")
                } else {
                    String::new()
                };
                return Some(format!("{} is already served{by}", clash.name));
            }
            let keys = new.keys();
            if let Some(key) = keys.into_iter().find(|key| old.keys().contains(key)) {
                return Some(format!("the key {key} already belongs to {id}"));
            }
        }
        None
    }

    /// The `extensions` of the capabilities in a revision. `None` if there are none.
    pub(crate) fn declared(&self, revision: Revision) -> Option<JsonObject> {
        let declared = self.all.iter().filter(|it| it.is_named());
        let declared = declared.filter(|it| !it.is_core_in(revision));
        let declared = declared.map(|it| (it.id.to_string(), Value::Object(it.settings.clone())));
        let declared: JsonObject = declared.collect();
        (!declared.is_empty()).then_some(declared)
    }

    /// The method with this name in the revision of the request.
    ///
    /// # Errors
    /// If there is none, or if the client has not declared an extension that it must declare.
    pub(crate) fn method(&self, cx: &RequestContext, name: &str) -> Result<&ServedMethod> {
        for extension in &self.all {
            let mut served = extension.methods.iter();
            if let Some(served) = served.find(|it| it.name.is_in(name, cx.revision())) {
                self.check_met(extension)?;
                return extension.check(cx).map(|()| served);
            }
        }
        Err(Error::method_not_found(name))
    }

    /// Whether there is a method of this name in any revision.
    #[cfg(feature = "server")]
    pub(crate) fn has_method(&self, name: &str) -> bool {
        let mut served = self.all.iter().flat_map(|extension| &extension.methods);
        served.any(|it| it.name.name == name)
    }

    /// The core method of this name, if an extension serves it in a revision.
    #[cfg(feature = "server")]
    pub(crate) fn core_method(&self, name: &str, revision: Revision) -> Option<&ServedMethod> {
        let mut served = self.all.iter().flat_map(|it| &it.core_methods);
        served.find(|it| it.name.is_in(name, revision))
    }

    /// The hooks to run when the server begins to serve.
    #[cfg(feature = "server")]
    pub(crate) fn on_serve<T: Send + Sync + 'static>(&self) -> Vec<Arc<T>> {
        let met = self.all.iter().filter(|it| self.check_met(it).is_ok());
        let hooks = met.filter_map(|it| it.on_serve.clone());
        hooks.filter_map(|it| it.downcast().ok()).collect()
    }

    /// Whether there is a method of this name in a revision.
    #[cfg(feature = "http-server")]
    pub(crate) fn serves(&self, name: &str, revision: Revision) -> bool {
        let mut served = self.all.iter().flat_map(|extension| &extension.methods);
        served.any(|it| it.name.is_in(name, revision))
            || self.passes_unknown && !is_core_message(name)
    }

    /// The HTTP headers that repeat members of a method's params: pairs of a member and a header.
    #[cfg(feature = "http-server")]
    pub(crate) fn headers_for<'a>(
        &'a self,
        method: &'a str,
    ) -> impl Iterator<Item = (&'a str, &'a str)> {
        let extensions = self.all.iter();
        extensions.flat_map(move |extension| extension.headers_for(method))
    }

    /// Starts the handler of a notification. `None` if there is none.
    pub(crate) fn handle_notification(
        &self,
        cx: RequestContext,
        name: &str,
        params: Text<'_>,
    ) -> Option<BoxFuture<()>> {
        let revision = cx.revision();
        let mut extensions = self.all.iter().map(|it| (it, &it.notifications));
        let (extension, served) = extensions.find_map(|(extension, notifications)| {
            let mut notifications = notifications.iter();
            let served = notifications.find(|it| it.name.is_in(name, revision))?;
            Some((extension, served))
        })?;
        self.check_met(extension).ok()?;
        (served.handler)(cx, params)
    }

    /// The granted keys of a subscription filter. Unknown keys are left out.
    ///
    /// # Errors
    /// If the client has not declared an extension that it must declare, or if the extension rejects the value of a key.
    pub(crate) fn granted(&self, cx: &RequestContext, asked: JsonObject) -> Result<JsonObject> {
        let mut granted = JsonObject::new();
        for (key, value) in asked {
            let Some((extension, row)) = self.key(&key) else {
                continue;
            };
            if extension.is_core_in(cx.revision()) {
                continue;
            }
            self.check_met(extension)?;
            extension.check(cx)?;
            if let Some(value) = (row.grant)(cx, value)? {
                granted.insert(key, value);
            }
        }
        Ok(granted)
    }

    /// Runs the shutdown hooks, before the process ends.
    #[cfg(feature = "server")]
    pub(crate) async fn shut_down(&self, drain: Duration) {
        let hooks = self.all.iter().filter_map(|it| it.on_shutdown.as_ref());
        let hooks = hooks.map(|hook| panics::catch(hook(drain)));
        for panic in join_all(hooks).await.into_iter().filter_map(Result::err) {
            tracing::error!(panic = %Logged(panic.text()), "an extension panicked during shutdown");
        }
    }

    /// Whether one of the extensions has this filter key.
    #[cfg(feature = "server")]
    pub(crate) fn has_listen_key(&self, key: &str) -> bool {
        self.key(key).is_some()
    }

    /// The notification for values that another node has published under a key.
    #[cfg(feature = "http-server")]
    pub(crate) fn republished(&self, key: &str) -> Option<&Republished> {
        let mut all = self.all.iter().flat_map(|extension| &extension.republished);
        all.find(|it| it.key == key)
    }

    fn key(&self, key: &str) -> Option<(&Extension, &FilterKey)> {
        self.all.iter().find_map(|extension| {
            let row = extension.listen_keys.iter().find(|row| row.key == key)?;
            Some((&**extension, row))
        })
    }

    /// The filter keys that a client's session subscribes to by default, at a server that has declared these extensions.
    pub(crate) fn default_subscriptions(&self, declared: Option<&JsonObject>) -> JsonObject {
        let known = self.all.iter().filter(|it| it.is_declared(declared));
        let keys = known.flat_map(|extension| &extension.listen_keys);
        keys.map(|row| (row.key.clone(), Value::Bool(true)))
            .collect()
    }

    /// Whether there are filter keys that a client's session subscribes to by default, if the server has declared their
    /// extensions.
    pub(crate) fn has_listen_keys(&self) -> bool {
        let mut declared = self.all.iter().filter(|it| it.is_named());
        declared.any(|it| !it.listen_keys.is_empty())
    }

    /// The HTTP headers that repeat members of params: triples of a method, a member and a header.
    pub(crate) fn headers(&self) -> Vec<(&'static str, String, String)> {
        let headers = self.all.iter().flat_map(|extension| &extension.headers);
        let headers = headers.map(|it| (it.method, it.member.clone(), it.header.clone()));
        headers.collect()
    }

    /// Whether a key of `_meta` belongs to one of the extensions.
    pub(crate) fn has_meta_key(&self, key: &str) -> bool {
        let mut keys = self.all.iter().flat_map(|extension| extension.meta_keys());
        keys.any(|it| it == key)
    }

    /// Checks that the request declares the extension that has a result type.
    ///
    /// # Errors
    /// The extension that the client must declare. Also if no extension has the type, or the revision has no result types.
    #[cfg(feature = "server")]
    pub(crate) fn check_result_type(&self, cx: &RequestContext, name: &str) -> Result<()> {
        let has_type = |it: &&Arc<Extension>| it.result_types.iter().any(|own| own == name);
        let Some(extension) = self.all.iter().find(has_type) else {
            return Err(Error::misuse(format!(
                "unknown result type {name:?}; declare it with `Extension::result_type`"
            )));
        };
        if !cx.revision().is_modern() {
            return Err(Error::unsupported(format!(
                "cannot send the result type {name:?}: it needs revision 2026-07-28 or later, and this client speaks {}",
                cx.revision()
            )));
        }
        extension.expect_declared(cx)
    }

    pub(crate) fn has_result_type(&self, name: &str) -> bool {
        let mut types = self
            .all
            .iter()
            .flat_map(|extension| &extension.result_types);
        types.any(|it| it == name)
    }

    /// Checks that a message may be sent to a peer that has declared these extensions. `table` lists the core messages.
    ///
    /// # Errors
    /// [`Error::is_unsupported`] if the revision does not have the message, or the peer has not declared the extension.
    pub(crate) fn may_send(
        &self,
        table: &'static [Row],
        name: &str,
        revision: Revision,
        declared: Option<&JsonObject>,
    ) -> Result<()> {
        let sender = self.sender(table, name, revision)?;
        sender.map_or(Ok(()), |extension| extension.expect(declared, name))
    }

    /// Checks that a notification may be sent to a client that has declared these extensions. Clients ignore unknown
    /// notifications, and before 2026-07-28 they could not declare extensions. So a declaration is needed only if the extension
    /// requires it, and only in modern revisions.
    ///
    /// # Errors
    /// As [`may_send`](Self::may_send).
    #[cfg(feature = "server")]
    pub(crate) fn may_notify_client(
        &self,
        name: &str,
        revision: Revision,
        declared: Option<&JsonObject>,
    ) -> Result<()> {
        let sender = self.sender(&[], name, revision)?;
        let demanding = sender.filter(|it| revision.is_modern() && it.requires_client);
        demanding.map_or(Ok(()), |extension| extension.expect(declared, name))
    }

    /// Whether a revision has a notification to clients. A notification that no extension declares is in every revision.
    #[cfg(feature = "server")]
    pub(crate) fn has_notification(&self, name: &str, revision: Revision) -> bool {
        self.sender(&[], name, revision).is_ok()
    }

    /// The extension that sends a message, in a revision. `None` if no extension declares it, or if it is part of the revision.
    fn sender(
        &self,
        table: &'static [Row],
        name: &str,
        revision: Revision,
    ) -> Result<Option<&Extension>> {
        let row = method::find(table, name);
        if row.is_some_and(|row| row.is_in(revision)) {
            return Ok(None);
        }
        let mut known = row.is_some();
        for extension in &self.all {
            for sent in extension.sent.iter().filter(|sent| sent.name == name) {
                known = true;
                if sent.is_in(name, revision) {
                    return Ok(Some(extension));
                }
            }
        }
        if !known {
            return Ok(None);
        }
        Err(Error::unsupported(format!(
            "cannot send {name}: the peer speaks revision {revision}, which does not have it"
        )))
    }
}

impl Extension {
    fn names(&self) -> impl Iterator<Item = &VersionedName> {
        let served = self.methods.iter().map(|it| &it.name);
        served.chain(self.notifications.iter().map(|it| &it.name))
    }

    /// The keys that belong to this extension only.
    fn keys(&self) -> Vec<&str> {
        let listen = self.listen_keys.iter().map(|row| &*row.key);
        listen.chain(self.meta_keys()).collect()
    }

    /// If the extension requires it, checks that the client has declared the extension.
    fn check(&self, cx: &RequestContext) -> Result<()> {
        if self.requires_client {
            return self.expect_declared(cx);
        }
        Ok(())
    }

    /// Checks that the client has declared the extension.
    pub(crate) fn expect_declared(&self, cx: &RequestContext) -> Result<()> {
        let declared = cx.client_capabilities().extensions.as_ref();
        if self.is_declared(declared) {
            return Ok(());
        }
        let settings = Value::Object(self.required_settings());
        let required = Map::from_iter([(self.id.to_string(), settings)]);
        let required = ClientCapabilities::default().with_extensions(required);
        let message = format!("the client must declare the extension {}", self.id);
        Err(
            Error::protocol(ErrorCode::MISSING_CLIENT_CAPABILITY, message)
                .with_data(MissingClientCapabilityData::new(required)),
        )
    }

    fn expect(&self, declared: Option<&JsonObject>, name: &str) -> Result<()> {
        if self.is_declared(declared) {
            return Ok(());
        }
        Err(Error::unsupported(format!(
            "cannot send {name}: the peer does not declare the extension {}",
            self.id
        )))
    }
}

/// Describes the first core name or key that the extension would replace.
fn replaces_core(extension: &Extension, side: Side) -> Option<String> {
    let tables = match side {
        Side::Server => [method::REQUESTS_TO_SERVER, method::NOTIFICATIONS_TO_SERVER],
        Side::Client => [method::REQUESTS_TO_CLIENT, method::NOTIFICATIONS_TO_CLIENT],
    };
    let is_core = |name: &VersionedName| {
        let mut revisions = name.revisions.iter();
        revisions.any(|it| {
            tables
                .iter()
                .any(|table| method::is_in(table, name.name, *it))
        })
    };
    if let Some(name) = extension.names().find(|name| is_core(name)) {
        return Some(format!(
            "{} is part of the protocol and cannot be replaced",
            name.name
        ));
    }
    let mut keys = extension.listen_keys.iter();
    let key = keys.find(|row| SubscriptionFilter::is_own_key(&row.key))?;
    Some(format!(
        "the filter key {} is reserved by the protocol",
        key.key
    ))
}

/// The params of a notification as an object, for sending it to several peers with different `_meta`.
///
/// # Errors
/// If it is a core notification, or its params are not an object.
pub(crate) fn notification_params<N: Notification>(
    params: impl Serialize,
) -> Result<OrderedMap<RawJson>> {
    notification_params_of(N::NAME, params)
}

/// [`notification_params`], for a name that has no type.
pub(crate) fn notification_params_of(
    name: &str,
    params: impl Serialize,
) -> Result<OrderedMap<RawJson>> {
    if is_core_message(name) {
        return Err(Error::misuse(format!(
            "cannot send {name} here: it is not a notification of an extension"
        )));
    }
    // The members keep their serialized form, like those of a result of the same type.
    let written = RawJson::new(&params).ok();
    let members = written.and_then(|written| match written.get() {
        "null" => Some(OrderedMap::new()),
        object => serde_json::from_str(object).ok(),
    });
    members.ok_or_else(|| Error::misuse(format!("the params of {name} must be an object")))
}

/// The params of a request that has no type, without its `_meta`, and the `_meta`.
///
/// # Errors
/// If it is a core request, or its params are not an object.
pub(crate) fn request_params_of(name: &str, params: &RawValue) -> Result<(String, Meta)> {
    if is_core_message(name) {
        return Err(Error::misuse(format!(
            "cannot send {name} here: it is not a request of an extension"
        )));
    }
    let text = Text::from(params);
    let own = own_params(name, text)?;
    let meta = text.members().find(|(key, _)| key.is_str("_meta"));
    let meta = meta.map(|(_, meta)| serde_json::from_str(meta.get()));
    let meta = meta.transpose().map_err(|error| {
        Error::misuse(format!("the `_meta` of {name} must be an object")).with_source(error)
    })?;
    Ok((own, meta.unwrap_or_default()))
}

/// Whether the protocol defines a message of this name, in any revision and direction.
fn is_core_message(name: &str) -> bool {
    let tables = [
        method::REQUESTS_TO_SERVER,
        method::REQUESTS_TO_CLIENT,
        method::NOTIFICATIONS_TO_CLIENT,
        method::NOTIFICATIONS_TO_SERVER,
    ];
    // The extension of tasks has methods that the tables lack.
    let mut tables = tables.iter();
    name.starts_with("tasks/") || tables.any(|table| method::find(table, name).is_some())
}

/// Sends a notification of an extension.
///
/// Cancel safe: if the future is dropped while it waits for space in the queue, nothing has been sent.
pub(crate) async fn send_notification(
    connection: &Arc<Connection>,
    name: impl Into<Cow<'static, str>>,
    mut params: OrderedMap<RawJson>,
    meta: JsonObject,
) -> Result<()> {
    if !meta.is_empty() {
        let own = params.get("_meta");
        let own = own.map_or_else(
            || Ok(JsonObject::new()),
            |own| serde_json::from_str(own.get()),
        );
        if let Ok(mut own) = own {
            own.extend(meta);
            params.insert("_meta", Value::Object(own).into());
        }
    }
    connection.notify(name, params).await
}

impl fmt::Debug for Extensions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list()
            .entries(self.all.iter().map(|it| &it.id))
            .finish()
    }
}
