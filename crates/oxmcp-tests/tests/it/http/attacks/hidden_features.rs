//! Hidden features: the refusal of a request must not show that they exist.

use http::StatusCode;
use oxmcp::{
    Principal, RequestContext, Resource, Server, Tool,
    http::StreamableHttp,
    middleware::{self, Next, Request},
};
use serde_json::{Value, json};

use crate::{
    http::mounts::{Target, mounts},
    http::server::peer::{
        Events, LEGACY, Session, builder, header, initialize, json, modern_builder, send,
    },
    support::{calculator, idle, modern, notification, request},
};

/// A server with a tool for Ann alone, an argument of which is repeated in a header.
fn server() -> Server {
    let region = json!({"type": "string", "x-mcp-header": "Region"});
    let schema = json!({"type": "object", "properties": {"region": region}});
    let tool = Tool::dynamic("move", "Move it", schema, |_, _| async { Ok("moved") });
    let secret = Resource::text("app://secret", "secret", "");
    calculator()
        .tool(tool.visible_to(is_ann))
        .resource(secret.visible_to(is_ann))
        .subscriptions()
}

fn is_ann(cx: &RequestContext) -> bool {
    let request = cx.http_request();
    let caller = request.and_then(|request| request.extensions.get::<Principal>());
    caller.is_some_and(|caller| caller.as_str() == "ann")
}

/// Opens a session that subscribes to the URI. Returns the answer to the subscription, and the session's stream.
async fn watch(endpoint: &impl Target, who: &str, uri: &str) -> (Value, Events) {
    let who = Principal::new(who);
    let open = initialize(LEGACY, json!({})).to_string();
    let opened = send(endpoint, builder("POST").extension(who.clone()), open).await;
    let session = Session {
        endpoint: endpoint.clone(),
        id: header(opened.headers(), "mcp-session-id").to_owned(),
    };
    let of = |method| session.builder(method).extension(who.clone());
    let ready = notification("notifications/initialized").to_string();
    send(endpoint, of("POST"), ready).await;
    let stream = send(endpoint, of("GET"), "").await;
    let subscribe = request(1, "resources/subscribe", json!({"uri": uri})).to_string();
    let answer = json(send(endpoint, of("POST"), subscribe).await).await;
    (answer, Events::of(stream))
}

// Attack: discovery of hidden features.
#[tokio::test]
async fn watching_hidden_and_missing_resources_gives_equal_answers() {
    for mount in mounts!() {
        let server = server();
        let endpoint = mount.serve(&StreamableHttp::from(server.clone())).await;
        let (unknown, _) = watch(&endpoint, "bob", "app://unknown").await;
        for (who, told) in [("ann", true), ("bob", false)] {
            let (answer, mut events) = watch(&endpoint, who, "app://secret").await;
            assert_eq!(answer, unknown);
            assert!(events.next().await.unwrap().data.is_null());
            server.resource_updated("app://secret");
            // All clients get these notifications; the second one comes after all that was sent before the first.
            let mut is_told = false;
            for name in ["one", "two"] {
                let _ = server.clone().tool(idle(&format!("{who}-{name}")));
                loop {
                    let next = events.next().await.unwrap().data;
                    if next["method"] == "notifications/tools/list_changed" {
                        break;
                    }
                    is_told |= next["method"] == "notifications/resources/updated";
                }
            }
            assert_eq!(is_told, told, "{who}");
        }
    }
}

/// Calls a tool in a region, with this value of the region's header.
async fn call(
    endpoint: &impl Target,
    who: &str,
    tool: &str,
    header: Option<&str>,
) -> (StatusCode, Value) {
    let params = json!({"name": tool, "arguments": {"region": "eu"}});
    let message = modern(1, "tools/call", params);
    let mut request = modern_builder(&message).extension(Principal::new(who));
    if let Some(header) = header {
        request = request.header("mcp-param-region", header);
    }
    let response = send(endpoint, request, message.to_string()).await;
    (response.status(), json(response).await)
}

// Attack: discovery of hidden features.
#[tokio::test]
async fn wrong_headers_do_not_reveal_a_hidden_tool() {
    for mount in mounts!() {
        let layered = server().layer(middleware::from_fn(
            |request: Request, next: Next| async move { next.run(request).await },
        ));
        for server in [server(), layered] {
            let endpoint = mount.serve(&StreamableHttp::from(server)).await;
            for header in [None, Some("us"), Some("=?base64?=")] {
                let hidden = call(&endpoint, "bob", "move", header).await;
                let (status, mut unknown) = call(&endpoint, "bob", "moves", header).await;
                let message = unknown["error"]["message"].as_str().unwrap();
                unknown["error"]["message"] = json!(message.replace("moves", "move"));
                assert_eq!(hidden, (status, unknown), "{header:?}");

                let (status, answer) = call(&endpoint, "ann", "move", header).await;
                assert_eq!(status, StatusCode::BAD_REQUEST, "{header:?}: {answer}");
                assert_eq!(answer["error"]["code"], -32020, "{header:?}");
            }
            let (status, answer) = call(&endpoint, "ann", "move", Some("eu")).await;
            assert_eq!(status, StatusCode::OK);
            assert_eq!(answer["result"]["content"][0]["text"], "moved");
        }
    }
}
