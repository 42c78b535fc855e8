//! Calls that the server runs as tasks, with their handles.

use futures_util::StreamExt;
use oxmcp::{
    ClientSession,
    tasks::{AsTask, ResumeTask, TaskHandle, TaskReference},
};
use serde_json::Value;
use tokio::time::timeout;

use crate::call::{Outcome, TIME_LIMIT, ensure, is_error, read};

/// Runs a task of the command line that concerns tasks of the protocol.
pub(crate) async fn run(task: (&str, &[&str]), session: &ClientSession) -> Outcome {
    match task {
        ("--held", [tool, args, note, text]) => {
            let held = begin(session, tool, args).await?;
            heard(&held, note).await?;
            let stored = serde_json::to_string(&held.detach())?;
            let reference: TaskReference = read(&stored)?;
            let again = session.resume_task(&reference)?;
            let result = serde_json::to_value(timeout(TIME_LIMIT, again.result()).await??)?;
            ensure(
                !is_error(&result) && result.to_string().contains(text),
                &result,
            )
        }
        ("--cancelled", [tool, args]) => {
            let held = begin(session, tool, args).await?;
            held.cancel().await?;
            match timeout(TIME_LIMIT, held.result()).await? {
                Ok(result) => Err(format!("the call was not cancelled: {result:?}").into()),
                Err(error) => ensure(error.is_cancelled(), &error),
            }
        }
        _ => Err("wrong number of arguments".into()),
    }
}

async fn begin(session: &ClientSession, tool: &str, args: &str) -> Outcome<TaskHandle> {
    let held = session.call_tool(tool, read::<Value>(args)?).as_task();
    let held = timeout(TIME_LIMIT, held).await??;
    ensure(held.id().is_some(), "an answer at once")?;
    Ok(held)
}

/// Waits until a status message of the task contains one of the notes, which `|` separates: a client that polls need not see all.
async fn heard(held: &TaskHandle, notes: &str) -> Outcome {
    let mut updates = held.updates();
    let mut messages = Vec::new();
    while let Some(state) = timeout(TIME_LIMIT, updates.next()).await? {
        messages.extend(state.status_message.clone());
        if messages
            .last()
            .is_some_and(|it| notes.split('|').any(|note| it.contains(note)))
        {
            return Ok(());
        }
    }
    Err(format!("its messages were {messages:?}").into())
}
