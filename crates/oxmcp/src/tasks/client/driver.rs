//! [`ClientTasks`], and the tool calls of a client that has tasks.

use std::sync::Arc;

use oxmcp_protocol::{Method, Revision, method::CallTool};
use tokio::select;

use super::{
    super::wire::{CancelTask, GetTask, ID, RESULT_TYPE, UpdateTask},
    drive::Drive,
    exchange::CancelGuard,
    pace::Clock,
    start::{Started, start},
};
use crate::{
    client::{
        Client, ClientSession,
        requests::{
            call_answer::CallAnswer,
            call_driver::{CallDriver, DrivenCall},
            call_request::{CallRequest, cancellation, cancelled},
        },
    },
    error::{Error, Result},
    extension::Extension,
    session::{connection::Connection, task::BoxFuture},
};

/// Adds tasks to a client.
pub trait ClientTasks: Sized {
    /// Lets servers run tool calls as tasks, in sessions that are opened from now on. A call is awaited as before. If it
    /// becomes a task, the client polls it as often as the server wants, receives its changes from servers that send them,
    /// answers its questions with the client's handlers, and returns the result.
    ///
    /// - Modern servers decide which calls become tasks. On servers that speak 2025-11-25, only tools that require a task run
    ///   as one. Older revisions have no tasks.
    /// - The [timeout](crate::Call::timeout) of the call expires when the task has not changed for that long. It is paused
    ///   while the task waits for an answer; [`max_total`](crate::Call::max_total) is not.
    /// - Dropping the call's future cancels the task, and so do the timeout and the cancellation token of the call.
    /// - Requests about the task that fail for transient reasons are retried until the task's time to live is over, or for 10
    ///   minutes if it has none.
    ///
    /// ```
    /// use std::time::Duration;
    /// use oxmcp::{Client, Server, Tool, tasks::{ClientTasks, TaskPolicy, TaskTool, Tasks}, testing};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> oxmcp::Result<()> {
    /// let report = Tool::new("report", "Write a report", || async { "the report" });
    /// let server = Server::new("office", "1.0.0")
    ///     .extension(Tasks::in_memory().poll_interval(Duration::from_millis(50)).extension())
    ///     .tool(report.task(TaskPolicy::Required));
    ///
    /// let client = Client::new("my-app", "1.0.0").tasks();
    /// let session = testing::connect(&server).client(&client).await?;
    /// let report: String = session.call_tool("report", ()).structured().await?;
    /// assert_eq!(report, "the report");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// See the [extension](https://github.com/modelcontextprotocol/ext-tasks), and
    /// [tasks](https://modelcontextprotocol.io/specification/2025-11-25/basic/utilities/tasks) of 2025-11-25.
    #[must_use]
    fn tasks(self) -> Self;
}

impl ClientTasks for Client {
    fn tasks(self) -> Self {
        if self.features().driver.is_some() {
            return self;
        }
        let modern = Revision::LATEST..;
        let extension = Extension::new(ID)
            .result_type(RESULT_TYPE)
            .calls::<GetTask>(modern.clone())
            .calls::<UpdateTask>(modern.clone())
            .calls::<CancelTask>(modern)
            .header::<GetTask>("taskId", "Mcp-Name")
            .header::<UpdateTask>("taskId", "Mcp-Name")
            .header::<CancelTask>("taskId", "Mcp-Name");
        let client = self.extension(extension);
        client.change(|features| features.driver = Some(&DRIVER));
        client
    }
}

static DRIVER: CallDriver = CallDriver {
    result_types: &[RESULT_TYPE],
    call,
};

/// Makes a call, and waits for the task that it may become.
fn call(connection: &Arc<Connection>, call: DrivenCall) -> BoxFuture<Result<CallAnswer>> {
    let session = ClientSession::with_handle(connection);
    Box::pin(async move {
        let DrivenCall {
            params,
            options,
            is_manual,
        } = call;
        let mut request = CallRequest {
            // The caller holds a handle.
            session: session.ok_or_else(|| Error::closed("the session was closed"))?,
            method: CallTool::NAME,
            result_types: DRIVER.result_types,
            params,
            options,
        };
        let clock = Arc::new(Clock::of(&request.options));
        let cancel = request.options.cancel.clone();
        let on_question = request.options.on_question.clone();
        let (mut exchange, state) = match start(&mut request, false, is_manual).await? {
            Started::Answered(answer) => return Ok(answer),
            Started::Task(exchange, state) => (exchange, *state),
        };
        exchange.hold_session();
        let exchange = Arc::new(exchange);
        let mut guard = CancelGuard::new(&exchange);
        clock.restart();
        let mut drive = Drive::new(exchange, Some(state))
            .with_clock(Arc::clone(&clock))
            .answer_with(on_question);
        let done = select! {
            biased;
            () = cancelled(cancel.as_ref()) => Err(cancellation(CallTool::NAME)),
            done = drive.run() => done,
            error = clock.is_over() => Err(error),
        };
        if drive.is_over() {
            guard.disarm();
        }
        done.map(CallAnswer::Complete)
    })
}
