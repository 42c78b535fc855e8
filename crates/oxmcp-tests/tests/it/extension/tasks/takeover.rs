//! Tasks whose process dies, and that another process with the same store takes over. Each process
//! is a runtime here: everything on it ends with it.

use std::{
    future::{Future, pending},
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
};

use oxmcp::{
    JsonSchema, Question,
    tasks::{MemoryTaskStore, TaskContext, TaskStore},
};
use tokio::{runtime::Builder, sync::watch, time::sleep};

use super::{
    leases::{Stalling, node},
    legacy::Session,
    *,
};

#[derive(serde::Deserialize, JsonSchema)]
pub(super) struct Confirm {
    pub(super) sure: bool,
}

pub(super) fn yes() -> Value {
    json!({"action": "accept", "content": {"sure": true}})
}

/// A record of the handlers' effects, outside of all processes.
#[derive(Clone, Default)]
pub(super) struct Ledger(Arc<Mutex<Vec<String>>>);

impl Ledger {
    pub(super) fn write(&self, line: &str) {
        self.0.lock().unwrap().push(line.to_owned());
    }

    pub(super) fn lines(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }

    /// Runs a step with this key that writes the key to the ledger.
    pub(super) async fn step(&self, cx: &RequestContext, key: &str) -> oxmcp::Result<String> {
        let doing = || async {
            self.write(key);
            key.to_owned()
        };
        cx.step(key, doing).await
    }
}

pub(super) type Store = Arc<MemoryTaskStore>;

/// Runs a future in a process of its own.
pub(super) fn process<T>(run: impl Future<Output = T>) -> T {
    let mut builder = Builder::new_current_thread();
    let runtime = builder.enable_all().start_paused(true).build().unwrap();
    runtime.block_on(run)
}

pub(super) fn work<F, Fut>(run: F) -> Tool
where
    F: Fn(RequestContext) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = oxmcp::Result<String>> + Send + 'static,
{
    Tool::new("work", "Work", run).task(TaskPolicy::Required)
}

/// Runs a process that begins a task and dies after `then`. Returns the task's id.
pub(super) fn dies_after(
    store: &Store,
    tool: Tool,
    then: impl AsyncFnOnce(&mut Peer, &str),
) -> String {
    process(async {
        let mut peer = Peer::of(&node(Arc::clone(store), tool)).await;
        let id = peer.begin("work").await;
        sleep(Duration::from_secs(1)).await;
        then(&mut peer, &id).await;
        id
    })
}

pub(super) fn dies(store: &Store, tool: Tool) -> String {
    dies_after(store, tool, async |_: &mut Peer, _: &str| {})
}

/// The task once it has this status in another process.
pub(super) fn ends(store: &Store, tool: Tool, id: &str, status: &str) -> Value {
    process(async {
        let mut peer = Peer::of(&node(Arc::clone(store), tool)).await;
        peer.get(id).await;
        // The clock of each process starts anew, and the clock of the process before may be ahead of it.
        sleep(Duration::from_secs(120)).await;
        peer.until(id, status).await
    })
}

pub(super) fn text(task: &Value) -> &str {
    task["result"]["content"][0]["text"].as_str().unwrap()
}

pub(super) fn fails(store: &Store, tool: Tool, id: &str, because: &str) {
    let failed = ends(store, tool, id, "failed");
    let message = failed["error"]["message"].as_str().unwrap();
    assert!(message.contains(because), "{failed}");
}

/// A tool that runs steps, one after the other, and waits for ever before one of them.
fn stepping(ledger: &Ledger, keys: &'static [&str], stops_before: &'static str) -> Tool {
    let ledger = ledger.clone();
    work(move |cx| {
        let ledger = ledger.clone();
        async move {
            let mut done = Vec::new();
            for key in keys {
                if *key == stops_before {
                    pending::<()>().await;
                }
                done.push(ledger.step(&cx, key).await?);
            }
            Ok(done.join(" "))
        }
    })
}

#[test]
fn finished_steps_are_not_rerun() {
    let (store, ledger) = (Store::default(), Ledger::default());
    let id = dies(&store, stepping(&ledger, &["one", "two", "three"], "three"));
    let done = ends(
        &store,
        stepping(&ledger, &["one", "two", "three"], ""),
        &id,
        "completed",
    );
    assert_eq!(text(&done), "one two three");
    assert_eq!(ledger.lines(), ["one", "two", "three"]);
}

#[test]
fn request_context_is_restored_after_takeover() {
    let store = Store::default();
    let tool = |waits: bool| {
        let tool = Tool::new(
            "work",
            "Work",
            move |cx: RequestContext, args: Confirm| async move {
                if waits {
                    pending::<()>().await;
                }
                let client = cx.peer_info().map(|it| it.name.clone());
                let can_elicit = cx.client_capabilities().elicitation.is_some();
                let noted = cx.meta().get("com.example/note").cloned();
                format!(
                    "{client:?} {can_elicit} {noted:?} {} {} {}",
                    cx.revision(),
                    args.sure,
                    cx.task_id().is_some()
                )
            },
        );
        tool.task(TaskPolicy::Required)
    };
    let id = process(async {
        let mut peer = Peer::of(&node(Arc::clone(&store), tool(true))).await;
        let params = json!({"name": "work", "arguments": {"sure": true}});
        let mut request = declaring(1, "tools/call", params);
        request["params"]["_meta"]["com.example/note"] = json!("kept");
        let created = peer.0.ask(request).await.unwrap();
        created["result"]["taskId"].as_str().unwrap().to_owned()
    });
    let done = ends(&store, tool(false), &id, "completed");
    let expected = r#"Some("scripted") true Some(String("kept")) 2026-07-28 true true"#;
    assert_eq!(text(&done), expected);
}

/// A tool that asks two questions at once.
fn asking(ledger: &Ledger) -> Tool {
    let ledger = ledger.clone();
    work(move |cx| {
        let ledger = ledger.clone();
        async move {
            ledger.step(&cx, "begun").await?;
            let questions = (
                Question::form::<Confirm>("first", "Delete it?"),
                Question::form::<Confirm>("second", "For good?"),
            );
            let (first, second) = cx.ask_all(questions).await?;
            Ok(format!("{} {}", first.sure, second.sure))
        }
    })
}

pub(super) fn keys(task: &Value) -> Vec<String> {
    let asked = task["inputRequests"].as_object().unwrap();
    asked.keys().cloned().collect()
}

pub(super) async fn give(peer: &mut Peer, id: &str, key: &str) {
    let answers = json!({"taskId": id, "inputResponses": {key: yes()}});
    let ack = peer.ask("tasks/update", answers).await;
    assert!(ack.get("error").is_none(), "{ack}");
}

#[test]
fn open_question_continues_under_its_key() {
    let (store, ledger) = (Store::default(), Ledger::default());
    let mut asked = Vec::new();
    let id = dies_after(
        &store,
        asking(&ledger),
        async |peer: &mut Peer, id: &str| {
            asked = keys(&peer.until(id, "input_required").await);
        },
    );
    process(async {
        let mut peer = Peer::of(&node(Arc::clone(&store), asking(&ledger))).await;
        peer.get(&id).await;
        sleep(Duration::from_secs(60)).await;
        let task = peer.get(&id).await;
        assert_eq!(keys(&task), asked, "{task}");
        for key in &asked {
            give(&mut peer, &id, key).await;
        }
        let done = peer.until(&id, "completed").await;
        assert_eq!(text(&done), "true true");
    });
    assert_eq!(ledger.lines(), ["begun"]);
}

#[test]
fn answer_counts_whether_or_not_handler_is_running() {
    let (store, ledger) = (Store::default(), Ledger::default());
    let mut left = String::new();
    let id = dies_after(
        &store,
        asking(&ledger),
        async |peer: &mut Peer, id: &str| {
            let asked = keys(&peer.until(id, "input_required").await);
            give(peer, id, &asked[0]).await;
            left.clone_from(&asked[1]);
            sleep(Duration::from_secs(1)).await;
        },
    );
    process(async {
        let mut peer = Peer::of(&node(Arc::clone(&store), asking(&ledger))).await;
        let task = peer.get(&id).await;
        assert_eq!(keys(&task), [left.clone()], "{task}");
        // The answer arrives before any process runs the handler again.
        give(&mut peer, &id, &left).await;
        let done = peer.until(&id, "completed").await;
        assert_eq!(text(&done), "true true");
    });
    assert_eq!(ledger.lines(), ["begun"]);
}

#[test]
fn withdrawn_question_is_asked_again_under_new_key() {
    let store = Store::default();
    let tool = |gives_up: bool| {
        work(move |cx| async move {
            let asked = cx.ask::<Confirm>("sure", "Sure?");
            if gives_up {
                let _ = tokio::time::timeout(Duration::from_secs(3), asked).await;
                return pending().await;
            }
            Ok(asked.await?.sure.to_string())
        })
    };
    let mut first = Vec::new();
    let id = dies_after(&store, tool(true), async |peer: &mut Peer, id: &str| {
        first = keys(&peer.until(id, "input_required").await);
        peer.until(id, "working").await;
    });
    process(async {
        let mut peer = Peer::of(&node(Arc::clone(&store), tool(false))).await;
        let asked = keys(&peer.until(&id, "input_required").await);
        assert_ne!(asked, first);
        // The old key is no longer valid.
        give(&mut peer, &id, &first[0]).await;
        assert_eq!(keys(&peer.get(&id).await), asked);
        give(&mut peer, &id, &asked[0]).await;
        assert_eq!(text(&peer.until(&id, "completed").await), "true");
    });
}

/// A tool with a step that hangs if the test wants it to.
fn one_step(ledger: &Ledger, is_idempotent: bool, hangs: bool) -> Tool {
    let ledger = ledger.clone();
    work(move |cx| {
        let ledger = ledger.clone();
        async move {
            let doing = || async move {
                ledger.write("pay");
                if hangs {
                    pending::<()>().await;
                }
            };
            match is_idempotent {
                true => cx.step_idempotent("pay", doing).await?,
                false => cx.step("pay", doing).await?,
            }
            Ok("paid".to_owned())
        }
    })
}

#[test]
fn started_step_fails_the_task_unless_idempotent() {
    for is_idempotent in [false, true] {
        let (store, ledger) = (Store::default(), Ledger::default());
        let id = dies(&store, one_step(&ledger, is_idempotent, true));
        let again = one_step(&ledger, is_idempotent, false);
        if is_idempotent {
            ends(&store, again, &id, "completed");
            assert_eq!(ledger.lines(), ["pay", "pay"]);
        } else {
            fails(&store, again, &id, "task interrupted in step \"pay\"");
            assert_eq!(ledger.lines(), ["pay"]);
        }
    }
}

#[test]
fn step_no_longer_idempotent_is_not_rerun() {
    let (store, ledger) = (Store::default(), Ledger::default());
    let id = dies(&store, one_step(&ledger, true, true));
    fails(
        &store,
        one_step(&ledger, false, false),
        &id,
        "interrupted in step \"pay\"",
    );
    assert_eq!(ledger.lines(), ["pay"]);
}

#[test]
fn failed_step_is_retried() {
    let (store, ledger) = (Store::default(), Ledger::default());
    let tool = |waits: bool| {
        let ledger = ledger.clone();
        work(move |cx| {
            let ledger = ledger.clone();
            async move {
                let tried = cx.try_step("try", || async {
                    ledger.write("try");
                    if waits {
                        return Err(oxmcp::Error::internal("not now"));
                    }
                    Ok(())
                });
                if tried.await.is_err() {
                    pending::<()>().await;
                }
                Ok("done".to_owned())
            }
        })
    };
    let id = dies(&store, tool(true));
    ends(&store, tool(false), &id, "completed");
    assert_eq!(ledger.lines(), ["try", "try"]);
}

#[test]
fn incompatible_release_fails_the_task() {
    const OLD: &[&str] = &["one", "two", "three"];
    let gone = |_: &Ledger| Tool::new("other", "Other", || async {}).task(TaskPolicy::Required);
    let plain = |ledger: &Ledger| {
        let ledger = ledger.clone();
        Tool::new("work", "Work", move || {
            let ledger = ledger.clone();
            async move { ledger.write("plain") }
        })
    };
    let other_order = |ledger: &Ledger| stepping(ledger, &["two", "one", "three"], "");
    let new_step = |ledger: &Ledger| stepping(ledger, &["one", "new", "two", "three"], "");
    let shorter = |ledger: &Ledger| stepping(ledger, &["one"], "");
    let live = |ledger: &Ledger| stepping(ledger, OLD, "").task_live();
    type Release<'a> = &'a dyn Fn(&Ledger) -> Tool;
    let cases: [(Release<'_>, &str); 6] = [
        (&gone, "no longer has a tool \"work\""),
        (&plain, "no longer has a tool \"work\""),
        (&other_order, "it reached \"two\" instead of \"one\""),
        (&new_step, "it reached \"new\" instead of \"two\""),
        (&shorter, "it ended without \"two\""),
        (&live, "task interrupted: its process ended or stalled"),
    ];
    for (tool, because) in cases {
        let (store, ledger) = (Store::default(), Ledger::default());
        let id = dies(&store, stepping(&ledger, OLD, "three"));
        fails(&store, tool(&ledger), &id, because);
        assert_eq!(ledger.lines(), ["one", "two"], "{because}");
    }
}

#[test]
fn different_question_of_same_key_fails_the_task() {
    let store = Store::default();
    let tool = |message: &'static str| {
        work(move |cx| async move {
            let _ = cx.ask::<Confirm>("sure", message).await;
            Ok("swallowed".to_owned())
        })
    };
    let id = dies(&store, tool("Sure?"));
    fails(
        &store,
        tool("Really?"),
        &id,
        "the question \"sure\" has changed",
    );
}

#[test]
fn live_tool_is_not_rerun() {
    let (store, ledger) = (Store::default(), Ledger::default());
    let tool = |stops_before| stepping(&ledger, &["one", "two"], stops_before).task_live();
    let id = dies(&store, tool("two"));
    fails(&store, tool(""), &id, "check which work was done");
    assert_eq!(ledger.lines(), ["one"]);
}

#[test]
fn task_that_crashes_its_processes_is_abandoned() {
    let (store, ledger) = (Store::default(), Ledger::default());
    let tool = || {
        let ledger = ledger.clone();
        work(move |_| {
            ledger.write("begun");
            pending()
        })
    };
    let id = dies(&store, tool());
    for takeovers in 1..=3 {
        process(async {
            let mut peer = Peer::of(&node(Arc::clone(&store), tool())).await;
            assert_eq!(peer.get(&id).await["status"], "working");
            while ledger.lines().len() == takeovers {
                sleep(Duration::from_secs(1)).await;
            }
        });
    }
    fails(
        &store,
        tool(),
        &id,
        "task abandoned: 4 processes ended while running it",
    );
    assert_eq!(ledger.lines().len(), 4);
}

#[tokio::test(start_paused = true)]
async fn resumed_process_ignores_a_taken_over_task() {
    for is_over in [true, false] {
        comes_back(is_over).await;
    }
}

async fn comes_back(is_over: bool) {
    let (store, ledger) = (Store::default(), Ledger::default());
    let (stall, stalls) = watch::channel(false);
    let (open, gate) = watch::channel(false);
    let tool = |name: &'static str| {
        let (ledger, gate) = (ledger.clone(), gate.clone());
        work(move |cx| {
            let (ledger, mut gate) = (ledger.clone(), gate.clone());
            async move {
                ledger.step(&cx, "one").await?;
                if name == "first" {
                    gate.wait_for(|open| *open).await.unwrap();
                }
                let two = cx.step("two", || async { ledger.write(name) }).await;
                if name == "second" && !is_over {
                    pending::<()>().await;
                }
                two.map(|()| name.to_owned())
            }
        })
    };
    let first = node(Stalling(Arc::clone(&store), stalls), tool("first"));
    let id = Peer::of(&first).await.begin("work").await;
    sleep(Duration::from_secs(1)).await;
    stall.send(true).unwrap();
    let mut peer = Peer::of(&node(Arc::clone(&store), tool("second"))).await;
    let until = if is_over { "completed" } else { "working" };
    peer.until(&id, until).await;
    sleep(Duration::from_secs(60)).await;
    let second = peer.until(&id, until).await;
    // The handler of the stalled process continues before the process knows.
    open.send(true).unwrap();
    stall.send(false).unwrap();
    sleep(Duration::from_secs(60)).await;
    let now = peer.get(&id).await;
    assert_eq!(
        (&now["status"], &now["result"]),
        (&second["status"], &second["result"])
    );
    assert_eq!(ledger.lines(), ["one", "second"]);
}

#[test]
fn concurrent_steps_may_replay_in_any_order() {
    // This includes steps that ran before the call became a task.
    for policy in [
        TaskPolicy::Required,
        TaskPolicy::After(Duration::from_secs(1)),
    ] {
        steps_in_any_order(policy);
    }
}

fn steps_in_any_order(policy: TaskPolicy) {
    let (store, ledger) = (Store::default(), Ledger::default());
    let tool = |waits: bool| {
        let ledger = ledger.clone();
        let run = move |cx: RequestContext| {
            let ledger = ledger.clone();
            async move {
                let slow = async |key: &str| {
                    let doing = async || {
                        sleep(Duration::from_millis(10)).await;
                        ledger.write(key);
                    };
                    cx.step(key, doing).await
                };
                let one = async {
                    slow("a").await?;
                    slow("b").await
                };
                let other = async {
                    slow("c").await?;
                    if waits {
                        pending::<()>().await;
                    }
                    slow("d").await
                };
                tokio::try_join!(one, other)?;
                Ok::<_, oxmcp::Error>("joined".to_owned())
            }
        };
        Tool::new("work", "Work", run).task(policy)
    };
    let id = dies(&store, tool(true));
    assert_eq!(ledger.lines().len(), 3);
    ends(&store, tool(false), &id, "completed");
    let mut lines = ledger.lines();
    lines.sort_unstable();
    assert_eq!(lines, ["a", "b", "c", "d"]);
}

#[test]
fn earlier_steps_and_answers_join_the_task_record() {
    let (store, ledger) = (Store::default(), Ledger::default());
    let tool = |waits: bool| {
        let ledger = ledger.clone();
        let run = move |cx: RequestContext| {
            let ledger = ledger.clone();
            async move {
                ledger.step(&cx, "one").await?;
                let sure = cx.ask::<Confirm>("sure", "Sure?").await?.sure;
                ledger.step(&cx, "two").await?;
                sleep(Duration::from_secs(1)).await;
                ledger.step(&cx, "three").await?;
                if waits {
                    pending::<()>().await;
                }
                Ok::<_, oxmcp::Error>(sure.to_string())
            }
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
        sleep(Duration::from_secs(2)).await;
        created["result"]["taskId"].as_str().unwrap().to_owned()
    });
    let done = ends(&store, tool(false), &id, "completed");
    assert_eq!(text(&done), "true");
    assert_eq!(ledger.lines(), ["one", "two", "three"]);
}

#[test]
fn returned_questions_are_answered_once() {
    let store = Store::default();
    let tool = || {
        let run = |cx: RequestContext| async move {
            let asked = cx.request_state().unwrap_or_default();
            if asked == "xx" {
                return Ok::<_, ToolError>(Reply::Complete("asked".to_owned()));
            }
            // The same question with the same key, twice.
            let form = ElicitSchema::new().required("sure", BooleanSchema::default());
            let question = InputRequiredResult::new()
                .with_input_request("sure", ElicitParams::form("Sure?", form))
                .with_request_state(asked + "x");
            Ok(Reply::InputRequired(question))
        };
        Tool::new("work", "Work", run).task(TaskPolicy::Required)
    };
    let mut first = Vec::new();
    let id = dies_after(&store, tool(), async |peer: &mut Peer, id: &str| {
        first = keys(&peer.until(id, "input_required").await);
        give(peer, id, &first[0]).await;
        sleep(Duration::from_secs(1)).await;
    });
    process(async {
        let mut peer = Peer::of(&node(Arc::clone(&store), tool())).await;
        sleep(Duration::from_secs(60)).await;
        let second = keys(&peer.until(&id, "input_required").await);
        assert_ne!(first, second);
        give(&mut peer, &id, &second[0]).await;
        assert_eq!(text(&peer.until(&id, "completed").await), "asked");
    });
}

#[test]
fn legacy_task_continues_without_its_session() {
    let (store, ledger) = (Store::default(), Ledger::default());
    let id = process(async {
        let mut session = Session::of(&node(Arc::clone(&store), asking(&ledger))).await;
        let id = session.begin("work").await;
        session.until(&id, "input_required").await;
        id
    });
    process(async {
        let mut session = Session::of(&node(Arc::clone(&store), asking(&ledger))).await;
        session.until(&id, "input_required").await;
        sleep(Duration::from_secs(30)).await;
        let result = session.send("tasks/result", json!({"taskId": id})).await;
        for _ in 0..2 {
            let asked = session.hear("elicitation/create").await;
            session.reply(&asked, yes()).await;
        }
        let result = session.answer(result).await;
        assert_eq!(text(&result), "true true");
    });
    assert_eq!(ledger.lines(), ["begun"]);
}

#[test]
fn oversized_record_is_not_rerun() {
    let store = Store::default();
    for (in_arguments, in_step) in [
        (300 << 10, None),
        (300 << 10, Some(1)),
        (1, Some(300 << 10)),
    ] {
        let runs = Arc::new(AtomicUsize::new(0));
        let tool = || {
            let runs = Arc::clone(&runs);
            let run = move |cx: RequestContext, args: Long| {
                let runs = Arc::clone(&runs);
                async move {
                    runs.fetch_add(1, Ordering::Relaxed);
                    if let Some(length) = in_step {
                        let step = cx.step("long", || async { "x".repeat(length) });
                        step.await.unwrap();
                    }
                    assert!(!args.text.is_empty());
                    pending::<()>().await;
                }
            };
            Tool::new("work", "Work", run).task(TaskPolicy::Required)
        };
        let id = process(async {
            let mut peer = Peer::of(&node(Arc::clone(&store), tool())).await;
            let arguments = json!({"text": "x".repeat(in_arguments)});
            let params = json!({"name": "work", "arguments": arguments});
            let created = peer.ask("tools/call", params).await;
            sleep(Duration::from_secs(1)).await;
            let id = created["result"]["taskId"].as_str().unwrap().to_owned();
            let kept = store.load(&id).await.unwrap().unwrap().task;
            assert!(kept.bytes() < 10_000, "{}", kept.bytes());
            id
        });
        fails(&store, tool(), &id, "check which work was done");
        assert_eq!(runs.load(Ordering::Relaxed), 1);
    }
}

#[derive(serde::Deserialize, JsonSchema)]
pub(super) struct Long {
    pub(super) text: String,
}

#[tokio::test(start_paused = true)]
async fn task_without_steps_or_questions_is_written_thrice() {
    let store = Store::default();
    let (tool, open) = gated(TaskPolicy::Always);
    let mut peer = Peer::of(&node(Arc::clone(&store), tool)).await;
    let id = peer.begin("report").await;
    open.send(true).unwrap();
    peer.until(&id, "completed").await;
    let kept = store.load(&id).await.unwrap().unwrap();
    // One revision when the task is made, one when it is leased, and one when it ends.
    assert_eq!(kept.revision, 3);
    assert!(kept.task.replay.is_none(), "what is over needs nothing");
}
