//! Replays of a handler in another process: the checks against the earlier run, and the size of its record.

use std::{future::pending, sync::Arc};

use oxmcp::tasks::{ServerTasks, TaskStore};
use tokio::{
    sync::watch,
    time::{sleep, timeout},
};

use super::{
    leases::{Stalling, node},
    orphans::Failing,
    takeover::{
        Confirm, Ledger, Long, Store, dies, dies_after, ends, fails, keys, process, text, work, yes,
    },
    *,
};

#[test]
fn handler_is_not_replayed_past_uncertain_step() {
    let (store, ledger) = (Store::default(), Ledger::default());
    let tool = || {
        let ledger = ledger.clone();
        work(move |cx| {
            let ledger = ledger.clone();
            async move {
                ledger.write("begun");
                cx.step("pay", pending::<()>).await?;
                Ok("paid".to_owned())
            }
        })
    };
    let id = dies(&store, tool());
    fails(&store, tool(), &id, "interrupted in step \"pay\"");
    assert_eq!(ledger.lines(), ["begun"]);
}

#[test]
fn repeatedly_withdrawn_question_is_stored_once() {
    let store = Store::default();
    let tool = |times: usize| {
        work(move |cx| async move {
            for _ in 0..times {
                let asked = cx.ask::<Confirm>("sure", "Sure?");
                let _ = timeout(Duration::from_millis(1), asked).await;
                sleep(Duration::from_millis(1)).await;
            }
            pending().await
        })
    };
    let mut bytes = [1, 50].map(|times| {
        let id = dies(&store, tool(times));
        let kept = process(store.load(&id)).unwrap().unwrap().task;
        assert!(kept.replay.is_some());
        kept.bytes()
    });
    bytes.sort_unstable();
    assert_eq!(bytes[0], bytes[1]);
}

#[test]
fn handed_over_task_is_not_retried_endlessly() {
    let (store, ledger) = (Store::default(), Ledger::default());
    let tool = || {
        let ledger = ledger.clone();
        work(move |_| {
            ledger.write("begun");
            pending()
        })
    };
    let id = process(async {
        let server = node(Arc::clone(&store), tool());
        let id = Peer::of(&server).await.begin("work").await;
        server.tasks().unwrap().hand_over().await;
        id
    });
    // The handover does not count as a crash; these four ends do.
    for runs in 2..=5 {
        process(async {
            let _peer = Peer::of(&node(Arc::clone(&store), tool())).await;
            while ledger.lines().len() < runs {
                sleep(Duration::from_secs(1)).await;
            }
        });
    }
    fails(&store, tool(), &id, "4 processes ended");
    assert_eq!(ledger.lines().len(), 5);
}

#[test]
fn answers_count_toward_the_record_limit() {
    let store = Store::default();
    let tool = || {
        work(move |cx| async move {
            for key in ["one", "two", "three"] {
                cx.ask::<Long>(key, key).await?;
            }
            cx.step("after", async || ()).await?;
            pending().await
        })
    };
    let id = dies_after(&store, tool(), async |peer: &mut Peer, id: &str| {
        for answered in 0..3 {
            let asked = keys(&peer.until(id, "input_required").await);
            let kept = store.load(id).await.unwrap().unwrap().task;
            assert!(kept.replay.is_some(), "{answered}");
            let content = json!({"text": "x".repeat(100 << 10)});
            let answer = json!({"action": "accept", "content": content});
            let answers = json!({"taskId": id, "inputResponses": {&asked[0]: answer}});
            let ack = peer.ask("tasks/update", answers).await;
            assert!(ack.get("error").is_none(), "{ack}");
        }
        sleep(Duration::from_secs(1)).await;
    });
    fails(&store, tool(), &id, "check which work was done");
}

#[test]
fn work_during_task_creation_is_not_lost() {
    let (store, ledger) = (Store::default(), Ledger::default());
    let tool = |waits: bool| {
        let ledger = ledger.clone();
        let run = move |cx: RequestContext| {
            let ledger = ledger.clone();
            async move {
                // The spawned task continues while the handler itself is held up.
                let doing = tokio::spawn(async move {
                    sleep(Duration::from_secs(2)).await;
                    ledger.step(&cx, "late").await
                });
                let done = doing.await.unwrap()?;
                if waits {
                    pending::<()>().await;
                }
                Ok::<_, oxmcp::Error>(done)
            }
        };
        Tool::new("work", "Work", run).task(TaskPolicy::After(Duration::from_secs(1)))
    };
    let id = process(async {
        let (stall, stalls) = watch::channel(true);
        let stalling = Stalling(Arc::clone(&store), stalls);
        let mut peer = Peer::of(&node(stalling, tool(true))).await;
        let awake = async {
            sleep(Duration::from_secs(3)).await;
            stall.send(false).unwrap();
        };
        let (id, ()) = tokio::join!(peer.begin("work"), awake);
        sleep(Duration::from_secs(1)).await;
        id
    });
    assert_eq!(text(&ends(&store, tool(false), &id, "completed")), "late");
    assert_eq!(ledger.lines(), ["late"]);
}

#[test]
fn recording_a_finished_step_is_retried() {
    let (store, ledger) = (Store::default(), Ledger::default());
    let (fail, fails) = watch::channel(false);
    let tool = |waits: bool| {
        let (ledger, fail) = (ledger.clone(), fail.clone());
        work(move |cx| {
            let (ledger, fail) = (ledger.clone(), fail.clone());
            async move {
                let done = cx.step("pay", async || {
                    ledger.write("pay");
                    fail.send_replace(waits);
                });
                done.await?;
                if waits {
                    pending::<()>().await;
                }
                Ok("paid".to_owned())
            }
        })
    };
    let id = process(async {
        let fails = move |operation: &str, _: &str| operation == "replace" && *fails.borrow();
        let failing = Failing(Arc::clone(&store), fails);
        let mut peer = Peer::of(&node(failing, tool(true))).await;
        let id = peer.begin("work").await;
        sleep(Duration::from_millis(1500)).await;
        fail.send_replace(false);
        sleep(Duration::from_secs(2)).await;
        id
    });
    ends(&store, tool(false), &id, "completed");
    assert_eq!(ledger.lines(), ["pay"]);
}

#[test]
fn earlier_answers_reach_handler_that_returns_questions() {
    let store = Store::default();
    let tool = |waits: bool| {
        let run = move |cx: RequestContext| async move {
            let answered = cx.input_responses().get("sure").is_some();
            if cx.request_state().as_deref() != Some("asked") || !answered {
                let form = ElicitSchema::new().required("sure", BooleanSchema::default());
                let question = InputRequiredResult::new()
                    .with_input_request("sure", ElicitParams::form("Sure?", form))
                    .with_request_state("asked");
                return Ok::<_, ToolError>(Reply::InputRequired(question));
            }
            if waits {
                pending::<()>().await;
            }
            Ok(Reply::Complete("done".to_owned()))
        };
        Tool::new("work", "Work", run).task(TaskPolicy::Always)
    };
    let id = process(async {
        let mut peer = Peer::of(&node(Arc::clone(&store), tool(true))).await;
        let asked = peer.ask("tools/call", json!({"name": "work"})).await;
        let state = &asked["result"]["requestState"];
        let again =
            json!({"name": "work", "requestState": state, "inputResponses": {"sure": yes()}});
        let created = peer.ask("tools/call", again).await;
        created["result"]["taskId"].as_str().unwrap().to_owned()
    });
    assert_eq!(text(&ends(&store, tool(false), &id, "completed")), "done");
}

#[test]
fn step_failed_before_the_task_is_retried() {
    let (store, ledger) = (Store::default(), Ledger::default());
    let tool = |fails: bool| {
        let ledger = ledger.clone();
        let run = move |cx: RequestContext| {
            let ledger = ledger.clone();
            async move {
                let tried = cx.try_step("pay", async || {
                    ledger.write("pay");
                    match fails {
                        true => Err(oxmcp::Error::internal("not now")),
                        false => Ok("paid".to_owned()),
                    }
                });
                let done = tried.await;
                if fails {
                    pending::<()>().await;
                }
                done
            }
        };
        Tool::new("work", "Work", run).task(TaskPolicy::After(Duration::from_secs(1)))
    };
    let id = process(async {
        let mut peer = Peer::of(&node(Arc::clone(&store), tool(true))).await;
        let id = peer.begin("work").await;
        sleep(Duration::from_secs(1)).await;
        id
    });
    assert_eq!(text(&ends(&store, tool(false), &id, "completed")), "paid");
    assert_eq!(ledger.lines(), ["pay", "pay"]);
}

#[test]
fn step_begun_before_the_task_is_not_rerun() {
    for fails_first in [false, true] {
        let (store, ledger) = (Store::default(), Ledger::default());
        let tool = || {
            let ledger = ledger.clone();
            let run = move |cx: RequestContext| {
                let ledger = ledger.clone();
                async move {
                    if fails_first {
                        let failing = async || Err::<(), _>(oxmcp::Error::internal("not now"));
                        let _ = cx.try_step("pay", failing).await;
                    }
                    let paying = async || {
                        ledger.write("pay");
                        pending::<()>().await;
                    };
                    cx.step("pay", paying).await?;
                    Ok::<_, oxmcp::Error>("paid")
                }
            };
            Tool::new("work", "Work", run).task(TaskPolicy::After(Duration::from_secs(1)))
        };
        let id = process(async {
            let mut peer = Peer::of(&node(Arc::clone(&store), tool())).await;
            let id = peer.begin("work").await;
            sleep(Duration::from_secs(1)).await;
            id
        });
        fails(&store, tool(), &id, "interrupted in step \"pay\"");
        assert_eq!(ledger.lines(), ["pay"]);
    }
}
