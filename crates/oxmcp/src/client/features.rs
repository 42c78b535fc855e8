//! A client's settings and handlers, as they are at one moment.

use std::{fmt, sync::Arc, time::Duration};

use crate::{
    Limits, Revision,
    client::ClientSession,
    protocol::{ClientCapabilities, Implementation, SubscriptionFilter},
    session::{BoxFuture, middleware::Stack},
};

/// The longest that anything waits: longer spans are more than clocks can add up.
pub(crate) const LONGEST_WAIT: Duration = Duration::from_secs(30 * 365 * 24 * 3600);

/// A handler of a notification that says only that something has changed.
pub(crate) type OnChanged = Arc<dyn Fn(ClientSession) -> BoxFuture<()> + Send + Sync>;

/// Everything that a client is made of.
#[derive(Clone)]
pub(crate) struct Features {
    pub(crate) info: Implementation,
    pub(crate) limits: Limits,
    /// The revisions that may be spoken.
    pub(crate) revisions: Vec<Revision>,
    pub(crate) timeout: Duration,
    pub(crate) probe_timeout: Duration,
    pub(crate) keep_alive: Option<Duration>,
    pub(crate) on_tools_changed: Option<OnChanged>,
    pub(crate) on_prompts_changed: Option<OnChanged>,
    pub(crate) on_resources_changed: Option<OnChanged>,
    pub(crate) incoming: Stack,
    pub(crate) outgoing: Stack,
}

impl Features {
    pub(crate) fn new(info: Implementation) -> Self {
        Self {
            info,
            limits: Limits::default(),
            revisions: Revision::ALL.to_vec(),
            timeout: Duration::from_secs(60),
            probe_timeout: Duration::from_secs(5),
            keep_alive: None,
            on_tools_changed: None,
            on_prompts_changed: None,
            on_resources_changed: None,
            incoming: Stack::incoming(),
            outgoing: Stack::outgoing(),
        }
    }

    /// What there are handlers for.
    pub(crate) fn wanted(&self) -> SubscriptionFilter {
        SubscriptionFilter::default()
            .with_tools_list_changed(self.on_tools_changed.is_some())
            .with_prompts_list_changed(self.on_prompts_changed.is_some())
            .with_resources_list_changed(self.on_resources_changed.is_some())
    }

    /// What the client says it can do: what it has handlers for, and nothing else.
    #[expect(
        clippy::unused_self,
        reason = "the handlers that declare a capability are part of it"
    )]
    pub(crate) fn capabilities(&self) -> ClientCapabilities {
        ClientCapabilities::default()
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
