//! Recovery of a session that the server has lost: another one is opened and set up like it.
//! See [session management](https://modelcontextprotocol.io/specification/2025-11-25/basic/transports#session-management).

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use http::HeaderValue;
use oxmcp_protocol::ErrorCode;
use tokio::{sync::oneshot, time::timeout};

use crate::{
    error::{Error, Result},
    http::{
        client::exchange::{
            message::OutgoingMessage,
            post::ExchangeError,
            response::{self, refusal},
            session::{Session, negotiated_revision, result_of},
            shared::Exchanges,
            sink::{MessageSink, OnAnswer},
        },
        names::SESSION_ID,
    },
    logged::Logged,
};

/// The time limit for each step.
const STEP_TIMEOUT: Duration = Duration::from_secs(30);

impl Exchanges {
    /// Replaces the session of this generation, which the server no longer knows. The first exchange that
    /// notices the loss opens the session, and the others wait.
    ///
    /// # Errors
    /// If the recovery fails now. If it can never succeed, the connection ends.
    pub(crate) async fn recover_session(self: &Arc<Self>, generation: u64) -> Result<()> {
        let exchanges = Arc::clone(self);
        let (done, outcome) = oneshot::channel();
        // The recovery continues when the exchange is cancelled: otherwise the server would keep an unused session.
        self.spawner.spawn(async move {
            let _one_at_a_time = exchanges.recovering.lock().await;
            if !done.is_closed() {
                let recovered = exchanges.recover_alone(generation).await;
                let _ = done.send(recovered);
            }
        });
        let over = |_| Err(Error::closed("the connection has ended"));
        outcome.await.unwrap_or_else(over)
    }

    async fn recover_alone(self: &Arc<Self>, generation: u64) -> Result<()> {
        let session = self.session();
        if session.generation != generation {
            return Ok(());
        }
        // Further messages wait for the new session.
        let _closed = self.barrier.close();
        tracing::debug!("the server lost the session; opening another");
        let result = self.open_another(&session).await;
        if let Err(error) = &result
            && is_final(error)
        {
            let text = format!(
                "the server lost the session, and another could not be opened: {}",
                error.message()
            );
            self.end(Error::closed(text)).await;
        }
        result
    }

    async fn open_another(self: &Arc<Self>, lost: &Session) -> Result<()> {
        let (initialize, initialized, requests) = {
            let setup = &self.state.lock().setup;
            let initialize = setup.initialize.clone();
            (initialize, setup.initialized.clone(), setup.requests())
        };
        let initialize = initialize.ok_or_else(|| Error::unsupported("there was no session"))?;
        let opened = self.ask(&initialize, &Session::default()).await?;
        let revision = negotiated_revision(&opened.message);
        let session = Session::new(lost.generation + 1, opened.session_id, revision.clone());
        if revision.is_none() || revision != lost.revision {
            self.state.lock().session = session;
            let theirs = revision.as_ref().and_then(|it| it.to_str().ok());
            return Err(Error::unsupported(format!(
                "the server changed its revision to {}",
                theirs.unwrap_or("none")
            )));
        }
        if let Some(initialized) = initialized
            && let Err(error) = self.accept(&initialized, &session).await
        {
            self.end_unused(session);
            return Err(error);
        }
        for request in requests {
            if let Err(error) = self.ask(&request, &session).await {
                tracing::warn!(error = %Logged(&error), method = request.method(), "could not restore session state");
            }
        }
        let generation = session.generation;
        self.state.lock().session = session;
        // Requests do not wait for the stream: they go to the new session meanwhile.
        self.open_standalone_stream(generation, oneshot::channel().0);
        Ok(())
    }

    /// Tells the server that this side has accepted the session.
    async fn accept(&self, initialized: &OutgoingMessage, session: &Session) -> Result<()> {
        let response = in_time(self.send(initialized, session)).await?;
        if !response.status().is_success() {
            return Err(refusal(response).await.error);
        }
        response::discard(response.into_body()).await;
        Ok(())
    }

    /// Ends a session that is not used. Exchanges do not wait for that, but the end of the connection does.
    fn end_unused(self: &Arc<Self>, session: Session) {
        let exchanges = Arc::clone(self);
        let permit = Arc::clone(&self.unaccepted).try_acquire_owned();
        self.spawner.spawn(async move {
            let _ = timeout(STEP_TIMEOUT, exchanges.end_session(&session)).await;
            drop(permit);
        });
    }

    /// Makes a request, and returns its answer, which is a result.
    async fn ask(self: &Arc<Self>, request: &OutgoingMessage, session: &Session) -> Result<Answer> {
        let response = in_time(self.send(request, session)).await?;
        if !response.status().is_success() {
            return Err(refusal(response).await.error);
        }
        let session_id = response.headers().get(SESSION_ID).cloned();
        let sink = MessageSink::new(request, OnAnswer::Keep(None));
        let reading = async {
            let kept = self.read_answer(request, sink, session, response).await;
            kept.map(Option::unwrap_or_default)
                .map_err(ExchangeError::into_error)
        };
        let message = in_time(reading).await?;
        result_of(&message)?;
        Ok(Answer {
            message,
            session_id,
        })
    }
}

/// Whether no later attempt can succeed either. A server that is being restarted refuses, too, and often with a JSON-RPC error.
fn is_final(error: &Error) -> bool {
    let is_passing = matches!(error.http_status(), Some(408 | 425 | 429 | 500..))
        || error.code() == ErrorCode::INTERNAL_ERROR;
    error.is_unsupported() || error.is_protocol() && !is_passing
}

/// The answer to a request, and the session that its response names.
struct Answer {
    message: Bytes,
    session_id: Option<HeaderValue>,
}

async fn in_time<T>(step: impl Future<Output = Result<T>>) -> Result<T> {
    let done = timeout(STEP_TIMEOUT, step).await;
    done.unwrap_or_else(|_| {
        Err(Error::timeout(
            "the server did not open another session in time",
        ))
    })
}
