//! Session recovery: a session that the server has lost is replaced by a new one.

use std::time::Duration;

use oxmcp::{
    ClientSession, Result,
    protocol::{
        CallToolParams, EmptyParams, EmptyResult, LoggingLevel, Method, TaskParams, method,
    },
};
use serde_json::{Value, json};
use tokio::time::timeout;

use crate::http::client::peer::{Asked, Peer, both, legacy, open, open_with, text};

pub(crate) async fn call(session: &ClientSession) -> Result<String> {
    let result = session.call_tool("add", json!({})).await?;
    Ok(result.to_text())
}

/// Serves the opening of a session that replaces another.
pub(crate) async fn renew(peer: &mut Peer, id: &str) {
    let asked = peer.post("initialize").await;
    assert_eq!(asked.header("mcp-session-id"), None);
    asked.opens(Some(id));
    let asked = peer.post("notifications/initialized").await;
    assert_eq!(asked.header("mcp-session-id"), Some(id));
    asked.status(202);
}

/// The next POST of the client; its other requests are answered with 405.
pub(crate) async fn next_post(peer: &mut Peer) -> Asked {
    loop {
        let asked = peer.next().await;
        if asked.request.method() == ::http::Method::POST {
            return asked;
        }
        asked.status(405);
    }
}

#[tokio::test(start_paused = true)]
async fn lost_session_is_reopened_restored_and_call_repeated() {
    let (mut peer, session) = open(Some("s-1")).await;
    let restored = async {
        session.set_level(LoggingLevel::Warning).await?;
        session.subscribe("file:///a").await?;
        session.subscribe("file:///b").await?;
        session.unsubscribe("file:///a").await
    };
    let (done, ()) = both(restored, async {
        for _ in 0..4 {
            peer.next().await.result(json!({}));
        }
    })
    .await;
    done.unwrap();
    let (answer, ()) = both(call(&session), async {
        let lost = peer.post("tools/call").await;
        assert_eq!(lost.header("mcp-session-id"), Some("s-1"));
        lost.text(404, "text/plain", "session not found");
        renew(&mut peer, "s-2").await;
        let level = peer.post("logging/setLevel").await;
        assert_eq!(level.body()["params"]["level"], "warning");
        assert_eq!(level.header("mcp-session-id"), Some("s-2"));
        level.result(json!({}));
        let subscribe = peer.post("resources/subscribe").await;
        assert_eq!(subscribe.body()["params"]["uri"], "file:///b");
        subscribe.result(json!({}));
        let again = next_post(&mut peer).await;
        assert_eq!(again.header("mcp-session-id"), Some("s-2"));
        again.result(text("3"));
    })
    .await;
    assert_eq!(answer.unwrap(), "3");
}

#[tokio::test(start_paused = true)]
async fn session_loss_reported_with_400_is_recognized() {
    let (mut peer, session) = open(Some("s-1")).await;
    let (answer, ()) = both(call(&session), async {
        let error = json!({"code": -32000, "message": "Bad Request: No valid session ID provided"});
        let body = json!({"jsonrpc": "2.0", "id": null, "error": error});
        peer.post("tools/call").await.json(400, body);
        renew(&mut peer, "s-2").await;
        next_post(&mut peer).await.result(text("3"));
    })
    .await;
    assert_eq!(answer.unwrap(), "3");
}

#[tokio::test(start_paused = true)]
async fn error_naming_the_request_is_its_answer() {
    let (mut peer, session) = open(Some("s-1")).await;
    for (status, code) in [(400, -32602), (404, -32601)] {
        let (answer, ()) = both(call(&session), async {
            let asked = peer.post("tools/call").await;
            let error =
                json!({"code": code, "message": "there is no session with that name to join"});
            let id = asked.body()["id"].clone();
            asked.json(status, json!({"jsonrpc": "2.0", "id": id, "error": error}));
        })
        .await;
        let error = answer.unwrap_err();
        assert_eq!(error.code().value(), code);
        assert!(peer.is_quiet(), "the session is not lost");
    }
}

#[tokio::test(start_paused = true)]
async fn session_not_found_error_reopens_the_session() {
    let (mut peer, session) = open(Some("s-1")).await;
    let (answer, ()) = both(call(&session), async {
        let asked = peer.post("tools/call").await;
        let error = json!({"code": -32001, "message": "Session not found"});
        let id = asked.body()["id"].clone();
        asked.json(404, json!({"jsonrpc": "2.0", "id": id, "error": error}));
        renew(&mut peer, "s-2").await;
        next_post(&mut peer).await.result(text("3"));
    })
    .await;
    assert_eq!(answer.unwrap(), "3");
}

#[tokio::test(start_paused = true)]
async fn concurrent_calls_of_lost_session_open_one() {
    let (mut peer, session) = open(Some("s-1")).await;
    let calls = async { tokio::join!(call(&session), call(&session), call(&session)) };
    let (answers, ()) = both(calls, async {
        let mut lost = Vec::new();
        for _ in 0..3 {
            lost.push(peer.post("tools/call").await);
        }
        lost.into_iter().for_each(|asked| asked.status(404));
        renew(&mut peer, "s-2").await;
        for _ in 0..3 {
            let again = next_post(&mut peer).await;
            assert_eq!(again.header("mcp-session-id"), Some("s-2"));
            again.result(text("3"));
        }
    })
    .await;
    assert!(answers.0.is_ok() && answers.1.is_ok() && answers.2.is_ok());
}

#[tokio::test(start_paused = true)]
async fn reopened_session_is_used_despite_dropped_call() {
    let (mut peer, session) = open(Some("s-1")).await;
    let late = async {
        let call = session.call_tool("add", json!({}));
        call.timeout(Duration::from_millis(100)).await
    };
    let (answer, initialize) = both(late, async {
        peer.post("tools/call").await.status(404);
        peer.post("initialize").await
    })
    .await;
    assert!(answer.unwrap_err().is_timeout());
    let (answer, ()) = both(call(&session), async {
        initialize.opens(Some("s-2"));
        let asked = peer.post("notifications/initialized").await;
        assert_eq!(asked.header("mcp-session-id"), Some("s-2"));
        asked.status(202);
        loop {
            let asked = next_post(&mut peer).await;
            assert_eq!(asked.header("mcp-session-id"), Some("s-2"));
            match asked.body()["method"].as_str() {
                Some("tools/call") => return asked.result(text("3")),
                method => assert_eq!(method, Some("notifications/cancelled")),
            }
            asked.status(202);
        }
    })
    .await;
    assert_eq!(answer.unwrap(), "3");
}

#[tokio::test(start_paused = true)]
async fn closing_ends_the_session_being_opened() {
    let (mut peer, endpoint) = Peer::endpoint();
    let client = legacy();
    let (session, initialize) = both(client.connect(endpoint), async {
        peer.initialize(Some("s-1")).await;
        drop(peer.get().await.events());
        peer.get().await.status(404);
        peer.post("initialize").await
    })
    .await;
    let session = session.unwrap();
    let (closed, ()) = both(session.close(), async {
        initialize.opens(Some("s-2"));
        loop {
            let asked = peer.next().await;
            assert_eq!(asked.header("mcp-session-id"), Some("s-2"), "{asked:?}");
            if asked.request.method() == ::http::Method::DELETE {
                return asked.status(200);
            }
            asked.status(202);
        }
    })
    .await;
    closed.unwrap();
}

#[tokio::test(start_paused = true)]
async fn call_is_repeated_once() {
    let (mut peer, session) = open(Some("s-1")).await;
    let (answer, ()) = both(call(&session), async {
        peer.post("tools/call").await.status(404);
        renew(&mut peer, "s-2").await;
        let asked = next_post(&mut peer).await;
        asked.text(404, "text/plain", "out of memory");
    })
    .await;
    let error = answer.unwrap_err();
    assert_eq!(error.http_status(), Some(404));
    assert!(error.message().contains("out of memory"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn status_404_without_session_id_is_ordinary_error() {
    let (mut peer, session) = open(None).await;
    let (answer, ()) = both(call(&session), async {
        peer.post("tools/call").await.status(404);
    })
    .await;
    assert_eq!(answer.unwrap_err().http_status(), Some(404));
    assert!(peer.is_quiet());
}

/// Breaks the stream of a call, and answers its resumption as a server that has lost the session.
async fn breaks_and_loses(peer: &mut Peer) -> Value {
    let asked = peer.next().await;
    let method = asked.body()["method"].clone();
    asked.events().raw("id: 1\ndata:\n\n");
    peer.get().await.status(404);
    renew(peer, "s-2").await;
    method
}

/// A request that a vendor has added to the protocol.
struct Move;

impl Method for Move {
    const NAME: &'static str = "vendor/move";
    type Params = EmptyParams;
    type Result = EmptyResult;
}

/// Sends a request whose session is lost meanwhile. The request is not repeated.
async fn is_not_asked_again<M: Method>(params: M::Params) {
    let (mut peer, session) = open(Some("s-1")).await;
    let asking = async { session.request::<M>(params).await.map(drop) };
    let (answer, method) = both(asking, breaks_and_loses(&mut peer)).await;
    let error = answer.unwrap_err();
    assert_eq!(method, M::NAME);
    assert!(
        error.is_network() && error.message().contains("lost the session"),
        "{error}"
    );
    peer.get().await.status(405);
    assert!(timeout(Duration::from_secs(10), peer.next()).await.is_err());
}

#[tokio::test(start_paused = true)]
async fn possibly_executed_non_idempotent_requests_are_not_repeated() {
    is_not_asked_again::<method::CallTool>(CallToolParams::new("add")).await;
    is_not_asked_again::<method::CancelTask>(TaskParams::new("t")).await;
    is_not_asked_again::<Move>(EmptyParams::default()).await;
}

#[tokio::test(start_paused = true)]
async fn idempotent_requests_are_repeated() {
    let (mut peer, session) = open(Some("s-1")).await;
    let listing = async {
        session
            .list_tools(oxmcp::protocol::PaginatedParams::default())
            .await
    };
    let (answer, ()) = both(listing, async {
        assert_eq!(breaks_and_loses(&mut peer).await, "tools/list");
        next_post(&mut peer).await.result(json!({"tools": []}));
    })
    .await;
    assert!(answer.unwrap().tools.is_empty());
}

#[tokio::test(start_paused = true)]
async fn changed_revision_ends_the_session_with_explanation() {
    let (mut peer, session) = open(Some("s-1")).await;
    let (answer, ()) = both(call(&session), async {
        peer.post("tools/call").await.status(404);
        let asked = peer.post("initialize").await;
        asked.opens_in(Some("s-2"), &json!("2025-06-18"));
        // The new session is ended on the server, too.
        let asked = peer.next().await;
        assert_eq!(asked.request.method(), ::http::Method::DELETE);
        assert_eq!(asked.header("mcp-session-id"), Some("s-2"));
        asked.status(200);
    })
    .await;
    assert!(answer.is_err());
    let error = session.wait().await.unwrap_err();
    assert!(error.message().contains("2025-06-18"), "{error}");
    assert!(call(&session).await.unwrap_err().is_closed());
}

#[tokio::test(start_paused = true)]
async fn get_stream_detects_a_lost_session() {
    let (mut peer, endpoint) = Peer::endpoint();
    let client = legacy();
    let (session, ()) = both(client.connect(endpoint), async {
        peer.initialize(Some("s-1")).await;
        drop(peer.get().await.events());
        peer.get().await.status(404);
        renew(&mut peer, "s-2").await;
        let listening = peer.get().await;
        assert_eq!(listening.header("mcp-session-id"), Some("s-2"));
        // A server that offers no stream may answer with 404, which must not lead to new sessions for ever.
        listening.status(404);
        assert!(
            timeout(Duration::from_secs(100), peer.next())
                .await
                .is_err()
        );
    })
    .await;
    assert!(session.is_ok());
}

/// The ways in which a server says, without the word, that it does not know the session.
fn refusals() -> Vec<(u16, String)> {
    let error = |id: Value, code: i64, message: &str| {
        json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message}}).to_string()
    };
    vec![
        (400, error(Value::Null, -32000, "Server not initialized")),
        (400, error(json!("server-error"), -32600, "Bad Request")),
        (400, "Server not initialized".to_owned()),
        (
            400,
            "\u{feff}".to_owned() + &error(Value::Null, -32002, "initialize first"),
        ),
        (409, "Conflict".to_owned()),
        (410, "<p>Gone</p>".to_owned()),
        (412, String::new()),
        (422, json!({"detail": "unknown client"}).to_string()),
    ]
}

#[tokio::test(start_paused = true)]
async fn unexplained_refusal_is_retried_in_new_session() {
    for (status, body) in refusals() {
        let (mut peer, session) = open(Some("s-1")).await;
        let (answer, ()) = both(call(&session), async {
            peer.post("tools/call")
                .await
                .text(status, "text/plain", body.clone());
            renew(&mut peer, "s-2").await;
            let again = next_post(&mut peer).await;
            assert_eq!(again.header("mcp-session-id"), Some("s-2"));
            again.result(text("3"));
        })
        .await;
        assert_eq!(answer.unwrap(), "3", "{status} {body}");
    }
}

#[tokio::test(start_paused = true)]
async fn strict_client_opens_another_session_after_404_only() {
    for (status, body) in refusals() {
        let (peer, endpoint) = Peer::endpoint();
        let (mut peer, session) = open_with(&legacy().strict(), endpoint, peer, Some("s-1")).await;
        let (answer, ()) = both(call(&session), async {
            let asked = peer.post("tools/call").await;
            asked.text(status, "text/plain", body.clone());
        })
        .await;
        let error = answer.unwrap_err();
        assert_eq!(error.http_status(), Some(status), "{body}: {error}");
        let (answer, ()) = both(call(&session), async {
            peer.post("tools/call").await.status(404);
            renew(&mut peer, "s-2").await;
            next_post(&mut peer).await.result(text("3"));
        })
        .await;
        assert_eq!(answer.unwrap(), "3");
    }
    // A lenient client tells its host.
    let (mut peer, session) = open(Some("s-1")).await;
    let (answer, ()) = both(call(&session), async {
        peer.post("tools/call").await.status(410);
        renew(&mut peer, "s-2").await;
        next_post(&mut peer).await.result(text("3"));
    })
    .await;
    answer.unwrap();
    let names: Vec<_> = session
        .tolerated()
        .iter()
        .map(|it| it.leniency.name())
        .collect();
    assert_eq!(names, ["lost-session"]);
}

#[tokio::test(start_paused = true)]
async fn unexplained_refusals_open_one_session_until_a_success() {
    let (mut peer, session) = open(Some("s-1")).await;
    for (id, next) in [("s-2", "s-3"), ("s-4", "s-5")] {
        // It is refused in the new session, too.
        let (answer, ()) = both(call(&session), async {
            next_post(&mut peer).await.status(400);
            renew(&mut peer, id).await;
            next_post(&mut peer).await.status(400);
        })
        .await;
        assert_eq!(answer.unwrap_err().http_status(), Some(400));
        for _ in 0..3 {
            let (answer, ()) = both(call(&session), async {
                next_post(&mut peer).await.status(400);
            })
            .await;
            assert_eq!(answer.unwrap_err().http_status(), Some(400), "not again");
        }
        let (answer, ()) = both(call(&session), async {
            next_post(&mut peer).await.result(text("3"));
        })
        .await;
        answer.unwrap();
        // From now on the session may be doubted again.
        let (answer, ()) = both(call(&session), async {
            next_post(&mut peer).await.status(422);
            renew(&mut peer, next).await;
            next_post(&mut peer).await.result(text("3"));
        })
        .await;
        answer.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn refusals_at_the_same_time_open_one_session() {
    let (mut peer, session) = open(Some("s-1")).await;
    let (answers, ()) = both(
        async { tokio::join!(call(&session), call(&session)) },
        async {
            let first = peer.post("tools/call").await;
            let second = peer.post("tools/call").await;
            first.status(400);
            second.status(400);
            renew(&mut peer, "s-2").await;
            for _ in 0..2 {
                next_post(&mut peer).await.result(text("3"));
            }
        },
    )
    .await;
    assert_eq!(
        (answers.0.unwrap(), answers.1.unwrap()),
        ("3".into(), "3".into())
    );
}

#[tokio::test(start_paused = true)]
async fn refusal_with_another_reason_loses_no_session() {
    let (mut peer, session) = open(Some("s-1")).await;
    for status in [
        401, 402, 403, 405, 406, 407, 408, 413, 415, 429, 431, 500, 503,
    ] {
        let (answer, ()) = both(call(&session), async {
            peer.post("tools/call").await.status(status);
        })
        .await;
        assert_eq!(answer.unwrap_err().http_status(), Some(status));
        assert!(peer.is_quiet(), "{status}");
    }
    for code in [-32700, -32601, -32602] {
        let (answer, ()) = both(call(&session), async {
            let error = json!({"code": code, "message": "no"});
            let body = json!({"jsonrpc": "2.0", "id": null, "error": error});
            peer.post("tools/call").await.json(400, body);
        })
        .await;
        assert_eq!(answer.unwrap_err().code().value(), code);
        assert!(peer.is_quiet(), "{code}");
    }
    // An error that names the request is the answer to it, whatever the code.
    let (answer, ()) = both(call(&session), async {
        let asked = peer.post("tools/call").await;
        let error = json!({"code": -32000, "message": "no"});
        let body = json!({"jsonrpc": "2.0", "id": asked.body()["id"], "error": error});
        asked.json(400, body);
    })
    .await;
    assert_eq!(answer.unwrap_err().code().value(), -32000);
    assert!(peer.is_quiet());
}

/// Some servers refuse notifications that they do not know.
#[tokio::test(start_paused = true)]
async fn refused_notification_loses_no_session() {
    let (mut peer, session) = open(Some("s-1")).await;
    let calling = session.clone();
    let calling = tokio::spawn(async move { call(&calling).await });
    let kept = peer.post("tools/call").await;
    calling.abort();
    peer.post("notifications/cancelled").await.status(400);
    drop(kept);
    let (answer, ()) = both(call(&session), async {
        let asked = peer.post("tools/call").await;
        assert_eq!(asked.header("mcp-session-id"), Some("s-1"));
        asked.result(text("3"));
    })
    .await;
    assert_eq!(answer.unwrap(), "3");
}

#[tokio::test(start_paused = true)]
async fn server_without_session_ids_is_initialized_again() {
    // Some servers send an empty header.
    for id in [None, Some(""), Some(" ")] {
        let (mut peer, session) = open(id).await;
        let (answer, ()) = both(call(&session), async {
            let asked = peer.post("tools/call").await;
            assert_eq!(asked.header("mcp-session-id"), None);
            asked.text(400, "text/plain", "Server not initialized");
            peer.post("initialize").await.opens(id);
            peer.post("notifications/initialized").await.status(202);
            next_post(&mut peer).await.result(text("3"));
        })
        .await;
        assert_eq!(answer.unwrap(), "3");
    }
}
