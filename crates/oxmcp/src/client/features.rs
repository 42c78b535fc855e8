//! A snapshot of the settings and handlers of a client.

use std::{
    sync::{Arc, Weak},
    time::Duration,
};

use oxmcp_protocol::{
    ClientCapabilities, CreateMessageParams, CreateMessageResult, DiscoverResult, ElicitFormParams,
    ElicitResult, ElicitUrlParams, ElicitationCapability, Implementation, JsonObject, LoggingLevel,
    LoggingMessageParams, Revision, Root, RootsCapability, SamplingCapability, SubscriptionFilter,
};

use crate::{
    client::{handlers::arguments::ErasedHandler, requests::call_driver::CallDriver},
    debug::opaque_debug,
    error::Result,
    extension::registry::Extensions,
    limits::Limits,
    session::{connection::Connection, middleware::stack::Stack, task::BoxFuture},
};

/// The longest timeout: adding a longer one to the current time could overflow.
pub(crate) const LONGEST_WAIT: Duration = Duration::from_secs(30 * 365 * 24 * 3600);

/// A handler of a notification, with its type erased. Its arguments are the content of the notification and the connection
/// on which it arrived.
pub(crate) type NotificationHandler<T> =
    Arc<dyn Fn(T, Weak<Connection>) -> BoxFuture<()> + Send + Sync>;

/// The handlers of the specification's notifications.
#[derive(Clone, Default)]
pub(crate) struct NotificationHandlers {
    pub(crate) tools_changed: Option<NotificationHandler<()>>,
    pub(crate) prompts_changed: Option<NotificationHandler<()>>,
    pub(crate) resources_changed: Option<NotificationHandler<()>>,
    pub(crate) resource_updated: Option<NotificationHandler<String>>,
    pub(crate) log: Option<NotificationHandler<LoggingMessageParams>>,
    pub(crate) elicitation_complete: Option<NotificationHandler<String>>,
    /// The handler of the start of another server process in an open session.
    pub(crate) restarted: Option<NotificationHandler<()>>,
}

/// The settings and handlers of a client.
#[derive(Clone)]
pub(crate) struct Features {
    pub(crate) info: Implementation,
    pub(crate) limits: Arc<Limits>,
    /// The revisions that the client may speak.
    pub(crate) revisions: Vec<Revision>,
    /// The result of `server/discover` that was saved from an earlier session.
    pub(crate) discovered: Option<Arc<DiscoverResult>>,
    pub(crate) timeout: Duration,
    pub(crate) probe_timeout: Duration,
    pub(crate) keep_alive: Option<Duration>,
    /// Whether messages that deviate from the specification are rejected.
    pub(crate) is_strict: bool,
    /// The number of consecutive unanswered pings after which a session is closed.
    pub(crate) keep_alive_threshold: u32,
    /// Whether results are validated against the output schemas of listed tools.
    pub(crate) validate_results: bool,
    pub(crate) on_elicit: Option<ErasedHandler<ElicitFormParams, ElicitResult>>,
    pub(crate) on_elicit_url: Option<ErasedHandler<ElicitUrlParams, ElicitResult>>,
    pub(crate) on_sample: Option<ErasedHandler<CreateMessageParams, CreateMessageResult>>,
    /// The sampling capability, which is declared if `on_sample` is set.
    pub(crate) sampling: SamplingCapability,
    /// `None` if the client does not declare roots.
    pub(crate) roots: Option<Vec<Root>>,
    pub(crate) extensions: Extensions,
    pub(crate) notifications: NotificationHandlers,
    pub(crate) log_level: Option<LoggingLevel>,
    pub(crate) incoming: Stack,
    pub(crate) outgoing: Stack,
    /// The driver of the tool calls of sessions that are opened from now on.
    pub(crate) driver: Option<&'static CallDriver>,
}

impl Features {
    pub(crate) fn new(info: Implementation) -> Self {
        Self {
            info,
            limits: Arc::default(),
            revisions: Revision::ALL.to_vec(),
            discovered: None,
            timeout: Duration::from_secs(60),
            probe_timeout: Duration::from_secs(5),
            keep_alive: None,
            is_strict: false,
            keep_alive_threshold: 1,
            validate_results: true,
            on_elicit: None,
            on_elicit_url: None,
            on_sample: None,
            sampling: SamplingCapability::default(),
            roots: None,
            extensions: Extensions::default(),
            notifications: NotificationHandlers::default(),
            log_level: None,
            incoming: Stack::incoming(),
            outgoing: Stack::outgoing(),
            driver: None,
        }
    }

    /// The list changes that have a handler.
    pub(crate) fn handled_list_changes(&self) -> SubscriptionFilter {
        SubscriptionFilter::default()
            .with_tools_list_changed(self.notifications.tools_changed.is_some())
            .with_prompts_list_changed(self.notifications.prompts_changed.is_some())
            .with_resources_list_changed(self.notifications.resources_changed.is_some())
    }

    /// Refuses extensions whose requirements are not met.
    ///
    /// # Errors
    /// The first requirement that is not met.
    pub(crate) fn check(&self) -> Result<()> {
        let mut extensions = self.extensions.clone();
        extensions.note_unmet(&self.capabilities(Revision::LATEST));
        extensions.check_requirements()
    }

    /// The capabilities that the client declares in a revision, by its handlers, roots and extensions.
    pub(crate) fn capabilities(&self, revision: Revision) -> ClientCapabilities {
        let mut capabilities = ClientCapabilities::default();
        if self.on_elicit.is_some() || self.on_elicit_url.is_some() {
            let elicitation = capabilities
                .elicitation
                .insert(ElicitationCapability::default());
            elicitation.form = self.on_elicit.as_ref().map(|_| JsonObject::new());
            elicitation.url = self.on_elicit_url.as_ref().map(|_| JsonObject::new());
        }
        if self.on_sample.is_some() {
            capabilities.sampling = Some(self.sampling.clone());
        }
        if self.roots.is_some() {
            let mut roots = RootsCapability::default();
            roots.list_changed = true;
            capabilities.roots = Some(roots);
        }
        capabilities.extensions = self.extensions.declared(revision);
        capabilities
    }
}

opaque_debug!(Features, |it| { info: it.info, revisions: it.revisions });
