//! Calls of tools that are tasks: at the upstream, in front of the gateway, or both.
//!
//! An upstream that makes a call a task makes it a task in front of the gateway, too, under an id of the gateway: the tasks of a
//! client are those of its own server, in the way of its own revision. A call that a client of 2025-11-25 wants as a task is one
//! at the upstream if the tool has tasks there.

use std::{any::Any, future::Future, pin::Pin, sync::Arc};

use futures_util::StreamExt;
use oxmcp::{
    Call, CallOutcome, ClientSession, Error, RequestContext, Result,
    protocol::{
        self, CallToolResult, InputRequiredResult, TaskSupport,
        method::{CallTool, GetPrompt, MultiRoundTrip, ReadResource},
    },
    tasks::{self, AsTask, TaskContext, TaskHandle, TaskPolicy},
};
use tokio::{runtime::Handle, sync::mpsc};

use super::events::{CallEvent, ask_call};

/// The result of a call, whose type is erased while it waits.
pub(super) enum Outcome {
    Complete(Box<dyn Any + Send>),
    InputRequired(InputRequiredResult),
}

/// The way in which a call is made.
pub(super) struct Plan {
    pub(super) cx: RequestContext,
    pub(super) events: mpsc::Sender<CallEvent>,
    /// Whether the upstream asks in results.
    pub(super) is_modern: bool,
    /// Whether calls of the client can be tasks, or become some.
    pub(super) has_tasks: bool,
}

pub(super) type Making = Pin<Box<dyn Future<Output = Result<Outcome>> + Send>>;

/// A request that is passed on.
pub(super) trait Passed: MultiRoundTrip + Sized {
    fn make(call: Call<Self>, plan: Plan) -> Making {
        make(call, plan.is_modern)
    }
}

impl Passed for GetPrompt {}
impl Passed for ReadResource {}

impl Passed for CallTool {
    fn make(call: Call<Self>, plan: Plan) -> Making {
        let is_task = plan.cx.task_id().is_some();
        match plan.has_tasks && (is_task || plan.is_modern) {
            true => Box::pin(make_task(call, plan)),
            false => make(call, plan.is_modern),
        }
    }
}

fn make<M: MultiRoundTrip>(call: Call<M>, is_modern: bool) -> Making {
    Box::pin(async move {
        match is_modern {
            true => match call.manual().await? {
                CallOutcome::Complete(result) => Ok(Outcome::Complete(Box::new(result))),
                CallOutcome::InputRequired(asked) => Ok(Outcome::InputRequired(asked)),
                _ => Err(Error::internal("unknown outcome of a call")),
            },
            false => Ok(Outcome::Complete(Box::new(call.await?))),
        }
    })
}

async fn make_task(call: Call<CallTool>, plan: Plan) -> Result<Outcome> {
    let events = plan.events.clone();
    let call = call.answer_with(move |request| {
        let events = events.clone();
        async move { ask_call(&events, request).await }
    });
    // A task has no request in front of the gateway that could carry questions.
    let handle = match plan.cx.task_id() {
        Some(_) => call.as_task().await?,
        None => match call.as_manual_task().await? {
            CallOutcome::Complete(handle) => handle,
            CallOutcome::InputRequired(asked) => return Ok(Outcome::InputRequired(asked)),
            _ => return Err(Error::internal("unknown outcome of a call")),
        },
    };
    if handle.id().is_some() {
        plan.cx.become_task();
        tokio::task::yield_now().await;
    }
    let mut open = OpenTask {
        handle: Arc::new(handle),
        is_over: false,
    };
    let result = follow(&open.handle, &plan.events).await;
    open.is_over = true;
    Ok(Outcome::Complete(Box::new(result?)))
}

/// Waits for the result of a task, and passes on what it says about itself.
async fn follow(handle: &TaskHandle, events: &mpsc::Sender<CallEvent>) -> Result<CallToolResult> {
    let mut updates = handle.updates();
    let result = handle.result();
    tokio::pin!(result);
    loop {
        tokio::select! {
            biased;
            result = &mut result => return result,
            Some(state) = updates.next() => {
                if let Some(message) = &state.status_message {
                    // A message that nobody reads in time is of no interest later.
                    let _ = events.try_send(CallEvent::Status(message.clone()));
                }
            }
        }
    }
}

/// A task of an upstream, which is cancelled when this is dropped before its end.
struct OpenTask {
    handle: Arc<TaskHandle>,
    is_over: bool,
}

impl Drop for OpenTask {
    fn drop(&mut self) {
        if let (false, Ok(runtime)) = (self.is_over, Handle::try_current()) {
            let handle = Arc::clone(&self.handle);
            runtime.spawn(async move {
                if let Err(error) = handle.cancel().await {
                    tracing::debug!(%error, "could not cancel a task of a server behind the gateway");
                }
            });
        }
    }
}

/// Whether a server has tasks.
pub(super) fn has_tasks(session: &ClientSession) -> bool {
    let capabilities = session.server_capabilities();
    let extensions = capabilities.extensions.as_ref();
    match session.revision().is_modern() {
        true => extensions.is_some_and(|it| it.contains_key(tasks::ID)),
        false => capabilities.tasks.is_some(),
    }
}

/// When a call of an upstream's tool is a task in front of the gateway.
pub(super) fn policy(session: &ClientSession, tool: &protocol::Tool) -> TaskPolicy {
    if !has_tasks(session) {
        return TaskPolicy::Never;
    }
    if session.revision().is_modern() {
        return TaskPolicy::OnDemand;
    }
    let execution = tool.execution.as_ref();
    match execution.and_then(|it| it.task_support.as_ref()) {
        Some(TaskSupport::Required) => TaskPolicy::Required,
        Some(TaskSupport::Optional) => TaskPolicy::OnDemand,
        _ => TaskPolicy::Never,
    }
}
