//! Tasks through a proxy: those of both eras, in front of and behind the gateway.

use std::time::Duration;

use oxmcp::{
    Accept, Client, ClientSession, Error, RequestContext, Revision, Server, Tool, ToolError,
    in_memory,
    protocol::{CallToolResult, ElicitFormParams},
    tasks::{AsTask, ClientTasks, TaskPolicy, TaskTool, Tasks},
};
use oxmcp_group::{Gateway, GatewaySession};
use tokio::sync::mpsc;

/// The revisions with tasks, each with each.
const REVISIONS: [Revision; 2] = [Revision::V2025_11_25, Revision::V2026_07_28];

fn pairs() -> impl Iterator<Item = (Revision, Revision)> {
    let fronts = REVISIONS.into_iter();
    fronts.flat_map(|front| REVISIONS.into_iter().map(move |upstream| (front, upstream)))
}

fn host(front: Revision) -> Client {
    Client::new("host", "1.0.0").revisions([front])
}

async fn gateway(upstream: Server) -> GatewaySession {
    Gateway::new(Client::new("gateway", "1.0.0"))
        .mount("work", upstream)
        .start(Server::new("all", "1.0.0"))
        .await
        .unwrap()
}

async fn connect(gateway: &GatewaySession, client: Client) -> ClientSession {
    let (near, far) = in_memory();
    gateway.server().connect(far).await.unwrap();
    client.connect(near).await.unwrap()
}

fn text(result: &CallToolResult) -> &str {
    result.as_text().unwrap_or_default()
}

#[derive(serde::Deserialize, serde::Serialize, oxmcp::JsonSchema)]
struct Name {
    name: String,
}

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
    host(front)
        .on_elicit(|form: ElicitFormParams| std::future::ready(Accept(Name { name: form.message })))
        .tasks()
}

#[tokio::test(start_paused = true)]
async fn tasks_pass_through_in_both_eras() {
    for (front, upstream) in pairs() {
        let what = format!("{front} in front of {upstream}");
        let gateway = gateway(worker(upstream)).await;
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
    for (front, upstream) in pairs() {
        let what = format!("{front} in front of {upstream}");
        let gateway = gateway(worker(upstream)).await;
        let session = connect(&gateway, host(front)).await;
        let slow = session.call_tool("work_slow", ()).await.unwrap();
        assert_eq!(text(&slow), "done", "{what}");
        let error = session.call_tool("work_job", ()).await.unwrap_err();
        assert!(error.is_protocol(), "{what}: {error}");
    }
}

#[tokio::test(start_paused = true)]
async fn cancelled_task_is_cancelled_at_the_upstream() {
    for (front, upstream) in pairs() {
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
        let gateway = gateway(stuck).await;
        let session = connect(&gateway, host(front).tasks()).await;
        let task = session.call_tool("work_wait", ()).as_task().await.unwrap();
        assert_eq!(events.recv().await, Some("begun"), "{front} {upstream}");
        task.cancel().await.unwrap();
        let ended = tokio::time::timeout(Duration::from_secs(60), events.recv()).await;
        assert_eq!(ended.unwrap(), Some("cancelled"), "{front} {upstream}");
        assert!(task.result().await.unwrap_err().is_cancelled());
    }
}
