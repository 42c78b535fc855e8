//! The methods of the extension, and [`TaskControl`], which completes tasks from outside their handlers.

use std::sync::Arc;

use oxmcp_protocol::{
    CallToolResult, EmptyResult, ErrorObject, InputRequest, InputResponses, Revision, TaskParams,
};
use serde_json::Value;

use super::{
    engine::{Tasks, own_ids, unknown},
    legacy,
    record::{TaskOutcome, TaskRecord},
    takeover::look_for_orphans,
    wire::{
        CancelTask, GetTask, ID, LISTEN_KEY, RESULT_TYPE, TaskChanged, TaskState, UpdateTask,
        UpdateTaskParams,
    },
};
use crate::{
    error::{Error, Result},
    extension::Extension,
    server::{Server, ToolResponse},
    session::{connection::RequestContext, task::spawn},
};

/// The maximum number of IDs in one subscription. A client with more tasks subscribes again.
const MAX_LISTENED: usize = 1000;

impl Tasks {
    /// Returns the extension, for [`Server::extension`].
    #[must_use]
    pub fn extension(&self) -> Extension {
        let modern = Revision::LATEST..;
        let shared = Arc::new(self.for_server());
        let extension = legacy::add_methods(Extension::new(ID))
            .requires_client()
            .result_type(RESULT_TYPE)
            .method::<GetTask, _>(modern.clone(), get)
            .method::<UpdateTask, _>(modern.clone(), update)
            .method::<CancelTask, _>(modern.clone(), cancel)
            .notifies::<TaskChanged>(modern)
            .header::<GetTask>("taskId", "Mcp-Name")
            .header::<UpdateTask>("taskId", "Mcp-Name")
            .header::<CancelTask>("taskId", "Mcp-Name")
            .try_listen_key_with(LISTEN_KEY, |cx, asked| grant(cx, &asked))
            .state(Arc::clone(&shared))
            .on_serve(look_for_orphans);
        let ending = Arc::clone(&shared);
        let extension = extension.on_shutdown(move |drain| {
            let tasks = Arc::clone(&ending);
            async move {
                if tasks.outlive_process() {
                    tasks.hand_over(drain).await;
                }
            }
        });
        #[cfg(feature = "http-server")]
        let extension = extension.republishes::<TaskChanged, _>(LISTEN_KEY, move |id| {
            let tasks = Arc::clone(&shared);
            async move {
                tasks
                    .load(id.as_str()?)
                    .await
                    .ok()?
                    .map(|it| TaskState::of(&it.task))
            }
        });
        extension
    }
}

/// The IDs of a subscription that belong to the caller.
///
/// # Errors
/// If the value is not a list. Otherwise a client that gets no notifications would not learn why.
fn grant(cx: &RequestContext, asked: &Value) -> Result<Option<Value>> {
    // This begins the search for orphans, so that clients that only subscribe are notified of them, too.
    Tasks::of(cx)?;
    let found = match asked {
        Value::Array(ids) => {
            let ids = ids.iter().filter_map(Value::as_str);
            let own = own_ids(cx, ids).take(MAX_LISTENED);
            return Ok(Some(own.collect()));
        }
        Value::Null => return Ok(None),
        Value::Object(_) => "an object".to_owned(),
        Value::String(_) => "a string".to_owned(),
        simple => format!("`{simple}`"),
    };
    Err(Error::invalid_params(format!(
        "invalid `{LISTEN_KEY}`: found {found}; expected an array of task IDs"
    )))
}

async fn get(cx: RequestContext, params: TaskParams) -> Result<TaskState> {
    let found = Tasks::of(&cx)?.find(&cx, &params.task_id).await?;
    Ok(TaskState::of(&found.task))
}

async fn update(cx: RequestContext, params: UpdateTaskParams) -> Result<EmptyResult> {
    let tasks = Tasks::of(&cx)?;
    let task = tasks.find(&cx, &params.task_id).await?.task;
    check_answers(&cx, &task, &params.input_responses)?;
    let answer = |task: &mut TaskRecord| {
        let answers = params.input_responses.iter();
        let taken = answers.map(|(key, answer)| task.answer(key, answer.get()));
        taken.fold(false, |any, one| any | one)
    };
    tasks.change(&cx.server()?, &task.id, answer).await?;
    Ok(EmptyResult::default())
}

/// Refuses answers that do not match their questions, before any answer is accepted. Answers to questions that are not open are
/// ignored.
fn check_answers(cx: &RequestContext, task: &TaskRecord, answers: &InputResponses) -> Result<()> {
    for (key, answer) in answers.iter() {
        let Some(question) = task.questions.get(key) else {
            continue;
        };
        // The question was serialized from an `InputRequest`.
        let Ok(question) = serde_json::from_str::<InputRequest>(question.get()) else {
            continue;
        };
        let connection = &cx.parts().connection;
        connection
            .check_answer(&question, answer.get(), cx.revision())
            .map_err(|problem| {
                let method = question.method();
                Error::invalid_params(format!("invalid answer to {method} ({key:?}): {problem}"))
            })?;
    }
    Ok(())
}

async fn cancel(cx: RequestContext, params: TaskParams) -> Result<EmptyResult> {
    let tasks = Tasks::of(&cx)?;
    let task = tasks.find(&cx, &params.task_id).await?.task;
    tasks
        .change(&cx.server()?, &task.id, TaskRecord::cancel)
        .await?;
    Ok(EmptyResult::default())
}

/// Gives access to the tasks of a server.
pub trait ServerTasks {
    /// Returns the tasks of this server, to complete them from outside their handlers.
    ///
    /// # Errors
    /// If the server does not have the extension.
    fn tasks(&self) -> Result<TaskControl>;
}

impl ServerTasks for Server {
    fn tasks(&self) -> Result<TaskControl> {
        let tasks = self.extension_state(ID);
        let missing = || {
            Error::misuse(format!(
                "the server does not have the extension {ID}; add it with `Server::extension`"
            ))
        };
        Ok(TaskControl {
            tasks: tasks.ok_or_else(missing)?,
            server: self.clone(),
        })
    }
}

/// The tasks of a server, to complete them from outside their handlers; created by [`ServerTasks::tasks`]. It does not check
/// the owner of a task: never pass IDs that came from a client.
#[derive(Clone, Debug)]
pub struct TaskControl {
    tasks: Arc<Tasks>,
    server: Server,
}

impl TaskControl {
    /// Completes a task whose work is done outside its handler. If the handler is still running, it is cancelled and its
    /// outcome is dropped. Returns whether this call ended the task.
    ///
    /// # Errors
    /// If there is no such task, or if the store fails.
    ///
    /// # Cancel safety
    /// If the future is dropped before it completes, the task may or may not be completed.
    pub async fn complete(&self, id: &str, result: CallToolResult) -> Result<bool> {
        let found = self.tasks.load(id).await?.ok_or_else(unknown)?;
        // The result takes the form of the revision in which the client called the tool.
        let result = ToolResponse::from(result).into_json(found.task.revision)?;
        self.end(id, TaskOutcome::Result(result)).await
    }

    /// Fails a task whose work is done outside its handler, as [`complete`](Self::complete) completes it. This is for failures
    /// of the server. If the tool failed, complete the task with a result that reports it.
    ///
    /// # Errors
    /// As [`complete`](Self::complete).
    ///
    /// # Cancel safety
    /// As [`complete`](Self::complete).
    pub async fn fail(&self, id: &str, error: &Error) -> Result<bool> {
        self.end(id, TaskOutcome::Error(ErrorObject::from(error)))
            .await
    }

    /// Sets the status message of a task.
    ///
    /// # Errors
    /// As [`complete`](Self::complete).
    ///
    /// # Cancel safety
    /// As [`complete`](Self::complete).
    pub async fn report(&self, id: &str, message: &str) -> Result<()> {
        self.change(id, |task| task.report(message)).await.map(drop)
    }

    /// Hands the tasks that run in this process over to other processes with the same store, which take them over at once.
    /// Await it before the process ends; [`StreamableHttp::close`](crate::http::StreamableHttp), and
    /// [`Server::run`](Server::run) over stdio, do it for you. From then on, this process takes over no tasks itself.
    ///
    /// A handler stops where it is, as if its process had ended, but not within a [step](crate::RequestContext::step). A
    /// handler that must not run again ([`task_live`](super::TaskTool::task_live)) may continue for
    /// [`Limits::drain`](crate::Limits::drain), and then its task fails. Tasks in the memory of this process end with it.
    ///
    /// # Cancel safety
    /// If the future is dropped before it completes, the tasks are still handed over, as long as the runtime exists.
    pub async fn hand_over(&self) {
        let drain = self.server.features().limits.drain;
        let tasks = Arc::clone(&self.tasks);
        let handing_over = spawn(async move { tasks.hand_over(drain).await });
        let _ = handing_over.await;
    }

    async fn end(&self, id: &str, outcome: TaskOutcome) -> Result<bool> {
        self.change(id, |task| task.finish(outcome.clone())).await
    }

    async fn change(
        &self,
        id: &str,
        change: impl FnMut(&mut TaskRecord) -> bool + Send,
    ) -> Result<bool> {
        self.tasks.load(id).await?.ok_or_else(unknown)?;
        let changed = self.tasks.change(&self.server, id, change).await?;
        Ok(changed.is_some())
    }
}
