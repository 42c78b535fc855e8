//! Malformed answers: the waiting call fails at once.

use std::time::Duration;

use oxmcp::{ClientSession, Error};
use serde_json::json;
use tokio::time::timeout;

use crate::http::client::peer::{Asked, Peer, both, discover, text};

/// Long before a call times out.
const AT_ONCE: Duration = Duration::from_secs(2);

async fn call(session: &ClientSession) -> Result<String, Error> {
    let calling = timeout(AT_ONCE, async { session.call_tool("add", json!({})).await });
    let answer = calling.await.expect("nobody waits for what has come");
    answer.map(|result| result.to_text())
}

/// What a call gets that is answered so. The session goes on.
async fn answered(
    peer: &mut Peer,
    session: &ClientSession,
    answer: impl FnOnce(Asked),
) -> Result<String, Error> {
    let (result, ()) = both(call(session), async {
        answer(peer.post("tools/call").await);
    })
    .await;
    let (next, ()) = both(call(session), async {
        peer.post("tools/call").await.result(text("3"));
    })
    .await;
    assert_eq!(next.unwrap(), "3", "the session goes on");
    result
}

#[tokio::test(start_paused = true)]
async fn attack_7_no_depth_of_brackets_is_gone_into() {
    let brackets = "[".repeat(100_000) + &"]".repeat(100_000);
    let (mut peer, session) = discover().await;
    let error = answered(&mut peer, &session, |asked| {
        asked.text(200, "application/json", brackets.clone());
    });
    let error = error.await.unwrap_err();
    assert!(error.message().contains("does not answer"), "{error}");
    let answer = answered(&mut peer, &session, |asked| {
        let answer = asked.reply_to(text("3"));
        let events = asked.events();
        events.raw(format!("data: {brackets}\n\n"));
        events.message(&answer);
    });
    assert_eq!(answer.await.unwrap(), "3");
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_cannot_be_read_fails_its_call_at_once() {
    let (mut peer, session) = discover().await;
    let deep = "[".repeat(200) + &"]".repeat(200);
    for answer in [
        r#"{"jsonrpc":"2.0","id":ID,"result":"#,
        r#"{"jsonrpc":"2.0","id":ID,"result":{}} {}"#,
        r#"{"jsonrpc":"2.0","id":ID,"result":{},"result":{}}"#,
        r#"{"jsonrpc":"2.0","id":ID,"jsonrpc":"2.0","error":{"code":1,"message":""}}"#,
        r#"[{"jsonrpc":"2.0","id":ID,"result":{}}]"#,
        r#"[{"jsonrpc":"2.0","id":ID,"result":{}}"#,
        &format!(r#"{{"jsonrpc":"2.0","id":ID,"result":{{"a":{deep}}}}}"#),
        &format!(r#"{{"jsonrpc":"2.0","result":{{"a":{deep}}},"id":ID}}"#),
    ] {
        for streams in [false, true] {
            let error = answered(&mut peer, &session, |asked| {
                let answer = answer.replace("ID", &asked.body()["id"].to_string());
                if streams {
                    asked.events().raw(format!("data: {answer}\n\n"));
                } else {
                    asked.text(200, "application/json", answer);
                }
            });
            let error = error.await.unwrap_err();
            let text = error.message();
            assert!(text.contains("the answer is malformed"), "{answer}: {text}");
        }
    }
}
