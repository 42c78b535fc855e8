//! Detection of a server's era by the status of its answer.

use std::{future::IntoFuture, time::Duration};

use oxmcp::{Client, Error, Revision, http::Endpoint};
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::http::client::peer::{Asked, Peer, both, client, discovered};

/// The errors that a server may send with a status.
fn bodies() -> [Option<Value>; 6] {
    [
        None,
        Some(json!({"code": -32601, "message": "Method not found"})),
        Some(json!({"code": -32000, "message": "Bad Request: Server not initialized"})),
        Some(
            json!({"code": -32022, "message": "no", "data": {"supported": ["2025-11-25"], "requested": "x"}}),
        ),
        Some(json!({"code": -32020, "message": "Mcp-Method is missing"})),
        Some(json!({"code": -32021, "message": "sampling, please"})),
    ]
}

fn refuse(asked: Asked, status: u16, error: Option<&Value>) {
    let id = asked.body()["id"].clone();
    match error {
        Some(error) => asked.json(status, json!({"jsonrpc": "2.0", "id": id, "error": error})),
        None => asked.text(status, "text/html", "<p>who are you?</p>"),
    }
}

/// Connects to a server that refuses the probe.
async fn refused(client: &Client, refusal: impl FnOnce(Asked)) -> (Peer, Error) {
    let (mut peer, endpoint) = Peer::endpoint();
    let (connected, ()) = both(client.connect(endpoint), async {
        refusal(peer.post("server/discover").await);
    })
    .await;
    (peer, connected.unwrap_err())
}

/// Connects to a server that refuses the probe and opens a legacy session.
async fn legacy_after(refusal: impl FnOnce(Asked)) {
    let (mut peer, endpoint) = Peer::endpoint();
    let client = client();
    let (session, ()) = both(client.connect(endpoint), async {
        refusal(peer.post("server/discover").await);
        peer.open(None).await;
    })
    .await;
    assert_eq!(session.unwrap().revision(), Revision::V2025_11_25);
}

#[tokio::test(start_paused = true)]
async fn answer_without_era_information_is_surfaced() {
    for status in [401, 403, 407, 408, 429, 502, 503, 504] {
        for body in bodies() {
            let (mut peer, error) =
                refused(&client(), |asked| refuse(asked, status, body.as_ref())).await;
            assert_eq!(error.http_status(), Some(status), "{error}");
            assert_eq!(error.is_unauthorized(), status == 401);
            assert!(peer.is_quiet(), "{status}: nothing else was tried");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn any_other_refusal_falls_back_to_initialize() {
    for status in [400, 404, 405, 406, 415, 422, 500, 501] {
        for body in bodies().iter().take(4) {
            legacy_after(|asked| refuse(asked, status, body.as_ref())).await;
        }
    }
    // An answer that is no refusal may also mean `initialize`.
    legacy_after(|asked| asked.text(200, "text/html", "<p>welcome</p>")).await;
    legacy_after(|asked| asked.status(202)).await;
    legacy_after(|asked| asked.result(json!({}))).await;
    for body in bodies().iter().take(4) {
        legacy_after(|asked| refuse(asked, 200, body.as_ref())).await;
    }
}

#[tokio::test(start_paused = true)]
async fn errors_unique_to_modern_servers_are_surfaced() {
    for body in bodies().iter().skip(4) {
        let (mut peer, error) = refused(&client(), |asked| refuse(asked, 400, body.as_ref())).await;
        let body = body.as_ref().unwrap();
        assert_eq!(error.code().value(), body["code"].as_i64().unwrap());
        assert_eq!(error.http_status(), Some(400));
        assert!(error.message().contains(body["message"].as_str().unwrap()));
        let is_mismatch = error.code().value() == -32020;
        assert_eq!(error.message().contains("proxy"), is_mismatch, "{error}");
        assert!(peer.is_quiet());
    }
}

#[tokio::test(start_paused = true)]
async fn revision_named_by_the_server_is_requested() {
    let (mut peer, endpoint) = Peer::endpoint();
    let client = client();
    let (session, ()) = both(client.connect(endpoint), async {
        // A server as in the tests of an older client, which refuses its first request whatever it is.
        let asked = peer.post("server/discover").await;
        let data = json!({"supported": ["2026-07-28"], "requested": "2026-07-28"});
        let error = json!({"code": -32022, "message": "no", "data": data});
        refuse(asked, 400, Some(&error));
        let asked = peer.post("server/discover").await;
        assert_eq!(asked.header("mcp-protocol-version"), Some("2026-07-28"));
        asked.result(discovered());
    })
    .await;
    assert_eq!(session.unwrap().revision(), Revision::LATEST);
}

#[tokio::test(start_paused = true)]
async fn broken_network_is_surfaced() {
    let (mut peer, error) = refused(&client(), |asked| {
        asked.fail(Error::unreachable("no such host"));
    })
    .await;
    assert!(error.is_network() && peer.is_quiet(), "{error}");
}

#[tokio::test(start_paused = true)]
async fn server_hanging_at_the_probe_is_initialized() {
    let start = Instant::now();
    let mut kept = None;
    legacy_after(|asked| kept = Some(asked)).await;
    assert_eq!(start.elapsed(), Duration::from_secs(5));
}

#[tokio::test(start_paused = true)]
async fn late_answer_to_the_probe_wins() {
    let (mut peer, endpoint) = Peer::endpoint();
    let client = client();
    let (session, ()) = both(client.connect(endpoint), async {
        let probe = peer.post("server/discover").await;
        let request = peer.post("initialize").await;
        probe.result(discovered());
        request.opens(Some("s-1"));
    })
    .await;
    let session = session.unwrap();
    assert_eq!(session.revision(), Revision::LATEST);
    let (pinged, ()) = both(
        session.list_tools(Default::default()).into_future(),
        async {
            let asked = peer.post("tools/list").await;
            assert_eq!(asked.header("mcp-session-id"), None);
            assert_eq!(asked.header("mcp-protocol-version"), Some("2026-07-28"));
            asked.result(
                json!({"resultType": "complete", "tools": [], "ttlMs": 0, "cacheScope": "private"}),
            );
        },
    )
    .await;
    pinged.unwrap();
}

#[tokio::test(start_paused = true)]
async fn guessed_era_is_not_remembered() {
    for is_silent in [true, false] {
        let client = client();
        let mut kept = Vec::new();
        for _ in 0..2 {
            let (mut peer, endpoint) = {
                let (peer, http) = Peer::new();
                let endpoint = Endpoint::new(crate::http::client::peer::URL);
                (peer, endpoint.http_client(http).bearer_token("a"))
            };
            let (session, ()) = both(client.connect(endpoint), async {
                let asked = peer.post("server/discover").await;
                if is_silent {
                    kept.push(asked);
                } else {
                    asked.status(500);
                }
                peer.open(None).await;
            })
            .await;
            assert_eq!(session.unwrap().revision(), Revision::V2025_11_25);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn strict_client_guesses_no_era() {
    for is_silent in [true, false] {
        let (mut peer, endpoint) = Peer::endpoint();
        let client = client().strict();
        let (connected, kept) = both(client.connect(endpoint), async {
            let asked = peer.post("server/discover").await;
            if is_silent {
                return Some(asked);
            }
            asked.status(500);
            None
        })
        .await;
        let error = connected.unwrap_err();
        assert_eq!(error.is_timeout(), is_silent, "{error}");
        assert!(peer.is_quiet(), "nothing else is asked");
        drop(kept);
    }
}

#[tokio::test(start_paused = true)]
async fn pinned_modern_client_never_initializes() {
    for body in bodies().iter().take(4) {
        let (mut peer, endpoint) = Peer::endpoint();
        let pinned = client().revisions([Revision::V2026_07_28]);
        let session = pinned.connect(endpoint).await.unwrap();
        assert!(peer.is_quiet());
        let (tools, ()) = both(session.tools().all(), async {
            refuse(peer.post("server/discover").await, 400, body.as_ref());
        })
        .await;
        let error = tools.unwrap_err();
        assert_eq!(error.http_status(), Some(400), "{error}");
        assert!(peer.is_quiet());
    }
}

#[tokio::test(start_paused = true)]
async fn server_era_is_remembered_across_clients() {
    let client = client();
    let endpoint = |token: &str| {
        let (peer, http) = Peer::new();
        // A custom HTTP client must name its caller, or the caller is unknown.
        (
            peer,
            Endpoint::new(crate::http::client::peer::URL)
                .http_client(http)
                .bearer_token(token),
        )
    };
    let (mut peer, to) = endpoint("a");
    let (session, ()) = both(client.connect(to), async {
        peer.post("server/discover").await.status(404);
        peer.open(None).await;
    })
    .await;
    session.unwrap();
    // The server is down, but its era is still remembered.
    let (mut peer, to) = endpoint("b");
    let (failed, ()) = both(client.connect(to), async {
        peer.post("initialize").await.status(503);
    })
    .await;
    assert_eq!(failed.unwrap_err().http_status(), Some(503));
    // The server is modern by now.
    let (mut peer, to) = endpoint("a");
    let (session, ()) = both(client.connect(to), async {
        peer.post("initialize").await.status(415);
        peer.post("server/discover").await.result(discovered());
    })
    .await;
    assert_eq!(session.unwrap().revision(), Revision::LATEST);
}
