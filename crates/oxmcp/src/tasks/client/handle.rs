//! [`TaskHandle`], a client's handle to a tool call that the server runs as a task.

use std::sync::Arc;

use futures_core::Stream;
use futures_util::stream;
use oxmcp_protocol::{CallToolResult, Method, method::CallTool};
use serde::de::DeserializeOwned;
use tokio::{select, sync::watch};
use tokio_util::sync::{CancellationToken, DropGuard};

use super::{
    super::wire::TaskState,
    drive::Drive,
    exchange::Exchange,
    reference::TaskReference,
    start::{Started, start},
};
use crate::{
    client::{
        Call, CallOutcome, ClientSession,
        requests::{
            call_answer::CallAnswer,
            call_request::{CallRequest, tool_name},
            results::{decode, read, structured},
        },
    },
    debug::opaque_debug,
    error::{Error, Result},
    session::task::spawn_on,
};

/// Turns a tool call into a handle to its task.
pub trait AsTask {
    /// Makes the call, and returns when it has become a task or was answered directly. The server decides which. A server that
    /// speaks 2025-11-25 is asked for a task if the tool supports it. The client needs [tasks](super::ClientTasks::tasks).
    ///
    /// ```
    /// use oxmcp::{Client, Server, Tool, tasks::{AsTask, ClientTasks, ResumeTask, TaskPolicy, TaskTool, Tasks}, testing};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> oxmcp::Result<()> {
    /// # let report = Tool::new("report", "Write a report", || async { "the report" });
    /// # let server = Server::new("office", "1.0.0")
    /// #     .extension(Tasks::in_memory().poll_interval(std::time::Duration::from_millis(50)).extension())
    /// #     .tool(report.task(TaskPolicy::Required));
    /// # let client = Client::new("my-app", "1.0.0").tasks();
    /// # let session = testing::connect(&server).client(&client).await?;
    /// let task = session.call_tool("report", ()).as_task().await?;
    /// // It can be stored, and the task be found again by another process.
    /// let reference = task.detach().expect("the server has made a task");
    ///
    /// let task = session.resume_task(&reference)?;
    /// assert_eq!(task.structured::<String>().await?, "the report");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// The errors of the call up to that point. Also if the client has no tasks.
    ///
    /// # Cancel safety
    /// Dropping the future cancels the request. If the server has already created a task that this side does not know yet, the
    /// task continues.
    #[expect(
        clippy::wrong_self_convention,
        reason = "making a call consumes it, like `IntoFuture`"
    )]
    fn as_task(self) -> impl Future<Output = Result<TaskHandle>> + Send;

    /// Makes the call like [`as_task`](Self::as_task), and leaves the input requests that come before there is a task to the
    /// caller, as [`Call::manual`] does. Those of the task are answered by [`Call::answer_with`], or by the client's handlers.
    ///
    /// # Errors
    /// As for [`as_task`](Self::as_task).
    ///
    /// # Cancel safety
    /// As for [`as_task`](Self::as_task).
    #[expect(
        clippy::wrong_self_convention,
        reason = "making a call consumes it, like `IntoFuture`"
    )]
    fn as_manual_task(self) -> impl Future<Output = Result<CallOutcome<TaskHandle>>> + Send;
}

impl AsTask for Call<CallTool> {
    async fn as_task(self) -> Result<TaskHandle> {
        expect_tasks(&self.session)?;
        match begin(self.prepare()?, false).await? {
            CallOutcome::Complete(handle) => Ok(handle),
            CallOutcome::InputRequired(_) => Err(Error::internal("unexpected request for input")),
        }
    }

    async fn as_manual_task(self) -> Result<CallOutcome<TaskHandle>> {
        expect_tasks(&self.session)?;
        begin(self.prepare()?, true).await
    }
}

/// Makes a call, and returns the handle to its task or its result.
async fn begin(mut request: CallRequest, is_manual: bool) -> Result<CallOutcome<TaskHandle>> {
    let session = request.session.clone();
    let tool = tool_name(&request.params).unwrap_or_default();
    let handle = match start(&mut request, true, is_manual).await? {
        Started::Task(exchange, state) => {
            let drive = Drive::new(Arc::new(exchange), Some(*state));
            TaskHandle::driven(drive.answer_with(request.options.on_question), tool)
        }
        Started::Answered(CallAnswer::Complete(result) | CallAnswer::Extended(result)) => {
            let result = read::<CallTool>(&session, result)?;
            TaskHandle::answered(session, tool, result)
        }
        Started::Answered(CallAnswer::InputRequired(input)) => {
            let input = decode(session.connection(), CallTool::NAME, &input.result);
            return input.map(CallOutcome::InputRequired);
        }
    };
    Ok(CallOutcome::Complete(handle))
}

/// Resumes tasks in a session.
pub trait ResumeTask {
    /// Resumes a task that was created in another session with the same server, or by another process. Nothing is sent yet: if
    /// the task is gone or belongs to another client, the handle reports it.
    ///
    /// # Errors
    /// If the session is with a different server, if its revision has another kind of tasks, or if the client has no tasks.
    fn resume_task(&self, reference: &TaskReference) -> Result<TaskHandle>;
}

impl ResumeTask for ClientSession {
    fn resume_task(&self, reference: &TaskReference) -> Result<TaskHandle> {
        expect_tasks(self)?;
        let era = reference.check(self)?;
        let exchange = Exchange::new(self, era, reference.task_id())?;
        let tool = reference.tool().to_owned();
        Ok(TaskHandle::driven(
            Drive::new(Arc::new(exchange), None),
            tool,
        ))
    }
}

fn expect_tasks(session: &ClientSession) -> Result<()> {
    if session.state().driver.is_some() {
        return Ok(());
    }
    Err(Error::misuse(
        "tasks are not enabled: call `Client::tasks` before connecting",
    ))
}

/// The last known state of a task, and its outcome.
#[derive(Clone, Default)]
struct LastState {
    state: Option<Arc<TaskState>>,
    outcome: Option<Arc<Result<CallToolResult>>>,
}

/// A handle to a tool call that the server runs as a task, or has answered directly. [`AsTask::as_task`] and
/// [`ResumeTask::resume_task`] create it.
///
/// While the handle exists, the task is polled in the background, the client's handlers answer its questions, and the session
/// stays open. No timeout applies. Dropping the handle only stops the polling: the task continues. [`cancel`](Self::cancel)
/// cancels it.
#[must_use = "dropping the handle stops polling the task"]
pub struct TaskHandle {
    session: ClientSession,
    tool: String,
    /// `None` if the call was answered directly.
    exchange: Option<Arc<Exchange>>,
    known: watch::Receiver<LastState>,
    _stop: Option<DropGuard>,
}

impl TaskHandle {
    /// Creates the handle to a task, which is driven in the background.
    fn driven(drive: Drive, tool: String) -> Self {
        let exchange = Arc::clone(&drive.exchange);
        let session = exchange.session.clone();
        let (tell, known) = watch::channel(LastState {
            state: drive.state.clone().map(Arc::new),
            outcome: None,
        });
        let stop = CancellationToken::new();
        let guard = stop.clone().drop_guard();
        let teller = tell.clone();
        let mut drive = drive.on_change(Box::new(move |state| {
            let state = Some(Arc::new(state.clone()));
            teller.send_modify(|known| known.state = state);
        }));
        let runtime = session.connection().runtime.clone();
        let reader = session.clone();
        spawn_on(&runtime, async move {
            let done = select! {
                biased;
                () = stop.cancelled() => return,
                done = drive.run() => done,
            };
            let outcome = done.and_then(|result| read::<CallTool>(&reader, result));
            tell.send_modify(|known| known.outcome = Some(Arc::new(outcome)));
        });
        Self {
            session,
            tool,
            exchange: Some(exchange),
            known,
            _stop: Some(guard),
        }
    }

    /// Creates the handle to a call that was answered directly.
    fn answered(session: ClientSession, tool: String, result: CallToolResult) -> Self {
        let (_, known) = watch::channel(LastState {
            state: None,
            outcome: Some(Arc::new(Ok(result))),
        });
        Self {
            session,
            tool,
            exchange: None,
            known,
            _stop: None,
        }
    }

    /// Returns the ID of the task. `None` if the server answered directly. Treat the ID as a secret.
    #[must_use]
    pub fn id(&self) -> Option<&str> {
        self.exchange.as_ref().map(|it| &*it.id)
    }

    /// Returns the last known state of the task. `None` if there is no task, or its state is not known yet.
    #[must_use]
    pub fn state(&self) -> Option<Arc<TaskState>> {
        self.known.borrow().state.clone()
    }

    /// Returns the states of the task as a stream: the current state, if it is known, then each different state. If states
    /// change faster than they are read, intermediate states are skipped. The stream ends when the task has ended or its state
    /// can no longer be determined; [`result`](Self::result) reports which.
    pub fn updates(&self) -> impl Stream<Item = Arc<TaskState>> + Send + Unpin + use<> {
        let mut known = self.known.clone();
        known.mark_changed();
        let next = |mut known: watch::Receiver<LastState>, told: Option<Arc<TaskState>>| async move {
            loop {
                let seen = known.borrow_and_update().clone();
                let is_new = match (&seen.state, &told) {
                    (Some(state), Some(told)) => !Arc::ptr_eq(state, told),
                    (state, _) => state.is_some(),
                };
                if is_new {
                    let state = seen.state?;
                    return Some((Arc::clone(&state), (known, Some(state))));
                }
                if seen.outcome.is_some() {
                    return None;
                }
                known.changed().await.ok()?;
            }
        };
        let states = stream::unfold((known, None), move |(known, told)| next(known, told));
        Box::pin(states)
    }

    /// Waits for the outcome of the call. May be called again.
    ///
    /// # Errors
    /// The error of the call; [`Error::is_cancelled`] if the task was cancelled; and any failure to determine the outcome. That
    /// is the case if the task is gone, if the server was unreachable for the rest of the task's lifetime, if a handler failed,
    /// or if the session has ended.
    ///
    /// # Cancel safety
    /// Cancel safe.
    pub async fn result(&self) -> Result<CallToolResult> {
        let mut known = self.known.clone();
        let ended = known.wait_for(|known| known.outcome.is_some()).await;
        let outcome = ended.ok().and_then(|known| known.outcome.clone());
        match outcome.as_deref() {
            Some(Ok(result)) => Ok(result.clone()),
            Some(Err(error)) => Err(error.copy()),
            None => Err(Error::closed("the task is no longer polled")),
        }
    }

    /// Waits for the outcome of the call, and validates its structured content against the output schema of the tool, as
    /// [`Call::validated`](crate::Call::validated) does.
    ///
    /// # Errors
    /// Those of [`result`](Self::result). Also if the content does not match the schema.
    ///
    /// # Cancel safety
    /// Cancel safe.
    pub async fn validated(&self) -> Result<CallToolResult> {
        let result = self.result().await?;
        if self.session.client().features().validate_results
            && let Some(schema) = self.session.state().output_schemas.get(&self.tool)
        {
            schema.check(&self.tool, &result)?;
        }
        Ok(result)
    }

    /// Waits for the outcome of the call, and decodes its structured content, as [`Call::structured`](crate::Call::structured)
    /// does.
    ///
    /// # Errors
    /// Those of [`validated`](Self::validated), and those of [`Call::structured`](crate::Call::structured).
    ///
    /// # Cancel safety
    /// Cancel safe.
    pub async fn structured<T: DeserializeOwned>(&self) -> Result<T> {
        structured(&self.validated().await?)
    }

    /// Asks the server to cancel the task. A server may still finish it: [`result`](Self::result) returns the outcome. Does
    /// nothing if the call was answered directly.
    ///
    /// # Errors
    /// If the server refuses, or does not respond.
    ///
    /// # Cancel safety
    /// If the future is dropped before it completes, the task may or may not be cancelled.
    pub async fn cancel(&self) -> Result<()> {
        match &self.exchange {
            Some(exchange) => exchange.cancel().await,
            None => Ok(()),
        }
    }

    /// Returns a reference that can resume the task. `None` if the call was answered directly.
    #[must_use]
    pub fn reference(&self) -> Option<TaskReference> {
        let id = self.id()?;
        Some(TaskReference::new(&self.session, &self.tool, id))
    }

    /// Stops polling the task, like dropping the handle, and returns a reference that can resume the task.
    #[must_use]
    pub fn detach(self) -> Option<TaskReference> {
        self.reference()
    }
}

opaque_debug!(TaskHandle, |it| { tool: it.tool, is_task: it.exchange.is_some() });
