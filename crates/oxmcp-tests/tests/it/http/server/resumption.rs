//! Resumption of streams.

use std::{sync::Arc, time::Duration};

use oxmcp::{
    Limits, RequestContext, Tool,
    store::{EventStore, Replay},
};
use serde_json::{Value, json};
use tokio::{
    sync::Notify,
    task::yield_now,
    time::{sleep, timeout},
};

use crate::http::mounts::{Target, mounts};
use crate::http::server::{
    legacy::{call_steps, endpoint, steps},
    peer::{Event, Events, Session},
    shared_stores::{Act, SharedEvents},
};
use crate::support::{calculator, idle, request};

/// More events than are queued for one reader.
const STEPS: usize = 1000;

/// A tool that reports more events than are queued for one reader, and waits to be released.
fn burst(release: &Arc<Notify>) -> Tool {
    let release = Arc::clone(release);
    Tool::new("burst", "Report and wait", move |cx: RequestContext| {
        let release = Arc::clone(&release);
        async move {
            for step in 1..=STEPS {
                cx.progress(u32::try_from(step).unwrap()).await;
            }
            release.notified().await;
            "done"
        }
    })
}

fn call(name: &str) -> Value {
    let params = json!({"name": name, "arguments": {}, "_meta": {"progressToken": "t"}});
    request(7, "tools/call", params)
}

/// Yields, so that all other ready tasks run.
async fn turns() {
    for _ in 0..10 {
        yield_now().await;
    }
}

/// Asserts that these events are all of a stream after its first event, each event once.
fn is_all(rest: &[Event]) {
    let index = |event: &Event| -> usize {
        let id = event.id.as_deref().unwrap();
        id.split_once('_').unwrap().1.parse().unwrap()
    };
    assert!(rest.iter().map(index).eq(2..STEPS + 3));
    assert_eq!(rest.last().unwrap().data["id"], 7);
}

/// Resumes the stream of a call this many times, without reading.
async fn come_again<T: Target>(endpoint: &T, release: &Notify, times: usize) {
    let session = Session::open(endpoint).await;
    let mut events = Events::of(session.post(&call("burst")).await);
    let seen = events.next().await.unwrap().id.unwrap();
    let mut held = session.resume(&seen).await;
    for _ in 0..times {
        let next = session.resume(&seen).await;
        // The sender has seen the new reader while the old reader still existed.
        yield_now().await;
        yield_now().await;
        held = next;
    }
    release.notify_one();
    is_all(&Events::of(held).rest().await);
}

// Attack: resource exhaustion.
#[tokio::test]
async fn repeatedly_resuming_nonreaders_use_bounded_memory() {
    let release = Arc::new(Notify::new());
    let endpoint = || endpoint(&calculator().tool(burst(&release)));
    come_again(&endpoint(), &release, 5000).await;
    for mount in mounts!() {
        come_again(&mount.serve(&endpoint()).await, &release, 300).await;
    }
}

/// A tool that reports more than the stall check ignores and less than is queued for one reader, and waits to be released.
fn some(release: &Arc<Notify>) -> Tool {
    let release = Arc::clone(release);
    Tool::new("some", "Report and wait", move |cx: RequestContext| {
        let release = Arc::clone(&release);
        async move {
            cx.progress(1).message("x".repeat(2000)).await;
            release.notified().await;
            "done"
        }
    })
}

#[tokio::test(start_paused = true)]
async fn resuming_client_gets_the_full_read_time_again() {
    let release = Arc::new(Notify::new());
    // Three silences of 15 seconds in which nothing is read exceed the limit.
    let limits = Limits::default().http(|http| http.stall(Duration::from_secs(40)));
    let endpoint = endpoint(&calculator().tool(some(&release))).limits(limits);
    let session = Session::open(&endpoint).await;
    let mut events = Events::of(session.post(&call("some")).await);
    let seen = events.next().await.unwrap().id.unwrap();
    // The client read something in the first silence.
    sleep(Duration::from_secs(46)).await;
    let again = session.resume(&seen).await;
    sleep(Duration::from_secs(20)).await;
    release.notify_one();
    let rest = Events::of(again).rest().await;
    assert_eq!(rest.last().unwrap().data["id"], 7);
}

#[tokio::test]
async fn client_resuming_twice_gets_each_event_once() {
    let release = Arc::new(Notify::new());
    let session = Session::open(&endpoint(&calculator().tool(burst(&release)))).await;
    let mut events = Events::of(session.post(&call("burst")).await);
    let seen = events.next().await.unwrap().id.unwrap();
    turns().await;
    let first = session.resume(&seen).await;
    turns().await;
    let mut second = Events::of(session.resume(&seen).await);
    turns().await;
    let mut got = vec![second.next().await.unwrap()];
    release.notify_one();
    got.extend(second.rest().await);
    is_all(&got);
    // The first reader got the beginning, and no more.
    let begun = Events::of(first).rest().await;
    assert!(!begun.is_empty() && begun.len() < STEPS);
}

#[tokio::test]
async fn client_resuming_while_stream_ends_stays_connected() {
    let (release, parted) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let notify = (Arc::clone(&release), Arc::clone(&parted));
    let tool = Tool::new("poll", "Answer later", move |cx: RequestContext| {
        let (release, parted) = notify.clone();
        async move {
            // With the event before them, these events are as many as are queued for a reader.
            for step in 1..=3 {
                cx.progress(step).await;
                turns().await;
            }
            cx.close_stream(Duration::from_millis(500));
            parted.notify_one();
            release.notified().await;
            "late"
        }
    });
    let session = Session::open(&endpoint(&calculator().tool(tool))).await;
    let slow = session.post(&call("poll")).await;
    parted.notified().await;
    turns().await;
    let mut again = Events::of(session.resume("r0_1").await);
    again.next().await.unwrap();
    turns().await;
    release.notify_one();
    let rest = again.rest().await;
    let answer = &rest.last().unwrap().data;
    assert_eq!(answer["result"]["content"][0]["text"], "late");
    assert_eq!(Events::of(slow).rest().await.len(), 4);
}

/// A session whose client has gone away while its call waits to be answered. Returns also the id of the last event that it saw.
async fn away_before_the_answer(release: &Arc<Notify>, events: &SharedEvents) -> (Session, String) {
    let server = calculator().tool(steps(release));
    let session = Session::open(&endpoint(&server).event_store(events.clone())).await;
    let mut stream = Events::of(session.post(&call_steps(5)).await);
    stream.next().await.unwrap();
    stream.next().await.unwrap();
    release.notify_one();
    let seen = stream.next().await.unwrap().id.unwrap();
    drop(stream);
    turns().await;
    (session, seen)
}

#[tokio::test]
async fn client_resuming_while_answer_is_stored_gets_it() {
    let (release, events) = (Arc::new(Notify::new()), SharedEvents::default());
    let (session, seen) = away_before_the_answer(&release, &events).await;
    events.pause.at(Act::Append);
    release.notify_one();
    events.pause.reached().await;
    let resumed = session.resume(&seen).await;
    events.pause.go();
    let rest = Events::of(resumed).rest().await;
    assert_eq!(rest.len(), 1);
    assert_eq!(rest[0].data["id"], 5);
}

#[tokio::test]
async fn client_resuming_just_before_answer_gets_it() {
    let (release, events) = (Arc::new(Notify::new()), SharedEvents::default());
    let (session, seen) = away_before_the_answer(&release, &events).await;
    events.pause.at(Act::After);
    let late = async {
        events.pause.reached().await;
        release.notify_one();
        turns().await;
        events.pause.go();
    };
    let (resumed, ()) = tokio::join!(session.resume(&seen), late);
    let rest = Events::of(resumed).rest().await;
    assert_eq!(rest.len(), 1);
    assert_eq!(rest[0].data["id"], 5);
}

#[tokio::test]
async fn session_has_a_single_get_stream() {
    let server = calculator();
    let session = Session::open(&endpoint(&server)).await;
    for number in 0..3 {
        let mut events = Events::of(session.get().await);
        let _ = server.clone().tool(idle(&format!("tool-{number}")));
        let mut told = events.next().await.unwrap();
        while told.data.is_null() {
            told = events.next().await.unwrap();
        }
        let (stream, _) = told.id.as_deref().unwrap().split_once('_').unwrap();
        assert_eq!(stream, "s0");
        drop(events);
        turns().await;
    }
}

#[tokio::test(start_paused = true)]
async fn client_without_events_resumes_before_loss_is_noticed() {
    let server = calculator();
    let session = Session::open(&endpoint(&server)).await;
    // The network is gone, but the server's end of the connection still exists.
    let mut silent = Events::of(session.get().await);
    let primed = timeout(Duration::from_secs(60), silent.next()).await;
    let primed = primed.expect("it begins with an id").unwrap();
    assert_eq!(
        (primed.id.as_deref(), primed.data),
        (Some("s0_1"), Value::Null)
    );
    let mut events = Events::of(session.resume("s0_1").await);
    let _ = server.clone().tool(idle("another"));
    let told = events.next().await.unwrap();
    assert_eq!(told.data["method"], "notifications/tools/list_changed");
    assert!(silent.next().await.is_none(), "it is told once");
}

#[tokio::test]
async fn old_revisions_get_no_events_without_data() {
    let server = calculator();
    for version in ["2025-03-26", "2025-06-18"] {
        let session = Session::open_in(&endpoint(&server), version, json!({})).await;
        let mut events = Events::of(session.get().await);
        let _ = server.clone().tool(idle(version));
        let told = events.next().await.unwrap();
        assert_eq!(told.data["method"], "notifications/tools/list_changed");
    }
    let bare = endpoint(&server).without_event_store();
    let session = Session::open(&bare).await;
    let mut events = Events::of(session.get().await);
    let _ = server.clone().tool(idle("another"));
    let told = events.next().await.unwrap();
    assert_eq!(
        (told.id, &told.data["method"]),
        (None, &json!("notifications/tools/list_changed"))
    );
}

#[tokio::test]
async fn ended_session_leaves_no_events() {
    let (release, store) = (Arc::new(Notify::new()), SharedEvents::default());
    let server = calculator().tool(burst(&release));
    let session = Session::open(&endpoint(&server).event_store(store.clone())).await;
    let mut events = Events::of(session.post(&call("burst")).await);
    let seen = events.next().await.unwrap().id.unwrap();
    let (stream, _) = seen.split_once('_').unwrap();
    release.notify_one();
    events.rest().await;
    let kept = store.after(&session.id, stream, 1, 1).await.unwrap();
    assert!(matches!(kept, Replay::Events { .. }), "{kept:?}");
    session.delete().await;
    session.endpoint.close().await;
    let kept = store.after(&session.id, stream, 1, 1).await.unwrap();
    assert_eq!(kept, Replay::Lost);
}
