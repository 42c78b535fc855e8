//! Messages that are odd and still clear: byte order marks, ids in another spelling, errors without an id, and noise.

use std::{future::IntoFuture, sync::Arc};

use oxmcp::{
    Error, ErrorCode, Result,
    testing::ScriptedPeer,
    transport::{io, stream},
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt, duplex},
    sync::Notify,
    task::JoinHandle,
    time::Instant,
};

use crate::session::*;

const MARK: &str = "\u{feff}";
/// A time limit far below the timeout of a call.
const SOON: Duration = Duration::from_secs(10);

/// Sends a message with text in front of it.
async fn send_after(peer: &mut ScriptedPeer, front: &str, message: &Value) {
    peer.send_line(format!("{front}{message}")).await.unwrap();
}

fn pinging(session: &ClientSession) -> JoinHandle<Result<()>> {
    let session = session.clone();
    tokio::spawn(async move { session.ping().await })
}

async fn answered<T>(call: JoinHandle<Result<T>>) -> Result<T> {
    let answer = timeout(SOON, call).await;
    answer.expect("the call was not answered").unwrap()
}

#[tokio::test(start_paused = true)]
async fn servers_skip_one_byte_order_mark_per_line() {
    for revision in Revision::ALL.into_iter().filter(|it| !it.is_modern()) {
        let mut peer = client_of(&server(), revision).await;
        for front in [MARK, " \t\u{feff}", "\u{feff} "] {
            send_after(&mut peer, front, &ping(1)).await;
            let answer = peer.receive().await.unwrap();
            assert_eq!(answer["result"], json!({}), "{revision} {front:?}");
        }
        send_after(&mut peer, "\u{feff}\u{feff}", &ping(1)).await;
        let answer = peer.receive().await.unwrap();
        assert_eq!(answer["error"]["code"], -32700, "{revision}");
        // A line of a mark alone is blank.
        peer.send_line(MARK).await.unwrap();
        assert_alive(&mut peer).await;
    }
    let mut peer = client_of(&server(), Revision::V2025_03_26).await;
    send_after(&mut peer, MARK, &json!([ping(1), ping(2)])).await;
    assert_eq!(peer.receive().await.unwrap().as_array().unwrap().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn lines_with_byte_order_marks_open_sessions() {
    for revision in Revision::ALL {
        let (mut peer, transport) = ScriptedPeer::new().await;
        server().connect(transport).await.unwrap();
        let first = if revision.is_modern() {
            crate::support::modern(1, "server/discover", json!({}))
        } else {
            let info = json!({"name": "c", "version": "1"});
            request(
                1,
                "initialize",
                json!({"protocolVersion": revision.as_str(), "capabilities": {}, "clientInfo": info}),
            )
        };
        send_after(&mut peer, MARK, &first).await;
        let answer = peer.receive().await.unwrap();
        assert!(answer["result"].is_object(), "{revision}: {answer}");
    }
}

#[tokio::test(start_paused = true)]
async fn clients_skip_one_byte_order_mark_per_line() {
    let (session, mut peer) = server_of(Client::new("test", "1.0.0")).await;
    for front in [MARK, " \u{feff}"] {
        let call = pinging(&session);
        let asked = peer.receive().await.unwrap();
        let answer = json!({"jsonrpc": "2.0", "id": asked["id"], "result": {}});
        send_after(&mut peer, front, &answer).await;
        answered(call).await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn byte_order_marks_and_blank_lines_are_skipped() {
    let (ours, mut theirs) = duplex(1 << 16);
    server().connect(stream(ours)).await.unwrap();
    let opening = r#"{"jsonrpc":"2.0","id":"a","method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}"#;
    let text = format!(
        "{MARK}\r\n\r\n \t\r\n{MARK}{opening}\r\n\n{MARK}{}",
        ping("b")
    );
    theirs.write_all(text.as_bytes()).await.unwrap();
    theirs.shutdown().await.unwrap();
    let mut answers = String::new();
    theirs.read_to_string(&mut answers).await.unwrap();
    assert_eq!(answers.lines().count(), 2, "{answers}");
    assert!(!answers.contains("error"), "{answers}");
}

#[tokio::test(start_paused = true)]
async fn answer_with_byte_order_mark_bypasses_backlog() {
    let limits = oxmcp::Limits::default().max_unsent_bytes(1);
    let (session, mut peer) = server_of(Client::new("test", "1.0.0").limits(limits)).await;
    let call = pinging(&session);
    let asked = peer.receive().await.unwrap();
    let answer = json!({"jsonrpc": "2.0", "id": asked["id"], "result": {}});
    for _ in 0..3 {
        peer.send(ping(1)).await.unwrap();
    }
    send_after(&mut peer, MARK, &answer).await;
    answered(call).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn response_ids_in_another_spelling_match() {
    let (session, mut peer) = server_of(Client::new("test", "1.0.0")).await;
    for spell in [
        |id: i64| json!(id.to_string()),
        |id| json!(format!(" {id}")),
        |id| json!(format!("{id}.0")),
        #[expect(clippy::cast_precision_loss, reason = "the ids of the test are small")]
        |id| json!(id as f64),
    ] {
        let call = pinging(&session);
        let asked = peer.receive().await.unwrap();
        let id = spell(asked["id"].as_i64().unwrap());
        let answer = json!({"jsonrpc": "2.0", "id": id, "result": {}});
        peer.send(answer).await.unwrap();
        answered(call).await.unwrap();
        let call = pinging(&session);
        let asked = peer.receive().await.unwrap();
        let id = spell(asked["id"].as_i64().unwrap());
        let error = json!({"code": -32000, "message": "not now"});
        peer.send(json!({"jsonrpc": "2.0", "id": id, "error": error}))
            .await
            .unwrap();
        let error = answered(call).await.unwrap_err();
        assert_eq!(error.message(), "not now");
    }
    // Text that is the number of no call is ignored.
    let call = pinging(&session);
    let asked = peer.receive().await.unwrap();
    for id in [json!("999"), json!("x"), json!("")] {
        peer.send(json!({"jsonrpc": "2.0", "id": id, "result": {}}))
            .await
            .unwrap();
    }
    let answer = json!({"jsonrpc": "2.0", "id": asked["id"], "result": {}});
    peer.send(answer).await.unwrap();
    answered(call).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn progress_token_returned_as_text_is_recognized() {
    let (session, mut peer) = server_of(Client::new("test", "1.0.0")).await;
    let heard = Arc::new(Notify::new());
    let hears = Arc::clone(&heard);
    let call = session
        .call_tool("t", json!({}))
        .on_progress(move |_| hears.notify_one());
    let call = tokio::spawn(call.into_future());
    let asked = peer.receive().await.unwrap();
    let token = asked["params"]["_meta"]["progressToken"].to_string();
    let params = json!({"progressToken": token, "progress": 1});
    peer.send(notification("notifications/progress", params))
        .await
        .unwrap();
    timeout(SOON, heard.notified()).await.unwrap();
    call.abort();
}

#[tokio::test(start_paused = true)]
async fn cancellation_id_in_another_spelling_matches() {
    for (id, named) in [
        (json!(7), json!("7")),
        (json!("7"), json!(7)),
        (json!(7), json!(7.0)),
    ] {
        let mut peer = client_of(&server(), Revision::V2025_11_25).await;
        peer.send(call(id, "stuck", json!({}))).await.unwrap();
        peer.send(cancel(named.clone())).await.unwrap();
        // The cancelled id is free again.
        assert_alive(&mut peer).await;
        sleep(Duration::from_secs(2)).await;
        peer.send(call(json!(7), "fast", json!({}))).await.unwrap();
        let answer = peer.receive().await.unwrap();
        assert!(answer["result"].is_object(), "{named}: {answer}");
    }
}

fn without_id(message: &str) -> [Value; 2] {
    let error = json!({"code": -32600, "message": message});
    [
        json!({"jsonrpc": "2.0", "id": null, "error": error}),
        json!({"jsonrpc": "2.0", "error": error}),
    ]
}

/// Answers a call as usual.
async fn exchange(session: &ClientSession, peer: &mut ScriptedPeer) {
    let call = pinging(session);
    let asked = peer.receive().await.unwrap();
    let answer = json!({"jsonrpc": "2.0", "id": asked["id"], "result": {}});
    peer.send(answer).await.unwrap();
    answered(call).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn error_without_id_answers_the_only_call() {
    for is_first in [true, false] {
        for error in without_id("I do not like it") {
            let (session, mut peer) = server_of(Client::new("test", "1.0.0")).await;
            if !is_first {
                exchange(&session, &mut peer).await;
            }
            let call = pinging(&session);
            peer.receive().await.unwrap();
            peer.send(error).await.unwrap();
            let error = answered(call).await.unwrap_err();
            assert_eq!(error.message(), "I do not like it");
            assert_eq!(error.code(), ErrorCode::INVALID_REQUEST);
            exchange(&session, &mut peer).await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn error_without_id_fails_none_of_several_calls() {
    let (session, mut peer) = server_of(Client::new("test", "1.0.0")).await;
    exchange(&session, &mut peer).await;
    let calls = [pinging(&session), pinging(&session)];
    let asked = [peer.receive().await.unwrap(), peer.receive().await.unwrap()];
    for error in without_id("no") {
        peer.send(error).await.unwrap();
    }
    for asked in asked {
        let answer = json!({"jsonrpc": "2.0", "id": asked["id"], "result": {}});
        peer.send(answer).await.unwrap();
    }
    for call in calls {
        answered(call).await.unwrap();
    }
}

/// Some servers respond to notifications, with an error.
#[tokio::test(start_paused = true)]
async fn error_about_a_notification_fails_no_call() {
    let [error, _] = without_id("Method not found");
    let (session, mut peer) = server_of(Client::new("test", "1.0.0")).await;
    // The call is sent after `notifications/initialized`.
    let call = pinging(&session);
    let asked = peer.receive().await.unwrap();
    peer.send(error.clone()).await.unwrap();
    sleep(Duration::from_secs(1)).await;
    let answer = json!({"jsonrpc": "2.0", "id": asked["id"], "result": {}});
    peer.send(answer).await.unwrap();
    answered(call).await.unwrap();
    // The notification is sent after the call.
    let slow = pinging(&session);
    let asked = peer.receive().await.unwrap();
    let dropped = pinging(&session);
    peer.receive().await.unwrap();
    dropped.abort();
    assert_eq!(
        peer.receive().await.unwrap()["method"],
        "notifications/cancelled"
    );
    peer.send(error.clone()).await.unwrap();
    sleep(Duration::from_secs(30)).await;
    let answer = json!({"jsonrpc": "2.0", "id": asked["id"], "result": {}});
    peer.send(answer).await.unwrap();
    answered(slow).await.unwrap();
    // A call that was sent after the notification is answered, so that the notification is not.
    let call = pinging(&session);
    let asked = peer.receive().await.unwrap();
    let answer = json!({"jsonrpc": "2.0", "id": asked["id"], "result": {}});
    peer.send(answer).await.unwrap();
    answered(call).await.unwrap();
    let failing = pinging(&session);
    peer.receive().await.unwrap();
    let start = Instant::now();
    peer.send(error).await.unwrap();
    answered(failing).await.unwrap_err();
    assert_eq!(start.elapsed(), Duration::ZERO);
}

/// Log lines and other noise on the output of a server, before the session is open and later.
#[tokio::test(start_paused = true)]
async fn server_noise_does_not_end_the_session() {
    let noise: [&[u8]; 12] = [
        b"starting up ...",
        b"\x1b[32mINFO\x1b[0m listening",
        b"[2026-01-01 12:00:00] INFO: ready",
        b"[info] ready",
        b"{not json}",
        b"{\"level\":\"info\",\"msg\":\"ready\"}",
        b"\xff\xfe{\x00}\x00",
        b"caf\xe9",
        b"null",
        b"[]",
        b"{}",
        b"\x00\x00",
    ];
    let (mut peer, transport) = ScriptedPeer::new().await;
    let client = Client::new("test", "1.0.0").revisions([Revision::V2025_11_25]);
    let opening = tokio::spawn(async move { client.connect(transport).await });
    for line in noise {
        peer.send_line(line).await.unwrap();
    }
    accept(&mut peer).await;
    let session = opening.await.unwrap().unwrap();
    for line in noise {
        peer.send_line(line).await.unwrap();
        exchange(&session, &mut peer).await;
    }
}

/// A stream whose other end writes the text and then waits.
#[tokio::test(start_paused = true)]
async fn server_behind_pipe_may_send_byte_order_mark() {
    let (ours, theirs) = duplex(1 << 16);
    let (read, write) = tokio::io::split(ours);
    let (mut their_read, mut their_write) = tokio::io::split(theirs);
    let client = Client::new("test", "1.0.0").revisions([Revision::V2025_06_18]);
    let opening = tokio::spawn(async move { client.connect(io(read, write)).await });
    let mut asked = vec![0; 4096];
    let length = their_read.read(&mut asked).await.unwrap();
    let asked: Value = serde_json::from_slice(&asked[..length]).unwrap();
    let result = json!({"protocolVersion": "2025-06-18", "capabilities": {},
        "serverInfo": {"name": "s", "version": "1"}});
    let answer = json!({"jsonrpc": "2.0", "id": asked["id"], "result": result});
    let line = format!("{MARK}{answer}\r\n");
    their_write.write_all(line.as_bytes()).await.unwrap();
    let opened: Result<ClientSession, Error> = opening.await.unwrap();
    assert_eq!(opened.unwrap().revision(), Revision::V2025_06_18);
}
