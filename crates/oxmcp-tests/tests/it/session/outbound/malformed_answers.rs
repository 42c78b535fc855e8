//! Malformed answers: the pending call fails at once.

use std::{
    future::IntoFuture,
    sync::{Arc, Mutex},
};

use oxmcp::{Client, Error, Limits, Revision, protocol::ProgressParams};

use crate::session::*;

/// The result of a ping with this answer. `ID` in the answer is replaced by the id.
async fn ping_answered(
    session: &ClientSession,
    peer: &mut ScriptedPeer,
    answer: &[u8],
) -> Result<(), Error> {
    let pinging = tokio::spawn({
        let session = session.clone();
        async move { session.ping().await }
    });
    let id = peer.receive().await.unwrap()["id"].to_string();
    let place = answer.windows(2).position(|it| it == b"ID").unwrap();
    let line = [&answer[..place], id.as_bytes(), &answer[place + 2..]].concat();
    peer.send_line(line).await.unwrap();
    let answered = timeout(Duration::from_secs(1), pinging).await;
    answered.expect("nobody waits for what has come").unwrap()
}

async fn assert_malformed(session: &ClientSession, peer: &mut ScriptedPeer, answer: &[u8]) {
    let error = ping_answered(session, peer, answer).await.unwrap_err();
    let shown = answer.escape_ascii();
    assert!(error.message().contains("malformed"), "{shown}: {error}");
    let whole = br#"{"jsonrpc":"2.0","id":ID,"result":{}}"#;
    ping_answered(session, peer, whole).await.unwrap();
}

fn nested(depth: usize) -> String {
    "[".repeat(depth) + &"]".repeat(depth)
}

#[tokio::test(start_paused = true)]
async fn malformed_answer_fails_its_call_at_once() {
    let (session, mut peer) = server_of(Client::new("test", "1.0.0").strict()).await;
    let (deep, very_deep) = (nested(200), nested(100_000));
    for answer in [
        r#"{"jsonrpc":"2.0","id":ID,"result":{},"error":{"code":1,"message":"both"}}"#,
        r#"{"jsonrpc":"2.0","id":ID,"error":"no object"}"#,
        r#"{"jsonrpc":"2.0","id":ID,"result":{},"method":"both"}"#,
        r#"{"jsonrpc":"2.0","id":ID,"result":"#,
        r#"{"jsonrpc":"2.0","id":ID,"result":{"a":"#,
        r#"{"jsonrpc":"2.0","id":ID,"result":{}} {}"#,
        r#"{"jsonrpc":"2.0","id":ID,"result":{},"result":{}}"#,
        r#"{"jsonrpc":"2.0","result":{},"id":ID,"jsonrpc":"2.0"}"#,
        r#"{"jsonrpc":"2.0","id":ID,"result":{"a":1,}}"#,
        &format!(r#"{{"jsonrpc":"2.0","id":ID,"result":{{"a":{deep}}}}}"#),
        &format!(r#"{{"jsonrpc":"2.0","result":{{"a":{very_deep}}},"id":ID}}"#),
    ] {
        assert_malformed(&session, &mut peer, answer.as_bytes()).await;
    }
    let no_text = b"{\"jsonrpc\":\"2.0\",\"id\":ID,\"result\":{\"a\":\"\xff\"}}";
    assert_malformed(&session, &mut peer, no_text).await;
}

#[tokio::test(start_paused = true)]
async fn answers_in_refused_batch_fail_their_calls() {
    let (session, mut peer) = server_of(Client::new("test", "1.0.0")).await;
    let one = br#"[{"jsonrpc":"2.0","id":ID,"result":{}}]"#;
    assert_malformed(&session, &mut peer, one).await;
    let as_text = br#"[{"jsonrpc":"2.0","id":"ID","result":{}}]"#;
    assert_malformed(&session, &mut peer, as_text).await;

    let limits = Limits::default().max_batch(2);
    let client = Client::new("test", "1.0.0").limits(limits);
    let (session, mut peer) = server_in(client, Revision::V2025_03_26).await;
    ping_answered(&session, &mut peer, one).await.unwrap();
    for answer in [
        &br#"[1, 2, {"jsonrpc":"2.0","id":ID,"result":{}}]"#[..],
        br#"[{"jsonrpc":"2.0","id":ID,"result":{}}"#,
        br#"[{"jsonrpc":"2.0","id":ID,"result":{}},]"#,
        br#"[{"jsonrpc":"2.0","id":ID,"result":{}}] 2"#,
        br#"[{"jsonrpc":"2.0","id":ID,"result":{},"result":{}}]"#,
    ] {
        assert_malformed(&session, &mut peer, answer).await;
    }
}

/// All messages in one write: messages that arrive together have the same effect as messages that arrive one by one.
#[tokio::test(start_paused = true)]
async fn answers_and_notifications_keep_their_order() {
    let (session, mut peer) = server_of(Client::new("test", "1.0.0")).await;
    let seen = Arc::new(Mutex::new(Vec::new()));
    let mut calls = Vec::new();
    for tool in ["a", "b", "c"] {
        let log = Arc::clone(&seen);
        let note = move |update: ProgressParams| log.lock().unwrap().push(update.progress);
        let call = session.call_tool(tool, ()).on_progress(note);
        calls.push(tokio::spawn(call.into_future()));
    }
    let mut ids = Vec::new();
    for _ in 0..3 {
        ids.push(peer.receive().await.unwrap()["id"].clone());
    }
    let progress = |of: usize, progress: u32| {
        let params = json!({"progressToken": ids[of], "progress": progress});
        notification("notifications/progress", params)
    };
    let answer = |of: usize, text: &str| text_result(ids[of].clone(), text);
    let messages = [
        answer(0, "first"),
        progress(0, 1),
        progress(1, 2),
        answer(1, "second"),
        answer(1, "again"),
        progress(1, 3),
        text_result(1_000_000, "nobody's"),
        text_result("1", "a string's"),
        ping("between"),
        progress(2, 4),
        answer(2, "third"),
    ];
    let lines: Vec<_> = messages.iter().map(Value::to_string).collect();
    peer.send_line(lines.join("\n")).await.unwrap();
    for (call, expected) in calls.into_iter().zip(["first", "second", "third"]) {
        assert_eq!(call.await.unwrap().unwrap().as_text(), Some(expected));
    }
    assert_eq!(*seen.lock().unwrap(), [2.0, 4.0]);
    assert_eq!(peer.receive().await.unwrap()["id"], "between");
}

#[tokio::test(start_paused = true)]
async fn servers_calls_fail_in_the_same_way() {
    let (mut peer, transport) = ScriptedPeer::new().await;
    let session = server().connect(transport).await.unwrap();
    peer.initialize(Revision::V2025_11_25).await.unwrap();
    let pinging = tokio::spawn(async move { session.ping().await });
    let id = peer.receive().await.unwrap()["id"].clone();
    let cut = format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"#);
    peer.send_line(cut).await.unwrap();
    let refused = peer.receive().await.unwrap();
    assert_eq!(refused["id"], Value::Null);
    assert_eq!(refused["error"]["code"], -32700);
    let error = pinging.await.unwrap().unwrap_err();
    assert!(error.message().contains("malformed"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn oversized_answer_fails_its_call_at_once() {
    let limits = Limits::default().max_message_bytes(1 << 10);
    let (session, mut peer) = server_of(Client::new("test", "1.0.0").limits(limits)).await;
    let long = "x".repeat(1 << 20);
    let answer = format!(r#"{{"jsonrpc":"2.0","id":ID,"result":{{"long":"{long}"}}}}"#);
    let error = ping_answered(&session, &mut peer, answer.as_bytes()).await;
    let error = error.unwrap_err();
    assert!(error.is_limit(), "{error}");
    assert!(error.message().contains("1024 bytes"), "{error}");
    let whole = br#"{"jsonrpc":"2.0","id":ID,"result":{}}"#;
    ping_answered(&session, &mut peer, whole).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn unrelated_messages_fail_no_call() {
    let (session, mut peer) = server_of(Client::new("test", "1.0.0").strict()).await;
    let pinging = tokio::spawn({
        let session = session.clone();
        async move { session.ping().await }
    });
    let id = peer.receive().await.unwrap()["id"].to_string();
    let log = r#"{"level":"info","id":ID,"msg":"listening"}"#.replace("ID", &id);
    peer.send_line(log).await.unwrap();
    let by_position = r#"{"jsonrpc":"2.0","id":ID,"method":"sampling/createMessage","params":[]}"#;
    peer.send_line(by_position.replace("ID", &id))
        .await
        .unwrap();
    // The message is a request of the server with an id of its own, and is refused.
    let refused = peer.receive().await.unwrap();
    assert_eq!(
        (refused["id"].to_string(), &refused["error"]["code"]),
        (id.clone(), &json!(-32600))
    );
    let pong = r#"{"jsonrpc":"2.0","id":ID,"result":{}}"#.replace("ID", &id);
    peer.send_line(pong).await.unwrap();
    pinging.await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn refusals_join_the_answer_to_their_batch() {
    let client = Client::new("test", "1.0.0");
    let (_session, mut peer) = server_in(client, Revision::V2025_03_26).await;
    let by_position = r#"{"jsonrpc":"2.0","id":7,"method":"ping","params":[]}"#;
    let batch = format!(r#"[{by_position},{{"jsonrpc":"2.0","id":8,"method":"ping"}}]"#);
    peer.send_line(batch).await.unwrap();
    let answers = peer.receive().await.unwrap();
    let ids: Vec<_> = answers
        .as_array()
        .unwrap()
        .iter()
        .map(|it| &it["id"])
        .collect();
    assert_eq!(ids, [7, 8], "{answers}");
}
