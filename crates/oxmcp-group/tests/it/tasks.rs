//! Tasks through a proxy: those of both eras, in front of and behind the gateway.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use oxmcp::{
    Accept, Client, Error, RequestContext, Revision, Server, Tool, ToolError,
    protocol::ElicitFormParams,
    tasks::{AsTask, ClientTasks, TaskPolicy, TaskTool, Tasks},
};
use oxmcp_group::Upstream;
use tokio::sync::mpsc;

use crate::{
    gateway_support::{REVISIONS, connect, gateway, host, pairs, start, text},
    support::{Name, Remote},
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
        let job = session.call_tool("work_job", ()).await;
        match (front.is_modern(), upstream.is_modern()) {
            // The gateway waits for the task in place of a client that cannot be given one.
            (false, true) => assert_eq!(text(&job.unwrap()), "done", "{what}"),
            _ => assert!(job.unwrap_err().is_protocol(), "{what}"),
        }
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

#[tokio::test(start_paused = true)]
async fn tasks_share_the_session_of_other_calls() {
    for upstream in REVISIONS {
        let opened = Arc::new(AtomicUsize::new(0));
        let (counter, remote) = (Arc::clone(&opened), Remote::new(worker(upstream)));
        let remote = Upstream::new(move || {
            counter.fetch_add(1, Ordering::Relaxed);
            remote.clone()
        });
        let gateway = start(gateway().mount("work", remote)).await;
        for sessions in 2..4 {
            let session = connect(&gateway, answering(Revision::V2025_11_25)).await;
            for _ in 0..2 {
                let quick = session.call_tool("work_quick", ()).await.unwrap();
                assert_eq!(text(&quick), "quick");
                let task = session.call_tool("work_job", ()).as_task().await.unwrap();
                assert!(task.id().is_some());
                assert_eq!(text(&task.result().await.unwrap()), "done");
            }
            // One is the gateway's own.
            assert_eq!(opened.load(Ordering::Relaxed), sessions, "{upstream}");
        }
    }
}
