//! The opening of a session: the first request, the fallback to another, and the revision that is agreed on.

use std::sync::Arc;

use futures_util::{FutureExt, future::FusedFuture};
use oxmcp_protocol::{
    EmptyParams, ErrorCode, Method, Revision, internal::negotiation::is_answer, method::Listen,
};
use tokio::{pin, select, time::timeout};

use crate::{
    client::{
        client::Client,
        connect::{
            handshake::{Discovery, Handshake, newest},
            known_servers::Era,
        },
        session::{ClientSession, Negotiated},
        subscriptions::sync::sync_subscriptions,
    },
    error::{Error, Result},
    session::{
        driver::keep_alive::keep_alive,
        task::{spawn, spawn_polled},
    },
    transport::traits::Transport,
};

impl Client {
    /// Connects to a server and agrees with it on a revision. Must be called within a tokio runtime.
    ///
    /// # Errors
    /// Where the server cannot be reached or started, does not answer, or speaks no revision that this client may
    /// speak. The error says what the server said, on its standard error too.
    ///
    /// # Cancel safety
    /// When the future is dropped, the connection is closed in the background.
    pub async fn connect(&self, transport: impl Transport) -> Result<ClientSession> {
        let revisions = self.features().revisions.clone();
        connect(self, transport, revisions).await
    }

    /// Like [`connect`](Self::connect), but in a revision of this choice: for tests of users, with a server in the same process.
    #[cfg(feature = "server")]
    pub(crate) async fn connect_in(
        &self,
        transport: impl Transport,
        revision: Revision,
    ) -> Result<ClientSession> {
        connect(self, transport, vec![revision]).await
    }
}

/// The request that opens a session.
#[derive(Clone, Copy, Debug)]
enum FirstRequest {
    /// `server/discover`, in this revision.
    Discover(Revision),
    Initialize,
    /// `initialize`, which the server has answered before.
    InitializeAgain,
}

impl FirstRequest {
    /// The request to begin with, by what is known of the server.
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

    /// The request to fall back to, with a server that went away at this one.
    fn fallback(self, revisions: &[Revision]) -> Option<Self> {
        match self {
            Self::Discover(_) => newest(revisions, false).map(|_| Self::Initialize),
            Self::InitializeAgain => newest(revisions, true).map(Self::Discover),
            Self::Initialize => None,
        }
    }
}

/// Connects, and once more where the server went away at a request that it did not know: some do.
async fn connect(
    client: &Client,
    mut transport: impl Transport,
    revisions: Vec<Revision>,
) -> Result<ClientSession> {
    client.check()?;
    client.note_runtime();
    if revisions.is_empty() {
        return Err(Error::misuse(
            "a client needs at least one revision that it may speak",
        ));
    }
    let server = transport
        .identity()
        .filter(|_| newest(&revisions, true).is_some() && newest(&revisions, false).is_some());
    let mut first = FirstRequest::choose(client, server.as_deref(), &revisions);
    let mut failed = None;
    loop {
        let handshake = match Handshake::begin(client, &mut transport, &revisions).await {
            Ok(handshake) => handshake,
            // Where the transport cannot connect again, the first error is the one that says what happened.
            Err(error) => return Err(failed.unwrap_or(error)),
        };
        let error = match handshake.open(first).await {
            Ok(session) => {
                if let Some(server) = server {
                    let era = Era::of(session.revision());
                    client.known_servers().remember(server, era);
                }
                return Ok(session);
            }
            Err(error) => error,
        };
        handshake.close().await;
        let answers_each = transport.answers_each();
        // A failure that says nothing of the server leaves what is known of it as it is.
        let says_something = !answers_each || is_answer(&error);
        if let Some(server) = server.as_ref().filter(|_| says_something) {
            client.known_servers().forget(server);
        }
        let Some(fallback) = first
            .fallback(&revisions)
            .filter(|_| failed.is_none() && error.is_closed() && !answers_each)
        else {
            return Err(explain(error, &transport));
        };
        first = fallback;
        failed = Some(error);
    }
}

/// Adds the likely cause to an error that does not show it: the transport's diagnosis of a silent server, or a proxy that
/// drops headers.
fn explain(error: Error, transport: &impl Transport) -> Error {
    const PROXY: &str = "the server is modern, and misses headers that were sent: is there a proxy that drops or changes those that \
         begin with Mcp-?";
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

/// Adds a line to the message of an error.
fn with_line(error: Error, line: &str) -> Error {
    let said = format!("{}\n{line}", error.message());
    error.saying(said)
}

impl Handshake<'_> {
    async fn open(&self, first: FirstRequest) -> Result<ClientSession> {
        let negotiated = match first {
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

    /// Discovers the era of the server, and opens a session of it.
    async fn negotiate(&self, modern: Revision) -> Result<Negotiated> {
        let legacy = newest(self.revisions, false);
        if legacy.is_some() && !self.answers_each {
            return self.discover_or_initialize(modern).await;
        }
        let discovery = self.discover(modern).await;
        match discovery.map_err(|error| explain_silence(error, legacy))? {
            Discovery::Modern(negotiated) => Ok(*negotiated),
            Discovery::Legacy(_) if legacy.is_some() => self.initialize().await,
            Discovery::Legacy(why) => Err(self.not_modern(why)),
        }
    }

    /// Discovers the era of a server that may stay silent, as old servers do. It is asked to `initialize` as well after the
    /// probe time-out, and the first answer that opens a session counts: the server may only be slow to start.
    async fn discover_or_initialize(&self, modern: Revision) -> Result<Negotiated> {
        let discover = self.discover(modern).fuse();
        pin!(discover);
        let probe_timeout = self.client.features().probe_timeout;
        if let Ok(discovery) = timeout(probe_timeout, &mut discover).await {
            return match discovery? {
                Discovery::Modern(negotiated) => Ok(*negotiated),
                Discovery::Legacy(_) => self.initialize().await,
            };
        }
        let opened = select! {
            biased;
            Ok(Discovery::Modern(negotiated)) = &mut discover => return Ok(*negotiated),
            opened = self.initialize() => opened,
        };
        match opened {
            // A server that refuses `initialize` may be modern and slow: its answer to `server/discover` may still come.
            Err(error) if error.is_protocol() && !discover.is_terminated() => {
                match timeout(probe_timeout, discover).await {
                    Ok(Ok(Discovery::Modern(negotiated))) => Ok(*negotiated),
                    _ => Err(error),
                }
            }
            opened => opened,
        }
    }

    /// Hands out the session. All is in place before a legacy server is told that it may begin to send.
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
            if let Some(interval) = self.client.features().keep_alive {
                spawn(keep_alive(Arc::clone(&self.connection), interval));
            }
        }
        self.session.request_logs();
        self.client
            .connections()
            .push(Arc::downgrade(&self.connection));
        Ok(self.session.clone())
    }

    /// Subscribes to the changes that the client has handlers for, with a modern server that tells of them.
    fn subscribe(&self) {
        let features = self.client.features().clone();
        let declared = self.session.server_capabilities();
        let mut filter = features.handled_list_changes().narrowed(declared);
        filter.other = features
            .extensions
            .default_subscriptions(declared.extensions.as_ref());
        if !filter.is_empty() && self.session.has_method(Listen::NAME).is_ok() {
            let desired = &self.state.desired;
            desired.set_lists(filter);
            if desired.start_sync() {
                let (connection, state) = (&self.connection, &self.state);
                spawn_polled(sync_subscriptions(
                    Arc::clone(connection),
                    Arc::clone(state),
                ));
            }
        }
    }

    /// Closes the connection and waits until nothing is left of it.
    async fn close(self) {
        // Why it failed is known already.
        let _ = self.session.close().await;
    }
}

/// Adds what the user can do to the time-out of a transport on which silence says nothing of the era.
fn explain_silence(error: Error, legacy: Option<Revision>) -> Error {
    let Some(legacy) = legacy.filter(|_| error.is_timeout()) else {
        return error;
    };
    let advice = format!(
        "is it an old server, which ignores what it does not know? Then say which revision to speak, as with \
         `Client::revisions([Revision::{legacy:?}])`"
    );
    with_line(error, &advice)
}
