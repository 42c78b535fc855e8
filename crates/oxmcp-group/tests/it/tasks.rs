//! Tasks through a proxy: those of both eras, in front of and behind the gateway.

use std::time::Duration;

use oxmcp::{
    Accept, Client, Error, RequestContext, Revision, Server, Tool, ToolError,
    protocol::ElicitFormParams,
    tasks::{AsTask, ClientTasks, TaskPolicy, TaskTool, Tasks},
};
use tokio::sync::mpsc;

use crate::{
    gateway_support::{REVISIONS, connect, gateway, host, pairs, start, text},
    support::Name,
};

/// A server whose tools run as tasks.
fn worker(revision: Revision) -> Server {
    let slow = |cx: RequestContext| async move {
        cx.progress(1).message("half").await;
        tokio::task::yield_now().await;
        "done"
    };
    let fail = || async { Err::<String, _>(Error::invalid_params("no such paper")) };
    let ask = |cx: RequestContext| async move {
        let first: Name = cx.ask("first", "First name?").await?;
        let last: Name = cx.ask("last", "Last name?").await?;
        Ok::<_, ToolError>(format!("{} {}", first.name, last.name))
    };
    Server::new("worker", "1.0.0")
        .extension(Tasks::in_memory().extension())
        .tool(Tool::new("slow", "Takes a while", slow).task(TaskPolicy::Always))
        .tool(Tool::new("job", "Takes a while", slow).task(TaskPolicy::Required))
        .tool(Tool::new("fail", "Fails", fail).task(TaskPolicy::Required))
        .tool(Tool::new("ask", "Asks", ask).task(TaskPolicy::Required))
        .tool(Tool::new("late", "Asks, then works", ask).task(TaskPolicy::Always))
        .tool(Tool::new("quick", "Is done at once", || async { "quick" }))
        .revisions([revision])
}

/// A client that answers with the words of the question.
fn answering(front: Revision) -> Client {
    host()
        .revisions([front])
        .on_elicit(|form: ElicitFormParams| std::future::ready(Accept(Name { name: form.message })))
        .tasks()
}

#[tokio::test(start_paused = true)]
async fn tasks_pass_through_in_both_eras() {
    for (front, upstream) in pairs(REVISIONS) {
        let what = format!("{front} in front of {upstream}");
        let gateway = start(gateway().mount("work", worker(upstream))).await;
        let session = connect(&gateway, answering(front)).await;
        for tool in ["work_slow", "work_job"] {
            let task = session.call_tool(tool, ()).as_task().await.unwrap();
            // In 2025-11-25 clients decide: the gateway is a client that wants no task unless its own does.
            let is_answered = tool == "work_slow" && front > upstream;
            assert_eq!(task.id().is_some(), !is_answered, "{what}: {tool}");
            assert_eq!(text(&task.result().await.unwrap()), "done", "{what}");
        }
        let task = session.call_tool("work_fail", ()).as_task().await.unwrap();
        let error = task.result().await.unwrap_err();
        assert!(
            error.to_string().contains("no such paper"),
            "{what}: {error}"
        );
        // Questions of a task have the name of the server.
        for tool in ["work_ask", "work_late"] {
            let task = session.call_tool(tool, ()).as_task().await.unwrap();
            let result = task.result().await.unwrap();
            let expected = "work: First name? work: Last name?";
            assert_eq!(text(&result), expected, "{what}: {tool}");
        }
        let quick = session.call_tool("work_quick", ()).await.unwrap();
        assert_eq!(text(&quick), "quick");
    }
}

#[tokio::test(start_paused = true)]
async fn client_without_tasks_gets_the_answer_of_the_upstream() {
    for (front, upstream) in pairs(REVISIONS) {
        let what = format!("{front} in front of {upstream}");
        let gateway = start(gateway().mount("work", worker(upstream))).await;
        let session = connect(&gateway, host().revisions([front])).await;
        let slow = session.call_tool("work_slow", ()).await.unwrap();
        assert_eq!(text(&slow), "done", "{what}");
        let error = session.call_tool("work_job", ()).await.unwrap_err();
        assert!(error.is_protocol(), "{what}: {error}");
    }
}

#[tokio::test(start_paused = true)]
async fn cancelled_task_is_cancelled_at_the_upstream() {
    for (front, upstream) in pairs(REVISIONS) {
        let (sender, mut events) = mpsc::channel(8);
        let stuck = move |cx: RequestContext| {
            let sender = sender.clone();
            async move {
                let _ = sender.try_send("begun");
                cx.cancelled().await;
                let _ = sender.try_send("cancelled");
                "late"
            }
        };
        let stuck = Server::new("stuck", "1.0.0")
            .extension(Tasks::in_memory().extension())
            .tool(Tool::new("wait", "Waits", stuck).task(TaskPolicy::Required))
            .revisions([upstream]);
        let gateway = start(gateway().mount("work", stuck)).await;
        let session = connect(&gateway, host().revisions([front]).tasks()).await;
        let task = session.call_tool("work_wait", ()).as_task().await.unwrap();
        assert_eq!(events.recv().await, Some("begun"), "{front} {upstream}");
        task.cancel().await.unwrap();
        let ended = tokio::time::timeout(Duration::from_secs(60), events.recv()).await;
        assert_eq!(ended.unwrap(), Some("cancelled"), "{front} {upstream}");
        assert!(task.result().await.unwrap_err().is_cancelled());
    }
}
