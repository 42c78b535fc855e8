//! Tools whose calls become tasks.

use std::future::{Future, ready};

use oxmcp_protocol::{ErrorCode, Revision, TaskSupport, Tool as Definition};
use tokio::time::sleep;

use super::{
    engine::Tasks,
    legacy::has_tasks,
    policy::TaskPolicy,
    running::{RunningTask, continue_as_task, keep, resume_detached, start},
    wire::ID,
};
use crate::{
    error::{Error, Result},
    server::{Tool, ToolCall, ToolResponse},
    session::connection::RequestContext,
};

/// Adds task settings to a tool.
pub trait TaskTool {
    /// Sets when a call becomes a task. The server needs the extension: [`Tasks::extension`](super::Tasks::extension).
    ///
    /// A call whose arguments are not valid is answered at once, and does not become a task.
    ///
    /// The handler does not change. Once its call is a task:
    ///
    /// - its progress becomes the status message, starting with the latest report from before;
    /// - the task asks its questions;
    /// - only `tasks/cancel` cancels it, and the client's request timeout does not limit it;
    /// - its log messages for the client are dropped.
    ///
    /// ```
    /// use std::time::Duration;
    /// use oxmcp::{Server, Tool, tasks::{TaskPolicy, TaskTool, Tasks}};
    ///
    /// let report = Tool::new("report", "Write a report", || async { "written" })
    ///     .task(TaskPolicy::After(Duration::from_secs(5)));
    /// let server = Server::new("office", "1.0.0").extension(Tasks::in_memory().extension()).tool(report);
    /// # assert!(server.check().is_ok());
    /// ```
    #[must_use]
    fn task(self, policy: TaskPolicy) -> Self;

    /// Forbids a second run of a task's handler. If its process ends, the task fails, with an error that it was interrupted.
    /// Without this setting, another process with the same store runs the handler from the top, with the answers so far and the
    /// results of its [steps](crate::RequestContext::step).
    ///
    /// This is for handlers with resources that exist only in their process: a connection, a lock, a child process.
    ///
    /// ```
    /// use oxmcp::{Tool, tasks::{TaskPolicy, TaskTool}};
    ///
    /// let play = Tool::new("play", "Play a game", || async { "won" }).task(TaskPolicy::Required).task_live();
    /// # let _ = play;
    /// ```
    #[must_use]
    fn task_live(self) -> Self;
}

impl TaskTool for Tool {
    fn task(self, policy: TaskPolicy) -> Self {
        let tool = match policy {
            TaskPolicy::Never => return self,
            TaskPolicy::Required => self
                .listed_to(|cx| cx.revision().is_modern() || has_tasks(cx.revision()))
                .entry(|entry| set_support(entry, TaskSupport::Required)),
            TaskPolicy::After(_) | TaskPolicy::OnDemand | TaskPolicy::Always => {
                self.entry(|entry| set_support(entry, TaskSupport::Optional))
            }
        };
        tool.requires(ID).layer(move |call| run(call, policy))
    }

    fn task_live(self) -> Self {
        self.live()
    }
}

/// Sets in the listing of 2025-11-25 whether calls can be tasks. Other revisions do not have the member.
fn set_support(entry: &mut Definition, support: TaskSupport) {
    let execution = entry.execution.get_or_insert_default();
    execution.task_support = Some(support);
}

/// Gives a handler access to the task of its call.
pub trait TaskContext {
    /// Returns the ID of the task. `None` while the call is not a task. To hand the ID to another party that does the work,
    /// [leave](Self::leave_task) the task.
    fn task_id(&self) -> Option<String>;

    /// Makes the call a task now, if its tool has the policy [`TaskPolicy::OnDemand`] and its client has tasks. Does nothing
    /// otherwise. The handler continues: [`task_id`](Self::task_id) tells whether the call has become a task once the handler
    /// has waited for something.
    ///
    /// ```
    /// use oxmcp::{RequestContext, Tool, tasks::{TaskContext, TaskPolicy, TaskTool}};
    ///
    /// # async fn pages() -> usize { 700 }
    /// # async fn print(_pages: usize) {}
    /// let print = Tool::new("print", "Print the report", |cx: RequestContext| async move {
    ///     let pages = pages().await;
    ///     if pages > 100 {
    ///         cx.become_task();
    ///     }
    ///     print(pages).await;
    ///     "printed"
    /// });
    /// let print = print.task(TaskPolicy::OnDemand);
    /// # let _ = print;
    /// ```
    fn become_task(&self);

    /// Leaves the work to another party, which [completes](super::TaskControl::complete) the task with this ID. `None` while
    /// the call is not a task.
    ///
    /// From then on the handler is never run again. It hands the ID on and waits: it is cancelled when the task is completed,
    /// and its return value ends the task if it returns before that. If its process ends, the task continues without it, until
    /// it is completed or its [`ttl`](super::Tasks::ttl) is over.
    ///
    /// # Errors
    /// If the store fails, or if the task has ended.
    ///
    /// # Cancel safety
    /// If the future is dropped before it completes, the task may or may not be left.
    fn leave_task(&self) -> impl Future<Output = Result<Option<String>>> + Send;
}

impl TaskContext for RequestContext {
    fn task_id(&self) -> Option<String> {
        let work = self.detached_work::<RunningTask>()?;
        Some(work.id().to_owned())
    }

    fn become_task(&self) {
        self.parts().detached.request();
    }

    async fn leave_task(&self) -> Result<Option<String>> {
        let Some(work) = self.detached_work::<RunningTask>() else {
            return Ok(None);
        };
        work.leave().await?;
        Ok(Some(work.id().to_owned()))
    }
}

async fn run(call: ToolCall, policy: TaskPolicy) -> Result<ToolResponse> {
    let cx = call.context().clone();
    if let Some(work) = cx.detached_work::<RunningTask>() {
        // The call has no request, because its task was taken over.
        return resume_detached(&work, &cx, call.detachable()).await;
    }
    if cx.parts().task.get().is_some() {
        if let Some(refused) = call.refuse_arguments() {
            // The client expects a task, so only an error shows that there is none.
            return Err(refused_arguments(&refused?));
        }
        let tool = call.tool().to_owned();
        return start(&Tasks::of(&cx)?, &cx, &tool, call.detachable()).await;
    }
    let declared = cx.expect_extension(ID);
    if policy == TaskPolicy::Required {
        if !cx.revision().is_modern() {
            return Err(needs_tasks(call.tool(), cx.revision()));
        }
        declared?;
    } else if declared.is_err() || !cx.revision().is_modern() {
        // A session of an older revision may declare the extension, but does not have it.
        return call.run().await;
    }
    if matches!(policy, TaskPolicy::Required | TaskPolicy::Always)
        && let Some(refused) = call.refuse_arguments()
    {
        return refused;
    }
    let tasks = Tasks::of(&cx)?;
    let tool = call.tool().to_owned();
    let mut call = call.detachable();
    match policy {
        TaskPolicy::Never => return call.run().await,
        TaskPolicy::Required => {}
        TaskPolicy::Always => {
            let done = tokio::select! {
                biased;
                done = call.run() => Some(done),
                () = ready(()) => None,
            };
            if let Some(done) = done {
                // If the handler has asked questions, they are the answer, whatever it returns.
                let returns_questions = done.as_ref().is_err_and(Error::is_input_required);
                if call.has_asked() || returns_questions {
                    return done;
                }
                return keep(&tasks, &cx, &tool, done).await;
            }
        }
        TaskPolicy::After(limit) => {
            tokio::select! {
                biased;
                done = call.run() => return done,
                () = sleep(limit) => {}
            }
        }
        TaskPolicy::OnDemand => {
            let requested = call.detach_requested();
            tokio::select! {
                biased;
                done = call.run() => return done,
                () = requested => {}
            }
        }
    }
    if call.has_asked() {
        return call.run().await;
    }
    if policy == TaskPolicy::Required {
        return start(&tasks, &cx, &tool, call).await;
    }
    continue_as_task(&tasks, &cx, &tool, call).await
}

/// The error for a call that asks for a task with invalid arguments.
fn refused_arguments(response: &ToolResponse) -> Error {
    let texts = response.result().map(|it| it.to_text());
    Error::invalid_params(texts.unwrap_or_default())
}

/// The error for a call that can only be a task, if its client did not ask for one or its revision has none.
fn needs_tasks(tool: &str, revision: Revision) -> Error {
    if has_tasks(revision) {
        return Error::protocol(
            ErrorCode::METHOD_NOT_FOUND,
            format!("the tool {tool:?} runs only as a task; call it with the member `task`"),
        );
    }
    let modern = Revision::LATEST;
    Error::invalid_params(format!(
        "the tool {tool:?} runs only as a task: this client speaks {revision}; call it with {modern} and declare the extension {ID}"
    ))
}
