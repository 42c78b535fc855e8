//! Opening a session anew that the server has lost.
//! See [session management](https://modelcontextprotocol.io/specification/2025-11-25/basic/transports#session-management).

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use tokio::{sync::oneshot, time::timeout};

use crate::http::client::exchange::message::Outgoing;
use crate::http::client::exchange::post::Missed;
use crate::http::client::exchange::response::{self, refusal};
use crate::http::client::exchange::session::{Session, agreed_revision, outcome};
use crate::http::client::exchange::shared::Link;
use crate::http::client::exchange::sink::{Taker, Then};
use crate::{Error, ErrorCode, Result, http::names::SESSION_ID, json::Logged};

/// How long each step may take.
const PATIENCE: Duration = Duration::from_secs(30);

impl Link {
    /// Opens another session in the place of the one of this generation, which the server does not know any more. Whoever
    /// comes first does it, and the others wait.
    ///
    /// # Errors
    /// Where it does not work now. Where it can never work the connection ends.
    pub(crate) async fn renew(self: &Arc<Self>, generation: u64) -> Result<()> {
        let link = Arc::clone(self);
        let (done, outcome) = oneshot::channel();
        // Who waits for it may be given up: it goes on, or the server would keep a session of which nobody knows.
        self.inlet.begin(async move {
            let _one_at_a_time = link.renewing.lock().await;
            if !done.is_closed() {
                let renewed = link.renew_alone(generation).await;
                let _ = done.send(renewed);
            }
        });
        let over = |_| Err(Error::closed("the connection is over"));
        outcome.await.unwrap_or_else(over)
    }

    async fn renew_alone(self: &Arc<Self>, generation: u64) -> Result<()> {
        let session = self.session();
        if session.generation != generation {
            return Ok(());
        }
        // What is new waits for the new session.
        let _closed = self.gate.close();
        tracing::info!("the server lost the session; another one is opened");
        let result = self.open_again(&session).await;
        if let Err(error) = &result
            && is_final(error)
        {
            let text = format!(
                "the server lost the session, and no other could be opened: {}",
                error.message()
            );
            self.end(Error::closed(text)).await;
        }
        result
    }

    async fn open_again(self: &Arc<Self>, lost: &Session) -> Result<()> {
        let (initialize, initialized, requests) = {
            let restore = &self.state().restore;
            let initialize = restore.initialize.clone();
            (initialize, restore.initialized.clone(), restore.requests())
        };
        let initialize = initialize.ok_or_else(|| Error::unsupported("there was none"))?;
        let opened = self.ask(&initialize, &Session::default()).await?;
        let revision = agreed_revision(&opened.answer);
        let session = Session::new(
            lost.generation + 1,
            opened.session_id,
            revision.clone(),
            &self.wire.posted,
        );
        if revision.is_none() || revision != lost.revision {
            self.state().session = session;
            let theirs = revision.as_ref().and_then(|it| it.to_str().ok());
            return Err(Error::unsupported(format!(
                "the server now speaks another revision ({})",
                theirs.unwrap_or("none")
            )));
        }
        if let Some(initialized) = initialized
            && let Err(error) = self.accept(&initialized, &session).await
        {
            self.abandon(session);
            return Err(error);
        }
        for request in requests {
            if let Err(error) = self.ask(&request, &session).await {
                tracing::warn!(error = %Logged(&error), method = request.method(), "the new session lacks what the old one had");
            }
        }
        let generation = session.generation;
        self.state().session = session;
        // Nobody waits for it: what is said meanwhile is said to the new session.
        self.listen(generation, oneshot::channel().0);
        Ok(())
    }

    /// Tells the server that this side has accepted the session.
    async fn accept(&self, initialized: &Outgoing, session: &Session) -> Result<()> {
        let response = in_time(self.send(initialized, session)).await?;
        if !response.status().is_success() {
            return Err(refusal(response).await.error);
        }
        response::discard(response.into_body()).await;
        Ok(())
    }

    /// Ends a session that nobody will use. Those who wait for one need not wait for that, but the end of the connection does.
    fn abandon(self: &Arc<Self>, session: Session) {
        let link = Arc::clone(self);
        let place = Arc::clone(&self.untaken).try_acquire_owned();
        self.inlet.begin(async move {
            let _ = timeout(PATIENCE, link.leave(&session)).await;
            drop(place);
        });
    }

    /// Makes a request, and keeps its answer, which brings a result.
    async fn ask(self: &Arc<Self>, request: &Outgoing, session: &Session) -> Result<Opened> {
        let response = in_time(self.send(request, session)).await?;
        if !response.status().is_success() {
            return Err(refusal(response).await.error);
        }
        let session_id = response.headers().get(SESSION_ID).cloned();
        let taker = Taker::new(request, Then::Keep(None));
        let taking = async {
            let kept = self.take_answer(request, taker, session, response).await;
            match kept {
                Ok(kept) => Ok(kept.unwrap_or_default()),
                Err(Missed::Failed(error) | Missed::Lost { error, .. }) => Err(error),
            }
        };
        let answer = in_time(taking).await?;
        outcome(&answer)?;
        Ok(Opened { answer, session_id })
    }
}

/// Whether no session can be opened another time either. A server that is being restarted says no, too, and many say it in
/// JSON-RPC.
fn is_final(error: &Error) -> bool {
    let is_passing = matches!(error.http_status(), Some(408 | 425 | 429 | 500..))
        || error.code() == ErrorCode::INTERNAL_ERROR;
    error.is_unsupported() || error.is_protocol() && !is_passing
}

struct Opened {
    answer: Bytes,
    session_id: Option<http::HeaderValue>,
}

async fn in_time<T>(step: impl Future<Output = Result<T>>) -> Result<T> {
    let done = timeout(PATIENCE, step).await;
    done.unwrap_or_else(|_| {
        Err(Error::timeout(
            "the server did not open another session in time",
        ))
    })
}
