//! Answers that are odd and still clear: media types that do not fit, byte order marks, ids in another spelling or none.

use http::Response;
use oxmcp::{ClientSession, Result, http::HttpBody};
use serde_json::{Value, json};

use crate::http::client::peer::{Asked, Peer, both, discover, legacy, open, open_with, text};

async fn call(session: &ClientSession) -> Result<String> {
    let result = session.call_tool("add", json!({})).await?;
    Ok(result.to_text())
}

/// The result of a call that gets this answer, in a modern and in a legacy session.
async fn answered(answer: impl Fn(Asked)) -> [Result<String>; 2] {
    let mut results = Vec::new();
    for (mut peer, session) in [discover().await, open(Some("s-1")).await] {
        let (result, ()) = both(call(&session), async {
            answer(peer.post("tools/call").await);
        })
        .await;
        results.push(result);
        let (next, ()) = both(call(&session), async {
            peer.post("tools/call").await.result(text("3"));
        })
        .await;
        assert_eq!(next.unwrap(), "3", "the session is still open");
    }
    results.try_into().unwrap()
}

const MEDIA_TYPES: [&str; 12] = [
    "application/json",
    "application/json; charset=utf-8",
    "APPLICATION/JSON",
    "application/json-rpc",
    "application/json, text/event-stream",
    "application/octet-stream",
    "text/event-stream",
    "text/event-stream; charset=utf-8",
    "text/html",
    "text/plain",
    "text/json",
    "",
];

#[tokio::test(start_paused = true)]
async fn json_is_read_under_any_media_type() {
    for kind in MEDIA_TYPES {
        for front in ["", "\u{feff}", "\r\n ", "\u{feff}\n"] {
            let results = answered(|asked| {
                let body = format!("{front}{}", asked.reply_to(text("5")));
                asked.text(200, kind, body);
            });
            for result in results.await {
                assert_eq!(result.unwrap(), "5", "{kind} {front:?}");
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn media_types_must_fit_if_strict() {
    for (client, is_read) in [(legacy(), true), (legacy().strict(), false)] {
        let (peer, endpoint) = Peer::endpoint();
        let (mut peer, session) = open_with(&client, endpoint, peer, Some("s-1")).await;
        let (result, ()) = both(call(&session), async {
            let asked = peer.post("tools/call").await;
            let body = asked.reply_to(text("5")).to_string();
            asked.text(200, "text/html", body);
        })
        .await;
        assert_eq!(result.is_ok(), is_read, "{result:?}");
        let names: Vec<_> = session
            .tolerated()
            .iter()
            .map(|it| it.leniency.name())
            .collect();
        assert_eq!(names == ["content-type"], is_read, "{names:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn events_are_read_under_any_media_type() {
    for kind in MEDIA_TYPES {
        for front in [
            "",
            "\u{feff}",
            ": hello\n\n",
            "event: message\n",
            "id: 1\r\n",
            "retry: 5\n",
        ] {
            let results = answered(|asked| {
                let answer = asked.reply_to(text("5"));
                let chunks = asked.streams(200, kind);
                chunks.raw(format!("{front}data: {answer}\n\n"));
            });
            for result in results.await {
                assert_eq!(result.unwrap(), "5", "{kind} {front:?}");
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn answer_needs_no_media_type_or_length() {
    let results = answered(|asked| {
        let body = asked.reply_to(text("5")).to_string();
        let (first, rest) = body.split_at(7);
        let (first, rest) = (first.to_owned().into(), rest.to_owned().into());
        let chunks = futures_util::stream::iter([Ok(first), Ok(rest)]);
        asked.respond(Response::new(HttpBody::new(chunks)));
    });
    for result in results.await {
        assert_eq!(result.unwrap(), "5");
    }
}

#[tokio::test(start_paused = true)]
async fn html_page_is_not_an_answer() {
    for kind in ["text/html", "", "application/json"] {
        let results = answered(|asked| asked.text(200, kind, "<p>{\"id\":1}</p>"));
        for result in results.await {
            assert!(result.is_err(), "{kind}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn byte_order_marks_in_events_are_skipped() {
    let results = answered(|asked| {
        let answer = asked.reply_to(text("5"));
        asked.events().raw(format!("data: \u{feff}{answer}\n\n"));
    });
    for result in results.await {
        assert_eq!(result.unwrap(), "5");
    }
    let results = answered(|asked| {
        let body = format!("\u{feff}\u{feff}{}", asked.reply_to(text("5")));
        asked.text(200, "application/json", body);
    });
    for result in results.await {
        assert!(result.is_err(), "a second mark is an error");
    }
}

#[tokio::test(start_paused = true)]
async fn response_with_byte_order_mark_opens_session() {
    let (mut peer, endpoint) = Peer::endpoint();
    let client = legacy();
    let (session, ()) = both(client.connect(endpoint), async {
        let asked = peer.post("initialize").await;
        let result = json!({"protocolVersion": "2025-11-25", "capabilities": {"tools": {}},
            "serverInfo": {"name": "s", "version": "1"}});
        let mut answer = asked.reply_to(result);
        answer["id"] = answer["id"].to_string().into();
        let response = Response::builder().header("mcp-session-id", "s-1");
        let body = HttpBody::from(bytes::Bytes::from(format!("\u{feff}{answer}")));
        asked.respond(response.body(body).unwrap());
        let asked = peer.post("notifications/initialized").await;
        assert_eq!(asked.header("mcp-session-id"), Some("s-1"));
        asked.status(204);
        peer.get().await.status(405);
    })
    .await;
    session.unwrap();
}

#[tokio::test(start_paused = true)]
async fn empty_session_id_is_ignored() {
    let (mut peer, endpoint) = Peer::endpoint();
    let client = legacy();
    let (session, ()) = both(client.connect(endpoint), async {
        peer.post("initialize").await.opens(Some(""));
        let asked = peer.post("notifications/initialized").await;
        assert_eq!(asked.header("mcp-session-id"), None);
        asked.status(200);
        peer.get().await.status(405);
    })
    .await;
    session.unwrap();
}

#[tokio::test(start_paused = true)]
async fn notifications_are_accepted_with_any_success() {
    for (status, body) in [
        (200, ""),
        (200, "{}"),
        (200, "ok"),
        (202, ""),
        (204, ""),
        (201, "null"),
    ] {
        let (mut peer, endpoint) = Peer::endpoint();
        let client = legacy();
        let (session, ()) = both(client.connect(endpoint), async {
            peer.post("initialize").await.opens(Some("s-1"));
            let asked = peer.post("notifications/initialized").await;
            asked.text(status, "application/json", body);
            peer.get().await.status(405);
        })
        .await;
        session.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn answer_may_have_another_success_status() {
    for status in [200, 201, 202] {
        let results = answered(|asked| {
            let answer = asked.reply_to(text("5"));
            asked.json(status, answer);
        });
        for result in results.await {
            assert_eq!(result.unwrap(), "5", "{status}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn response_id_in_another_spelling_matches() {
    for spell in [
        |id: &Value| json!(id.to_string()),
        |id: &Value| json!(id.as_f64()),
    ] {
        for is_stream in [false, true] {
            let results = answered(|asked| {
                let mut answer = asked.reply_to(text("5"));
                answer["id"] = spell(&answer["id"]);
                if is_stream {
                    asked.events().message(&answer);
                } else {
                    asked.json(200, answer);
                }
            });
            for result in results.await {
                assert_eq!(result.unwrap(), "5");
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn error_without_an_id_answers_its_request() {
    let error = json!({"code": -32000, "message": "I do not like it"});
    for body in [
        json!({"jsonrpc": "2.0", "id": null, "error": error}),
        json!({"jsonrpc": "2.0", "error": error}),
    ] {
        for is_stream in [false, true] {
            let results = answered(|asked| {
                if is_stream {
                    asked.events().message(&body);
                } else {
                    asked.json(200, body.clone());
                }
            });
            for result in results.await {
                let error = result.unwrap_err();
                assert_eq!(error.message(), "I do not like it");
                assert_eq!(error.code().value(), -32000);
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn refused_initialize_without_id_reports_the_reason() {
    let (mut peer, endpoint) = Peer::endpoint();
    let client = legacy();
    let (session, ()) = both(client.connect(endpoint), async {
        let error = json!({"code": -32000, "message": "out of order"});
        let body = json!({"jsonrpc": "2.0", "id": null, "error": error});
        peer.post("initialize").await.json(200, body);
    })
    .await;
    let error = session.unwrap_err();
    assert!(error.message().contains("out of order"), "{error}");
}
