//! Tasks of tools that need scopes.

use http::Response;
use oxmcp::{
    Server, Tool,
    http::{ResponseBody, StreamableHttp},
    protocol::Meta,
    tasks::{ID, TaskPolicy, TaskTool, Tasks},
};
use serde_json::{Value, json};

use super::issuer::{Issuer, bearing, open};
use crate::{
    http::server::peer::{Events, json, modern_builder, send},
    support::{modern, request},
};

/// Sends a modern request that declares the tasks extension.
async fn ask_modern(
    endpoint: &StreamableHttp,
    token: &str,
    method: &str,
    params: Value,
) -> Response<ResponseBody> {
    let mut message = modern(1, method, params);
    message["params"]["_meta"][Meta::CLIENT_CAPABILITIES] = json!({"extensions": {ID: {}}});
    let mut builder = modern_builder(&message);
    if let Some(id) = message["params"]["taskId"].as_str() {
        builder = builder.header("mcp-name", id);
    }
    send(endpoint, bearing(builder, token), message.to_string()).await
}

#[tokio::test]
async fn task_needs_its_tools_scopes_in_every_method() {
    let waits = |name: &str| {
        let tool = Tool::new(name, "Wait", std::future::pending::<String>);
        tool.task(TaskPolicy::Always)
    };
    let server = Server::new("files", "1.0.0")
        .extension(Tasks::in_memory().extension())
        .tool(waits("write").scopes("files:write"))
        .tool(waits("read"));
    let issuer = Issuer::new();
    let endpoint = StreamableHttp::from(server).protect(issuer.resource());
    let (all, few) = (issuer.token("mcp files:write"), issuer.token("mcp"));
    let session = open(&endpoint, &all, "2025-11-25").await;
    let ask = async |token: &str, method: &str, params: Value| {
        let message = request(1, method, params).to_string();
        json(send(&endpoint, bearing(session.builder("POST"), token), message).await).await
    };
    let mut old = Vec::new();
    let mut new = Vec::new();
    for name in ["write", "read"] {
        let call = json!({"name": name, "arguments": {}, "task": {}});
        let created = ask(&all, "tools/call", call).await;
        old.push(created["result"]["task"]["taskId"].clone());
        let call = json!({"name": name, "arguments": {}});
        let created = json(ask_modern(&endpoint, &all, "tools/call", call).await).await;
        new.push(created["result"]["taskId"].clone());
    }
    let check_refused = |refused: &Value, method: &str| {
        assert_eq!(refused["error"]["code"], -32600, "{method}: {refused}");
        let said = refused["error"]["message"].as_str().unwrap();
        assert!(said.contains("files:write"), "{method}: {said}");
    };
    for method in ["tasks/get", "tasks/result", "tasks/cancel"] {
        let refused = ask(&few, method, json!({"taskId": old[0]})).await;
        check_refused(&refused, method);
    }
    for method in ["tasks/get", "tasks/update", "tasks/cancel"] {
        let params = json!({"taskId": new[0], "inputResponses": {}});
        let refused = json(ask_modern(&endpoint, &few, method, params).await).await;
        check_refused(&refused, method);
    }
    // A task without scopes is available as before.
    let got = ask(&few, "tasks/get", json!({"taskId": old[1]})).await;
    assert_eq!(got["result"]["status"], "working");
    let got = ask_modern(&endpoint, &few, "tasks/get", json!({"taskId": new[1]})).await;
    assert_eq!(json(got).await["result"]["status"], "working");
    for (token, count) in [(&few, 1), (&all, 2)] {
        let listed = ask(token, "tasks/list", json!({})).await;
        let listed = listed["result"]["tasks"].as_array().unwrap();
        assert_eq!(listed.len(), count, "{listed:?}");
        let listen = json!({"notifications": {"taskIds": new}});
        let response = ask_modern(&endpoint, token, "subscriptions/listen", listen).await;
        let mut events = Events::of(response);
        let acknowledged = loop {
            let event = events.next().await.unwrap();
            if !event.data.is_null() {
                break event.data;
            }
        };
        let granted = &acknowledged["params"]["notifications"]["taskIds"];
        let granted = granted.as_array().unwrap();
        assert_eq!(granted.len(), count, "{acknowledged}");
        assert!(granted.contains(&new[1]));
    }
    let cancelled = ask(&all, "tasks/cancel", json!({"taskId": old[0]})).await;
    assert_eq!(cancelled["result"]["status"], "cancelled");
}
