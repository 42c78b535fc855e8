//! Messages of extensions and logs on the wire, against the official schemas.

use oxmcp::{RequestContext, Tool, protocol::LoggingLevel};
use serde_json::{Value, json};

use crate::extension::*;
use crate::{
    schemas::Schema,
    support::{modern, request, script},
};

/// A server with an extension, whose tool logs.
fn talking() -> Server {
    let tool = Tool::new("talk", "Log", |cx: RequestContext| async move {
        cx.log(LoggingLevel::Error, json!({"msg": "oh"}))
            .logger("talk")
            .await;
        cx.log(LoggingLevel::Critical, "oh").await;
        cx.notify::<Struck>(hours(1)).await
    });
    let clock = clock()
        .requires_client()
        .settings(json!({"hands": 2}))
        .listen_key("com.example/towers");
    let clock = clock.method::<Add, _>(.., async |now: Hours| now);
    server(clock).logging().tool(tool)
}

fn initialize(schema: &Schema) -> Value {
    let params = json!({
        "protocolVersion": schema.revision,
        "capabilities": {"extensions": {ID: {}}},
        "clientInfo": {"name": "c", "version": "1"},
    });
    request(1, "initialize", params)
}

#[tokio::test]
#[ignore = "needs the official schemas; cargo xtask test schema runs it"]
async fn legacy_messages_fit_the_official_schemas() {
    for schema in Schema::all() {
        if schema.revision.is_modern() {
            continue;
        }
        let mut peer = script(&talking()).await;
        schema.assert_fits("InitializeRequest", &initialize(&schema));
        let opened = peer.ask(initialize(&schema)).await.unwrap();
        assert_eq!(
            opened["result"]["capabilities"]["extensions"],
            json!({ID: {"hands": 2}})
        );
        schema.assert_fits("InitializeResult", &opened["result"]);
        let set = peer
            .ask(request(2, "logging/setLevel", json!({"level": "error"})))
            .await
            .unwrap();
        schema.assert_fits("EmptyResult", &set["result"]);
        let mut message = peer
            .ask(request(3, "tools/call", json!({"name": "talk"})))
            .await
            .unwrap();
        for _ in 0..2 {
            schema.assert_fits("LoggingMessageNotification", &message);
            message = peer.receive().await.unwrap();
        }
        schema.assert_fits("JSONRPCNotification", &message);
        peer.receive().await.unwrap();
        let added = peer
            .ask(request(4, Add::NAME, json!({"hours": 1})))
            .await
            .unwrap();
        schema.assert_fits("Result", &added["result"]);
    }
}

#[tokio::test]
#[ignore = "needs the official schemas; cargo xtask test schema runs it"]
async fn modern_messages_fit_the_official_schemas() {
    for schema in Schema::all() {
        if !schema.revision.is_modern() {
            continue;
        }
        let mut peer = script(&talking()).await;
        let discovered = peer
            .ask(modern(1, "server/discover", json!({})))
            .await
            .unwrap();
        schema.assert_fits("DiscoverResult", &discovered["result"]);
        let refused = peer
            .ask(modern(2, Add::NAME, json!({"hours": 1})))
            .await
            .unwrap();
        schema.assert_fits("MissingRequiredClientCapabilityError", &refused);
        let know = |mut request: Value| {
            let meta = &mut request["params"]["_meta"];
            meta["io.modelcontextprotocol/clientCapabilities"] = json!({"extensions": {ID: {}}});
            meta["io.modelcontextprotocol/logLevel"] = "error".into();
            request
        };
        let added = peer
            .ask(know(modern(3, Add::NAME, json!({"hours": 1}))))
            .await
            .unwrap();
        schema.assert_fits("JSONRPCResultResponse", &added);
        let mut message = peer
            .ask(know(modern(4, "tools/call", json!({"name": "talk"}))))
            .await
            .unwrap();
        for _ in 0..2 {
            schema.assert_fits("LoggingMessageNotification", &message);
            message = peer.receive().await.unwrap();
        }
        schema.assert_fits("JSONRPCNotification", &message);
        peer.receive().await.unwrap();
        let filter = json!({"notifications": {"com.example/towers": ["north"]}});
        let acknowledged = peer
            .ask(know(modern(5, "subscriptions/listen", filter)))
            .await
            .unwrap();
        schema.assert_fits("SubscriptionsAcknowledgedNotification", &acknowledged);
        assert_eq!(
            acknowledged["params"]["notifications"],
            json!({"com.example/towers": ["north"]})
        );
    }
}
