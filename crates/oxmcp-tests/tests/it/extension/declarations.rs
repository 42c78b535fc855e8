//! Declarations of extensions by both sides, and their effects.

use oxmcp::{RequestContext, Revision, Tool, protocol::Meta};
use serde_json::{Value, json};

use crate::extension::*;
use crate::support::{LEGACY, modern, request, script};

#[tokio::test]
async fn both_sides_declare_the_extension_in_every_revision() {
    let tool = Tool::new(
        "declared",
        "What the client declares",
        |cx: RequestContext| async move {
            let declared = cx.client_capabilities().extensions.clone();
            Value::from(declared.unwrap_or_default()).to_string()
        },
    );
    let server = server(clock().settings(json!({"alarms": true}))).tool(tool);
    let client = client(clock().settings(json!({"hands": 2})))
        .extension(Extension::new("com.example/empty"));
    for revision in Revision::ALL {
        let session = connect(&server, &client, revision).await;
        let declared = session.server_capabilities().extensions.clone();
        assert_eq!(
            Value::from(declared),
            json!({ID: {"alarms": true}}),
            "{revision}"
        );
        let told = session.call_tool("declared", ()).await.unwrap().to_text();
        let told: Value = serde_json::from_str(&told).unwrap();
        assert_eq!(
            told,
            json!({ID: {"hands": 2}, "com.example/empty": {}}),
            "{revision}"
        );
    }
    // No extension is declared by default.
    let session = connect(
        &Server::new("s", "1"),
        &Client::new("c", "1"),
        Revision::LATEST,
    )
    .await;
    assert_eq!(session.server_capabilities().extensions, None);
}

#[tokio::test]
async fn peer_without_a_required_extension_is_refused() {
    let required = clock()
        .requires_client()
        .listen_key("com.example/strikes")
        .method::<Add, _>(.., async |now: Hours| now);
    let server = server(required);
    for revision in Revision::ALL {
        let session = connect(&server, &client(clock()), revision).await;
        session.request::<Add>(hours(1)).await.unwrap();
        let session = connect(&server, &Client::new("c", "1"), revision).await;
        let refused = session.request::<Add>(hours(1)).await.unwrap_err();
        let code = if revision.is_modern() { -32021 } else { -32600 };
        assert_eq!(refused.code().value(), code, "{revision}: {refused}");
        let data: Value = serde_json::from_str(refused.data().unwrap().get()).unwrap();
        assert_eq!(
            data,
            json!({"requiredCapabilities": {"extensions": {ID: {}}}})
        );
    }

    // Modern clients declare their capabilities with each request: one declaration does not count for the next request.
    let mut peer = script(&server).await;
    let mut declaring = modern(1, Add::NAME, json!({"hours": 1}));
    declaring["params"]["_meta"][Meta::CLIENT_CAPABILITIES] = json!({"extensions": {ID: {}}});
    assert_eq!(peer.ask(declaring).await.unwrap()["result"]["hours"], 1);
    let refused = peer
        .ask(modern(2, Add::NAME, json!({"hours": 1})))
        .await
        .unwrap();
    assert_eq!(refused["error"]["code"], -32021, "{refused}");
    let listen = json!({"notifications": {"com.example/strikes": true}});
    let refused = peer
        .ask(modern(3, "subscriptions/listen", listen))
        .await
        .unwrap();
    assert_eq!(refused["error"]["code"], -32021, "{refused}");
}

#[tokio::test]
async fn protocol_methods_take_precedence_over_extensions() {
    let server = server(clock().method::<Add, _>(.., async |now: Hours| now));
    for revision in LEGACY {
        let mut peer = script(&server).await;
        peer.initialize(revision).await.unwrap();
        assert_eq!(
            peer.ask(request(1, "ping", json!({}))).await.unwrap()["result"],
            json!({})
        );
    }
}

#[test]
fn handlers_can_read_headers_and_meta_keys() {
    let clock = clock()
        .header::<Add>("hours", "Mcp-Name")
        .meta_key("com.example/zone");
    assert_eq!(clock.id(), ID);
    assert_eq!(
        clock.headers_for(Add::NAME).collect::<Vec<_>>(),
        [("hours", "Mcp-Name")]
    );
    assert_eq!(clock.headers_for("tools/call").count(), 0);
    assert_eq!(clock.meta_keys().collect::<Vec<_>>(), ["com.example/zone"]);
}
