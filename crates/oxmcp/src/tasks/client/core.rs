//! The wait for a task of 2025-11-25: a separate request fetches its result, and its questions arrive as requests of the server.

use std::{sync::Arc, time::Duration};

use oxmcp_protocol::{TaskPayload, TaskStatus};
use tokio::{
    select,
    time::{sleep, timeout},
};

use super::drive::{Drive, cancelled};
use crate::{
    error::{Error, Result},
    session::{outbound::calls::CallResult, task::BoxFuture},
};

/// The `tasks/result` request, which the server answers when the task is over.
type Waiting = BoxFuture<Result<TaskPayload>>;

impl Drive {
    pub(super) async fn run_core(&mut self) -> Result<CallResult> {
        let mut waiting: Option<Waiting> = None;
        let mut pause = self.first_pause();
        loop {
            let due = async {
                sleep(pause).await;
                self.get().await
            };
            let state = select! {
                biased;
                answer = answer(&mut waiting) => {
                    waiting = None;
                    // The server answers this request when the task is over.
                    let is_refused = |error: &Error| error.is_protocol();
                    self.note_over(answer.as_ref().err().is_none_or(is_refused));
                    match answer {
                        Ok(payload) => return Ok(result(&payload)),
                        Err(error) if self.ends_call(&error) => return Err(error),
                        Err(_) => continue,
                    }
                }
                state = due => state?,
            };
            let has_changed = self.take(&state);
            match &state.status {
                TaskStatus::Cancelled => return Err(cancelled(&state)),
                TaskStatus::Completed | TaskStatus::Failed => {
                    return self.outcome(waiting, state.ttl_ms).await;
                }
                // A server sends its questions on the stream of this request, because there may be no other stream.
                TaskStatus::InputRequired => {
                    waiting.get_or_insert_with(|| self.payload());
                }
                _ => {}
            }
            pause = self.pace.next(state.poll_interval_ms, has_changed);
        }
    }

    fn payload(&self) -> Waiting {
        let exchange = Arc::clone(&self.exchange);
        Box::pin(async move { exchange.payload().await })
    }

    /// Fetches the outcome of a task that is over.
    async fn outcome(
        &mut self,
        mut waiting: Option<Waiting>,
        ttl_ms: Option<u64>,
    ) -> Result<CallResult> {
        let limit = self.exchange.session.client().features().timeout;
        let kept = ttl_ms.map_or(limit, Duration::from_millis);
        loop {
            let payload = waiting.take().unwrap_or_else(|| self.payload());
            let error = match timeout(limit, payload).await {
                Ok(Ok(payload)) => return Ok(result(&payload)),
                Ok(Err(error)) => error,
                Err(_) => Error::timeout(format!(
                    "tasks/result: the task is over, and the server did not answer within {limit:?}"
                )),
            };
            if self.ends_call(&error) || self.known_since.elapsed() >= kept {
                return Err(error);
            }
            sleep(self.pace.after_failure()).await;
        }
    }

    /// Whether an error is the outcome of the call, or is not transient.
    fn ends_call(&self, error: &Error) -> bool {
        error.is_protocol() || !self.exchange.may_pass(error)
    }
}

async fn answer(waiting: &mut Option<Waiting>) -> Result<TaskPayload> {
    match waiting {
        Some(waiting) => waiting.await,
        None => std::future::pending().await,
    }
}

fn result(payload: &TaskPayload) -> CallResult {
    Box::<str>::from(payload.get().get()).into()
}
