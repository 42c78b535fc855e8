//! [`ServerRole`]: the server's side of one connection.
//!
//! [`Connection::role`] returns it on this side; the client is a [`Peer`](crate::session::connection::Peer).

use std::sync::{
    Arc, OnceLock,
    atomic::{AtomicBool, Ordering},
};

use oxmcp_protocol::{ErrorCode, Revision};

use crate::{
    debug::opaque_debug,
    error::{Error, Result},
    limits::Limits,
    server::{
        dispatch::LegacySession,
        features::{Features, Negotiated},
        logging::LogFilter,
        server::Server,
        subscriptions::{DueTopics, OpenSubscriptions, Quota, Topics, WatchedResources},
    },
    session::{connection::Connection, notifications::queue::NotificationQueue},
    transport::Transport,
};

/// The server's side of one connection.
pub(crate) struct ServerRole {
    server: Server,
    legacy_session: LegacySession,
    /// The subscriptions of modern clients, made by `subscriptions/listen`.
    pub(crate) open_subscriptions: Arc<OpenSubscriptions>,
    scope: Scope,
    /// The error code of a request refused before its handler was called.
    refused: OnceLock<ErrorCode>,
    /// See [`check_deferred`](Self::check_deferred).
    deferred: Option<Error>,
    /// Whether deviations of this client from the specification are refused.
    is_strict: AtomicBool,
    log_filter: LogFilter,
    /// The resources that the session watches.
    pub(crate) watched: WatchedResources,
    /// The changes of which to notify the session.
    pub(crate) due: DueTopics,
    /// The quota of resources watched over the connection.
    quota: OnceLock<Arc<Quota>>,
    /// The notifications of extensions to the session, which are sent in order.
    published: OnceLock<Arc<NotificationQueue>>,
    /// The server's name and version as JSON.
    pub(crate) info_json: Arc<str>,
}

/// The clients and requests that a connection serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Scope {
    /// Clients of every revision.
    All,
    /// The session of a legacy client, over a transport that later revisions do not have.
    #[cfg(feature = "http-server")]
    Legacy,
    /// The session of a client that receives only responses: no question would reach it.
    #[cfg(feature = "http-server")]
    AnswersOnly,
    /// One request, which has its own connection.
    #[cfg(feature = "http-server")]
    Request,
}

impl Scope {
    fn is_legacy(self) -> bool {
        match self {
            Self::All => false,
            #[cfg(feature = "http-server")]
            other => other == Self::Legacy,
        }
    }

    fn is_request(self) -> bool {
        match self {
            Self::All => false,
            #[cfg(feature = "http-server")]
            other => other == Self::Request,
        }
    }
}

impl ServerRole {
    pub(crate) fn new(server: Server) -> Arc<Self> {
        Self::with(server, Arc::default(), Scope::All, None)
    }

    /// Creates the role for the peer of a transport.
    pub(crate) fn over(transport: &impl Transport, server: Server) -> Arc<Self> {
        #[cfg(feature = "http-server")]
        if transport.is_legacy() {
            return Self::legacy(server);
        }
        let role = Self::new(server);
        role.is_strict
            .store(transport.is_strict(), Ordering::Relaxed);
        role
    }

    pub(crate) fn is_strict(&self) -> bool {
        self.is_strict.load(Ordering::Relaxed)
    }

    /// Creates the role for a client that is served only by legacy revisions, whichever revision it requests.
    #[cfg(feature = "http-server")]
    fn legacy(server: Server) -> Arc<Self> {
        Self::with(server, Arc::default(), Scope::Legacy, None)
    }

    /// Creates the role for a session whose client receives only responses.
    #[cfg(feature = "http-server")]
    pub(crate) fn answers_only(server: Server) -> Arc<Self> {
        Self::with(server, Arc::default(), Scope::AnswersOnly, None)
    }

    /// Creates the role for one request of a legacy client without a session, of which at most the revision is known.
    #[cfg(feature = "http-server")]
    pub(crate) fn sessionless(server: Server, revision: Option<Revision>) -> Arc<Self> {
        let role = Self::with(server, Arc::default(), Scope::Request, None);
        if let Some(revision) = revision {
            // The role is new, so the session cannot be open yet.
            let _ = role.legacy_session.open(Negotiated::unknown(revision));
            role.legacy_session.set_initialized();
        }
        role
    }

    /// Opens the session with the negotiated client. A client that receives only responses loses its capabilities.
    ///
    /// # Errors
    /// If it is already open.
    pub(crate) fn open_session(&self, negotiated: Arc<Negotiated>) -> Result<()> {
        #[cfg(feature = "http-server")]
        if self.scope == Scope::AnswersOnly {
            return self.legacy_session.open(negotiated.without_capabilities());
        }
        self.legacy_session.open(negotiated)
    }

    /// Creates the role for one modern request, which has its own connection. Only an open subscription outlives the dispatch.
    /// `deferred` is the error to return if the caller sees the feature that the request names.
    #[cfg(feature = "http-server")]
    pub(crate) fn stateless(server: Server, deferred: Option<Error>) -> Arc<Self> {
        let open_subscriptions = Arc::clone(server.open_subscriptions());
        Self::with(server, open_subscriptions, Scope::Request, deferred)
    }

    fn with(
        server: Server,
        open_subscriptions: Arc<OpenSubscriptions>,
        scope: Scope,
        deferred: Option<Error>,
    ) -> Arc<Self> {
        let info_json = Arc::clone(&server.features().info_json);
        Arc::new(Self {
            server,
            legacy_session: LegacySession::default(),
            open_subscriptions,
            scope,
            refused: OnceLock::new(),
            deferred,
            is_strict: AtomicBool::new(false),
            log_filter: LogFilter::default(),
            watched: WatchedResources::default(),
            due: DueTopics::default(),
            quota: OnceLock::new(),
            published: OnceLock::new(),
            info_json,
        })
    }

    pub(crate) fn server(&self) -> &Server {
        &self.server
    }

    pub(crate) fn legacy_session(&self) -> &LegacySession {
        &self.legacy_session
    }

    /// The revisions served here, the newest first.
    pub(crate) fn revisions<'f>(&self, features: &'f Features) -> &'f [Revision] {
        let served = &*features.revisions;
        if self.scope.is_legacy() {
            let modern = served.iter().take_while(|it| it.is_modern()).count();
            return served.get(modern..).unwrap_or_default();
        }
        served
    }

    /// Whether messages bypass the endpoints, over a transport whose POSTs the user's own code receives.
    #[cfg(all(feature = "auth", feature = "http-server"))]
    pub(crate) fn bypasses_endpoint(&self, connection: &Connection) -> bool {
        self.scope.is_legacy() && connection.caller().request.is_none()
    }

    pub(crate) fn is_for_one_request(&self) -> bool {
        self.scope.is_request()
    }

    /// The maximum number of subscriptions that share this role's [`OpenSubscriptions`].
    pub(crate) fn max_subscriptions(&self, limits: &Limits) -> usize {
        if self.is_for_one_request() {
            limits.http.max_streams
        } else {
            limits.max_subscriptions
        }
    }

    /// The level and the rate of log messages to the client.
    pub(crate) fn log_filter(&self) -> &LogFilter {
        &self.log_filter
    }

    pub(crate) fn quota(&self) -> &Arc<Quota> {
        self.quota.get_or_init(Arc::default)
    }

    /// The changed topics of which to notify the session: lists that were announced to it, and resources that it watches and
    /// sees. Empty before the session is initialized.
    pub(crate) fn topics(&self, connection: &Arc<Connection>, changed: &Topics) -> Topics {
        let Some((client, mut topics)) = self.legacy_session.announced(changed) else {
            return Topics::default();
        };
        topics.uris = self.watched.of(changed);
        self.server.features().retain_visible(&mut topics.uris, || {
            self.watched.context(connection, client)
        });
        topics.due_as(changed)
    }

    /// Whether the session or a subscription watches a resource.
    pub(crate) fn watches(&self, uri: &str) -> bool {
        self.watched.contains(uri) || self.open_subscriptions.watch(uri)
    }

    /// The resources that the session watches.
    #[cfg(feature = "http-server")]
    pub(crate) fn subscribed_uris(&self) -> Vec<String> {
        self.watched.uris()
    }

    /// The queue of extension notifications to the session.
    pub(crate) fn published(&self, connection: &Connection) -> &Arc<NotificationQueue> {
        self.published
            .get_or_init(|| NotificationQueue::new(&connection.limits, &connection.runtime))
    }

    /// The error code of a request refused before its handler was called.
    #[cfg(feature = "http-server")]
    pub(crate) fn refused(&self) -> Option<ErrorCode> {
        self.refused.get().copied()
    }

    /// Records that a request was refused. The first code counts: roles whose code is read serve one request.
    pub(crate) fn set_refused(&self, error: &Error) {
        let _ = self.refused.set(error.code());
    }

    /// Refuses a request in which the transport found a fault, and whose caller sees the feature that it names: others must not
    /// learn of the fault.
    ///
    /// # Errors
    /// The fault of the request, if there is one.
    pub(crate) fn check_deferred(&self) -> Result<()> {
        let Some(fault) = &self.deferred else {
            return Ok(());
        };
        // Record the code now, since middleware may change the error before it is sent.
        self.set_refused(fault);
        Err(fault.copy())
    }
}

opaque_debug!(ServerRole, |it| { legacy_session: it.legacy_session });
