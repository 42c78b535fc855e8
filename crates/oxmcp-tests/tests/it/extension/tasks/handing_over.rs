//! Tasks of a process that shuts down, and work that is left to other processes.

use std::{future::pending, sync::Arc};

use oxmcp::{
    Limits,
    protocol::CallToolResult,
    tasks::{MemoryTaskStore, ServerTasks, TaskContext, TaskStore},
    transport::Transport,
};
use tokio::{
    runtime::Builder,
    sync::watch,
    time::{Instant, sleep, timeout},
};

use super::{
    leases::{Stalling, node},
    *,
};

/// A tool that waits, within a step or after it, in the first process, until the test opens the gate.
fn waiting(name: &'static str, in_step: bool, gate: &watch::Receiver<bool>) -> Tool {
    let gate = gate.clone();
    let run = move |cx: RequestContext| {
        let gate = gate.clone();
        async move {
            let wait = async || {
                let mut gate = gate.clone();
                if name == "first" {
                    gate.wait_for(|open| *open).await.unwrap();
                }
                name.to_owned()
            };
            if in_step {
                return cx.step("wait", wait).await;
            }
            let step = cx.step("name", async || name.to_owned()).await?;
            Ok::<_, oxmcp::Error>(format!("{step} {}", wait().await))
        }
    };
    Tool::new("work", "Work", run).task(TaskPolicy::Required)
}

#[tokio::test(start_paused = true)]
async fn task_is_handed_over_at_once() {
    let store = Arc::new(MemoryTaskStore::new());
    let (_open, gate) = watch::channel(false);
    let first = node(Arc::clone(&store), waiting("first", false, &gate));
    let second = node(Arc::clone(&store), waiting("second", false, &gate));
    let id = Peer::of(&first).await.begin("work").await;
    let mut peer = Peer::of(&second).await;
    peer.get(&id).await;
    sleep(Duration::from_secs(1)).await;
    let begun = Instant::now();
    first.tasks().unwrap().hand_over().await;
    assert_eq!(begun.elapsed(), Duration::ZERO);
    let done = peer.until(&id, "completed").await;
    assert_eq!(done["result"]["content"][0]["text"], "first second");
    // Far less than the duration of a lease.
    assert!(begun.elapsed() < Duration::from_secs(6));
}

/// A transport to the only client of a process.
struct OnlyClient<T>(T);

impl<T: Transport> Transport for OnlyClient<T> {
    type Read = T::Read;
    type Write = T::Write;

    async fn connect(&mut self, limits: &Limits) -> oxmcp::Result<(T::Read, T::Write)> {
        self.0.connect(limits).await
    }

    fn ends_process(&self) -> bool {
        true
    }
}

#[tokio::test(start_paused = true)]
async fn tasks_are_handed_over_when_only_client_leaves() {
    // With and without another client.
    for others in [false, true] {
        let store = Arc::new(MemoryTaskStore::new());
        let (_open, gate) = watch::channel(false);
        let (_stall, stalls) = watch::channel(false);
        let outliving = || Stalling(Arc::clone(&store), stalls.clone());
        let first = node(outliving(), waiting("first", false, &gate));
        let second = node(outliving(), waiting("second", false, &gate));
        let other = Peer::of(&first).await;
        let other = others.then_some(other);
        let (peer, transport) = ScriptedPeer::new().await;
        let server = first.clone();
        let running = tokio::spawn(async move { server.run(OnlyClient(transport)).await });
        let mut peer = Peer(peer, 0);
        let id = peer.begin("work").await;
        let mut observer = Peer::of(&second).await;
        observer.get(&id).await;
        sleep(Duration::from_secs(1)).await;
        drop(peer);
        running.await.unwrap().unwrap();
        sleep(Duration::from_secs(6)).await;
        let expected = if others { "working" } else { "completed" };
        assert_eq!(observer.get(&id).await["status"], expected);
        drop(other);
    }
}

#[tokio::test(start_paused = true)]
async fn repeated_deployments_do_not_count_as_crashes() {
    let store = Arc::new(MemoryTaskStore::new());
    let (_open, gate) = watch::channel(false);
    let mut node_now = node(Arc::clone(&store), waiting("first", false, &gate));
    let id = Peer::of(&node_now).await.begin("work").await;
    for _ in 0..10 {
        let next = node(Arc::clone(&store), waiting("first", false, &gate));
        let mut peer = Peer::of(&next).await;
        node_now.tasks().unwrap().hand_over().await;
        sleep(Duration::from_secs(10)).await;
        assert_eq!(peer.get(&id).await["status"], "working");
        node_now = next;
    }
    let last = node(store, waiting("last", false, &gate));
    let mut peer = Peer::of(&last).await;
    node_now.tasks().unwrap().hand_over().await;
    peer.until(&id, "completed").await;
}

#[tokio::test(start_paused = true)]
async fn step_is_interrupted_only_at_the_last_moment() {
    for ends in [true, false] {
        let store = Arc::new(MemoryTaskStore::new());
        let (open, gate) = watch::channel(false);
        let first = node(Arc::clone(&store), waiting("first", true, &gate));
        let second = node(Arc::clone(&store), waiting("second", true, &gate));
        let id = Peer::of(&first).await.begin("work").await;
        let mut peer = Peer::of(&second).await;
        sleep(Duration::from_secs(1)).await;
        let begun = Instant::now();
        let control = first.tasks().unwrap();
        let opening = async {
            sleep(Duration::from_secs(3)).await;
            if ends {
                open.send(true).unwrap();
            }
        };
        tokio::join!(control.hand_over(), opening);
        if ends {
            assert_eq!(begun.elapsed(), Duration::from_secs(3));
            let done = peer.until(&id, "completed").await;
            assert_eq!(done["result"]["content"][0]["text"], "first");
        } else {
            assert_eq!(begun.elapsed(), Duration::from_secs(10));
            let failed = peer.until(&id, "failed").await;
            let message = failed["error"]["message"].as_str().unwrap();
            assert!(message.contains("interrupted in step \"wait\""), "{failed}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn live_task_may_finish_before_it_fails() {
    for ends in [true, false] {
        let store = Arc::new(MemoryTaskStore::new());
        let (open, gate) = watch::channel(false);
        let tool = waiting("first", false, &gate).task_live();
        let server = node(Arc::clone(&store), tool);
        let mut peer = Peer::of(&server).await;
        let id = peer.begin("work").await;
        sleep(Duration::from_secs(1)).await;
        let control = server.tasks().unwrap();
        let opening = async {
            sleep(Duration::from_secs(3)).await;
            if ends {
                open.send(true).unwrap();
            }
        };
        tokio::join!(control.hand_over(), opening);
        let task = peer.get(&id).await;
        if ends {
            assert_eq!(task["status"], "completed", "{task}");
        } else {
            assert_eq!(task["status"], "failed", "{task}");
            let message = task["error"]["message"].as_str().unwrap();
            assert!(message.contains("was shut down"), "{task}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn abandoned_hand_over_continues_in_background() {
    let (_open, gate) = watch::channel(false);
    let tool = waiting("first", false, &gate).task_live();
    let server = node(Arc::new(MemoryTaskStore::new()), tool);
    let mut peer = Peer::of(&server).await;
    let id = peer.begin("work").await;
    sleep(Duration::from_secs(1)).await;
    let control = server.tasks().unwrap();
    let awaited = timeout(Duration::from_secs(1), control.hand_over()).await;
    assert!(awaited.is_err(), "the task runs on");
    sleep(Limits::default().drain).await;
    assert_eq!(peer.get(&id).await["status"], "failed");
}

/// The end of the process that has left its work to others.
#[derive(Clone, Copy)]
enum Ends {
    Soon,
    Late,
    HandingOver,
    /// The store ends all leases, as one in a file does when it is opened.
    EndingLeases,
}

#[test]
fn delegated_work_continues_without_any_process() {
    for ends in [
        Ends::Soon,
        Ends::Late,
        Ends::HandingOver,
        Ends::EndingLeases,
    ] {
        left_work_goes_on(ends);
    }
}

fn left_work_goes_on(ends: Ends) {
    let store = Arc::new(MemoryTaskStore::new());
    let (tell, told) = std::sync::mpsc::channel();
    let tool = || {
        let tell = tell.clone();
        let run = move |cx: RequestContext| {
            let tell = tell.clone();
            async move {
                tell.send(cx.leave_task().await.unwrap().unwrap()).unwrap();
                pending::<()>().await;
            }
        };
        Tool::new("work", "Work", run).task(TaskPolicy::Required)
    };
    let process = || {
        let mut builder = Builder::new_current_thread();
        builder.enable_all().start_paused(true).build().unwrap()
    };
    let id = process().block_on(async {
        let server = node(Arc::clone(&store), tool());
        let id = Peer::of(&server).await.begin("work").await;
        match ends {
            // Before the task's lease is renewed for the first time.
            Ends::Soon | Ends::EndingLeases => sleep(Duration::from_secs(1)).await,
            // After the task's lease was renewed, which keeps it long.
            Ends::Late => sleep(Duration::from_secs(60)).await,
            Ends::HandingOver => {
                sleep(Duration::from_secs(1)).await;
                server.tasks().unwrap().hand_over().await;
            }
        }
        let kept = store.load(&id).await.unwrap().unwrap();
        assert!(kept.task.replay.is_none(), "nobody runs it again");
        if matches!(ends, Ends::EndingLeases) {
            store.renew(&id, kept.epoch, Duration::ZERO).await.unwrap();
        }
        id
    });
    process().block_on(async {
        let server = node(Arc::clone(&store), tool());
        let mut peer = Peer::of(&server).await;
        peer.get(&id).await;
        sleep(Duration::from_secs(600)).await;
        assert_eq!(peer.get(&id).await["status"], "working");
        let epoch = async || store.load(&id).await.unwrap().unwrap().epoch;
        let found = epoch().await;
        sleep(Duration::from_secs(600)).await;
        assert_eq!(epoch().await, found, "it is not an orphan any more");
        let result = CallToolResult::text("by somebody else");
        let control = server.tasks().unwrap();
        assert!(control.complete(&id, result).await.unwrap());
        peer.until(&id, "completed").await;
    });
    assert_eq!(told.try_iter().collect::<Vec<_>>(), [id]);
}

#[tokio::test(start_paused = true)]
async fn delegation_within_a_step_does_not_block_shutdown() {
    let store = Arc::new(MemoryTaskStore::new());
    let run = |cx: RequestContext| async move {
        let leave = async || {
            cx.leave_task().await.unwrap();
            pending::<()>().await;
        };
        cx.step("leave", leave).await
    };
    let tool = Tool::new("work", "Work", run).task(TaskPolicy::Required);
    let server = node(store, tool);
    Peer::of(&server).await.begin("work").await;
    sleep(Duration::from_secs(1)).await;
    let begun = Instant::now();
    server.tasks().unwrap().hand_over().await;
    assert_eq!(begun.elapsed(), Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn question_survives_a_hand_over() {
    let store = Arc::new(MemoryTaskStore::new());
    let tool = || {
        let run = |cx: RequestContext| async move {
            let said = cx.ask::<serde_json::Map<String, Value>>("sure", "Sure?");
            said.await.map(|said| format!("{said:?}"))
        };
        Tool::new("work", "Work", run).task(TaskPolicy::Required)
    };
    let server = node(Arc::clone(&store), tool());
    let mut peer = Peer::of(&server).await;
    let id = peer.begin("work").await;
    let asked = peer.until(&id, "input_required").await["inputRequests"].clone();
    server.tasks().unwrap().hand_over().await;
    sleep(Duration::from_secs(1)).await;
    assert_eq!(peer.get(&id).await["inputRequests"], asked);
    let mut other = Peer::of(&node(store, tool())).await;
    sleep(Duration::from_secs(10)).await;
    assert_eq!(other.get(&id).await["inputRequests"], asked);
    let key = asked.as_object().unwrap().keys().next().unwrap();
    let yes = json!({"action": "accept", "content": {}});
    let answers = json!({"taskId": id, "inputResponses": {key: yes}});
    other.ask("tasks/update", answers).await;
    other.until(&id, "completed").await;
}

#[tokio::test(start_paused = true)]
async fn task_that_cannot_be_rerun_may_finish() {
    let store = Arc::new(MemoryTaskStore::new());
    let (open, gate) = watch::channel(false);
    let run = move |cx: RequestContext| {
        let mut gate = gate.clone();
        async move {
            cx.step("long", async || "x".repeat(300 << 10)).await?;
            gate.wait_for(|open| *open).await.unwrap();
            Ok::<_, oxmcp::Error>("done")
        }
    };
    let tool = Tool::new("work", "Work", run).task(TaskPolicy::Required);
    let server = node(store, tool);
    let mut peer = Peer::of(&server).await;
    let id = peer.begin("work").await;
    sleep(Duration::from_secs(1)).await;
    let control = server.tasks().unwrap();
    let opening = async {
        sleep(Duration::from_secs(3)).await;
        open.send(true).unwrap();
    };
    tokio::join!(control.hand_over(), opening);
    assert_eq!(peer.get(&id).await["status"], "completed");
}
