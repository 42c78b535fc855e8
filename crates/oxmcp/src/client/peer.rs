//! A client at its end of one connection.

use std::{
    fmt,
    sync::{Arc, OnceLock},
};

use crate::{
    client::{
        cache::{key::Change, shared::Seat},
        client::Client,
        handlers::url_elicitations::Visits,
        requests::{header_mirroring::Mirrored, log_level::RequestLevel},
        session::{ClientSession, WeakSession},
        subscriptions::{desired::Updates, listener::Listeners},
    },
    json::Text,
    jsonrpc::RequestId,
    protocol::{
        ClientCapabilities, Implementation, Meta, Project, Revision, ServerCapabilities,
        SubscriptionFilter, method,
    },
    session::{BoxFuture, Connection, ContextParts, Pace, Peer},
    transport::Mirror,
};

/// A client at its end of one connection: what the server said of itself.
pub(crate) struct ClientPeer {
    client: Client,
    negotiated: OnceLock<Negotiated>,
    /// What handlers are given.
    session: OnceLock<WeakSession>,
    /// What is subscribed to.
    listeners: Arc<Listeners>,
    /// What is heard of for handlers, and for those who watch resources.
    updates: Updates,
    /// Where the server has sent the user to.
    visits: Visits,
    request_level: RequestLevel,
    /// What the client's cache knows of the session.
    seat: Seat,
    /// What of calls the transport repeats in headers.
    mirrored: Mirrored,
    /// How quick the middleware is, where there is any.
    pace: Arc<Pace>,
}

/// What was agreed on when the session was opened.
#[derive(Debug)]
pub(crate) struct Negotiated {
    pub(crate) revision: Revision,
    pub(crate) server_info: Option<Implementation>,
    pub(crate) capabilities: ServerCapabilities,
    pub(crate) instructions: Option<String>,
    /// What the server was told that the client can do.
    pub(crate) declared: ClientCapabilities,
    /// What every modern request carries, as JSON members without braces.
    pub(crate) envelope: Option<Arc<str>>,
}

impl ClientPeer {
    pub(crate) fn new(client: Client, seat: Seat, mirror: Option<Mirror>) -> Arc<Self> {
        Arc::new(Self {
            seat,
            mirrored: Mirrored::new(mirror),
            client,
            negotiated: OnceLock::new(),
            session: OnceLock::new(),
            listeners: Arc::default(),
            updates: Updates::default(),
            visits: Visits::default(),
            request_level: RequestLevel::default(),
            pace: Arc::new(Pace::new()),
        })
    }

    pub(crate) fn client(&self) -> &Client {
        &self.client
    }

    pub(crate) fn listeners(&self) -> &Arc<Listeners> {
        &self.listeners
    }

    /// From which level on modern requests want to hear of the log.
    pub(crate) fn request_level(&self) -> &RequestLevel {
        &self.request_level
    }

    pub(crate) fn session(&self) -> Option<&WeakSession> {
        self.session.get()
    }

    pub(crate) fn updates(&self) -> &Updates {
        &self.updates
    }

    pub(crate) fn seat(&self) -> &Seat {
        &self.seat
    }

    pub(crate) fn mirrored(&self) -> &Mirrored {
        &self.mirrored
    }

    /// Looks at a result before it is handed out. Legacy servers know nothing of headers.
    pub(crate) fn screen<T: 'static>(&self, result: &mut T) {
        if self.revision().is_modern() {
            self.mirrored.screen(result);
        }
    }

    /// What every request says: answers depend on it.
    pub(crate) fn terms(&self) -> Arc<str> {
        let envelope = self.negotiated().and_then(|it| it.envelope.clone());
        envelope.unwrap_or_else(|| self.revision().as_str().into())
    }

    pub(crate) fn negotiated(&self) -> Option<&Negotiated> {
        self.negotiated.get()
    }

    /// Notes what was agreed on. It is said once, before the session is handed out.
    pub(crate) fn agree(&self, negotiated: Negotiated) {
        // The first agreement stands.
        let _ = self.negotiated.set(negotiated);
    }

    /// Notes the session that is handed out. It is said once, after [`agree`](Self::agree).
    pub(crate) fn open(&self, session: &ClientSession) {
        // There is one session for each connection.
        let _ = self.session.set(session.downgrade());
    }

    /// What a modern request must carry, and what it says that the client can do.
    pub(crate) fn envelope(&self, revision: Revision) -> (Meta, ClientCapabilities) {
        let features = self.client.features();
        let mut declared = features.capabilities();
        declared.project(revision);
        let mut info = features.info.clone();
        info.project(revision);
        let mut meta = Meta::default();
        meta.insert(Meta::PROTOCOL_VERSION, revision.as_str());
        let info = serde_json::to_value(&info);
        meta.insert(Meta::CLIENT_INFO, info.expect("strings are always JSON"));
        let capabilities = serde_json::to_value(&declared);
        meta.insert(
            Meta::CLIENT_CAPABILITIES,
            capabilities.expect("settings are always JSON"),
        );
        (meta, declared)
    }

    /// How quick the middleware is.
    pub(crate) fn pace(&self) -> &Arc<Pace> {
        &self.pace
    }

    pub(crate) fn visits(&self) -> &Visits {
        &self.visits
    }

    /// The user's handler for a notification.
    pub(crate) fn hook(&self, method: &str, params: Option<Text<'_>>) -> Option<BoxFuture<()>> {
        if !method::is_in(method::NOTIFICATIONS_TO_CLIENT, method, self.revision()) {
            return None;
        }
        let features = self.client.features();
        let job = features.hooks.job(method, params, &self.visits)?;
        let session = self.session.get()?.clone();
        // The handler is called in its lane, not here: it is a user's code. Where nobody holds on to the session any
        // more, nobody is interested in it.
        Some(Box::pin(async move {
            if let Some(session) = session.upgrade() {
                job(session).await;
            }
        }))
    }

    /// Forgets answers that may be others now, since for a while nobody heard what passes a filter.
    pub(crate) fn missed(&self, filter: &SubscriptionFilter) {
        for change in Change::unheard(filter) {
            self.forget(&change);
        }
    }

    /// Forgets answers that are others now.
    pub(crate) fn forget(&self, change: &Change) {
        self.client.response_cache().change(&self.seat, change);
    }

    pub(crate) fn revision(&self) -> Revision {
        self.negotiated()
            .map_or(Revision::LATEST_LEGACY, |negotiated| negotiated.revision)
    }

    /// The context of what the server sent, or asked within an answer.
    pub(crate) fn context(
        &self,
        connection: &Arc<Connection>,
        id: Option<RequestId>,
    ) -> ContextParts {
        let negotiated = self.negotiated();
        let peer = Peer {
            revision: self.revision(),
            implementation: negotiated.and_then(|it| it.server_info.clone()),
            capabilities: negotiated.map_or_else(Default::default, |it| it.declared.clone()),
        };
        ContextParts::new(connection, id, Arc::new(peer))
    }
}

impl fmt::Debug for ClientPeer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientPeer")
            .field("negotiated", &self.negotiated)
            .finish_non_exhaustive()
    }
}
