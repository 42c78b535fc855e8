//! A client's settings and handlers, as they are at one moment.

use std::{fmt, sync::Arc, time::Duration};

use crate::{
    client::handlers::{arguments::Answerer, notifications::Hooks},
    extension::Extensions,
    limits::Limits,
    protocol::{
        ClientCapabilities, CreateMessageParams, CreateMessageResult, ElicitFormParams,
        ElicitResult, ElicitUrlParams, ElicitationCapability, Implementation, JsonObject,
        LoggingLevel, Revision, Root, RootsCapability, SamplingCapability, SubscriptionFilter,
    },
    session::middleware::Stack,
};

/// The longest that anything waits: longer spans are more than clocks can add up.
pub(crate) const LONGEST_WAIT: Duration = Duration::from_secs(30 * 365 * 24 * 3600);

/// Everything that a client is made of.
#[derive(Clone)]
pub(crate) struct Features {
    pub(crate) info: Implementation,
    pub(crate) limits: Arc<Limits>,
    /// The revisions that may be spoken.
    pub(crate) revisions: Vec<Revision>,
    pub(crate) timeout: Duration,
    pub(crate) probe_timeout: Duration,
    pub(crate) keep_alive: Option<Duration>,
    pub(crate) on_elicit: Option<Answerer<ElicitFormParams, ElicitResult>>,
    pub(crate) on_elicit_url: Option<Answerer<ElicitUrlParams, ElicitResult>>,
    pub(crate) on_sample: Option<Answerer<CreateMessageParams, CreateMessageResult>>,
    /// What the model can do, where there is one.
    pub(crate) sampling: SamplingCapability,
    /// `None` where servers are not told of roots.
    pub(crate) roots: Option<Vec<Root>>,
    pub(crate) extensions: Extensions,
    pub(crate) hooks: Hooks,
    pub(crate) log_level: Option<LoggingLevel>,
    pub(crate) incoming: Stack,
    pub(crate) outgoing: Stack,
}

impl Features {
    pub(crate) fn new(info: Implementation) -> Self {
        Self {
            info,
            limits: Arc::default(),
            revisions: Revision::ALL.to_vec(),
            timeout: Duration::from_secs(60),
            probe_timeout: Duration::from_secs(5),
            keep_alive: None,
            on_elicit: None,
            on_elicit_url: None,
            on_sample: None,
            sampling: SamplingCapability::default(),
            roots: None,
            extensions: Extensions::default(),
            hooks: Hooks::default(),
            log_level: None,
            incoming: Stack::incoming(),
            outgoing: Stack::outgoing(),
        }
    }

    /// What there are handlers for.
    pub(crate) fn wanted(&self) -> SubscriptionFilter {
        SubscriptionFilter::default()
            .with_tools_list_changed(self.hooks.tools_changed.is_some())
            .with_prompts_list_changed(self.hooks.prompts_changed.is_some())
            .with_resources_list_changed(self.hooks.resources_changed.is_some())
    }

    /// What the client says it can do: what it has handlers for, and nothing else.
    pub(crate) fn capabilities(&self) -> ClientCapabilities {
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
            capabilities.roots = Some(RootsCapability { list_changed: true });
        }
        capabilities.extensions = self.extensions.declared();
        capabilities
    }
}

impl fmt::Debug for Features {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Features")
            .field("info", &self.info)
            .field("revisions", &self.revisions)
            .finish_non_exhaustive()
    }
}
