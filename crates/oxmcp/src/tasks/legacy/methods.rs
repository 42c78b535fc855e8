//! Methods of tasks in 2025-11-25.

use std::collections::HashMap;

use oxmcp_protocol::{
    Cursor, ErrorObject, InputRequest, ListTasksResult, Method, PaginatedParams, Task, TaskParams,
    TaskPayload,
    method::{CancelTask, GetTask, GetTaskPayload, ListTasks},
};
use serde_json::value::RawValue;
use tokio::task::{AbortHandle, JoinSet};
use tracing::Instrument;

use super::{
    super::{
        engine::{Tasks, unknown},
        record::{TaskOutcome, TaskRecord},
    },
    view::{payload, shown},
};
use crate::{
    error::{Error, Result},
    extension::Extension,
    logged::Logged,
    server::ask_for_task,
    session::connection::RequestContext,
};

/// The maximum number of tasks in one page of a list.
const PAGE: usize = 100;

/// Adds the methods to an extension that has the tasks.
pub(crate) fn add_methods(extension: Extension) -> Extension {
    extension
        .core_method::<GetTask, _>(get)
        .core_method::<GetTaskPayload, _>(result)
        .core_method::<CancelTask, _>(cancel)
        .core_method::<ListTasks, _>(list)
}

/// See [getting tasks](https://modelcontextprotocol.io/specification/2025-11-25/basic/utilities/tasks#getting-tasks).
async fn get(cx: RequestContext, params: TaskParams) -> Result<Task> {
    let found = Tasks::of(&cx)?.find(&cx, &params.task_id).await?;
    Ok(shown(&found.task))
}

/// Returns the outcome of the call once the task has ended. Until then, the client is asked the task's questions.
/// See [results](https://modelcontextprotocol.io/specification/2025-11-25/basic/utilities/tasks#retrieving-task-results).
async fn result(cx: RequestContext, params: TaskParams) -> Result<TaskPayload> {
    let tasks = Tasks::of(&cx)?;
    let id = params.task_id;
    let mut asking = Asking::default();
    loop {
        let found = tasks.find(&cx, &id).await?;
        if found.task.is_over() {
            return outcome(&found.task);
        }
        asking.follow(&cx, &found.task);
        tokio::select! {
            changed = tasks.changed(&id, found.revision) => changed?,
            Some((key, answered)) = asking.next() => {
                let server = cx.server()?;
                let change = |task: &mut TaskRecord| match &answered {
                    Ok(answer) => task.answer(&key, answer),
                    Err(error) => task.refuse(&key, error.clone()),
                };
                tasks.change(&server, &id, change).await?;
            }
            () = cx.cancelled() => return Err(Error::cancelled("the request was cancelled")),
        }
    }
}

fn outcome(task: &TaskRecord) -> Result<TaskPayload> {
    match &task.outcome {
        Some(TaskOutcome::Result(result)) => payload(&task.id, result),
        Some(TaskOutcome::Error(error)) => Err(error.clone().into()),
        None => Err(Error::invalid_params("no result: the task was cancelled")),
    }
}

/// The questions of a task that one request sends to the client. The next request repeats the unanswered ones. A second
/// concurrent request repeats all of them, because the server cannot know which of the two the client still reads.
#[derive(Default)]
struct Asking {
    by_key: HashMap<String, AbortHandle>,
    running: JoinSet<Option<Answered>>,
}

/// The key of a question, and the answer or the client's error.
type Answered = (String, Result<Box<RawValue>, ErrorObject>);

impl Asking {
    /// Sends new questions, and aborts those that the task no longer asks.
    fn follow(&mut self, cx: &RequestContext, task: &TaskRecord) {
        self.by_key.retain(|key, asking| {
            let is_open = task.questions.contains_key(key);
            if !is_open {
                asking.abort();
            }
            is_open
        });
        for (key, question) in &task.questions {
            if !self.by_key.contains_key(key) {
                let ask = ask(cx.clone(), task.id.clone(), key.clone(), question.clone());
                self.by_key
                    .insert(key.clone(), self.running.spawn(ask.in_current_span()));
            }
        }
    }

    /// The next answer. Waits forever if no question is open.
    async fn next(&mut self) -> Option<Answered> {
        loop {
            match self.running.join_next().await {
                Some(Ok(Some(answered))) => return Some(answered),
                Some(_) => {}
                None => std::future::pending().await,
            }
        }
    }
}

/// Sends a question to the client. Returns `None` if there is neither an answer, nor an error of the client, nor a malformed
/// answer.
async fn ask(
    cx: RequestContext,
    id: String,
    key: String,
    question: Box<RawValue>,
) -> Option<Answered> {
    // The question was serialized from an `InputRequest`.
    let question: InputRequest = serde_json::from_str(question.get()).ok()?;
    match ask_for_task(&cx, &id, &key, &question).await {
        Ok(answer) => Some((key, Ok(answer))),
        Err(error) if error.is_decode() || error.is_protocol() && !error.is_unsupported() => {
            Some((key, Err(ErrorObject::from(&error))))
        }
        Err(error) => {
            tracing::debug!(error = %Logged(&error), "could not ask the client a task's question");
            None
        }
    }
}

/// See [cancelling](https://modelcontextprotocol.io/specification/2025-11-25/basic/utilities/tasks#cancelling-tasks).
async fn cancel(cx: RequestContext, params: TaskParams) -> Result<Task> {
    let tasks = Tasks::of(&cx)?;
    let id = tasks.find(&cx, &params.task_id).await?.task.id;
    let server = cx.server()?;
    match tasks.change(&server, &id, TaskRecord::cancel).await? {
        Some(cancelled) => Ok(shown(&cancelled)),
        None => {
            let now = tasks.load(&id).await?.ok_or_else(unknown)?;
            let status = shown(&now.task).status;
            Err(Error::invalid_params(format!(
                "cannot cancel the task: its status is already `{}`",
                status.as_str()
            )))
        }
    }
}

/// See [listing](https://modelcontextprotocol.io/specification/2025-11-25/basic/utilities/tasks#listing-tasks).
async fn list(cx: RequestContext, params: PaginatedParams) -> Result<ListTasksResult> {
    let Some(owner) = cx.principal() else {
        // The method was not declared: without principals, every caller would see the tasks of all others.
        return Err(Error::method_not_found(ListTasks::NAME));
    };
    let after = params.start().map(Cursor::as_str);
    let tasks = Tasks::of(&cx)?;
    let mut ids = tasks.list(owner.as_str(), after, PAGE + 1).await?;
    let has_more = ids.len() > PAGE;
    ids.truncate(PAGE);
    let mut page = ListTasksResult::default();
    for id in &ids {
        page.tasks
            .extend(tasks.visible(&cx, id).await?.map(|it| shown(&it.task)));
    }
    page.next_cursor = ids.pop().filter(|_| has_more).map(Cursor::from);
    Ok(page)
}
