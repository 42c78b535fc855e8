//! Streams that one node writes and another node forwards to the client.

use std::{future::pending, sync::Arc, time::Duration};

use http::{Response, StatusCode};
use http_body_util::BodyExt;
use oxmcp::{Limits, RequestContext, Tool, http::ResponseBody};
use serde_json::{Value, json};
use tokio::{
    sync::Notify,
    time::{Instant, advance, sleep, timeout},
};

use super::pair::{Pair, turns};
use crate::http::server::{
    legacy::{call_steps, steps},
    peer::{Event, Events, LEGACY, json},
};
use crate::support::{calculator, request};

/// A call whose id is a string.
fn call_named(id: &str) -> Value {
    let mut call = call_steps(0);
    call["id"] = json!(id);
    call
}

fn index(event: &Event) -> u64 {
    let id = event.id.as_deref().unwrap();
    id.split_once('_').unwrap().1.parse().unwrap()
}

/// The rest of a stream, which must end.
async fn rest_of(response: Response<ResponseBody>) -> Vec<Event> {
    let rest = timeout(Duration::from_secs(60), Events::of(response).rest()).await;
    rest.expect("it does not end")
}

/// Asserts that a request has ended with the error for a lost node.
fn is_error(events: &[Event], id: &Value) {
    let [.., last] = events else {
        panic!("{events:?}");
    };
    let error = &last.data["error"];
    assert_eq!((&last.data["id"], &error["code"]), (id, &json!(-32603)));
    assert_eq!(error["data"]["reason"], "lost");
    let text = error["message"].as_str().unwrap();
    assert!(text.contains("may have been processed"), "{text}");
}

#[tokio::test(start_paused = true)]
async fn stream_continues_at_another_node_while_being_written() {
    let release = Arc::new(Notify::new());
    let server = calculator().tool(steps(&release));
    let Pair { one, other, .. } = Pair::of([&server, &calculator()]).await;
    let mut begun = Events::of(one.post(&call_steps(7)).await);
    let first = begun.next().await.unwrap();
    assert_eq!((index(&first), &first.data), (1, &Value::Null));
    let seen = begun.next().await.unwrap();
    assert_eq!(seen.data["params"]["progress"], 1.0);
    drop(begun);
    let mut resumed = Events::of(other.resume(seen.id.as_deref().unwrap()).await);
    // The stream waits for as long as nothing happens.
    let nothing = timeout(Duration::from_secs(60), resumed.next()).await;
    assert!(nothing.is_err(), "{nothing:?}");
    release.notify_one();
    let more = resumed.next().await.unwrap();
    assert_eq!(
        (index(&more), more.data["params"]["progress"].clone()),
        (3, json!(2))
    );
    release.notify_one();
    let rest = resumed.rest().await;
    assert_eq!(rest.len(), 1);
    assert_eq!((index(&rest[0]), rest[0].data["id"].clone()), (4, json!(7)));
    // All events can be replayed later, at either node.
    for node in [&one, &other] {
        let again = Events::of(node.resume(first.id.as_deref().unwrap()).await);
        assert!(again.rest().await.iter().map(index).eq(2..=4));
    }
    // They can also be replayed once the node that wrote them is closed.
    one.endpoint.close().await;
    let again = Events::of(other.resume(first.id.as_deref().unwrap()).await);
    assert!(again.rest().await.iter().map(index).eq(2..=4));
}

#[tokio::test(start_paused = true)]
async fn streamed_call_uses_the_store_once_per_batch() {
    let release = Arc::new(Notify::new());
    let server = calculator().tool(steps(&release));
    let Pair { one, links, .. } = Pair::of([&server, &calculator()]).await;
    let params = json!({"name": "add", "arguments": {"a": 1, "b": 2}});
    json(one.call(1, "tools/call", params).await).await;
    assert_eq!(links[0].asked(), [""; 0], "one message is no stream");
    let mut events = Events::of(one.post(&call_steps(7)).await);
    for _ in 0..2 {
        events.next().await.unwrap();
    }
    release.notify_one();
    events.next().await.unwrap();
    release.notify_one();
    assert_eq!(events.rest().await.len(), 1);
    turns().await;
    // The first progress with the events before it, the second progress, and the answer with the end.
    assert_eq!(links[0].asked(), ["append"; 3]);
}

#[tokio::test(start_paused = true)]
async fn stream_of_vanished_node_ends_with_an_error() {
    for id in ["7", "ü \"_1\"\n"] {
        let release = Arc::new(Notify::new());
        let server = calculator().tool(steps(&release));
        let Pair { one, other, links } = Pair::of([&server, &calculator()]).await;
        let mut begun = Events::of(one.post(&call_named(id)).await);
        begun.next().await.unwrap();
        let seen = begun.next().await.unwrap().id.unwrap();
        links[0].cut(true);
        let gone = Instant::now();
        let rest = rest_of(other.resume(&seen).await).await;
        let elapsed = gone.elapsed();
        assert_eq!(rest.len(), 1);
        is_error(&rest, &json!(id));
        let limit = Duration::from_secs(6);
        assert!(
            elapsed > Duration::from_secs(3) && elapsed <= limit,
            "{elapsed:?}"
        );
        // The error is the answer from here on.
        let again = rest_of(other.resume(&seen).await).await;
        is_error(&again, &json!(id));
        assert_eq!(again.len(), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn truncated_stream_ends_with_an_error() {
    let many = Tool::new("many", "Report and wait", async |cx: RequestContext| {
        for step in 1..=5000 {
            cx.progress(step).await;
        }
        pending::<()>().await;
    });
    let limits = Limits::default().progress_burst(10_000);
    let server = calculator().limits(limits).tool(many);
    let Pair { one, other, links } = Pair::of([&server, &calculator()]).await;
    let params = json!({"name": "many", "arguments": {}, "_meta": {"progressToken": "t"}});
    let mut begun = Events::of(one.call(7, "tools/call", params).await);
    let mut last = begun.next().await.unwrap();
    while last.data["params"]["progress"] != 5000.0 {
        last = begun.next().await.unwrap();
    }
    links[0].cut(true);
    let rest = rest_of(other.resume(&last.id.unwrap()).await).await;
    is_error(&rest, &json!(7));
}

#[tokio::test(start_paused = true)]
async fn stream_of_long_gone_node_ends_at_once() {
    let release = Arc::new(Notify::new());
    let server = calculator().tool(steps(&release));
    let Pair { one, other, links } = Pair::of([&server, &calculator()]).await;
    let mut begun = Events::of(one.post(&call_steps(7)).await);
    begun.next().await.unwrap();
    let seen = begun.next().await.unwrap().id.unwrap();
    links[0].cut(true);
    sleep(Duration::from_secs(10)).await;
    let resumed = Instant::now();
    let rest = rest_of(other.resume(&seen).await).await;
    is_error(&rest, &json!(7));
    // The error comes at once, since the node that is asked may itself be gone soon.
    assert!(resumed.elapsed() < Duration::from_millis(100));
}

#[tokio::test(start_paused = true)]
async fn each_batched_request_gets_its_error() {
    let release = Arc::new(Notify::new());
    let server = calculator().tool(steps(&release));
    let limits = Limits::default();
    let pair = Pair::open([&server, &calculator()], "2025-03-26", json!({}), limits).await;
    let Pair { one, other, links } = pair;
    let notification = json!({"jsonrpc": "2.0", "method": "notifications/other"});
    let batch = json!([call_steps(1), notification, call_named("b")]);
    let mut begun = Events::of(one.post(&batch).await);
    let seen = begun.next().await.unwrap();
    assert_eq!(
        seen.data["params"]["progress"], 1.0,
        "nothing comes before it"
    );
    links[0].cut(true);
    let rest = rest_of(other.resume(seen.id.as_deref().unwrap()).await).await;
    let answers = rest.last().unwrap().data.as_array().unwrap();
    let ids: Vec<_> = answers.iter().map(|it| it["id"].clone()).collect();
    assert_eq!(ids, [json!(1), json!("b")]);
    assert!(
        answers
            .iter()
            .all(|it| it["error"]["data"]["reason"] == "lost")
    );
}

#[tokio::test(start_paused = true)]
async fn writer_of_taken_stream_and_client_are_notified() {
    for writes in [true, false] {
        let release = Arc::new(Notify::new());
        let server = calculator().tool(steps(&release));
        let Pair { one, other, links } = Pair::of([&server, &calculator()]).await;
        let mut begun = Events::of(one.post(&call_steps(7)).await);
        begun.next().await.unwrap();
        let seen = begun.next().await.unwrap().id.unwrap();
        // In one case the writer cannot renew its lease and then writes, in the other it is cut off for a while.
        if writes {
            links[0].lose_leases();
        } else {
            links[0].cut(true);
        }
        let rest = rest_of(other.resume(&seen).await).await;
        is_error(&rest, &json!(7));
        links[0].cut(false);
        sleep(Duration::from_secs(if writes { 0 } else { 10 })).await;
        release.notify_one();
        let told = timeout(Duration::from_secs(60), begun.rest()).await;
        let told = told.expect("it does not end");
        is_error(&told, &json!(7));
        let answers = told.iter().filter(|it| it.data["id"] == 7);
        assert_eq!(answers.count(), 1, "{told:?}");
        // The events that the writer has written since then are not stored.
        let again = rest_of(one.resume(&seen).await).await;
        assert_eq!(again.len(), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn node_with_stalled_client_is_not_gone() {
    let release = Arc::new(Notify::new());
    let released = Arc::clone(&release);
    let tool = Tool::new("long", "Report and wait", move |cx: RequestContext| {
        let release = Arc::clone(&released);
        async move {
            for _ in 0..64 {
                cx.progress(1).message("x".repeat(20_000)).await;
            }
            release.notified().await;
            "done"
        }
    });
    let server = calculator().tool(tool);
    let Pair { one, other, .. } = Pair::of([&server, &calculator()]).await;
    let params = json!({"name": "long", "arguments": {}, "_meta": {"progressToken": "t"}});
    let mut stuck = Events::of(one.call(7, "tools/call", params).await);
    let seen = stuck.next().await.unwrap().id.unwrap();
    let mut resumed = Events::of(other.resume(&seen).await);
    resumed.next().await.unwrap();
    let nothing = timeout(Duration::from_secs(60), async {
        while resumed.next().await.unwrap().data["id"] != 7 {}
    });
    assert!(nothing.await.is_err(), "it is not answered");
    drop(stuck);
    release.notify_one();
    let rest = resumed.rest().await;
    assert_eq!(
        rest.last().unwrap().data["result"]["content"][0]["text"],
        "done"
    );
}

#[tokio::test(start_paused = true)]
async fn silent_remote_stream_is_kept_alive_until_disconnect() {
    let release = Arc::new(Notify::new());
    let server = calculator().tool(steps(&release));
    let limits = Limits::default().http(|http| http.max_streams(1));
    let pair = Pair::open([&server, &calculator()], LEGACY, json!({}), limits).await;
    let Pair { one, other, links } = pair;
    let mut begun = Events::of(one.post(&call_steps(7)).await);
    begun.next().await.unwrap();
    let seen = begun.next().await.unwrap().id.unwrap();
    let mut body = other.resume(&seen).await.into_body();
    let comment = timeout(Duration::from_secs(16), body.frame()).await;
    let comment = comment.unwrap().unwrap().unwrap().into_data().unwrap();
    assert_eq!(comment, ":\n\n");
    let second = other.resume("r9_1").await;
    assert_eq!(
        second.status(),
        StatusCode::SERVICE_UNAVAILABLE,
        "it counts"
    );
    drop(body);
    turns().await;
    links[1].asked();
    sleep(Duration::from_secs(10)).await;
    assert!(!links[1].asked().contains(&"after"));
    let third = Events::of(other.resume(&seen).await);
    release.notify_one();
    release.notify_one();
    assert_eq!(third.rest().await.len(), 2);
}

#[tokio::test(start_paused = true)]
async fn unnotified_store_is_polled_and_hanging_one_abandoned() {
    let release = Arc::new(Notify::new());
    let server = calculator().tool(steps(&release));
    let Pair { one, other, links } = Pair::of([&server, &calculator()]).await;
    let mut begun = Events::of(one.post(&call_steps(7)).await);
    begun.next().await.unwrap();
    let seen = begun.next().await.unwrap().id.unwrap();
    links[1].deafen();
    let mut resumed = Events::of(other.resume(&seen).await);
    release.notify_one();
    let more = timeout(Duration::from_secs(1), resumed.next()).await;
    assert_eq!(more.unwrap().unwrap().data["params"]["progress"], 2.0);
    links[1].cut(true);
    let end = timeout(Duration::from_secs(60), resumed.rest()).await;
    assert!(end.expect("it ends").is_empty());
}

#[tokio::test(start_paused = true)]
async fn only_existing_client_streams_can_be_read() {
    let server = calculator();
    let Pair { one, other, .. } = Pair::of([&server, &server]).await;
    for name in ["a1_1", "s1_1", "x_1", "r7_1"] {
        assert_eq!(other.resume(name).await.status(), StatusCode::BAD_REQUEST);
    }
    let ping = request(1, "ping", json!({}));
    assert_eq!(one.post(&ping).await.status(), StatusCode::OK);
    advance(Duration::from_secs(1)).await;
}
