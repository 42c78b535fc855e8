//! [`Exchange`], the requests about one task, in the protocol of its era, and their retries.

use std::{sync::Arc, time::Duration};

use oxmcp_protocol::{
    ErrorCode, InputResponses, Method, Task, TaskParams, TaskPayload,
    method::{self, CallTool},
};
use serde_json::Value;
use tokio::time::{Instant, sleep};

use super::{
    super::wire::{CancelTask, GetTask, TaskState, UpdateTask, UpdateTaskParams},
    pace::Pace,
};
use crate::{
    client::{ClientSession, features::LONGEST_WAIT, requests::call::Call},
    error::{Error, Result},
    logged::Logged,
    session::{
        outbound::call::ContinuationGuard,
        task::{BoxFuture, spawn_on},
    },
};

/// For this long, consecutive requests about a task without a TTL may fail.
const PATIENCE: Duration = Duration::from_secs(10 * 60);
/// The maximum length of a task ID, in bytes: every request sends the ID, over HTTP in a header.
const MAX_ID: usize = 1024;

/// The two designs of tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Era {
    /// The tasks of revision 2025-11-25.
    Core,
    /// The extension, in 2026-07-28 and later.
    Extension,
}

impl Era {
    /// The kind of tasks in a session, if its revision has tasks.
    pub(crate) fn of(session: &ClientSession) -> Option<Self> {
        let revision = session.revision();
        if revision.is_modern() {
            return Some(Self::Extension);
        }
        let result = method::GetTaskPayload::NAME;
        method::is_in(method::REQUESTS_TO_SERVER, result, revision).then_some(Self::Core)
    }
}

/// The requests about one task.
pub(crate) struct Exchange {
    pub(crate) session: ClientSession,
    pub(crate) era: Era,
    pub(crate) id: Arc<str>,
    /// Makes a session that is being closed wait for the task, while a call drives it.
    guard: Option<ContinuationGuard>,
}

impl Exchange {
    /// # Errors
    /// If the ID is empty or too long.
    pub(crate) fn new(session: &ClientSession, era: Era, id: &str) -> Result<Self> {
        if id.is_empty() || id.len() > MAX_ID {
            return Err(Error::decode(format!(
                "{}: the server sent a task ID of {} bytes; expected 1 to {MAX_ID}",
                CallTool::NAME,
                id.len()
            )));
        }
        Ok(Self {
            session: session.clone(),
            era,
            id: id.into(),
            guard: None,
        })
    }

    /// Makes a session that is being closed wait for the task.
    pub(crate) fn hold_session(&mut self) {
        self.guard = Some(ContinuationGuard::new(self.session.connection()));
    }

    fn params(&self) -> TaskParams {
        TaskParams::new(&*self.id)
    }

    /// A request that is sent even while the session closes, if a call waits for the task.
    fn request<M: Method>(&self, params: M::Params) -> Call<M> {
        let mut call = self.session.request::<M>(params);
        call.options.is_continuation = self.guard.is_some();
        call
    }

    /// Fetches the state of the task.
    pub(crate) async fn get(&self) -> Result<TaskState> {
        let state = match self.era {
            Era::Core => {
                let task = self.request::<method::GetTask>(self.params()).await?;
                of_core(task)
            }
            Era::Extension => self.request::<GetTask>(self.params()).await?,
        };
        if *state.task_id != *self.id {
            return Err(Error::decode(
                "tasks/get: the server returned a different task",
            ));
        }
        Ok(state)
    }

    /// Sends answers to the task's questions.
    pub(crate) async fn update(&self, answers: InputResponses) -> Result<()> {
        let params = UpdateTaskParams::new(&*self.id, answers);
        self.request::<UpdateTask>(params).await.map(drop)
    }

    /// Waits for the outcome of the call, which the server returns when the task has ended.
    pub(crate) async fn payload(&self) -> Result<TaskPayload> {
        let call = self.request::<method::GetTaskPayload>(self.params());
        call.timeout(LONGEST_WAIT).await
    }

    /// Asks the server to cancel the task.
    pub(crate) async fn cancel(&self) -> Result<()> {
        match self.era {
            Era::Core if !can_cancel(&self.session) => Ok(()),
            Era::Core => self
                .request::<method::CancelTask>(self.params())
                .await
                .map(drop),
            Era::Extension => self.request::<CancelTask>(self.params()).await.map(drop),
        }
    }

    /// Makes a request, and retries it while it fails for transient reasons and the server keeps the task.
    pub(crate) async fn retry<T>(
        &self,
        ttl_ms: Option<u64>,
        known_since: Instant,
        pace: &mut Pace,
        request: impl Fn() -> BoxFuture<Result<T>> + Send,
    ) -> Result<T> {
        let start = Instant::now();
        loop {
            let error = match request().await {
                Ok(done) => return Ok(done),
                Err(error) => error,
            };
            let (since, patience) = match ttl_ms {
                Some(ttl) => (known_since, Duration::from_millis(ttl)),
                None => (start, PATIENCE),
            };
            if !self.may_pass(&error) || since.elapsed() >= patience {
                return Err(lost(error));
            }
            sleep(pace.after_failure()).await;
        }
    }

    /// Whether a request that failed with this error may succeed later.
    pub(crate) fn may_pass(&self, error: &Error) -> bool {
        const STATUSES: [u16; 6] = [408, 425, 429, 502, 503, 504];
        let connection = self.session.connection();
        if error.is_closed() {
            // A server process that has ended may be restarted, and the session may continue.
            return !connection.is_closing() && !connection.calls().is_closed();
        }
        let status = error.http_status();
        let is_busy = status.is_some_and(|status| STATUSES.contains(&status));
        let failed = error.is_protocol() && error.code() == ErrorCode::INTERNAL_ERROR;
        error.is_timeout() || error.is_network() || is_busy || failed
    }
}

/// Adds to an error that it concerns the task of a call: by itself it would look like an error of the call.
fn lost(error: Error) -> Error {
    let said = error.message().to_owned();
    if error.is_protocol() && error.code() == ErrorCode::INVALID_PARAMS {
        return error.saying(format!(
            "tools/call failed: its task is gone, or belongs to another client: {said}"
        ));
    }
    error.saying(format!(
        "tools/call failed: cannot get the status of its task: {said}"
    ))
}

/// A task of 2025-11-25, converted to the state of the extension.
pub(crate) fn of_core(task: Task) -> TaskState {
    TaskState {
        task_id: task.task_id,
        status: task.status,
        status_message: task.status_message,
        created_at: task.created_at,
        last_updated_at: task.last_updated_at,
        ttl_ms: task.ttl,
        poll_interval_ms: task.poll_interval,
        input_requests: None,
        result: None,
        error: None,
    }
}

/// Cancels a task when it is dropped, unless it was disarmed.
pub(crate) struct CancelGuard(Option<Arc<Exchange>>);

impl CancelGuard {
    pub(crate) fn new(exchange: &Arc<Exchange>) -> Self {
        Self(Some(Arc::clone(exchange)))
    }

    /// Disarms the guard, because the task has ended or does not exist.
    pub(crate) fn disarm(&mut self) {
        self.0 = None;
    }
}

impl Drop for CancelGuard {
    fn drop(&mut self) {
        let Some(exchange) = self.0.take() else {
            return;
        };
        let runtime = exchange.session.connection().runtime.clone();
        spawn_on(&runtime, async move {
            // The caller does not wait, and a failure is only logged: the task may have ended, or its server be gone.
            if let Err(error) = exchange.cancel().await {
                tracing::debug!(error = %Logged(&error), "could not cancel a task");
            }
        });
    }
}

/// Whether a server of 2025-11-25 supports cancelling tasks.
fn can_cancel(session: &ClientSession) -> bool {
    let tasks = session.server_capabilities().tasks.as_ref();
    tasks.is_some_and(|it| it.cancel.is_some())
}

/// Whether a server of 2025-11-25 runs tool calls as tasks.
pub(crate) fn has_core_tasks(session: &ClientSession) -> bool {
    let tasks = session.server_capabilities().tasks.as_ref();
    let requests = tasks.and_then(|it| it.requests.as_ref());
    let tools = requests.and_then(|it| it.get("tools"));
    tools
        .and_then(Value::as_object)
        .is_some_and(|it| it.contains_key("call"))
}
