//! A task that was delegated to a worker, and whose server is killed and started again.

use std::{env, future::pending, time::Duration};

use oxmcp::{
    Client, RequestContext, Server, Tool,
    protocol::{CallToolResult, TaskStatus},
    tasks::{
        AsTask, ClientTasks, ServerTasks, TaskContext, TaskPolicy, TaskStore, TaskTool, Tasks,
    },
    testing,
};
use oxmcp_sqlite::Sqlite;

use crate::{
    place::Place,
    tasks::task,
    writer::{FILE, Writer},
};

/// A server with a tool that delegates its task to a worker, and one that does its work itself.
#[expect(
    clippy::print_stdout,
    reason = "the test reads what its process prints"
)]
fn server(store: Sqlite) -> Server {
    let left = Tool::new("left", "Leave", |cx: RequestContext| async move {
        let id = cx.leave_task().await.unwrap().unwrap();
        println!("acknowledged left {id}");
        pending::<()>().await;
    });
    let own = Tool::new("own", "Work", || async {
        pending::<()>().await;
    });
    Server::new("office", "1.0.0")
        .extension(Tasks::new(store).extension())
        .tool(left.task(TaskPolicy::Required))
        .tool(own.task(TaskPolicy::Required).task_live())
}

/// Not a test by itself: the next one runs it as another process.
#[tokio::test]
async fn the_leaver() {
    let Some(file) = env::var_os(FILE) else {
        return;
    };
    let server = server(Sqlite::open(file).await.unwrap());
    let client = Client::new("tester", "1.0.0").tasks();
    let session = testing::connect(&server).client(&client).await.unwrap();
    let own = session.call_tool("own", ()).as_task().await.unwrap();
    println!("acknowledged own {}", own.id().unwrap());
    let _left = session.call_tool("left", ()).as_task().await.unwrap();
    pending::<()>().await;
}

#[tokio::test]
async fn delegated_task_survives_a_kill() {
    let place = Place::new();
    let mut process = Writer::run(&place, "left_tasks::the_leaver");
    let ids = process.acknowledged(2);
    process.kill();
    let id = |name: &str| {
        let mut ids = ids.iter().filter_map(|it| it.strip_prefix(name));
        ids.next().unwrap().to_owned()
    };
    let (own, left) = (id("own "), id("left "));

    let store = Sqlite::open(place.file()).await.unwrap();
    // Orphans are handled in the order of their leases, and this one has the last.
    let last = "A".repeat(32);
    TaskStore::create(&store, task(&last)).await.unwrap();
    store.claim(&last, Duration::from_millis(5)).await.unwrap();
    while store.orphans(9).await.unwrap().len() < 3 {
        tokio::task::yield_now().await;
    }
    let server = server(store.clone());
    // From now on the server looks for orphaned tasks.
    let _session = testing::connect(&server).await.unwrap();
    let until = async |id: &str, status: TaskStatus, epoch: u64| {
        loop {
            let found = TaskStore::load(&store, id).await.unwrap().unwrap();
            if found.task.status == status && found.epoch >= epoch {
                return;
            }
            store.changed(id, found.revision).await.unwrap();
        }
    };
    until(&own, TaskStatus::Failed, 2).await;
    until(&last, TaskStatus::Failed, 2).await;
    let found = TaskStore::load(&store, &left).await.unwrap().unwrap();
    assert_eq!(found.task.status, TaskStatus::Working);
    let result = CallToolResult::text("by the worker");
    let control = server.tasks().unwrap();
    assert!(control.complete(&left, result).await.unwrap());
}
