//! The requests that open a session: `server/discover` and `initialize`.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use oxmcp_protocol::{
    EmptyParams, InitializeParams, InitializeResult, Meta, Method, Revision,
    internal::{
        Project,
        negotiation::{ProbeOutcome, on_discovered, on_error, on_refused},
    },
    lenient::Tolerated,
    method::{Discover, Initialize},
};
use tokio::sync::OnceCell;

use crate::{
    client::{
        client::Client,
        connect::patience::LONGEST_START,
        requested_state::RequestedState,
        requests::results::decode,
        server_facts::ServerFacts,
        session::{ClientSession, Negotiated, SessionState},
    },
    error::{Error, Result},
    session::{
        connection::Connection, driver::event_loop::drive, outbound::options::CallOptions,
        task::spawn, tolerance::Tolerance,
    },
    transport::traits::Transport,
};

/// The era of a server, by its response to `server/discover`.
pub(crate) enum Discovery {
    Modern(Box<Negotiated>),
    /// The era follows from an error, which is kept, or from the revisions that the server listed.
    Legacy(Option<Error>),
}

/// A connection whose session is not open yet. Dropping it closes the connection in the background.
pub(crate) struct Handshake<'a> {
    pub(crate) client: &'a Client,
    pub(crate) connection: Arc<Connection>,
    pub(crate) state: Arc<SessionState>,
    /// The handle that is finally returned; dropping it closes the connection.
    pub(crate) session: ClientSession,
    /// The revisions that the client may speak.
    pub(crate) revisions: &'a [Revision],
    /// Whether each request is answered by itself, as over HTTP.
    pub(crate) answers_each: bool,
    /// The timeout of each request.
    timeout: Duration,
    /// Whether a person may have to log in first, which takes longer.
    waits_for_people: bool,
    /// Whether the server refused `initialize` after it had refused `server/discover`, which may be the reason.
    pub(crate) refused_both: AtomicBool,
    /// Whether the era was concluded from silence, or from a fault of the server, that may pass.
    pub(crate) is_era_doubtful: AtomicBool,
}

impl<'a> Handshake<'a> {
    pub(crate) async fn begin(
        client: &'a Client,
        transport: &mut impl Transport,
        revisions: &'a [Revision],
        requested: &Arc<RequestedState>,
    ) -> Result<Self> {
        let limits = client.features().limits.clone();
        let is_strict = transport.is_strict() || client.features().is_strict;
        let tolerance = Arc::new(match is_strict {
            true => Tolerance::strict(),
            false => Tolerance::recording(),
        });
        let mirror = transport.mirror();
        if let Some(mirror) = &mirror {
            let (tolerance, server) = (Arc::clone(&tolerance), transport.name());
            mirror.set_tolerance(Arc::new(move |leniency, is_logged| match is_logged {
                true => tolerance.tolerate_logged(leniency),
                false => tolerance.tolerate(Some(&server), "", Tolerated::new(leniency, "")),
            }));
        }
        let (read, write) = transport.connect(&limits).await?;
        // For a server that is started, `opened_in_time` applies the timeout of its start.
        let timeout = match transport.startup() {
            Some(_) => LONGEST_START,
            None => client.features().timeout,
        };
        let cache = client.response_cache();
        let cache = cache.for_session(
            transport.identity(),
            transport.authorization(),
            transport.current_login(),
        );
        if let Some(mirror) = &mirror {
            let extensions = &client.features().extensions;
            mirror.begin(limits.client.max_mirrored_bytes, extensions.headers());
        }
        let state = SessionState::new(
            client.clone(),
            transport.name(),
            cache,
            mirror,
            Arc::clone(requested),
            tolerance,
        );
        let connection = Connection::new(Arc::clone(&state) as _, limits);
        let waits = transport.person_waits();
        let waits_for_people = waits.is_some();
        if let Some(waits) = waits {
            connection.pause_for(waits);
        }
        spawn(drive(Arc::clone(&connection), read, write));
        let session = ClientSession::new(Arc::clone(&connection), Arc::clone(&state));
        Ok(Self {
            client,
            connection,
            state,
            session,
            revisions,
            answers_each: transport.answers_each(),
            timeout,
            waits_for_people,
            refused_both: AtomicBool::new(false),
            is_era_doubtful: AtomicBool::new(false),
        })
    }

    /// Sends `server/discover`, and repeats it once if the server names another revision for it.
    pub(crate) async fn discover(&self, first: Revision) -> Result<Discovery> {
        let mut asked = first;
        let mut again = true;
        loop {
            let (meta, _) = self.state.envelope(asked);
            let result = self.call::<Discover>(EmptyParams::default(), meta).await;
            let outcome = match &result {
                Ok(found) => on_discovered(&found.supported_versions, self.revisions),
                Err(error) => on_error(error, self.revisions),
            };
            match (outcome, result) {
                (ProbeOutcome::Modern(revision), Ok(found)) => {
                    return Ok(Discovery::Modern(Box::new(
                        self.modern(revision, Some(found.into())),
                    )));
                }
                (ProbeOutcome::AskAgain(revision), _) if again => {
                    asked = revision;
                    again = false;
                }
                (ProbeOutcome::Legacy, result) => return Ok(Discovery::Legacy(result.err())),
                (_, Err(error)) => return Err(error),
                (_, Ok(found)) => {
                    return Err(self.nothing_in_common(&found.supported_versions.join(", ")));
                }
            }
        }
    }

    /// The outcome of the negotiation of a modern revision, with the known facts of the server.
    pub(crate) fn modern(&self, revision: Revision, facts: Option<ServerFacts>) -> Negotiated {
        let (meta, declared) = self.state.envelope(revision);
        let envelope = serde_json::to_string(&meta).expect("metadata is always JSON");
        let members = envelope
            .trim_start_matches('{')
            .strip_suffix('}')
            .unwrap_or_default();
        Negotiated {
            revision,
            facts: OnceCell::new_with(facts),
            declared,
            envelope: Some(members.into()),
        }
    }

    /// Opens a legacy session, and retries once if the server has refused the first revision and named another.
    pub(crate) async fn initialize(&self) -> Result<Negotiated> {
        let Some(asked) = newest(self.revisions, false) else {
            return Err(self.nothing_in_common("no modern revision"));
        };
        let error = match self.initialize_in(asked).await {
            Ok(negotiated) => return Ok(negotiated),
            Err(error) => error,
        };
        match on_refused(&error, asked, self.revisions) {
            // The server is modern, and was too slow for the probe.
            Some(modern) if modern.is_modern() => match self.discover(modern).await? {
                Discovery::Modern(negotiated) => Ok(*negotiated),
                Discovery::Legacy(_) => Err(error),
            },
            Some(legacy) => self.initialize_in(legacy).await,
            None => Err(error),
        }
    }

    /// [`initialize`](Self::initialize), after a response to `server/discover` that shows that the server is legacy.
    pub(crate) async fn initialize_after(&self, answer: Option<Error>) -> Result<Negotiated> {
        let opened = self.initialize().await;
        let refused = opened.as_ref().is_err_and(Error::is_protocol);
        self.refused_both
            .store(answer.is_some() && refused, Ordering::Relaxed);
        opened
    }

    /// See [initialization](https://modelcontextprotocol.io/specification/2025-11-25/basic/lifecycle#initialization).
    async fn initialize_in(&self, revision: Revision) -> Result<Negotiated> {
        let features = self.client.features().clone();
        let mut params = InitializeParams::new(
            revision,
            features.capabilities(revision),
            features.info.clone(),
        );
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
            facts: OnceCell::new_with(Some(result.into())),
            declared,
            envelope: None,
        })
    }

    async fn call<M: Method>(&self, params: M::Params, meta: Meta) -> Result<M::Result> {
        let timeout = self.timeout;
        let mut options = CallOptions::within(timeout);
        options.meta = meta;
        if !self.waits_for_people {
            options.max_total = timeout;
        }
        let result = self.connection.call(M::NAME, &params, options).await;
        let result = result.map_err(|error| {
            if !error.is_timeout() {
                return error;
            }
            let said = format!(
                "{} timed out: no response within {timeout:?}; set a longer `Client::timeout`",
                M::NAME
            );
            error.saying(said)
        })?;
        decode(&self.connection, M::NAME, &result)
    }

    /// The error of a server that echoes the messages that it is sent.
    pub(crate) fn echo(&self) -> Option<Error> {
        self.state.is_echoed().then(|| {
            Error::unsupported(
                "the server echoes every message, as `cat` does: it is not an MCP server, or something else writes to \
                 its standard output; check the command",
            )
        })
    }

    /// The error of a client that may speak only modern revisions, for a legacy server.
    pub(crate) fn not_modern(&self, answer: Option<Error>) -> Error {
        let error = self.nothing_in_common("no modern revision");
        match answer {
            Some(answer) => {
                let said = format!("{} (its response: {answer})", error.message());
                Error::unsupported(said).with_source(answer)
            }
            None => error,
        }
    }

    fn nothing_in_common(&self, theirs: &str) -> Error {
        let ours: Vec<_> = self.revisions.iter().map(|it| it.as_str()).collect();
        Error::unsupported(format!(
            "no common revision: the server supports {theirs}, this client supports {}",
            ours.join(", ")
        ))
    }
}

/// The newest revision of an era.
pub(crate) fn newest(revisions: &[Revision], modern: bool) -> Option<Revision> {
    let revisions = revisions.iter().copied();
    revisions
        .filter(|revision| revision.is_modern() == modern)
        .max()
}
