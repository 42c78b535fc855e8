//! Messages that a client posts to one node while another waits for them: answers, cancellations, progress.

use std::{future::IntoFuture, sync::Arc, time::Duration};

use http::{Response, StatusCode};
use oxmcp::{
    JsonSchema, Limits, RequestContext, Server, Tool, ToolError,
    http::{ResponseBody, StreamableHttp},
    store::{EventStore, Replay},
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::{
    sync::{Notify, mpsc},
    time::{Instant, sleep, timeout},
};

use super::pair::{Pair, turns};
use crate::http::server::peer::{Events, LEGACY, Session};
use crate::support::calculator;

/// The number of answers of a session that wait for the store on a node.
const MAX_WAITING: usize = 256;

#[derive(Debug, Deserialize, Serialize, JsonSchema)]
struct Name {
    name: String,
}

fn greeter() -> Server {
    calculator().tool(Tool::new(
        "greet",
        "Greet",
        |cx: RequestContext| async move {
            let Name { name } = cx.ask("name", "Who are you?").await?;
            Ok::<_, ToolError>(format!("Hello, {name}!"))
        },
    ))
}

async fn asking(version: &str) -> Pair {
    let (one, other) = (greeter(), greeter());
    let asked = json!({"elicitation": {}});
    Pair::open([&one, &other], version, asked, Limits::default()).await
}

/// Calls the tool. Returns the rest of the stream, and the id of the elicitation that came on it.
async fn question(session: &Session<StreamableHttp>) -> (Events, Value) {
    let params = json!({"name": "greet", "arguments": {}});
    let mut events = Events::of(session.call(7, "tools/call", params).await);
    loop {
        let event = events.next().await.unwrap();
        if event.data["method"] == "elicitation/create" {
            return (events, event.data["id"].clone());
        }
    }
}

fn answer(id: &Value, name: &str) -> Value {
    let result = json!({"action": "accept", "content": {"name": name}});
    json!({"jsonrpc": "2.0", "id": id, "result": result})
}

async fn greeting(mut events: Events) -> Value {
    let last = timeout(Duration::from_secs(10), events.next()).await;
    let last = last.expect("the answer does not come").unwrap();
    last.data["result"]["content"][0]["text"].clone()
}

async fn post(session: &Session<StreamableHttp>, message: &Value) -> StatusCode {
    let response: Response<ResponseBody> = session.post(message).await;
    response.status()
}

#[tokio::test(start_paused = true)]
async fn question_is_answered_through_another_node_without_bus() {
    let Pair { one, other, links } = asking("2025-06-18").await;
    for link in &links {
        link.lose_messages();
    }
    let (events, id) = question(&one).await;
    let begun = Instant::now();
    assert_eq!(
        post(&other, &answer(&id, "Ann")).await,
        StatusCode::ACCEPTED
    );
    assert_eq!(greeting(events).await, "Hello, Ann!");
    assert!(begun.elapsed() < Duration::from_secs(1));
    // The stream of the answer is not one that the client can resume.
    let place = format!("a{id}_1");
    assert_eq!(one.resume(&place).await.status(), StatusCode::BAD_REQUEST);
    // Only the first answer counts.
    assert_eq!(
        post(&other, &answer(&id, "Bob")).await,
        StatusCode::ACCEPTED
    );
    turns().await;
    let place = format!("a{id}");
    let left = links[0].after(&one.id, &place, 0, 9).await.unwrap();
    let Replay::Events { events, ended } = left else {
        panic!("{left:?}");
    };
    assert!(ended && events.len() == 1, "{events:?}");
}

#[tokio::test(start_paused = true)]
async fn answer_may_spell_its_id_as_text() {
    for is_full in [false, true] {
        let Pair { one, other, links } = asking(LEGACY).await;
        for link in &links {
            link.fill(is_full);
        }
        let (events, id) = question(&one).await;
        let answer = answer(&json!(id.to_string()), "Ann");
        assert_eq!(post(&other, &answer).await, StatusCode::ACCEPTED);
        assert_eq!(greeting(events).await, "Hello, Ann!", "{is_full}");
    }
}

#[tokio::test(start_paused = true)]
async fn progress_of_a_question_may_spell_its_token_as_text() {
    for at_home in [true, false] {
        let server = calculator();
        let servers = [&server, &calculator()];
        let (asked, limits) = (json!({"roots": {}}), Limits::default());
        let Pair { one, other, .. } = Pair::open(servers, LEGACY, asked, limits).await;
        let mut stream = Events::of(one.get().await);
        let asking = server.sessions().next().unwrap();
        let (told, mut heard) = mpsc::channel(1);
        let question = asking
            .list_roots()
            .on_progress(move |progress| told.try_send(progress.progress.to_string()).unwrap());
        let question = tokio::spawn(question.into_future());
        let asked = loop {
            let event = stream.next().await.unwrap().data;
            if event["method"] == "roots/list" {
                break event;
            }
        };
        let token = &asked["params"]["_meta"]["progressToken"];
        let progress = json!({"jsonrpc": "2.0", "method": "notifications/progress",
            "params": {"progressToken": token.to_string(), "progress": 1}});
        let node = if at_home { &one } else { &other };
        assert_eq!(post(node, &progress).await, StatusCode::ACCEPTED);
        let reached = timeout(Duration::from_secs(1), heard.recv()).await;
        assert_eq!(reached.unwrap().as_deref(), Some("1"), "{at_home}");
        question.abort();
    }
}

/// The client cannot know which node has asked, and does not repeat an answer that was refused.
#[tokio::test(start_paused = true)]
async fn answer_reaches_its_node_through_a_closing_one() {
    for has_closed in [false, true] {
        let Pair { one, other, .. } = asking(LEGACY).await;
        let (events, id) = question(&one).await;
        let (_busy, _) = question(&other).await;
        let closing = other.endpoint.clone();
        let closing = tokio::spawn(async move { closing.close().await });
        if has_closed {
            closing.await.unwrap();
        } else {
            turns().await;
        }
        assert_eq!(
            post(&other, &answer(&id, "Ann")).await,
            StatusCode::ACCEPTED
        );
        assert_eq!(greeting(events).await, "Hello, Ann!");
    }
}

#[tokio::test(start_paused = true)]
async fn batched_answers_reach_the_asking_nodes() {
    let server = calculator().tool(Tool::new(
        "roots",
        "Count",
        |cx: RequestContext| async move { Ok::<_, ToolError>(cx.roots().await?.len()) },
    ));
    let limits = Limits::default();
    let servers = [&server, &calculator()];
    let pair = Pair::open(servers, "2025-03-26", json!({"roots": {}}), limits).await;
    let Pair { one, other, .. } = pair;
    let params = json!({"name": "roots", "arguments": {}});
    let mut events = Events::of(one.call(7, "tools/call", params).await);
    let question = events.next().await.unwrap().data;
    assert_eq!(question["method"], "roots/list");
    let roots = json!({"roots": [{"uri": "file:///a"}, {"uri": "file:///b"}]});
    let answer = json!({"jsonrpc": "2.0", "id": question["id"], "result": roots});
    assert_eq!(post(&other, &json!([answer])).await, StatusCode::ACCEPTED);
    assert_eq!(greeting(events).await, "2");
}

#[tokio::test(start_paused = true)]
async fn unannounced_answer_is_found_soon() {
    let Pair { one, other, links } = asking(LEGACY).await;
    links[0].deafen();
    let (mut events, id) = question(&one).await;
    assert_eq!(
        post(&other, &answer(&id, "Ann")).await,
        StatusCode::ACCEPTED
    );
    let found = timeout(Duration::from_secs(31), events.next()).await;
    assert!(found.unwrap().unwrap().data["result"].is_object());
}

#[tokio::test(start_paused = true)]
async fn question_answered_locally_is_over_everywhere() {
    let Pair { one, other, links } = asking(LEGACY).await;
    let (events, id) = question(&one).await;
    assert_eq!(post(&one, &answer(&id, "Ann")).await, StatusCode::ACCEPTED);
    assert_eq!(greeting(events).await, "Hello, Ann!");
    turns().await;
    links[1].asked();
    assert_eq!(
        post(&other, &answer(&id, "Eve")).await,
        StatusCode::ACCEPTED
    );
    assert_eq!(links[1].asked(), ["after"], "nobody waits any more");
}

#[tokio::test(start_paused = true)]
async fn answers_without_a_question_are_not_stored() {
    let Pair { one, other, links } = asking(LEGACY).await;
    for id in [json!(12345), json!(-1), json!("x"), json!(0)] {
        assert_eq!(
            post(&other, &answer(&id, "Eve")).await,
            StatusCode::ACCEPTED
        );
    }
    assert!(!links[1].asked().contains(&"append"));
    let left = links[0].after(&one.id, "a12345", 0, 9).await.unwrap();
    assert_eq!(left, Replay::Lost);
}

/// The greeting, which comes once the nodes have found each other again.
async fn late_greeting(events: Events) -> Value {
    let rest = timeout(Duration::from_secs(60), events.rest()).await;
    let last = rest.expect("the answer does not come").pop().unwrap();
    last.data["result"]["content"][0]["text"].clone()
}

#[tokio::test(start_paused = true)]
async fn answer_waits_until_store_is_available_again() {
    let Pair { one, other, links } = asking(LEGACY).await;
    let (events, id) = question(&one).await;
    links[1].cut(true);
    let status = post(&other, &answer(&id, "Ann")).await;
    assert_eq!(status, StatusCode::ACCEPTED);
    sleep(Duration::from_secs(60)).await;
    links[1].cut(false);
    assert_eq!(late_greeting(events).await, "Hello, Ann!");
}

#[tokio::test(start_paused = true)]
async fn question_asked_without_the_store_is_answered() {
    let Pair { one, other, links } = asking(LEGACY).await;
    for link in &links {
        link.cut(true);
        link.lose_messages();
    }
    let (events, id) = question(&one).await;
    let status = post(&other, &answer(&id, "Ann")).await;
    assert_eq!(status, StatusCode::ACCEPTED);
    for link in &links {
        link.cut(false);
    }
    assert_eq!(late_greeting(events).await, "Hello, Ann!");
}

#[tokio::test(start_paused = true)]
async fn full_store_does_not_delay_answers() {
    let Pair { one, other, links } = asking(LEGACY).await;
    for link in &links {
        link.fill(true);
    }
    let (events, id) = question(&one).await;
    let status = post(&other, &answer(&id, "Ann")).await;
    assert_eq!(status, StatusCode::ACCEPTED);
    assert_eq!(greeting(events).await, "Hello, Ann!");
    // An answer to a question for which there was room waits for room.
    links[0].fill(false);
    let (events, id) = question(&one).await;
    post(&other, &answer(&id, "Eve")).await;
    links[1].fill(false);
    assert_eq!(late_greeting(events).await, "Hello, Eve!");
}

/// Without a confirmation each answer would be repeated for half a minute, and leave no room for answers that nobody has.
#[tokio::test(start_paused = true)]
async fn confirmed_answers_leave_room_for_others() {
    let Pair { one, other, links } = asking(LEGACY).await;
    for link in &links {
        link.fill(true);
    }
    for _ in 0..=MAX_WAITING {
        let (events, id) = question(&one).await;
        let status = post(&other, &answer(&id, "Ann")).await;
        assert_eq!(status, StatusCode::ACCEPTED);
        assert_eq!(greeting(events).await, "Hello, Ann!");
    }
    let (events, id) = question(&one).await;
    links[1].cut(true);
    let status = post(&other, &answer(&id, "Eve")).await;
    assert_eq!(status, StatusCode::ACCEPTED);
    links[1].cut(false);
    assert_eq!(late_greeting(events).await, "Hello, Eve!");
}

#[tokio::test(start_paused = true)]
async fn answers_waiting_for_the_store_are_limited() {
    let Pair { one, other, links } = asking(LEGACY).await;
    links[1].cut(true);
    for id in 1..=MAX_WAITING {
        let status = post(&other, &answer(&json!(id), "Ann")).await;
        assert_eq!(status, StatusCode::ACCEPTED);
    }
    let refused = other.post(&answer(&json!(MAX_WAITING + 1), "Ann")).await;
    assert_eq!(refused.status(), StatusCode::SERVICE_UNAVAILABLE);
    assert!(refused.headers().contains_key("retry-after"));
    links[1].cut(false);
    sleep(Duration::from_secs(30)).await;
    let (events, id) = question(&one).await;
    post(&other, &answer(&id, "Ann")).await;
    assert_eq!(greeting(events).await, "Hello, Ann!");
}

/// A server whose tool waits until it is cancelled, and reports that.
fn waiting(cancelled: &Arc<Notify>) -> Server {
    let cancelled = Arc::clone(cancelled);
    calculator().tool(Tool::new("wait", "Wait", move |cx: RequestContext| {
        let cancelled = Arc::clone(&cancelled);
        async move {
            cx.progress(1).await;
            cx.cancelled().await;
            cancelled.notify_one();
        }
    }))
}

#[tokio::test(start_paused = true)]
async fn cancellation_may_spell_its_id_as_text() {
    for at_home in [true, false] {
        let cancelled = Arc::new(Notify::new());
        let server = waiting(&cancelled);
        let servers = [&server, &calculator()];
        let pair = Pair::open(servers, LEGACY, json!({}), Limits::default()).await;
        let params = json!({"name": "wait", "arguments": {}, "_meta": {"progressToken": "t"}});
        let mut events = Events::of(pair.one.call(7, "tools/call", params).await);
        events.next().await.unwrap();
        let cancel = json!({"jsonrpc": "2.0", "method": "notifications/cancelled",
            "params": {"requestId": "7"}});
        let node = if at_home { &pair.one } else { &pair.other };
        assert_eq!(post(node, &cancel).await, StatusCode::ACCEPTED);
        let reached = timeout(Duration::from_secs(1), cancelled.notified()).await;
        assert!(reached.is_ok(), "{at_home}");
    }
}

#[tokio::test(start_paused = true)]
async fn call_is_cancelled_through_another_node() {
    for (is_lost, is_batch) in [(false, false), (true, false), (false, true)] {
        let cancelled = Arc::new(Notify::new());
        let server = waiting(&cancelled);
        let version = if is_batch { "2025-03-26" } else { LEGACY };
        let limits = Limits::default();
        let servers = [&server, &calculator()];
        let Pair { one, other, links } = Pair::open(servers, version, json!({}), limits).await;
        if is_lost {
            links[1].lose_messages();
        }
        let params = json!({"name": "wait", "arguments": {}, "_meta": {"progressToken": "t"}});
        let mut events = Events::of(one.call(7, "tools/call", params).await);
        events.next().await.unwrap();
        let cancel = |id: i64| {
            let cancel = json!({"jsonrpc": "2.0", "method": "notifications/cancelled",
                "params": {"requestId": id}});
            if is_batch { json!([cancel]) } else { cancel }
        };
        assert_eq!(post(&other, &cancel(8)).await, StatusCode::ACCEPTED);
        let other_one = timeout(Duration::from_secs(1), cancelled.notified()).await;
        assert!(other_one.is_err(), "it was another request");
        assert_eq!(post(&other, &cancel(7)).await, StatusCode::ACCEPTED);
        let reached = timeout(Duration::from_secs(1), cancelled.notified()).await;
        assert_eq!(reached.is_err(), is_lost);
    }
}
