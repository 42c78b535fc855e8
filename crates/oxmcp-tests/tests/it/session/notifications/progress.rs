//! Progress: sent only if it was requested, in order, and all of it before the answer.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use oxmcp::{
    Client, Limits, RequestContext, Revision, Server, Tool,
    protocol::{CreateMessageParams, CreateMessageResult, ProgressParams},
};
use serde_json::{Value, json};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::session::*;

#[tokio::test(start_paused = true)]
async fn nothing_is_sent_without_a_progress_token() {
    let mut peer = client_of(&server(), Revision::V2025_11_25).await;
    for _ in 0..4 {
        let answer = peer.ask(call(1, "stream", json!({"n": 5}))).await.unwrap();
        assert_eq!(text(&answer), "done");
    }
}

#[tokio::test(start_paused = true)]
async fn string_and_integer_tokens_are_returned_unchanged() {
    let mut peer = client_of(&server(), Revision::V2025_11_25).await;
    for token in [
        json!("a \"b\" ü"),
        json!(0),
        json!(-7),
        json!(9_007_199_254_740_993_i64),
        json!("7"),
    ] {
        let params =
            json!({"name": "stream", "arguments": {"n": 1}, "_meta": {"progressToken": token}});
        let update = peer.ask(request(1, "tools/call", params)).await.unwrap();
        assert_eq!(update["params"]["progressToken"], token);
        assert_eq!(text(&peer.receive().await.unwrap()), "done");
    }
    for token in [json!(1.5), json!([]), json!({}), json!(true)] {
        let params =
            json!({"name": "stream", "arguments": {"n": 1}, "_meta": {"progressToken": token}});
        let answer = peer.ask(request(1, "tools/call", params)).await.unwrap();
        // An invalid token is ignored: the call continues, and reports no progress.
        assert_eq!(text(&answer), "done", "{token}");
    }
}

#[tokio::test(start_paused = true)]
async fn ten_thousand_updates_reach_slow_reader_in_order() {
    let limits = Limits::default()
        .max_unsent_bytes(10_000)
        .progress_burst(10_000);
    let mut peer = client_of(&server().limits(limits), Revision::V2025_11_25).await;
    let params =
        json!({"name": "stream", "arguments": {"n": 10_000}, "_meta": {"progressToken": 1}});
    peer.send(request(1, "tools/call", params)).await.unwrap();
    for done in 1..=10_000_u32 {
        if done % 1_000 == 0 {
            sleep(Duration::from_secs(1)).await;
        }
        let update = peer.receive().await.unwrap();
        assert_eq!(update["params"]["progress"], f64::from(done), "{update}");
    }
    assert_eq!(text(&peer.receive().await.unwrap()), "done");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ten_thousand_updates_arrive_before_the_answer() {
    let limits = Limits::default().progress_burst(10_000);
    let server = server().limits(limits);
    for revision in Revision::ALL {
        let session = oxmcp::testing::connect(&server)
            .revision(revision)
            .await
            .unwrap();
        let seen: Arc<Mutex<Vec<f64>>> = Arc::default();
        let log = Arc::clone(&seen);
        session
            .call_tool("stream", json!({"n": 10_000}))
            .on_progress(move |update| log.lock().unwrap().push(update.progress))
            .await
            .unwrap();
        let expected: Vec<_> = (1..=10_000).map(f64::from).collect();
        assert!(*seen.lock().unwrap() == expected, "{revision}");
        session.close().await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn excess_updates_are_dropped_before_the_answer() {
    let limits = Limits::default().max_queued_progress(10);
    let (session, mut peer) = server_of(Client::new("test", "1.0.0").limits(limits)).await;
    let seen: Arc<Mutex<u32>> = Arc::default();
    let log = Arc::clone(&seen);
    let calling = tokio::spawn(async move {
        let call = session.call_tool("stream", json!({}));
        call.on_progress(move |_| *log.lock().unwrap() += 1).await
    });
    let asked = peer.receive().await.unwrap();
    let token = &asked["params"]["_meta"]["progressToken"];
    let update = notification(
        "notifications/progress",
        json!({"progressToken": token, "progress": 1}),
    );
    let mut lines = vec![update.to_string(); 50];
    lines.push(text_result(asked["id"].clone(), "done").to_string());
    peer.send_line(lines.join("\n")).await.unwrap();
    calling.await.unwrap().unwrap();
    assert_eq!(*seen.lock().unwrap(), 10);
}

#[tokio::test(start_paused = true)]
async fn nothing_is_sent_after_the_answer() {
    let late = Tool::new(
        "late",
        "Reports after it has answered",
        |cx: RequestContext| async move {
            tokio::spawn(async move {
                sleep(Duration::from_secs(1)).await;
                cx.progress(1).await;
            });
            "answered"
        },
    );
    let mut peer = client_of(&server().tool(late), Revision::V2025_11_25).await;
    for _ in 0..4 {
        let params = json!({"name": "late", "_meta": {"progressToken": 1}});
        let answer = peer.ask(request(1, "tools/call", params)).await.unwrap();
        assert_eq!(text(&answer), "answered");
        assert_silent(&mut peer).await;
    }
}

#[tokio::test(start_paused = true)]
async fn handler_can_cancel_its_call_despite_queued_updates() {
    let (session, mut peer) = server_of(Client::new("test", "1.0.0")).await;
    let token = CancellationToken::new();
    let seen: Arc<Mutex<u32>> = Arc::default();
    let (log, cancels) = (Arc::clone(&seen), token.clone());
    let calling = tokio::spawn(async move {
        let call = session.call_tool("stream", json!({})).cancel_with(token);
        call.on_progress(move |_| {
            *log.lock().unwrap() += 1;
            cancels.cancel();
        })
        .await
    });
    let asked = peer.receive().await.unwrap();
    let progress_token = &asked["params"]["_meta"]["progressToken"];
    let update = notification(
        "notifications/progress",
        json!({"progressToken": progress_token, "progress": 1}),
    );
    peer.send_line(vec![update.to_string(); 50].join("\n"))
        .await
        .unwrap();
    assert!(calling.await.unwrap().unwrap_err().is_cancelled());
    assert_eq!(*seen.lock().unwrap(), 1);
    assert_cancels(&peer.receive().await.unwrap(), &asked);
}

#[tokio::test]
async fn any_number_is_progress_except_nan() {
    let tool = Tool::new("odd", "Reports oddly", |cx: RequestContext| async move {
        cx.progress(f64::NAN).await;
        cx.progress(1_u64).total(f64::INFINITY).await;
        cx.progress(2_usize).total(3_i64).await;
    });
    let mut peer = client_of(&server().tool(tool), Revision::V2025_11_25).await;
    let params = json!({"name": "odd", "arguments": {}, "_meta": {"progressToken": 1}});
    let first = peer.ask(request(1, "tools/call", params)).await.unwrap();
    assert_eq!(first["params"], json!({"progressToken": 1, "progress": 1}));
    let second = peer.receive().await.unwrap();
    assert_eq!(
        second["params"],
        json!({"progressToken": 1, "progress": 2, "total": 3})
    );
}

fn with_token(id: i64, method: &str, mut params: Value, token: impl Into<Value>) -> Value {
    params["_meta"] = json!({"progressToken": token.into()});
    request(id, method, params)
}

#[tokio::test(start_paused = true)]
async fn server_session_reports_progress_to_the_token_owner() {
    let server = server();
    let mut peer = client_of(&server, Revision::V2024_11_05).await;
    let session = server.sessions().next().unwrap();
    let report = async |token: &'static str| {
        let mut params = ProgressParams::new(token, 1.0);
        params.message = Some("2024-11-05 has no messages".into());
        session.notify_progress(params).await.unwrap();
    };
    for _ in 0..20 {
        report("t").await;
        let slow = json!({"name": "slow", "arguments": {"ms": 10}});
        peer.send(with_token(1, "tools/call", slow, "t"))
            .await
            .unwrap();
        assert_alive(&mut peer).await;
        report("of nobody").await;
        report("t").await;
        let sent = peer.receive().await.unwrap();
        assert_eq!(sent["method"], "notifications/progress");
        assert_eq!(sent["params"], json!({"progressToken": "t", "progress": 1}));
        assert_eq!(text(&peer.receive().await.unwrap()), "slow");
    }
    report("t").await;
    assert_silent(&mut peer).await;
    peer.close().await.unwrap();
    session.wait().await.unwrap();
    let late = session.notify_progress(ProgressParams::new("t", 2.0)).await;
    assert!(late.unwrap_err().is_closed());
}

#[tokio::test(start_paused = true)]
async fn session_reports_progress_for_quick_handlers() {
    let quick = Tool::new("quick", "Reports", |cx: RequestContext| async move {
        let session = cx.server_session().unwrap();
        let update = ProgressParams::new("t", 1.0);
        session.notify_progress(update).await
    });
    let mut peer = client_of(&server().tool(quick), Revision::V2025_11_25).await;
    // The first rounds run on a task, the later ones in the reader.
    for id in 0..6 {
        let quick = json!({"name": "quick"});
        let sent = peer.ask(with_token(id, "tools/call", quick, "t"));
        assert_eq!(sent.await.unwrap()["params"]["progressToken"], "t");
        assert_eq!(peer.receive().await.unwrap()["id"], id);
    }
}

#[tokio::test(start_paused = true)]
async fn client_session_reports_progress_to_the_token_owner() {
    let client = Client::new("c", "1").on_sample(|_: CreateMessageParams| async {
        sleep(Duration::from_millis(10)).await;
        CreateMessageResult::new("abacus", "4")
    });
    let (session, mut peer) = server_of(client).await;
    let report = async || {
        let update = ProgressParams::new(7, 2.0);
        session.notify_progress(update).await.unwrap();
    };
    report().await;
    let sample = json!({"messages": [], "maxTokens": 1});
    peer.send(with_token(1, "sampling/createMessage", sample, 7))
        .await
        .unwrap();
    assert_alive(&mut peer).await;
    report().await;
    let sent = peer.receive().await.unwrap();
    assert_eq!(sent["params"], json!({"progressToken": 7, "progress": 2}));
    assert_eq!(peer.receive().await.unwrap()["id"], 1);
    report().await;
    assert_silent(&mut peer).await;
}

/// Calls a tool with a token, and returns the progress before its answer, each with the time of its arrival.
async fn progress_of(
    server: &Server,
    tool: &'static str,
    arguments: Value,
) -> Vec<(Duration, f64, Value)> {
    let mut peer = client_of(server, Revision::V2025_11_25).await;
    let params = json!({"name": tool, "arguments": arguments, "_meta": {"progressToken": 1}});
    peer.send(request(1, "tools/call", params)).await.unwrap();
    let start = Instant::now();
    let mut updates = Vec::new();
    loop {
        let message = peer.receive().await.unwrap();
        if message["id"] == 1 {
            return updates;
        }
        let progress = message["params"]["progress"].as_f64().unwrap();
        updates.push((
            start.elapsed(),
            progress,
            message["params"]["message"].clone(),
        ));
    }
}

#[tokio::test(start_paused = true)]
async fn nonincreasing_progress_is_not_sent() {
    let tool = Tool::new("t", "", |cx: RequestContext| async move {
        for done in [2.0, 2.0, 1.0, f64::NAN, 2.5, -1.0, 2.25, 3.0] {
            cx.progress(done).await;
        }
        let session = cx.server_session().unwrap();
        for done in [1.0, 4.0, 4.0] {
            let params = ProgressParams::new(1, done);
            session.notify_progress(params).await.unwrap();
        }
    });
    let updates = progress_of(&server().tool(tool), "t", json!({})).await;
    let sent: Vec<_> = updates.iter().map(|it| it.1).collect();
    assert_eq!(sent, [2.0, 2.5, 3.0, 4.0]);
}

#[tokio::test(start_paused = true)]
async fn excess_progress_is_coalesced_and_last_is_kept() {
    // All reports at once: the burst and the last report are sent.
    let updates = progress_of(&server(), "stream", json!({"n": 10_000})).await;
    assert_eq!(updates.len(), 2_049);
    assert_eq!(updates.last().unwrap().1, 10_000.0);
    // As many reports as the burst allows are all sent.
    let updates = progress_of(&server(), "stream", json!({"n": 2_048})).await;
    assert_eq!(updates.len(), 2_048);

    let limits = Limits::default().progress_burst(10).progress_per_second(5);
    let tool = Tool::new("t", "", |cx: RequestContext| async move {
        for done in 1..=1_000 {
            cx.progress(done).message(format!("{done}!")).await;
            sleep(Duration::from_millis(10)).await;
        }
        // The last report is sent while the handler is silent.
        sleep(Duration::from_secs(60)).await;
    });
    let updates = progress_of(&server().limits(limits).tool(tool), "t", json!({})).await;
    // Ten at once, and five per second for some ten seconds.
    assert!((55..=75).contains(&updates.len()), "{}", updates.len());
    assert!(updates.is_sorted_by(|a, b| a.1 < b.1));
    let (time, done, message) = updates.last().unwrap();
    assert_eq!((*done, message), (1_000.0, &json!("1000!")));
    assert!(*time < Duration::from_secs(15), "{time:?}");

    // The last report is sent before an immediate answer, too, whether the handler runs on a task of its own or, after several
    // quick calls, inline.
    let limits = Limits::default().progress_burst(1).progress_per_second(1);
    let server = server().limits(limits);
    for _ in 0..100 {
        let updates = progress_of(&server, "stream", json!({"n": 3})).await;
        let updates: Vec<_> = updates.iter().map(|(_, done, _)| *done).collect();
        assert_eq!(updates, [1.0, 3.0]);
    }
}
