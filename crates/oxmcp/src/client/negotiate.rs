//! Opening a session: finding out what the server speaks, and agreeing on it.

use std::sync::Arc;

use futures_util::{FutureExt, future::FusedFuture};
use tokio::{
    pin, select,
    time::{sleep, timeout},
};

use crate::{
    Error, Result, Revision,
    client::{
        Client, ClientSession,
        decode::decode,
        follow::follow,
        opening::{Opening, era, newest},
        peer::{ClientPeer, Negotiated},
        request::begin,
    },
    protocol::{
        DiscoverResult, EmptyParams, InitializeParams, InitializeResult, Meta, Method, Project,
        method::{Discover, Initialize, Listen},
        negotiation::{Verdict, on_discovered, on_error, on_refused},
    },
    session::{CallOptions, Connection, drive, keep_alive},
    transport::Transport,
};

/// Connects, and tries once more where the server went away at a question that it did not know: some do.
pub(super) async fn connect(
    client: &Client,
    mut transport: impl Transport,
    revisions: Vec<Revision>,
) -> Result<ClientSession> {
    client.check()?;
    client.root_changes().connected();
    if revisions.is_empty() {
        return Err(Error::misuse(
            "a client needs at least one revision that it may speak",
        ));
    }
    let server = transport
        .identity()
        .filter(|_| newest(&revisions, true).is_some() && newest(&revisions, false).is_some());
    let mut opening = Opening::choose(client, server.as_deref(), &revisions);
    let mut failed = None;
    loop {
        let attempt = match Attempt::begin(client, &mut transport, &revisions).await {
            Ok(attempt) => attempt,
            // Where it cannot be done again, the first error is the one that says what happened.
            Err(error) => return Err(failed.unwrap_or(error)),
        };
        let error = match attempt.open(opening).await {
            Ok(session) => {
                if let Some(server) = server {
                    client.verdicts().remember(server, era(session.revision()));
                }
                return Ok(session);
            }
            Err(error) => error,
        };
        attempt.give_up().await;
        if let Some(server) = &server {
            client.verdicts().forget(server);
        }
        let Some(other) = opening
            .instead(&revisions)
            .filter(|_| failed.is_none() && error.is_closed())
        else {
            return Err(explained(error, &transport));
        };
        opening = other;
        failed = Some(error);
    }
}

/// A server that says nothing is best explained by what else it does.
fn explained(error: Error, transport: &impl Transport) -> Error {
    match transport.diagnosis().filter(|_| error.is_timeout()) {
        Some(known) => Error::timeout(format!("{}\n{known}", error.message())).with_source(error),
        None => error,
    }
}

/// A connection whose session is not open yet. Dropped, it is closed in the background.
struct Attempt<'a> {
    client: &'a Client,
    connection: Arc<Connection>,
    peer: Arc<ClientPeer>,
    /// What is handed out in the end; whoever drops it closes it.
    session: ClientSession,
    /// What may be spoken.
    revisions: &'a [Revision],
}

impl<'a> Attempt<'a> {
    async fn begin(
        client: &'a Client,
        transport: &mut impl Transport,
        revisions: &'a [Revision],
    ) -> Result<Self> {
        let limits = client.features().limits.clone();
        let (read, write) = transport.connect(&limits).await?;
        let cache = client.response_cache();
        let seat = cache.seat(transport.identity(), transport.authorization());
        let peer = ClientPeer::new(client.clone(), seat);
        let connection = Connection::new(Arc::clone(&peer) as _, limits);
        tokio::spawn(drive(Arc::clone(&connection), read, write));
        let session = ClientSession::new(Arc::clone(&connection), Arc::clone(&peer));
        Ok(Self {
            client,
            connection,
            peer,
            session,
            revisions,
        })
    }

    async fn open(&self, opening: Opening) -> Result<ClientSession> {
        let negotiated = match opening {
            Opening::Initialize => self.initialize().await?,
            Opening::Probe(modern) => self.negotiate(modern).await?,
            Opening::InitializeAgain => {
                match (self.initialize().await, newest(self.revisions, true)) {
                    // The server has changed since: it is found out anew.
                    (Err(error), Some(modern)) if error.is_protocol() || error.is_decode() => {
                        self.negotiate(modern).await?
                    }
                    (opened, _) => opened?,
                }
            }
        };
        self.succeed(negotiated).await
    }

    /// Asks the server what it speaks. A server that stays silent is asked to `initialize` as well, and the first answer
    /// that opens a session counts: it may only be slow to start.
    async fn negotiate(&self, modern: Revision) -> Result<Negotiated> {
        let probe = self.discover(modern).fuse();
        pin!(probe);
        if newest(self.revisions, false).is_none() {
            return probe
                .await?
                .ok_or_else(|| self.nothing_in_common("no modern revision"));
        }
        let patience = self.client.features().probe_timeout;
        let answered = select! {
            biased;
            discovered = &mut probe => Some(discovered),
            () = sleep(patience) => None,
        };
        if let Some(discovered) = answered {
            return match discovered? {
                Some(negotiated) => Ok(negotiated),
                None => self.initialize().await,
            };
        }
        let opening = self.initialize();
        pin!(opening);
        let opened = select! {
            biased;
            Ok(Some(negotiated)) = &mut probe => return Ok(negotiated),
            opened = &mut opening => opened,
        };
        match opened {
            // One that refuses `initialize` may be modern and slow: its answer to the probe is still on its way.
            Err(error) if error.is_protocol() && !probe.is_terminated() => {
                match timeout(patience, probe).await {
                    Ok(Ok(Some(negotiated))) => Ok(negotiated),
                    _ => Err(error),
                }
            }
            opened => opened,
        }
    }

    /// Asks `server/discover`. `None` means that the server is legacy.
    async fn discover(&self, first: Revision) -> Result<Option<Negotiated>> {
        let mut asked = first;
        // Once more with a revision that the server itself has named, and no more than that.
        for _ in 0..2 {
            let (meta, _) = self.peer.envelope(asked);
            let result = self.call::<Discover>(EmptyParams::default(), meta).await;
            let verdict = match &result {
                Ok(found) => on_discovered(&found.supported_versions, self.revisions),
                Err(error) => on_error(error, asked, self.revisions),
            };
            match (verdict, result) {
                (Verdict::Modern(revision), Ok(found)) => {
                    return Ok(Some(self.modern(revision, found)));
                }
                (Verdict::AskAgain(revision) | Verdict::Modern(revision), _) => asked = revision,
                (Verdict::Legacy, _) => return Ok(None),
                (Verdict::Surface, Err(error)) => return Err(error),
                (Verdict::Surface, Ok(found)) => {
                    return Err(self.nothing_in_common(&found.supported_versions.join(", ")));
                }
            }
        }
        Err(self.nothing_in_common("a revision that it then refuses"))
    }

    fn modern(&self, revision: Revision, found: DiscoverResult) -> Negotiated {
        let (meta, declared) = self.peer.envelope(revision);
        let envelope = serde_json::to_string(&meta).expect("metadata is always JSON");
        let members = envelope
            .trim_start_matches('{')
            .strip_suffix('}')
            .unwrap_or_default();
        Negotiated {
            revision,
            server_info: found.server_info(),
            capabilities: found.capabilities,
            instructions: found.instructions,
            declared,
            envelope: Some(members.into()),
        }
    }

    /// Opens a legacy session, in the second try with a revision that the server has named while it refused the first.
    async fn initialize(&self) -> Result<Negotiated> {
        let Some(asked) = newest(self.revisions, false) else {
            return Err(self.nothing_in_common("no modern revision"));
        };
        let error = match self.initialize_in(asked).await {
            Ok(negotiated) => return Ok(negotiated),
            Err(error) => error,
        };
        match on_refused(&error, asked, self.revisions) {
            // A modern server that was too slow for the probe.
            Some(modern) if modern.is_modern() => self.discover(modern).await?.ok_or(error),
            Some(legacy) => self.initialize_in(legacy).await,
            None => Err(error),
        }
    }

    /// See [initialization](https://modelcontextprotocol.io/specification/2025-11-25/basic/lifecycle#initialization).
    async fn initialize_in(&self, revision: Revision) -> Result<Negotiated> {
        let features = self.client.features().clone();
        let mut params =
            InitializeParams::new(revision, features.capabilities(), features.info.clone());
        params.project(revision);
        let declared = params.capabilities.clone();
        let result: InitializeResult = self.call::<Initialize>(params, Meta::default()).await?;
        let agreed = result.protocol_version.parse().ok();
        let agreed = agreed
            .filter(|agreed: &Revision| !agreed.is_modern() && self.revisions.contains(agreed));
        let Some(revision) = agreed else {
            return Err(self.nothing_in_common(&result.protocol_version));
        };
        Ok(Negotiated {
            revision,
            server_info: Some(result.server_info),
            capabilities: result.capabilities,
            instructions: result.instructions,
            declared,
            envelope: None,
        })
    }

    async fn call<M: Method>(&self, params: M::Params, meta: Meta) -> Result<M::Result> {
        let timeout = self.client.features().timeout;
        let options = CallOptions {
            timeout,
            max_total: timeout,
            meta,
            ..CallOptions::default()
        };
        decode(
            M::NAME,
            &self.connection.call(M::NAME, params, options).await?,
        )
    }

    fn nothing_in_common(&self, theirs: &str) -> Error {
        let ours: Vec<_> = self
            .revisions
            .iter()
            .map(|revision| revision.as_str())
            .collect();
        Error::unsupported(format!(
            "no common revision: the server speaks {theirs}, this client may speak {}",
            ours.join(", ")
        ))
    }

    /// Hands the session out. All is in place before a legacy server is told that it may begin to talk.
    async fn succeed(&self, negotiated: Negotiated) -> Result<ClientSession> {
        let revision = negotiated.revision;
        tracing::debug!(%revision, "connected");
        self.peer.agree(negotiated);
        self.peer.open(&self.session);
        if revision.is_modern() {
            self.subscribe();
        } else {
            self.connection
                .notify("notifications/initialized", EmptyParams::default())
                .await?;
            if let Some(interval) = self.client.features().keep_alive {
                tokio::spawn(keep_alive(Arc::clone(&self.connection), interval));
            }
        }
        self.session.begin_logging();
        self.client.remember(&self.session);
        Ok(self.session.clone())
    }

    /// Where a server says what changes to who asks only, it is asked for what the client has handlers for.
    fn subscribe(&self) {
        let wanted = self.client.features().wanted();
        let declared = self.session.server_capabilities();
        let mut wanted = wanted.narrowed(declared);
        let extensions = declared.extensions.as_ref();
        wanted.other = self.client.features().extensions.wanted(extensions);
        if !wanted.is_empty() && self.session.has_method(Listen::NAME).is_ok() {
            let updates = self.peer.updates();
            updates.want_lists(wanted);
            if updates.must_begin() {
                begin(follow(Arc::clone(&self.connection), Arc::clone(&self.peer)));
            }
        }
    }

    /// Closes the connection and waits until nothing is left of it.
    async fn give_up(self) {
        // Why it failed is known already.
        let _ = self.session.close().await;
    }
}
