//! The offers of a server: its self-description, obtained when the session is opened or when it is first needed.

use oxmcp_protocol::{
    DiscoverResult, EmptyParams, ServerCapabilities, SubscriptionFilter, method::Discover,
};

use crate::{
    client::{client::Client, server_facts::ServerFacts, session::ClientSession},
    error::Result,
};

/// A kind of feature that servers offer; see [`ClientSession::offers`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FeatureKind {
    /// Tools.
    Tools,
    /// Prompts.
    Prompts,
    /// Resources and resource templates.
    Resources,
    /// Completion of the arguments of prompts and resource templates.
    Completions,
    /// Log messages.
    Logging,
}

impl FeatureKind {
    /// Whether a server that declares these capabilities offers this kind of feature.
    pub(crate) fn is_in(self, capabilities: &ServerCapabilities) -> bool {
        match self {
            Self::Tools => capabilities.tools.is_some(),
            Self::Prompts => capabilities.prompts.is_some(),
            Self::Resources => capabilities.resources.is_some(),
            Self::Completions => capabilities.completions.is_some(),
            Self::Logging => capabilities.logging.is_some(),
        }
    }
}

impl Client {
    /// Sets the saved self-description of a server, as [`ClientSession::discovered`] returned it. If it names a modern revision
    /// that this client may speak, connecting makes no request. Use this for clients of one server that are started often. The
    /// description may be kept for as long as its `ttlMs` allows.
    ///
    /// ```
    /// # use oxmcp::{Client, protocol::{DiscoverResult, ServerCapabilities}};
    /// let saved = r#"{"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}}"#;
    /// let saved: DiscoverResult = serde_json::from_str(saved)?;
    /// let client = Client::new("my-app", "1.0.0").discovered(saved);
    /// # let _ = client;
    /// # Ok::<_, serde_json::Error>(())
    /// ```
    /// See [discovery](https://modelcontextprotocol.io/specification/2026-07-28/server/discover).
    #[must_use]
    pub fn discovered(self, saved: DiscoverResult) -> Self {
        self.change(|features| features.discovered = Some(saved.into()));
        self
    }
}

impl ClientSession {
    /// Returns the server's response to `server/discover`, if it is known. Makes no request. `None` in legacy sessions, and in
    /// a session with a pinned revision until the server was asked for it.
    ///
    /// It can be saved, and passed to [`Client::discovered`] the next time.
    #[must_use]
    pub fn discovered(&self) -> Option<&DiscoverResult> {
        self.known_facts()?.discovered.as_ref()
    }

    /// Returns whether the server offers a kind of feature, by its declared capabilities. If it was not asked for them yet, as
    /// in a session with a pinned revision, this method asks it.
    ///
    /// ```
    /// use oxmcp::FeatureKind;
    /// # async fn run(session: oxmcp::ClientSession) -> oxmcp::Result<()> {
    /// if session.offers(FeatureKind::Prompts).await? {
    ///     println!("{} prompts", session.prompts().all().await?.len());
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// Those of the request to the server, if it has to be asked.
    ///
    /// # Cancel safety
    /// As for a [`Call`](crate::Call).
    pub async fn offers(&self, kind: FeatureKind) -> Result<bool> {
        Ok(kind.is_in(&self.facts().await?.capabilities))
    }

    pub(crate) fn known_facts(&self) -> Option<&ServerFacts> {
        self.negotiated().facts.get()
    }

    /// Records the self-description of the server, unless it is known already.
    pub(crate) fn note_facts(&self, found: &DiscoverResult) {
        let facts = &self.negotiated().facts;
        if !facts.initialized() {
            // Another caller may record it at the same time.
            let _ = facts.set(found.clone().into());
        }
    }

    /// The self-description of the server, which is requested if it is not known yet. All callers share one response.
    pub(crate) async fn facts(&self) -> Result<&ServerFacts> {
        let facts = &self.negotiated().facts;
        let ask = || async {
            let call = self.request::<Discover>(EmptyParams::default());
            call.await.map(ServerFacts::from)
        };
        facts.get_or_try_init(ask).await
    }

    /// The list changes that have a handler and that the server has declared, and the default subscriptions of extensions.
    pub(crate) async fn wanted_changes(&self) -> Result<SubscriptionFilter> {
        let features = self.client().features().clone();
        let filter = features.handled_list_changes();
        if filter.is_empty() && !features.extensions.has_listen_keys() {
            return Ok(filter);
        }
        let declared = &self.facts().await?.capabilities;
        let mut filter = filter.narrowed(declared);
        filter.other = features
            .extensions
            .default_subscriptions(declared.extensions.as_ref());
        Ok(filter)
    }
}
