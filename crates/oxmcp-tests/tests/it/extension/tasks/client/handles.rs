//! Tasks that are held by handles, and resumed later.

use futures_util::StreamExt;
use oxmcp::{
    Accept, JsonSchema, RequestContext, Server, Tool,
    protocol::{ElicitFormParams, TaskStatus},
    tasks::{AsTask, ResumeTask, TaskPolicy, TaskReference, TaskTool, Tasks},
    testing,
};
use tokio::sync::watch;

use super::*;

#[derive(serde::Deserialize, JsonSchema)]
struct Confirm {
    sure: bool,
}

/// A server with a tool that takes a minute and asks halfway, and a tool that returns at once.
fn server() -> Server {
    let tool = Tool::new("delete", "Delete", |cx: RequestContext| async move {
        tokio::time::sleep(Duration::from_secs(30)).await;
        let answer: Confirm = cx.ask("sure", "Sure?").await?;
        cx.progress(1).message("deleting").await;
        tokio::time::sleep(Duration::from_secs(30)).await;
        Ok::<_, oxmcp::Error>(format!("sure: {}", answer.sure))
    });
    Server::new("office", "1.0.0")
        .extension(Tasks::in_memory().extension())
        .tool(tool.task(TaskPolicy::Required))
        .tool(Tool::new("now", "Tell the time", || async {
            "ten past two"
        }))
}

/// Deserializes a stored reference.
fn read(stored: &Value) -> TaskReference {
    serde_json::from_str(&stored.to_string()).unwrap()
}

fn sure() -> Client {
    client().on_elicit(|_: ElicitFormParams| async { Accept(json!({"sure": true})) })
}

#[tokio::test(start_paused = true)]
async fn handle_reports_status_and_outcome() {
    let server = server();
    let session = testing::connect(&server).client(&sure()).await.unwrap();
    let task = session.call_tool("delete", ()).as_task().await.unwrap();
    let id = task.id().unwrap().to_owned();
    assert!(!format!("{task:?}").contains(&id));
    // The updates are read as they arrive, since a slow reader would miss intermediate states.
    let states = tokio::spawn(task.updates().collect::<Vec<_>>());
    let states = states.await.unwrap();
    assert!(states.iter().all(|it| it.task_id == id));
    let statuses: Vec<_> = states.iter().map(|it| it.status.clone()).collect();
    assert_eq!(statuses.first(), Some(&TaskStatus::Working));
    assert!(
        statuses.contains(&TaskStatus::InputRequired),
        "{statuses:?}"
    );
    assert_eq!(statuses.last(), Some(&TaskStatus::Completed));
    let messages = states.iter().filter_map(|it| it.status_message.as_deref());
    assert!(messages.into_iter().any(|it| it.contains("deleting")));
    for _ in 0..2 {
        assert_eq!(task.structured::<String>().await.unwrap(), "sure: true");
    }
}

#[tokio::test(start_paused = true)]
async fn call_answered_at_once_is_a_finished_task() {
    let server = server();
    let session = testing::connect(&server).client(&client()).await.unwrap();
    let task = session.call_tool("now", ()).as_task().await.unwrap();
    assert_eq!((task.id(), task.reference()), (None, None));
    assert_eq!(task.updates().count().await, 0);
    assert_eq!(task.structured::<String>().await.unwrap(), "ten past two");
    task.cancel().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn task_survives_dropped_handle_and_is_found_again() {
    let server = server();
    let session = testing::connect(&server).client(&sure()).await.unwrap();
    let task = session.call_tool("delete", ()).as_task().await.unwrap();
    let reference = task.detach().unwrap();
    assert!(!format!("{reference:?}").contains(reference.task_id()));
    assert_eq!(
        (reference.tool(), reference.server()),
        ("delete", Some("office"))
    );
    let stored = serde_json::to_string(&reference).unwrap();
    session.close().await.unwrap();

    let reference: TaskReference = serde_json::from_str(&stored).unwrap();
    let session = testing::connect(&server).client(&sure()).await.unwrap();
    let task = session.resume_task(&reference).unwrap();
    assert!(task.state().is_none());
    assert_eq!(task.structured::<String>().await.unwrap(), "sure: true");
    assert_eq!(task.id(), Some(reference.task_id()));
}

#[tokio::test(start_paused = true)]
async fn task_of_dead_client_is_resumed_elsewhere() {
    for revision in [Revision::LATEST, Revision::V2025_11_25] {
        let server = server();
        let (ask, mut is_asked) = watch::channel(false);
        let silent = client().on_elicit(move |_: ElicitFormParams| {
            ask.send_replace(true);
            std::future::pending::<Accept<Value>>()
        });
        let connecting = testing::connect(&server).client(&silent);
        let session = connecting.revision(revision).await.unwrap();
        let task = session.call_tool("delete", ()).as_task().await.unwrap();
        let stored = json!(task.reference());
        is_asked.wait_for(|it| *it).await.unwrap();
        drop((task, session));
        let sure = sure();
        let connecting = testing::connect(&server).client(&sure);
        let session = connecting.revision(revision).await.unwrap();
        let task = session.resume_task(&read(&stored)).unwrap();
        let result = task.result().await.unwrap();
        assert_eq!(text(&result), "sure: true", "{revision}");
    }
}

#[tokio::test(start_paused = true)]
async fn dropped_handle_sends_nothing() {
    let mut office = Office::open().await;
    let task = tokio::spawn(office.session.call_tool("report", ()).as_task());
    office.answer("tools/call", created(json!({}))).await;
    let task = task.await.unwrap().unwrap();
    office
        .answer("tasks/get", state("working", json!({})))
        .await;
    office.refuse("subscriptions/listen", -32601).await;
    drop(task);
    office.silence().await;
}

#[tokio::test(start_paused = true)]
async fn handle_cancels_its_task() {
    let server = server();
    let session = testing::connect(&server).client(&client()).await.unwrap();
    let task = session.call_tool("delete", ()).as_task().await.unwrap();
    task.cancel().await.unwrap();
    assert!(task.result().await.unwrap_err().is_cancelled());
    assert_eq!(task.state().unwrap().status, TaskStatus::Cancelled);
}

#[tokio::test(start_paused = true)]
async fn mismatched_task_reference_is_refused() {
    let server = server();
    let session = testing::connect(&server).client(&client()).await.unwrap();
    let task = session.call_tool("delete", ()).as_task().await.unwrap();
    let reference = serde_json::to_value(task.detach().unwrap()).unwrap();
    for (member, value, expected) in [
        ("endpoint", "AAAA", "at another URL or command"),
        ("revision", "2025-11-25", "created in revision"),
        ("taskId", "", "1 to 1024"),
    ] {
        let mut other = reference.clone();
        other[member] = json!(value);
        let other = read(&other);
        let error = session.resume_task(&other).unwrap_err();
        assert!(error.message().contains(expected), "{error}");
    }
    // The handle of a task that no longer exists returns an error.
    let mut gone = reference.clone();
    gone["taskId"] = json!("gone");
    let gone = read(&gone);
    let error = session
        .resume_task(&gone)
        .unwrap()
        .result()
        .await
        .unwrap_err();
    assert!(error.message().contains("its task is gone"), "{error}");
    // The client must have the extension for tasks.
    let plain = Client::new("tester", "1.0.0");
    let session = testing::connect(&server).client(&plain).await.unwrap();
    let reference = read(&reference);
    let resumed = session.resume_task(&reference).unwrap_err();
    let called = session.call_tool("now", ()).as_task().await.unwrap_err();
    for error in [resumed, called] {
        assert!(error.message().contains("Client::tasks"), "{error}");
    }
}
