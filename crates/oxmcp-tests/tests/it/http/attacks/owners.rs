//! Session hijacking: sessions, streams and subscriptions of another owner.

use std::collections::HashSet;

use http::StatusCode;
use http_body_util::BodyExt;
use oxmcp::{
    Error, Principal, Server, Tool,
    http::{ResponseBody, StreamableHttp},
    middleware::{Next, Request, from_fn},
    protocol::Meta,
    tasks::{ID, TaskPolicy, TaskTool, Tasks},
};
use serde_json::{Value, json};

use crate::{
    http::mounts::{Target, mounts},
    http::server::peer::{
        Events, LEGACY, Session, builder, call_modern, header, initialize, json, modern_builder,
        send,
    },
    support::{calculator, idle, modern, notification, request},
};

/// Callers other than Ann, with their names if these are known.
const OTHERS: [Option<&str>; 4] = [None, Some("bob"), Some("ANN"), Some("")];

fn of(builder: http::request::Builder, who: Option<&str>) -> http::request::Builder {
    match who {
        Some(who) => builder.extension(Principal::new(who)),
        None => builder,
    }
}

// Attack: session hijacking.
#[tokio::test]
async fn refused_request_opens_no_session() {
    for mount in mounts!() {
        let refuse = from_fn(|request: Request, next: Next| async move {
            let opens = request.method() == "initialize";
            let response = next.run(request).await?;
            if opens {
                return Err(Error::internal("not you"));
            }
            Ok(response)
        });
        let server = calculator().layer(refuse);
        let endpoint = mount.serve(&StreamableHttp::from(server.clone())).await;
        let open = initialize(LEGACY, json!({})).to_string();
        let refused = send(&endpoint, builder("POST"), open).await;
        assert_eq!(header(refused.headers(), "mcp-session-id"), "");
        assert_eq!(json(refused).await["error"]["message"], "not you");
        assert_eq!(server.sessions().count(), 0);
    }
}

// Attack: session hijacking.
#[tokio::test]
async fn session_ids_are_unguessable() {
    for mount in mounts!() {
        let endpoint = mount.serve(&StreamableHttp::from(calculator())).await;
        let mut ids = HashSet::new();
        for _ in 0..200 {
            let session = Session::open(&endpoint).await;
            assert_eq!(session.id.len(), 32, "128 bits");
            assert!(session.id.bytes().all(|byte| byte.is_ascii_hexdigit()));
            ids.insert(session.id);
        }
        assert_eq!(ids.len(), 200);
        // Each digit of an id takes nearly all values, so none is a counter.
        for place in 0..32 {
            let seen: HashSet<_> = ids.iter().map(|id| id.as_bytes()[place]).collect();
            assert!(
                seen.len() >= 12,
                "place {place} takes {} values",
                seen.len()
            );
        }
    }
}

// Attack: session hijacking.
#[tokio::test]
async fn client_cannot_choose_its_session_id() {
    for mount in mounts!() {
        let endpoint = mount.serve(&StreamableHttp::from(calculator())).await;
        let chosen = "0".repeat(32);
        let open = builder("POST").header("mcp-session-id", &chosen);
        let fixed = send(&endpoint, open, initialize(LEGACY, json!({})).to_string()).await;
        // The session that it opens has an id of the server's choice.
        assert_eq!(fixed.status(), StatusCode::OK);
        let opened = header(fixed.headers(), "mcp-session-id");
        assert_eq!(opened.len(), 32);
        assert_ne!(opened, chosen);
        let inside = builder("POST").header("mcp-session-id", &chosen);
        let inside = send(&endpoint, inside, request_of_ping()).await;
        assert_eq!(inside.status(), StatusCode::NOT_FOUND);
        // The id of an existing session is not taken over, either.
        let session = Session::open(&endpoint).await;
        let again = session.post(&initialize(LEGACY, json!({}))).await;
        let other = header(again.headers(), "mcp-session-id").to_owned();
        assert_ne!(other, session.id);
    }
}

/// Opens a session of 2024-11-05. Returns its stream, and the URI for messages.
async fn open_2024(endpoint: &impl Target, who: Option<&str>) -> (ResponseBody, String) {
    let response = send(endpoint, of(builder("GET"), who), "").await;
    assert_eq!(response.status(), StatusCode::OK);
    let mut body = response.into_body();
    let first = body.frame().await.unwrap().unwrap().into_data().unwrap();
    let first = String::from_utf8(first.to_vec()).unwrap();
    let (_, uri) = first.split_once("data: ").unwrap();
    (body, format!("/mcp{}", uri.trim_end()))
}

// Attack: session hijacking.
#[tokio::test]
async fn session_over_2024_transport_belongs_to_its_principal() {
    for mount in mounts!() {
        let endpoint = mount.serve(&StreamableHttp::from(calculator())).await;
        let (_stream, uri) = open_2024(&endpoint, Some("ann")).await;
        let (_other_stream, nobodys) = open_2024(&endpoint, None).await;
        let post = async |uri: &str, who| {
            let request = http::Request::post(uri)
                .header("host", "localhost")
                .header("content-type", "application/json");
            let ping = request_of_ping();
            send(&endpoint, of(request, who), ping).await.status()
        };
        for who in OTHERS {
            assert_eq!(post(&uri, who).await, StatusCode::NOT_FOUND, "{who:?}");
        }
        assert_eq!(post(&uri, Some("ann")).await, StatusCode::ACCEPTED);
        assert_eq!(post(&nobodys, Some("ann")).await, StatusCode::NOT_FOUND);
        // Its id is not found by the other transport.
        let (_, id) = uri.split_once('=').unwrap();
        for method in ["POST", "GET", "DELETE"] {
            let builder = of(builder(method).header("mcp-session-id", id), Some("ann"));
            let status = send(&endpoint, builder, request_of_ping()).await.status();
            assert_eq!(status, StatusCode::NOT_FOUND, "{method}");
        }
    }
}

fn request_of_ping() -> String {
    request(1, "ping", json!({})).to_string()
}

// Attack: session hijacking.
#[tokio::test]
async fn session_id_is_valid_only_at_its_endpoint() {
    for mount in mounts!() {
        let server = calculator();
        let one = mount.serve(&StreamableHttp::from(server.clone())).await;
        let session = Session::open(&one).await;
        let elsewhere = Session {
            endpoint: mount.serve(&StreamableHttp::from(server)).await,
            id: session.id.clone(),
        };
        assert_eq!(elsewhere.get().await.status(), StatusCode::NOT_FOUND);
        assert_eq!(elsewhere.delete().await.status(), StatusCode::NOT_FOUND);
        assert_eq!(
            session.call(1, "ping", json!({})).await.status(),
            StatusCode::OK
        );
    }
}

fn notes() -> Server {
    let note = oxmcp::Resource::new("mem://note", "note", || async { "text" });
    calculator().resource(note).subscriptions()
}

// Attack: a session or subscription of another owner.
#[tokio::test]
async fn only_its_owner_can_use_a_session() {
    for mount in mounts!() {
        let endpoint = mount.serve(&StreamableHttp::from(notes())).await;
        let open = of(builder("POST"), Some("ann"));
        let opened = send(&endpoint, open, initialize(LEGACY, json!({})).to_string()).await;
        let id = header(opened.headers(), "mcp-session-id").to_owned();
        let uri = json!({"uri": "mem://note"});
        let messages = [
            request(1, "ping", json!({})),
            request(1, "tools/list", json!({})),
            request(
                1,
                "tools/call",
                json!({"name": "add", "arguments": {"a": 1, "b": 2}}),
            ),
            request(1, "resources/subscribe", uri.clone()),
            request(1, "resources/unsubscribe", uri),
            request(1, "logging/setLevel", json!({"level": "debug"})),
            notification("notifications/initialized"),
            json!({"jsonrpc": "2.0", "id": 1, "result": {}}),
        ];
        for who in OTHERS {
            for message in &messages {
                let builder = of(builder("POST").header("mcp-session-id", &id), who);
                let status = send(&endpoint, builder, message.to_string()).await.status();
                assert_eq!(status, StatusCode::NOT_FOUND, "{who:?} {message}");
            }
            // `initialize` opens a session of the caller's own.
            let open = of(builder("POST").header("mcp-session-id", &id), who);
            let opened = send(&endpoint, open, initialize(LEGACY, json!({})).to_string()).await;
            assert_eq!(opened.status(), StatusCode::OK, "{who:?}");
            assert_ne!(header(opened.headers(), "mcp-session-id"), id, "{who:?}");
            for (method, last) in [("GET", None), ("GET", Some("s0_1")), ("DELETE", None)] {
                let mut builder = of(builder(method).header("mcp-session-id", &id), who);
                if let Some(last) = last {
                    builder = builder.header("last-event-id", last);
                }
                let status = send(&endpoint, builder, "").await.status();
                assert_eq!(status, StatusCode::NOT_FOUND, "{who:?} {method}");
            }
        }
        let own = of(builder("POST").header("mcp-session-id", &id), Some("ann"));
        let own = send(&endpoint, own, request_of_ping()).await;
        assert_eq!(own.status(), StatusCode::OK);
    }
}

// Attack: a session or subscription of another owner.
#[tokio::test]
async fn foreign_subscription_cannot_be_ended_or_received() {
    for mount in mounts!() {
        let server = notes();
        let endpoint = mount.serve(&StreamableHttp::from(server.clone())).await;
        let ann = Session::open(&endpoint).await;
        let mut to_ann = ann.listen().await;
        let uri = json!({"uri": "mem://note"});
        let subscribed = ann.call(1, "resources/subscribe", uri.clone()).await;
        assert_eq!(json(subscribed).await["result"], json!({}));
        let listen = json!({"notifications": {"resourceSubscriptions": ["mem://note"]}});
        let mut listening =
            Events::of(call_modern(&endpoint, "subscriptions/listen", listen).await);
        listening.next().await.unwrap();

        let bob = Session::open(&endpoint).await;
        let mut to_bob = bob.listen().await;
        bob.call(1, "resources/unsubscribe", uri).await;
        let mut cancel = notification("notifications/cancelled");
        cancel["params"] = json!({"requestId": 1});
        bob.post(&cancel).await;
        let meta = modern(1, "ping", json!({}))["params"]["_meta"].clone();
        cancel["params"]["_meta"] = meta;
        send(&endpoint, modern_builder(&cancel), cancel.to_string()).await;

        server.resource_updated("mem://note");
        for events in [&mut to_ann, &mut listening] {
            let told = events.next().await.unwrap().data;
            assert_eq!(told["method"], "notifications/resources/updated");
        }
        // The first message to Bob is the one that goes to all clients.
        let _ = server.tool(idle("another"));
        let told = to_bob.next().await.unwrap().data;
        assert_eq!(told["method"], "notifications/tools/list_changed");
    }
}

// Attack: session hijacking.
#[tokio::test]
async fn only_its_owner_can_use_a_task() {
    const OWNERS: [Option<&str>; 5] = [None, Some("ann"), Some("bob"), Some("ANN"), Some("")];
    for mount in mounts!() {
        let tool = Tool::new("wait", "Wait", std::future::pending::<String>);
        let server = Server::new("s", "1")
            .extension(Tasks::in_memory().extension())
            .tool(tool.task(TaskPolicy::Required));
        let endpoint = mount.serve(&StreamableHttp::from(server)).await;
        let ask = async |who, method, params: Value| {
            let mut message = modern(1, method, params);
            message["params"]["_meta"][Meta::CLIENT_CAPABILITIES] = json!({"extensions": {ID: {}}});
            let mut request = of(modern_builder(&message), who);
            if let Some(id) = message["params"]["taskId"].as_str() {
                request = request.header("mcp-name", id);
            }
            send(&endpoint, request, message.to_string()).await
        };
        for owner in OWNERS {
            let created = json(ask(owner, "tools/call", json!({"name": "wait"})).await).await;
            let id = created["result"]["taskId"].as_str().unwrap();
            for who in OWNERS {
                let is_own = who == owner;
                for method in ["tasks/get", "tasks/update", "tasks/cancel"] {
                    let params = json!({"taskId": id, "inputResponses": {}});
                    let answer = json(ask(who, method, params).await).await;
                    let expected = if is_own { Value::Null } else { json!(-32602) };
                    assert_eq!(answer["error"]["code"], expected, "{method}: {answer}");
                    if !is_own {
                        let unknown = json!({"taskId": "unknown", "inputResponses": {}});
                        let unknown = json(ask(who, method, unknown).await).await;
                        assert_eq!(answer["error"], unknown["error"], "{method}");
                    }
                }
                let listen = json!({"notifications": {"taskIds": [id]}});
                let mut events = Events::of(ask(who, "subscriptions/listen", listen).await);
                let acknowledged = events.next().await.unwrap().data;
                let granted = &acknowledged["params"]["notifications"]["taskIds"];
                let expected = if is_own { json!([id]) } else { json!([]) };
                assert_eq!(*granted, expected, "{acknowledged}");
            }
        }
    }
}
