//! Opening a session: finding out what the server speaks, and agreeing on it.

use std::sync::Arc;

use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use tokio::{pin, select, time::sleep};

use crate::{
    Error, Result, Revision,
    client::{
        Client, ClientSession,
        peer::{ClientPeer, Negotiated},
    },
    protocol::{
        DiscoverResult, EmptyParams, InitializeParams, InitializeResult, Meta, Method,
        method::{Discover, Initialize},
        negotiation::{Verdict, on_discovered, on_error, supported_versions},
    },
    session::{CallOptions, Connection, drive, keep_alive},
    transport::Transport,
};

/// Connects, and tries once more where the server went away at a question that it did not know: some do.
pub(super) async fn connect(
    client: &Client,
    mut transport: impl Transport,
) -> Result<ClientSession> {
    let first = Attempt::begin(client, &mut transport).await?;
    let legacy = first.newest(false);
    let result = match first.newest(true) {
        None => first.initialize().await,
        Some(modern) => first.negotiate(modern).await,
    };
    let error = match result {
        Ok(negotiated) => return Ok(first.succeed(negotiated)),
        Err(error) => error,
    };
    let gone = error.is_closed() && first.newest(true).is_some() && legacy.is_some();
    first.give_up().await;
    if !gone {
        return Err(error);
    }
    // A transport that connects only once fails here; then the first error is the one that says what happened.
    let Ok(second) = Attempt::begin(client, &mut transport).await else {
        return Err(error);
    };
    match second.initialize().await {
        Ok(negotiated) => Ok(second.succeed(negotiated)),
        Err(error) => {
            second.give_up().await;
            Err(error)
        }
    }
}

/// A connection whose session is not open yet. Dropped, it is closed in the background.
struct Attempt {
    client: Client,
    connection: Arc<Connection>,
    peer: Arc<ClientPeer>,
    succeeded: bool,
}

impl Attempt {
    async fn begin(client: &Client, transport: &mut impl Transport) -> Result<Self> {
        let limits = client.features().limits.clone();
        let (read, write) = transport.connect(&limits).await?;
        let peer = ClientPeer::new(client.clone());
        let connection = Connection::new(Arc::clone(&peer) as _, limits);
        tokio::spawn(drive(Arc::clone(&connection), read, write));
        Ok(Self {
            client: client.clone(),
            connection,
            peer,
            succeeded: false,
        })
    }

    /// The newest revision of an era that this client may speak.
    fn newest(&self, modern: bool) -> Option<Revision> {
        let features = self.client.features();
        let ours = features.revisions.iter().copied();
        ours.filter(|revision| revision.is_modern() == modern).max()
    }

    /// Asks the server what it speaks. A server that stays silent is asked to `initialize` as well, and the first answer
    /// that opens a session counts: it may only be slow to start.
    async fn negotiate(&self, modern: Revision) -> Result<Negotiated> {
        let probe = self.discover(modern);
        pin!(probe);
        if self.newest(false).is_none() {
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
        select! {
            biased;
            Ok(Some(negotiated)) = &mut probe => Ok(negotiated),
            opened = &mut opening => opened,
        }
    }

    /// Asks `server/discover`. `None` means that the server is legacy.
    async fn discover(&self, first: Revision) -> Result<Option<Negotiated>> {
        let mut asked = first;
        let ours = self.client.features().revisions.clone();
        // Once more with a revision that the server itself has named, and no more than that.
        for _ in 0..2 {
            let meta = self.peer.envelope(asked);
            let result = self
                .call::<Discover>(EmptyParams::default(), meta.clone())
                .await;
            let verdict = match &result {
                Ok(found) => on_discovered(&found.supported_versions, &ours),
                Err(error) => on_error(error, asked, &ours),
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
        let meta = self.peer.envelope(revision);
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
            envelope: Some(members.into()),
        }
    }

    /// Opens a legacy session.
    /// See [initialization](https://modelcontextprotocol.io/specification/2025-11-25/basic/lifecycle#initialization).
    async fn initialize(&self) -> Result<Negotiated> {
        let Some(revision) = self.newest(false) else {
            return Err(self.nothing_in_common("no modern revision"));
        };
        let features = self.client.features().clone();
        let params =
            InitializeParams::new(revision, features.capabilities(), features.info.clone());
        let result: InitializeResult = match self.call::<Initialize>(params, Meta::default()).await
        {
            Ok(result) => result,
            Err(error) => return self.fall_forward(error).await,
        };
        let agreed = result.protocol_version.parse().ok();
        let agreed = agreed
            .filter(|agreed: &Revision| !agreed.is_modern() && features.revisions.contains(agreed));
        let Some(revision) = agreed else {
            return Err(self.nothing_in_common(&result.protocol_version));
        };
        self.connection
            .notify("notifications/initialized", EmptyParams::default())
            .await?;
        Ok(Negotiated {
            revision,
            server_info: Some(result.server_info),
            capabilities: result.capabilities,
            instructions: result.instructions,
            envelope: None,
        })
    }

    /// A modern server that was too slow for the probe refuses `initialize` and says what it speaks.
    async fn fall_forward(&self, error: Error) -> Result<Negotiated> {
        let theirs = supported_versions(&error).unwrap_or_default();
        let ours = self.client.features().revisions.clone();
        match on_discovered(&theirs, &ours) {
            Verdict::Modern(revision) => {
                let found = Box::pin(self.discover(revision)).await?;
                found.ok_or(error)
            }
            _ => Err(error),
        }
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
            &*self.connection.call(M::NAME, params, options).await?,
        )
    }

    fn nothing_in_common(&self, theirs: &str) -> Error {
        let features = self.client.features();
        let ours: Vec<_> = features
            .revisions
            .iter()
            .map(|revision| revision.as_str())
            .collect();
        Error::unsupported(format!(
            "no common revision: the server speaks {theirs}, this client may speak {}",
            ours.join(", ")
        ))
    }

    fn succeed(mut self, negotiated: Negotiated) -> ClientSession {
        self.succeeded = true;
        tracing::debug!(revision = %negotiated.revision, "connected");
        let modern = negotiated.revision.is_modern();
        self.peer.agree(negotiated);
        let session = ClientSession::new(Arc::clone(&self.connection), Arc::clone(&self.peer));
        self.client.remember(session.downgrade());
        self.peer.opened(session.downgrade());
        if let Some(interval) = self.client.features().keep_alive
            && !modern
        {
            tokio::spawn(keep_alive(Arc::clone(&self.connection), interval));
        }
        session
    }

    /// Closes the connection and waits until nothing is left of it.
    async fn give_up(self) {
        self.connection.begin_close();
        self.connection.ended().await;
    }
}

impl Drop for Attempt {
    fn drop(&mut self) {
        if !self.succeeded {
            self.connection.begin_close();
        }
    }
}

/// Reads a result as what the method returns.
pub(super) fn decode<T: DeserializeOwned>(method: &str, result: &RawValue) -> Result<T> {
    serde_json::from_str(result.get()).map_err(|error| {
        Error::decode(format!(
            "the server's answer to {method} is not what the method returns: {error}"
        ))
        .with_source(error)
    })
}
