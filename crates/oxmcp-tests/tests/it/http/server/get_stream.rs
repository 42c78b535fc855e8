//! The GET stream of a session: messages that belong to no request, and requests that must not wait
//! for it.

use std::time::Duration;

use http::{Request, StatusCode};
use http_body_util::BodyExt;
use oxmcp::{
    JsonSchema, RequestContext, Revision, Server, Tool, ToolError, file_resources,
    http::StreamableHttp,
};
use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio::time::{sleep, timeout};

use crate::http::server::{
    legacy::endpoint,
    peer::{Events, LEGACY, Session, builder, header, send},
};
use crate::support::{calculator, request};

const INTERVAL: Duration = Duration::from_secs(30);

async fn is_alive(session: &Session, id: i64) -> bool {
    let answer = session.call(id, "ping", json!({})).await;
    answer.status() == StatusCode::OK
}

#[tokio::test(start_paused = true)]
async fn session_without_a_stream_survives_keep_alive() {
    let session = Session::open(&endpoint(&calculator().keep_alive(INTERVAL))).await;
    for id in 1..10 {
        sleep(INTERVAL).await;
        assert!(is_alive(&session, id).await, "after {id} intervals");
    }
}

#[tokio::test(start_paused = true)]
async fn client_is_pinged_on_its_sessions_stream() {
    let session = Session::open(&endpoint(&calculator().keep_alive(INTERVAL))).await;
    let mut events = session.listen().await;
    for _ in 0..3 {
        let ping = events.next().await.unwrap().data;
        assert_eq!(ping["method"], "ping");
        let pong = json!({"jsonrpc": "2.0", "id": ping["id"], "result": {}});
        assert_eq!(session.post(&pong).await.status(), StatusCode::ACCEPTED);
    }
    // When a stream ends, its pending ping is dropped.
    events.next().await.unwrap();
    drop(events);
    sleep(INTERVAL * 3).await;
    assert!(is_alive(&session, 1).await);
    // A client that reads the stream and does not answer the ping is regarded as gone.
    let events = Events::of(session.get().await);
    assert!(timeout(INTERVAL * 3, events.rest()).await.is_ok());
    assert!(!is_alive(&session, 2).await);
}

#[tokio::test(start_paused = true)]
async fn stream_beginning_with_an_id_needs_no_comment() {
    let session = Session::open(&endpoint(&calculator())).await;
    let mut body = session.get().await.into_body();
    let first = body.frame().await.unwrap().unwrap().into_data().unwrap();
    assert!(first.starts_with(b"id: "), "{first:?}");
    let more = timeout(Duration::from_secs(1), body.frame()).await;
    assert!(more.is_err(), "{more:?}");
}

#[tokio::test]
async fn roots_are_requested_on_the_file_reads_stream() {
    let directory = std::env::temp_dir();
    let server = Server::new("files", "1.0.0").files(file_resources(directory).uri_prefix("t://"));
    let roots = json!({"roots": {"listChanged": true}});
    let session = Session::open_in(&endpoint(&server), LEGACY, roots).await;
    let read = request(7, "resources/read", json!({"uri": "t://nowhere"}));
    let mut events = Events::of(session.post(&read).await);
    let mut next = async || loop {
        let data = events.next().await.unwrap().data;
        if !data.is_null() {
            return data;
        }
    };
    let question = next().await;
    assert_eq!(question["method"], "roots/list");
    let roots = json!({"jsonrpc": "2.0", "id": question["id"], "result": {"roots": []}});
    assert_eq!(session.post(&roots).await.status(), StatusCode::ACCEPTED);
    assert_eq!(next().await["id"], 7);
    // The roots are remembered.
    let again = session.call(8, "resources/read", json!({"uri": "t://nowhere"}));
    assert_eq!(crate::http::server::peer::json(again.await).await["id"], 8);
}

#[tokio::test]
async fn get_and_delete_require_a_supporting_revision() {
    let session = Session::open(&endpoint(&calculator())).await;
    let status =
        async |endpoint: &StreamableHttp, method: &str, version: &str, id: Option<&str>| {
            let mut builder = builder(method);
            if !version.is_empty() {
                builder = builder.header("mcp-protocol-version", version);
            }
            if let Some(id) = id {
                builder = builder.header("mcp-session-id", id);
            }
            let response = send(endpoint, builder, "").await;
            let allow = header(response.headers(), "allow").to_owned();
            (response.status().as_u16(), allow)
        };
    let (bad, gone) = ((400, String::new()), (405, "POST".to_owned()));
    for method in ["GET", "DELETE"] {
        let of = |version| status(&session.endpoint, method, version, Some(&session.id));
        assert_eq!(of("nonsense").await, bad, "{method}");
        assert_eq!(of("2026-07-28").await, gone, "{method}");
        let modern = calculator().revisions([Revision::V2026_07_28]);
        let modern = endpoint(&modern);
        for (version, id) in [("", None), ("", Some("x")), ("2026-07-28", None)] {
            assert_eq!(status(&modern, method, version, id).await, gone, "{method}");
        }
    }
    let nonsense = status(&session.endpoint, "GET", "nonsense", None).await;
    assert_eq!(nonsense, bad);
    assert!(is_alive(&session, 1).await, "nobody has ended it");
    let batch = builder("POST")
        .header("mcp-session-id", &session.id)
        .header("mcp-protocol-version", "nonsense");
    let ping = json!([{"jsonrpc": "2.0", "id": 1, "method": "ping"}]);
    let response = send(&session.endpoint, batch, ping.to_string()).await;
    assert_eq!(response.status(), StatusCode::BAD_REQUEST);
    let answer = crate::http::server::peer::json(response).await;
    assert_eq!(answer["error"]["code"], -32022, "{answer}");
}

#[derive(Debug, Deserialize, Serialize, JsonSchema)]
struct Name {
    name: String,
}

/// The responses to its requests are JSON, and everything else is sent on its GET stream.
#[tokio::test(start_paused = true)]
async fn client_may_accept_only_json() {
    let greet = |cx: RequestContext| async move {
        cx.progress(1).await;
        let Name { name } = cx.ask("name", "Who are you?").await?;
        Ok::<_, ToolError>(format!("Hello, {name}!"))
    };
    let server = calculator().tool(Tool::new("greet", "Greet", greet));
    for version in ["2025-06-18", LEGACY] {
        let asked = json!({"elicitation": {}});
        let session = Session::open_in(&endpoint(&server), version, asked).await;
        let mut events = Events::of(session.get().await);
        let call = Request::post("/mcp")
            .header("host", "localhost:8080")
            .header("accept", "application/json")
            .header("content-type", "application/json")
            .header("mcp-session-id", &session.id)
            .header("mcp-protocol-version", version);
        let params = json!({"name": "greet", "arguments": {}, "_meta": {"progressToken": "p"}});
        let message = request(7, "tools/call", params).to_string();
        let answers = async {
            let mut progress = events.next().await.unwrap().data;
            if progress.is_null() {
                progress = events.next().await.unwrap().data;
            }
            assert_eq!(progress["params"]["progressToken"], "p");
            let question = events.next().await.unwrap().data;
            let result = json!({"action": "accept", "content": {"name": "Ann"}});
            let answer = json!({"jsonrpc": "2.0", "id": question["id"], "result": result});
            assert_eq!(session.post(&answer).await.status(), StatusCode::ACCEPTED);
        };
        let (response, ()) = tokio::join!(send(&session.endpoint, call, message), answers);
        assert_eq!(
            header(response.headers(), "content-type"),
            "application/json"
        );
        let body = response.into_body().collect().await.unwrap().to_bytes();
        let answer: serde_json::Value = serde_json::from_slice(&body).unwrap();
        assert_eq!(answer["id"], 7, "{version}");
        assert_eq!(answer["result"]["content"][0]["text"], "Hello, Ann!");
    }
}
