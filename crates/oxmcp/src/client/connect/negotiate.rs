//! Opening a session: finding out what the server speaks, and agreeing on it.

use std::sync::Arc;

use futures_util::{FutureExt, future::FusedFuture};
use tokio::{
    pin, select,
    time::{sleep, timeout},
};

use crate::{
    client::{
        client::Client,
        connect::{
            handshake::{Attempt, Found},
            opening::{Opening, era, newest},
        },
        peer::Negotiated,
        session::ClientSession,
        subscriptions::{listen_request::begin, sync::follow},
    },
    error::{Error, Result},
    jsonrpc::ErrorCode,
    protocol::{EmptyParams, Method, Revision, method::Listen, negotiation::is_answer},
    session::keep_alive,
    transport::Transport,
};

/// Connects, and tries once more where the server went away at a question that it did not know: some do.
pub(crate) async fn connect(
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
        let answers_each = transport.answers_each();
        // A failure that says nothing of the server leaves what is known of it as it is.
        let says_something = !answers_each || is_answer(&error);
        if let Some(server) = server.as_ref().filter(|_| says_something) {
            client.verdicts().forget(server);
        }
        let Some(other) = opening
            .instead(&revisions)
            .filter(|_| failed.is_none() && error.is_closed() && !answers_each)
        else {
            return Err(explained(error, &transport));
        };
        opening = other;
        failed = Some(error);
    }
}

/// Says what may be behind an error that the user could not guess it from. A server that says nothing is best explained by
/// what else it does.
fn explained(error: Error, transport: &impl Transport) -> Error {
    let says = error.message();
    if error.is_timeout() {
        return match transport.diagnosis() {
            Some(known) => {
                let said = format!("{says}\n{known}");
                error.saying(said)
            }
            None => error,
        };
    }
    let mismatch = error.is_protocol() && error.code() == ErrorCode::HEADER_MISMATCH;
    if !mismatch || !transport.answers_each() {
        return error;
    }
    let said = format!(
        "{says}\nthe server is modern, and misses headers that were sent: is there a proxy that drops or changes those that \
         begin with Mcp-?"
    );
    error.saying(said)
}

impl Attempt<'_> {
    async fn open(&self, opening: Opening) -> Result<ClientSession> {
        let negotiated = match opening {
            Opening::Initialize => self.initialize().await?,
            Opening::Probe(modern) => self.negotiate(modern).await?,
            Opening::InitializeAgain => {
                match (self.initialize().await, newest(self.revisions, true)) {
                    // The server has changed since: it is found out anew.
                    (Err(error), Some(modern)) if is_answer(&error) => {
                        self.negotiate(modern).await?
                    }
                    (opened, _) => opened?,
                }
            }
        };
        self.succeed(negotiated).await
    }

    /// Asks the server what it speaks. Where silence may be the answer of an old one, see [`listen_out`](Self::listen_out).
    async fn negotiate(&self, modern: Revision) -> Result<Negotiated> {
        let legacy = newest(self.revisions, false).is_some();
        let found = if legacy && !self.answers_each {
            return self.listen_out(modern).await;
        } else {
            self.discover(modern)
                .await
                .map_err(|error| self.unanswered(error))?
        };
        match found {
            Found::Modern(negotiated) => Ok(*negotiated),
            Found::Legacy(_) if legacy => self.initialize().await,
            Found::Legacy(why) => Err(self.not_modern(why)),
        }
    }

    /// Says what can be done where silence says nothing.
    fn unanswered(&self, error: Error) -> Error {
        let Some(legacy) = newest(self.revisions, false).filter(|_| error.is_timeout()) else {
            return error;
        };
        let said = format!(
            "{}\nis it an old server, which ignores what it does not know? Then say which revision to speak, as with \
             `Client::revisions([Revision::{legacy:?}])`",
            error.message()
        );
        error.saying(said)
    }

    /// Asks the server what it speaks. One that stays silent is asked to `initialize` as well, and the first answer that
    /// opens a session counts: it may only be slow to start.
    async fn listen_out(&self, modern: Revision) -> Result<Negotiated> {
        let probe = self.discover(modern).fuse();
        pin!(probe);
        let patience = self.client.features().probe_timeout;
        let answered = select! {
            biased;
            discovered = &mut probe => Some(discovered),
            () = sleep(patience) => None,
        };
        if let Some(discovered) = answered {
            return match discovered? {
                Found::Modern(negotiated) => Ok(*negotiated),
                Found::Legacy(_) => self.initialize().await,
            };
        }
        let opening = self.initialize();
        pin!(opening);
        let opened = select! {
            biased;
            Ok(Found::Modern(negotiated)) = &mut probe => return Ok(*negotiated),
            opened = &mut opening => opened,
        };
        match opened {
            // One that refuses `initialize` may be modern and slow: its answer to the probe is still on its way.
            Err(error) if error.is_protocol() && !probe.is_terminated() => {
                match timeout(patience, probe).await {
                    Ok(Ok(Found::Modern(negotiated))) => Ok(*negotiated),
                    _ => Err(error),
                }
            }
            opened => opened,
        }
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
