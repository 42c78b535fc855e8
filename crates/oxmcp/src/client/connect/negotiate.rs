//! The opening of a session: the first request, the fallback to another, and the revision that is agreed on.

use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use futures_util::{FutureExt, future::FusedFuture};
use oxmcp_protocol::{
    DiscoverResult, EmptyParams, ErrorCode, Method, Revision, SubscriptionFilter,
    internal::negotiation::{ProbeOutcome, is_answer, on_discovered},
    lenient::Leniency,
    method::Listen,
};
use tokio::{
    pin, select,
    time::{sleep, timeout},
};

use crate::{
    client::{
        client::Client,
        connect::{
            handshake::{Discovery, Handshake, newest},
            known_servers::Era,
            patience::opened_in_time,
        },
        features::Features,
        requested_state::RequestedState,
        server_facts::ServerFacts,
        session::{ClientSession, Connecting, Connector, Negotiated, Reconnection},
        subscriptions::{
            listen_request::{Backoff, is_retryable},
            sync::sync_subscriptions,
        },
    },
    error::{Error, Result},
    logged::Logged,
    session::{
        connection::Connection,
        driver::keep_alive::keep_alive,
        task::{spawn, spawn_polled},
    },
    transport::traits::Transport,
};

impl Client {
    /// Connects to a server, and negotiates a revision with it. Must be called within a tokio runtime.
    ///
    /// # Errors
    /// If the server cannot be reached or started, does not respond, or supports no revision that this client supports. The
    /// error contains what the server reported, also on its standard error.
    ///
    /// # Cancel safety
    /// If the future is dropped, the connection is closed in the background.
    #[doc(alias("initialize", "server/discover"))]
    pub async fn connect(&self, transport: impl Transport) -> Result<ClientSession> {
        let features = self.features().clone();
        let route = Route {
            transport,
            revisions: features.revisions.clone(),
            unasked: unasked(&features),
            requested: Arc::default(),
        };
        connect_by(route, self).await
    }

    /// Like [`connect`](Self::connect), but in the given revision: for tests of users, with a server in the same process.
    #[cfg(feature = "server")]
    pub(crate) async fn connect_in(
        &self,
        transport: impl Transport,
        revision: Revision,
    ) -> Result<ClientSession> {
        let route = Route {
            transport,
            revisions: vec![revision],
            unasked: None,
            requested: Arc::default(),
        };
        connect_by(route, self).await
    }
}

/// The means of connecting to a server, which can be used again if the transport can connect again.
struct Route<T> {
    transport: T,
    /// The revisions that the client may speak.
    revisions: Vec<Revision>,
    /// The modern revision that is spoken without asking the server, if there is one.
    unasked: Option<Revision>,
    /// The state that its sessions have requested, and that each new session requests again.
    requested: Arc<RequestedState>,
}

impl<T: Transport> Connector for Route<T> {
    fn connect<'a>(&'a mut self, client: &'a Client) -> Connecting<'a> {
        Box::pin(connect(client, self))
    }
}

/// Connects, and keeps the route for reconnecting.
async fn connect_by<T: Transport>(mut route: Route<T>, client: &Client) -> Result<ClientSession> {
    let session = connect(client, &mut route).await?;
    let connection = Arc::downgrade(session.connection());
    session
        .state()
        .set_reconnection(Reconnection::new(Box::new(route), connection));
    Ok(session)
}

/// The request that opens a session.
#[derive(Clone, Copy, Debug)]
enum FirstRequest {
    /// No request: this modern revision is spoken without asking the server.
    Unasked(Revision),
    /// `server/discover`, in this revision.
    Discover(Revision),
    Initialize,
    /// `initialize`, which the server has answered before.
    InitializeAgain,
}

impl FirstRequest {
    /// The first request, by the known era of the server.
    fn choose(client: &Client, server: Option<&str>, revisions: &[Revision]) -> Self {
        let Some(modern) = newest(revisions, true) else {
            return Self::Initialize;
        };
        match server.and_then(|server| client.known_servers().get(server)) {
            Some(Era::Legacy) => Self::InitializeAgain,
            Some(Era::Modern(revision)) if revisions.contains(&revision) => {
                Self::Discover(revision)
            }
            _ => Self::Discover(modern),
        }
    }

    /// The request to fall back to, if the server exited on this one.
    fn fallback(self, revisions: &[Revision]) -> Option<Self> {
        match self {
            Self::Discover(_) => newest(revisions, false).map(|_| Self::Initialize),
            Self::InitializeAgain => newest(revisions, true).map(Self::Discover),
            Self::Initialize | Self::Unasked(_) => None,
        }
    }
}

/// The modern revision that is spoken without asking the server: the only one that the client may speak, or one that the
/// server has named before.
fn unasked(features: &Features) -> Option<Revision> {
    if let Some(saved) = &features.discovered {
        return match on_discovered(&saved.supported_versions, &features.revisions) {
            ProbeOutcome::Modern(revision) => Some(revision),
            _ => None,
        };
    }
    match features.revisions[..] {
        [pinned] if pinned.is_modern() => Some(pinned),
        _ => None,
    }
}

/// Connects, and retries once if the server exited on a request that it did not know, or refused `initialize` after such a
/// request, as some servers do.
async fn connect<T: Transport>(client: &Client, route: &mut Route<T>) -> Result<ClientSession> {
    let Route {
        transport,
        revisions,
        unasked,
        requested,
    } = route;
    client.check()?;
    client.note_runtime();
    if revisions.is_empty() {
        return Err(Error::misuse(
            "the client needs at least one revision; set it with `Client::revisions`",
        ));
    }
    let server = transport
        .identity()
        .filter(|_| newest(revisions, true).is_some() && newest(revisions, false).is_some());
    let mut first = match unasked {
        Some(revision) => FirstRequest::Unasked(*revision),
        None => FirstRequest::choose(client, server.as_deref(), revisions),
    };
    let mut failed = None;
    loop {
        let handshake = match Handshake::begin(client, transport, revisions, requested).await {
            Ok(handshake) => handshake,
            // If the transport cannot connect again, the first error tells what happened.
            Err(error) => return Err(failed.unwrap_or(error)),
        };
        let opening = Box::pin(handshake.open(first));
        let opened = opened_in_time(opening, transport.startup(), transport.name()).await;
        let error = match opened {
            Ok(session) => {
                let era = Era::of(session.revision());
                // A modern server may only have been slow or faulty for a moment.
                let is_known =
                    era != Era::Legacy || !handshake.is_era_doubtful.load(Ordering::Relaxed);
                if let Some(server) = server.filter(|_| is_known) {
                    client.known_servers().remember(server, era);
                }
                return Ok(session);
            }
            Err(error) => error,
        };
        let refused_both = handshake.refused_both.load(Ordering::Relaxed);
        let echo = handshake.echo();
        handshake.close().await;
        if let Some(echo) = echo {
            return Err(echo);
        }
        let answers_each = transport.answers_each();
        // A failure that does not depend on the server leaves its known era as it is.
        let says_something = !answers_each || is_answer(&error);
        if let Some(server) = server.as_ref().filter(|_| says_something) {
            client.known_servers().forget(server);
        }
        // A server that never read the request did not exit because of it.
        let went_away = error.is_closed() && !transport.ended_unread();
        let Some(fallback) = first
            .fallback(revisions)
            .filter(|_| failed.is_none() && !answers_each && (went_away || refused_both))
        else {
            let error = explain(error, transport);
            return Err(match failed {
                Some(before) => started_twice(&before, error),
                None => error,
            });
        };
        // The server may accept `initialize` if it is the first request.
        first = if refused_both {
            FirstRequest::Initialize
        } else {
            fallback
        };
        failed = Some(error);
    }
}

/// Adds the likely cause to an error that does not show it: the transport's diagnosis of a silent server, or a proxy that
/// drops headers.
fn explain(error: Error, transport: &impl Transport) -> Error {
    const PROXY: &str = "the server did not receive the `Mcp-*` headers as they were sent; check for a proxy that removes or changes them";
    let mismatch = error.is_protocol() && error.code() == ErrorCode::HEADER_MISMATCH;
    let cause = if error.is_timeout() {
        transport.diagnosis()
    } else {
        (mismatch && transport.answers_each()).then(|| PROXY.to_owned())
    };
    match cause {
        Some(cause) => with_line(error, &cause),
        None => error,
    }
}

/// The error of a server that was restarted and failed again, together with the first failure.
fn started_twice(before: &Error, error: Error) -> Error {
    let said = format!(
        "{}\nthe server was started twice, because some servers exit on a first request that they do not know; first failure: {}",
        error.message(),
        before.message()
    );
    error.saying(said)
}

/// Adds a line to the message of an error.
fn with_line(error: Error, line: &str) -> Error {
    let said = format!("{}\n{line}", error.message());
    error.saying(said)
}

impl Handshake<'_> {
    async fn open(&self, first: FirstRequest) -> Result<ClientSession> {
        let negotiated = match first {
            FirstRequest::Unasked(revision) => {
                let saved = self.client.features().discovered.clone();
                let facts = saved.map(|saved| ServerFacts::from(DiscoverResult::clone(&saved)));
                self.modern(revision, facts)
            }
            FirstRequest::Initialize => self.initialize().await?,
            FirstRequest::Discover(modern) => self.negotiate(modern).await?,
            FirstRequest::InitializeAgain => {
                match (self.initialize().await, newest(self.revisions, true)) {
                    // The server has changed since it was remembered.
                    (Err(error), Some(modern)) if is_answer(&error) => {
                        self.negotiate(modern).await?
                    }
                    (opened, _) => opened?,
                }
            }
        };
        self.finish(negotiated).await
    }

    /// Discovers the era of the server, and opens a session of that era.
    async fn negotiate(&self, modern: Revision) -> Result<Negotiated> {
        if newest(self.revisions, false).is_some() {
            return self.discover_or_initialize(modern).await;
        }
        match self.discover(modern).await? {
            Discovery::Modern(negotiated) => Ok(*negotiated),
            Discovery::Legacy(why) => Err(self.not_modern(why)),
        }
    }

    /// Discovers the era of a server that may not respond to `server/discover`, as old servers do not. After the probe
    /// timeout, `initialize` is sent as well, and the first response that opens a session counts: the server may only be
    /// slow to start.
    async fn discover_or_initialize(&self, modern: Revision) -> Result<Negotiated> {
        let discover = self.discover(modern).fuse();
        pin!(discover);
        let probe_timeout = self.client.features().probe_timeout;
        let answered = select! {
            biased;
            discovery = &mut discover => Some(discovery?),
            () = self.connection.silence(probe_timeout) => None,
        };
        match answered {
            Some(Discovery::Modern(negotiated)) => return Ok(*negotiated),
            Some(Discovery::Legacy(answer)) => {
                let status = answer.as_ref().and_then(Error::http_status);
                let is_fault = status.is_some_and(|status| status >= 500);
                self.is_era_doubtful.store(is_fault, Ordering::Relaxed);
                return match answer {
                    Some(error) if is_fault && !self.tolerates_no_discovery() => Err(error),
                    answer => self.initialize_after(answer).await,
                };
            }
            None if self.answers_each && !self.tolerates_no_discovery() => {
                return match discover.await? {
                    Discovery::Modern(negotiated) => Ok(*negotiated),
                    Discovery::Legacy(answer) => self.initialize_after(answer).await,
                };
            }
            None => self
                .is_era_doubtful
                .store(self.answers_each, Ordering::Relaxed),
        }
        let opened = select! {
            biased;
            Ok(Discovery::Modern(negotiated)) = &mut discover => return Ok(*negotiated),
            opened = self.initialize() => opened,
        };
        match opened {
            // A server that refuses `initialize` may be modern and slow: its response to `server/discover` may still
            // arrive.
            Err(error) if error.is_protocol() && !discover.is_terminated() => {
                match timeout(probe_timeout, discover).await {
                    Ok(Ok(Discovery::Modern(negotiated))) => Ok(*negotiated),
                    _ => Err(error),
                }
            }
            opened => opened,
        }
    }

    fn tolerates_no_discovery(&self) -> bool {
        self.connection.tolerates(Leniency::NoDiscovery)
    }

    /// Returns the session. Everything is in place before a legacy server is notified that it may begin to send.
    async fn finish(&self, negotiated: Negotiated) -> Result<ClientSession> {
        let revision = negotiated.revision;
        tracing::debug!(%revision, "connected");
        self.state.open(negotiated, &self.session);
        if revision.is_modern() {
            self.subscribe();
        } else {
            self.connection
                .notify("notifications/initialized", EmptyParams::default())
                .await?;
            let features = self.client.features().clone();
            if let Some(interval) = features.keep_alive {
                let threshold = features.keep_alive_threshold;
                spawn(keep_alive(
                    Arc::clone(&self.connection),
                    interval,
                    threshold,
                ));
            }
        }
        self.session.request_logs().await;
        self.client
            .connections()
            .push(Arc::downgrade(&self.connection));
        Ok(self.session.clone())
    }

    /// Subscribes to the changes that have handlers, if the server is modern and sends such notifications. If the server
    /// has to be asked first whether it does, that happens in the background.
    fn subscribe(&self) {
        if self.session.has_method(Listen::NAME).is_err() {
            return;
        }
        let (connection, state) = (Arc::clone(&self.connection), Arc::clone(&self.state));
        let wanted = async move {
            let Some(filter) = wanted_changes(&connection).await else {
                return;
            };
            if !filter.is_empty() {
                state.desired.set_lists(filter);
                if state.desired.start_sync() {
                    sync_subscriptions(connection, state).await;
                }
            }
        };
        spawn_polled(wanted);
    }

    /// Closes the connection, and waits until it has ended.
    async fn close(self) {
        // The reason of the failure is known already.
        let _ = self.session.close().await;
    }
}

/// The changes to subscribe to. If the server's capabilities cannot be obtained, they are requested again after a pause, if
/// that may help. `None` if they remain unknown, or the session ends.
async fn wanted_changes(connection: &Arc<Connection>) -> Option<SubscriptionFilter> {
    let mut backoff = Backoff::new();
    loop {
        // A new handle for each attempt: otherwise the task would keep the session open.
        let error = match ClientSession::of(connection)?.wanted_changes().await {
            Ok(filter) => return Some(filter),
            Err(error) => error,
        };
        if !is_retryable(&error, connection) {
            tracing::warn!(error = %Logged(&error), "could not read the server's capabilities; change handlers will not be called");
            return None;
        }
        let pause = backoff.after(Duration::ZERO);
        tracing::warn!(error = %Logged(&error), ?pause, "could not read the server's capabilities; retrying");
        select! {
            biased;
            () = connection.closing() => return None,
            _ = connection.ended() => return None,
            () = sleep(pause) => {}
        }
    }
}
