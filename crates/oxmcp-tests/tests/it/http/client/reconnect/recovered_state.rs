//! State of a session that is sent again after recovery.

use ::http::Method;
use oxmcp::protocol::LoggingLevel;
use serde_json::json;

use crate::http::client::{
    peer::{Asked, Peer, both, legacy, open, text},
    reconnect::session_recovery::{call, next_post, renew},
};

/// Answers with an error and status 200, as a server does that accepts the HTTP request itself.
fn refuse(asked: Asked) {
    refuse_with(200, asked);
}

fn refuse_with(status: u16, asked: Asked) {
    let error = json!({"code": -32602, "message": "not with me"});
    let id = asked.body()["id"].clone();
    asked.json(status, json!({"jsonrpc": "2.0", "id": id, "error": error}));
}

#[tokio::test(start_paused = true)]
async fn refused_requests_are_not_restored_after_recovery() {
    let (mut peer, session) = open(Some("s-1")).await;
    let asking = async {
        session.subscribe("file:///a").await.unwrap();
        session.unsubscribe("file:///a").await.unwrap_err();
        session.subscribe("file:///b").await.unwrap_err();
        session.set_level(LoggingLevel::Info).await.unwrap_err();
    };
    let ((), ()) = both(asking, async {
        peer.post("resources/subscribe").await.result(json!({}));
        refuse(peer.post("resources/unsubscribe").await);
        refuse(peer.post("resources/subscribe").await);
        refuse(peer.post("logging/setLevel").await);
    })
    .await;
    let (answer, ()) = both(call(&session), async {
        peer.post("tools/call").await.status(404);
        renew(&mut peer, "s-2").await;
        let again = next_post(&mut peer).await;
        assert_eq!(again.body()["params"]["uri"], "file:///a");
        // The new session may refuse the subscription.
        refuse(again);
        let again = next_post(&mut peer).await;
        assert_eq!(again.body()["method"], "tools/call");
        again.result(text("3"));
    })
    .await;
    assert_eq!(answer.unwrap(), "3");
}

#[tokio::test(start_paused = true)]
async fn refusal_of_new_session_is_quoted() {
    let (mut peer, session) = open(Some("s-1")).await;
    let (answer, ()) = both(call(&session), async {
        peer.post("tools/call").await.status(404);
        refuse(peer.post("initialize").await);
        let asked = peer.next().await;
        assert_eq!(asked.request.method(), Method::DELETE);
        asked.status(200);
    })
    .await;
    assert!(answer.is_err());
    let error = session.wait().await.unwrap_err();
    assert!(error.message().contains("not with me"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn session_can_be_lost_with_opening_stream_open() {
    let (mut peer, endpoint) = Peer::endpoint();
    let client = legacy();
    let (session, _opening) = both(client.connect(endpoint), async {
        let asked = peer.post("initialize").await;
        let answer = asked.reply_to(json!({
            "protocolVersion": asked.body()["params"]["protocolVersion"],
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "script", "version": "1"},
        }));
        let opening = asked.events_in("s-1");
        opening.message(&answer);
        peer.post("notifications/initialized").await.status(202);
        peer.get().await.status(405);
        opening
    })
    .await;
    let session = session.unwrap();
    let (answer, ()) = both(call(&session), async {
        let asked = peer.post("tools/call").await;
        assert_eq!(asked.header("mcp-session-id"), Some("s-1"));
        asked.status(404);
        renew(&mut peer, "s-2").await;
        next_post(&mut peer).await.result(text("3"));
    })
    .await;
    assert_eq!(answer.unwrap(), "3");
}

#[tokio::test(start_paused = true)]
async fn reopening_is_retried_after_a_temporary_refusal() {
    let (mut peer, session) = open(Some("s-1")).await;
    let no = |code: i64| json!({"jsonrpc": "2.0", "error": {"code": code, "message": "not now"}});
    for (status, code) in [(503, -32603), (500, -32000), (429, -32000), (200, -32603)] {
        let (answer, ()) = both(call(&session), async {
            peer.post("tools/call").await.status(404);
            let asked = peer.post("initialize").await;
            let mut no = no(code);
            no["id"] = asked.body()["id"].clone();
            asked.json(status, no);
        })
        .await;
        let error = answer.unwrap_err();
        assert!(error.message().contains("not now"), "{status}: {error}");
    }
    // The same applies if the second step fails.
    let (answer, ()) = both(call(&session), async {
        peer.post("tools/call").await.status(404);
        peer.post("initialize").await.opens(Some("s-2"));
        let asked = peer.post("notifications/initialized").await;
        asked.json(503, no(-32603));
        ended(&mut peer, "s-2").await;
    })
    .await;
    assert!(answer.is_err());
    let (answer, ()) = both(call(&session), async {
        peer.post("tools/call").await.status(404);
        renew(&mut peer, "s-3").await;
        next_post(&mut peer).await.result(text("3"));
    })
    .await;
    assert_eq!(answer.unwrap(), "3");
}

/// Receives the client's DELETE of a session, and does not answer it.
async fn ended(peer: &mut Peer, id: &str) {
    let asked = peer.next().await;
    assert_eq!(asked.request.method(), Method::DELETE, "{asked:?}");
    assert_eq!(asked.header("mcp-session-id"), Some(id));
}

#[tokio::test(start_paused = true)]
async fn unusable_session_ends_with_the_connection() {
    let (mut peer, session) = open(Some("s-1")).await;
    let (answer, ()) = both(call(&session), async {
        peer.post("tools/call").await.status(404);
        peer.post("initialize").await.opens(Some("s-2"));
        refuse_with(400, peer.post("notifications/initialized").await);
        ended(&mut peer, "s-2").await;
        ended(&mut peer, "s-1").await;
    })
    .await;
    assert!(answer.is_err());
    let error = session.wait().await.unwrap_err();
    assert!(error.message().contains("not with me"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn server_not_yet_back_does_not_end_session() {
    let (mut peer, session) = open(Some("s-1")).await;
    let (answer, ()) = both(call(&session), async {
        peer.post("tools/call").await.status(404);
        peer.post("initialize").await.status(503);
    })
    .await;
    assert_eq!(answer.unwrap_err().http_status(), Some(503));
    let (answer, ()) = both(call(&session), async {
        peer.post("tools/call").await.status(404);
        renew(&mut peer, "s-2").await;
        next_post(&mut peer).await.result(text("3"));
    })
    .await;
    assert_eq!(answer.unwrap(), "3");
}
