//! Waiting for a task of 2025-11-25: a separate request fetches its result, and its questions arrive as requests of the server.

use std::{sync::Arc, time::Duration};

use oxmcp_protocol::{ErrorCode, TaskPayload, TaskStatus};
use tokio::{
    select,
    time::{sleep, timeout},
};

use super::{
    super::wire::TaskState,
    drive::{Drive, cancelled, failed, failed_result, is_final, says_failed},
};
use crate::{
    error::{Error, Result},
    session::{outbound::calls::CallResult, task::BoxFuture},
};

/// The `tasks/result` request, which the server answers when the task has ended.
type Waiting = BoxFuture<Result<TaskPayload>>;

impl Drive {
    pub(crate) async fn run_core(&mut self) -> Result<CallResult> {
        let mut waiting: Option<Waiting> = None;
        let mut pause = self.initial_delay();
        loop {
            let due = async {
                sleep(pause).await;
                self.get().await
            };
            let state = select! {
                biased;
                // First, because the state tells how to read the answer.
                state = due => state?,
                answer = answer(&mut waiting) => {
                    waiting = None;
                    // The server answers this request when the task has ended.
                    let is_refused = |error: &Error| error.is_protocol();
                    self.note_over(answer.as_ref().err().is_none_or(is_refused));
                    match answer {
                        Err(error) if !self.ends_call(&error) => continue,
                        answer => return self.settle_early(answer).await,
                    }
                }
            };
            let has_changed = self.take(&state);
            match &state.status {
                TaskStatus::Cancelled => return Err(cancelled(&state)),
                TaskStatus::Completed | TaskStatus::Failed => {
                    return self.outcome(waiting, &state).await;
                }
                TaskStatus::Working => {}
                // A server sends its questions on the stream of this request, because there may be no other stream. While the
                // status is unknown, only the answer to this request shows that the task has ended.
                _ => {
                    waiting.get_or_insert_with(|| self.payload());
                }
            }
            pause = self.pace.next(state.poll_interval_ms, has_changed);
        }
    }

    fn payload(&self) -> Waiting {
        let exchange = Arc::clone(&self.exchange);
        Box::pin(async move { exchange.payload().await })
    }

    /// The outcome of a task whose result has arrived before its final state, which may say that it has failed.
    async fn settle_early(&mut self, answer: Result<TaskPayload>) -> Result<CallResult> {
        // The server may have dropped the task with its result.
        let found = self.exchange.get().await.ok();
        let Some(mut state) = found.or_else(|| self.state.clone()) else {
            return answer.map(|payload| result(&payload));
        };
        if !is_final(&state.status) {
            let is_completed = answer.as_ref().is_ok_and(|it| !says_failed(it.get().get()));
            state.status = match is_completed {
                true => TaskStatus::Completed,
                false => TaskStatus::Failed,
            };
        }
        self.take(&state);
        settle(&state, answer)
    }

    /// Fetches the outcome of a task that has ended.
    async fn outcome(
        &mut self,
        mut waiting: Option<Waiting>,
        state: &TaskState,
    ) -> Result<CallResult> {
        let limit = self.exchange.session.client().features().timeout;
        let kept = state.ttl_ms.map_or(limit, Duration::from_millis);
        loop {
            let payload = waiting.take().unwrap_or_else(|| self.payload());
            let error = match timeout(limit, payload).await {
                Ok(Ok(payload)) => return settle(state, Ok(payload)),
                Ok(Err(error)) => error,
                Err(_) => Error::timeout(format!(
                    "tasks/result timed out: no response within {limit:?}, although the task has ended"
                )),
            };
            // The status message of a failed task is more useful than a longer wait.
            let is_known = error.is_timeout() && state.status == TaskStatus::Failed;
            if is_known || self.ends_call(&error) || self.known_since.elapsed() >= kept {
                return settle(state, Err(error));
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

/// The outcome of the call, by the final state of its task and the answer to `tasks/result`. A server whose task has failed may
/// have no result: it answers with an empty one, with an error, or not at all.
fn settle(state: &TaskState, answer: Result<TaskPayload>) -> Result<CallResult> {
    match (&state.status, answer) {
        (TaskStatus::Cancelled, _) => Err(cancelled(state)),
        (TaskStatus::Failed, Ok(payload)) => failed_result(state, payload.get().get()),
        (TaskStatus::Failed, Err(error)) => Err(explained(error, state)),
        (_, answer) => answer.map(|payload| result(&payload)),
    }
}

/// The error of a failed task, with the status message, which may be the only text that explains it.
fn explained(error: Error, state: &TaskState) -> Error {
    if error.is_protocol() && error.code() == ErrorCode::METHOD_NOT_FOUND {
        return failed(state);
    }
    let said = error.message().to_owned();
    match &state.status_message {
        Some(why) if !said.contains(&**why) => error.saying(format!("{why}: {said}")),
        _ => error,
    }
}
