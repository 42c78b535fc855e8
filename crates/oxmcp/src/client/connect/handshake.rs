//! What a client asks a server in order to open a session.

use std::sync::Arc;

use crate::{
    client::{
        client::Client,
        connect::opening::newest,
        peer::{ClientPeer, Negotiated},
        requests::results::decode,
        session::ClientSession,
    },
    error::{Error, Result},
    protocol::{
        DiscoverResult, EmptyParams, InitializeParams, InitializeResult, Meta, Method, Project,
        Revision,
        method::{Discover, Initialize},
        negotiation::{Verdict, on_discovered, on_error, on_refused},
    },
    session::{CallOptions, Connection, drive},
    transport::Transport,
};

/// What the answer to `server/discover` says.
pub(crate) enum Found {
    /// The server is modern.
    Modern(Box<Negotiated>),
    /// It is legacy, which it said in an error, or by the revisions that it listed.
    Legacy(Option<Error>),
}

/// A connection whose session is not open yet. Dropped, it is closed in the background.
pub(crate) struct Attempt<'a> {
    pub(crate) client: &'a Client,
    pub(crate) connection: Arc<Connection>,
    pub(crate) peer: Arc<ClientPeer>,
    /// What is handed out in the end; whoever drops it closes it.
    pub(crate) session: ClientSession,
    /// What may be spoken.
    pub(crate) revisions: &'a [Revision],
    /// Whether silence is a failure, and says nothing of what the server speaks.
    pub(crate) answers_each: bool,
}

impl<'a> Attempt<'a> {
    pub(crate) async fn begin(
        client: &'a Client,
        transport: &mut impl Transport,
        revisions: &'a [Revision],
    ) -> Result<Self> {
        let limits = client.features().limits.clone();
        let (read, write) = transport.connect(&limits).await?;
        let cache = client.response_cache();
        let seat = cache.seat(transport.identity(), transport.authorization());
        let mirror = transport.mirror();
        if let Some(mirror) = &mirror {
            let extensions = &client.features().extensions;
            mirror.begin(limits.max_mirrored_bytes, extensions.headers());
        }
        let peer = ClientPeer::new(client.clone(), seat, mirror);
        let connection = Connection::new(Arc::clone(&peer) as _, limits);
        tokio::spawn(drive(Arc::clone(&connection), read, write));
        let session = ClientSession::new(Arc::clone(&connection), Arc::clone(&peer));
        Ok(Self {
            client,
            connection,
            peer,
            session,
            revisions,
            answers_each: transport.answers_each(),
        })
    }

    /// Asks `server/discover`, and once more where the server names a revision to ask in, and no more than that.
    pub(crate) async fn discover(&self, first: Revision) -> Result<Found> {
        let mut asked = first;
        let mut again = true;
        loop {
            let (meta, _) = self.peer.envelope(asked);
            let result = self.call::<Discover>(EmptyParams::default(), meta).await;
            let verdict = match &result {
                Ok(found) => on_discovered(&found.supported_versions, self.revisions),
                Err(error) => on_error(error, self.revisions),
            };
            match (verdict, result) {
                (Verdict::Modern(revision), Ok(found)) => {
                    return Ok(Found::Modern(Box::new(self.modern(revision, found))));
                }
                (Verdict::AskAgain(revision), _) if again => {
                    asked = revision;
                    again = false;
                }
                (Verdict::Legacy, result) => return Ok(Found::Legacy(result.err())),
                (_, Err(error)) => return Err(error),
                (_, Ok(found)) => {
                    return Err(self.nothing_in_common(&found.supported_versions.join(", ")));
                }
            }
        }
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
    pub(crate) async fn initialize(&self) -> Result<Negotiated> {
        let Some(asked) = newest(self.revisions, false) else {
            return Err(self.nothing_in_common("no modern revision"));
        };
        let error = match self.initialize_in(asked).await {
            Ok(negotiated) => return Ok(negotiated),
            Err(error) => error,
        };
        match on_refused(&error, asked, self.revisions) {
            // A modern server that was too slow for the probe.
            Some(modern) if modern.is_modern() => match self.discover(modern).await? {
                Found::Modern(negotiated) => Ok(*negotiated),
                Found::Legacy(_) => Err(error),
            },
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

    /// A modern revision is all that may be spoken, and the server does not know the question.
    pub(crate) fn not_modern(&self, answer: Option<Error>) -> Error {
        let error = self.nothing_in_common("no modern revision");
        match answer {
            Some(answer) => {
                let said = format!("{} (it answered: {answer})", error.message());
                Error::unsupported(said).with_source(answer)
            }
            None => error,
        }
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
}
