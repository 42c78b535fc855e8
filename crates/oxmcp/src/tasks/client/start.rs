//! The start of a call, up to the answer that shows whether it became a task.

use oxmcp_json::Text;
use oxmcp_protocol::{
    CreateTaskResult, Method, TaskSupport, internal::ResultType, method::CallTool,
};

use super::{
    super::wire::{GetTask, ID, TaskState},
    drive::says_failed,
    exchange::{Era, Exchange, has_core_tasks, of_core},
};
use crate::{
    client::{
        CacheMode, ClientSession,
        requests::{
            call_answer::CallAnswer,
            call_request::{CallRequest, tool_name},
            results::decode,
        },
    },
    error::{Error, Result},
    session::outbound::calls::CallResult,
};

/// The answer to a call.
pub(crate) enum Started {
    /// The server answered directly.
    Answered(CallAnswer),
    /// The server has created a task for the call.
    Task(Exchange, Box<TaskState>),
}

/// Makes a call. `wants_task` is for servers of 2025-11-25, where the client decides whether some tools run as tasks.
pub(crate) async fn start(
    request: &mut CallRequest,
    wants_task: bool,
    is_manual: bool,
) -> Result<Started> {
    let session = request.session.clone();
    let has_core = Era::of(&session) == Some(Era::Core) && has_core_tasks(&session);
    let mut asks = has_core && has_task(&request.params);
    if has_core && !asks && runs_as_task(&session, &request.params, wants_task).await? {
        add_task(&mut request.params);
        asks = true;
    }
    let mut answered = answer(request, is_manual).await;
    if has_core && !asks && is_refused(&answered) && is_required(&session, &request.params).await {
        add_task(&mut request.params);
        asks = true;
        answered = answer(request, is_manual).await;
    }
    match answered? {
        CallAnswer::Extended(result) => extension_task(&session, &result),
        CallAnswer::Complete(result) if asks && has_task(result.json.as_bytes()) => {
            let created: CreateTaskResult =
                decode(session.connection(), CallTool::NAME, &result.json)?;
            let state = of_core(created.task);
            let exchange = Exchange::new(&session, Era::Core, &state.task_id)?;
            Ok(Started::Task(exchange, state.into()))
        }
        answer => Ok(Started::Answered(answer)),
    }
}

/// Makes the request, and repeats it with the input that the server asks for.
async fn answer(request: &mut CallRequest, is_manual: bool) -> Result<CallAnswer> {
    match request.send().await? {
        CallAnswer::InputRequired(input) if !is_manual => {
            let result = request.answer_rounds(input).await?;
            Ok(match result.result_type() {
                ResultType::Other => CallAnswer::Extended(result),
                _ => CallAnswer::Complete(result),
            })
        }
        answer => Ok(answer),
    }
}

/// The task that a modern server has created.
fn extension_task(session: &ClientSession, result: &CallResult) -> Result<Started> {
    session.has_method(GetTask::NAME).map_err(|error| {
        Error::decode(format!(
            "{}: the server created a task without declaring the extension {ID}",
            CallTool::NAME
        ))
        .with_source(error)
    })?;
    let state: TaskState = decode(session.connection(), CallTool::NAME, &result.json)?;
    let exchange = Exchange::new(session, Era::Extension, &state.task_id)?;
    Ok(Started::Task(exchange, state.into()))
}

/// Whether the call of a tool of a 2025-11-25 server should run as a task. If the tool was not listed yet, the tools are listed
/// only if a task is wanted.
async fn runs_as_task(session: &ClientSession, params: &[u8], wants_task: bool) -> Result<bool> {
    let supports = &session.state().task_support;
    let Some(tool) = tool_name(params) else {
        return Ok(false);
    };
    if wants_task && supports.get(&tool).is_none() && !supports.is_listed() {
        list_tools(session).await?;
    }
    Ok(match supports.get(&tool) {
        Some(TaskSupport::Required) => true,
        Some(TaskSupport::Optional) => wants_task,
        _ => false,
    })
}

/// Whether a call may have been refused because its tool runs only as a task. Servers report that with different codes, and the
/// first SDK for TypeScript also in a result.
///
/// A server must not run such a tool without a task. So if the tool turns out to require one, the error means that nothing was
/// done, and the call can be made again.
fn is_refused(answered: &Result<CallAnswer>) -> bool {
    match answered {
        Ok(CallAnswer::Complete(result)) => says_failed(&result.json),
        Ok(_) => false,
        Err(error) => error.is_protocol(),
    }
}

/// Whether a tool runs only as a task, which was unknown when it was called. If the tools cannot be listed, the call stays
/// refused.
async fn is_required(session: &ClientSession, params: &[u8]) -> bool {
    let supports = &session.state().task_support;
    if supports.is_listed() || list_tools(session).await.is_err() {
        return false;
    }
    let tool = tool_name(params);
    let support = tool.and_then(|tool| supports.get(&tool));
    support == Some(TaskSupport::Required)
}

/// Lists the tools, so that the session learns which of them support tasks.
async fn list_tools(session: &ClientSession) -> Result<()> {
    let mut tools = session.tools().cache(CacheMode::Refresh);
    while let Some(tool) = tools.next().await {
        tool?;
    }
    session.state().task_support.note_listed();
    Ok(())
}

/// Whether an object has the member `task`: params that ask for a task, or a result that contains one.
fn has_task(object: &[u8]) -> bool {
    let text = str::from_utf8(object).map(Text::checked);
    text.is_ok_and(|text| text.members().any(|(name, _)| name.is_str("task")))
}

/// Adds the request for a task to the params. The server chooses how long it keeps the task.
fn add_task(params: &mut Vec<u8>) {
    // The params of a tool call contain the tool's name, so there is a member before this one.
    if params.pop_if(|last| *last == b'}').is_some() {
        params.extend_from_slice(br#","task":{}}"#);
    }
}
