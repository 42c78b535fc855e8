//! The search over tools that replaces their listing.

use std::sync::{Arc, Mutex};

use oxmcp::{
    Accept, Client, ErrorCode, RequestContext, Revision, SearchOptions, Server, Tool, ToolError,
    http::StreamableHttp,
    middleware::{self, Next, Request},
    protocol::{ElicitFormParams, ToolAnnotations},
    testing::connect,
};
use serde_json::{Value, json};

use crate::{
    server::layers::Connected,
    support::{add, call, text},
};

#[derive(serde::Deserialize, serde::Serialize, oxmcp::JsonSchema)]
struct Name {
    name: String,
}

fn many() -> Server {
    let numbered = |number: u32| {
        let about = format!("Show the weather of region {number}");
        Tool::new(
            format!("weather_{number}"),
            about,
            move || async move { number },
        )
    };
    let greet = Tool::new(
        "greet",
        "Greet the user by name",
        |cx: RequestContext| async move {
            let Name { name } = cx.ask("name", "Who are you?").await?;
            Ok::<_, ToolError>(format!("Hello, {name}!"))
        },
    );
    let secret = Tool::new("secret", "Show the secret weather", || async { "psst" });
    Server::new("many", "1")
        .tools((0..50).map(numbered))
        .tools([
            add(),
            greet,
            secret.visible_to(|cx| cx.peer_info().is_some_and(|it| it.name == "admin")),
        ])
        .search_tools(SearchOptions::default().max_results(3).list(["weather_7"]))
}

fn names(found: &Value) -> Vec<String> {
    let tools = found["tools"].as_array().unwrap().iter();
    let names = tools.map(|tool| tool["name"].as_str().unwrap().to_owned());
    names.collect()
}

#[tokio::test]
async fn tools_are_found_and_called_in_every_revision() {
    for (name, client) in Connected::all(many).await {
        let session = &client.session;
        let listed = session.tools().all().await.unwrap();
        let listed: Vec<_> = listed.iter().map(|tool| &*tool.name).collect();
        assert_eq!(listed, ["call_tool", "search_tools", "weather_7"], "{name}");
        let found = session.call_tool("search_tools", json!({"query": "add numbers"}));
        let found: Value = serde_json::from_str(&found.await.unwrap().to_text()).unwrap();
        assert_eq!(names(&found), ["add"], "{name}");
        assert_eq!(
            found["tools"][0]["inputSchema"]["required"],
            json!(["a", "b"])
        );
        let found = session.call_tool("search_tools", json!({"query": "the weather"}));
        let found: Value = serde_json::from_str(&found.await.unwrap().to_text()).unwrap();
        assert_eq!(names(&found).len(), 3);
        let sum = session.call_tool(
            "call_tool",
            json!({"name": "add", "arguments": {"a": 1, "b": 2}}),
        );
        assert_eq!(sum.await.unwrap().to_text(), "3.0", "{name}");
        let quoted = json!({"name": "add", "arguments": r#"{"a": 1, "b": "2"}"#});
        let sum = session.call_tool("call_tool", quoted).await.unwrap();
        assert_eq!(sum.to_text(), "3.0", "{name}");
        let refused = json!({"name": "add", "arguments": {"a": "x", "b": 2}});
        let refused = session.call_tool("call_tool", refused).await.unwrap();
        assert!(
            refused.is_error
                && refused
                    .to_text()
                    .starts_with("The arguments of add are not valid")
        );
        let direct = session.call_tool("weather_3", json!({})).await.unwrap();
        assert_eq!(direct.to_text(), "3");
    }
}

#[tokio::test]
async fn hidden_tools_are_like_missing_ones() {
    for revision in Revision::ALL {
        let ask = |name: &str, tool: &str| {
            let client = Client::new(name, "1").revisions([revision]);
            let tool = json!({"name": tool});
            async move {
                let session = connect(&many()).client(&client).await.unwrap();
                let found = session.call_tool("search_tools", json!({"query": "secret"}));
                let found = found.await.unwrap().to_text();
                let called = session.call_tool("call_tool", tool).await.unwrap();
                (found, called.is_error, called.to_text())
            }
        };
        let (found, is_error, said) = ask("guest", "secret").await;
        assert!(!found.contains("psst") && !found.contains("\"secret\"") && is_error);
        let (_, _, missing) = ask("guest", "missin").await;
        assert_eq!(said.replace("secret", "missin"), missing, "{revision}");
        let (found, is_error, said) = ask("admin", "secret").await;
        assert!(found.contains("\"secret\"") && !is_error, "{said}");
        assert_eq!(said, "psst");
    }
}

#[tokio::test]
async fn middleware_and_errors_see_the_tool_found() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let record = Arc::clone(&seen);
    let server = many().layer(middleware::from_fn(move |request: Request, next: Next| {
        if request.method() == "tools/call" {
            let params = request.raw_params().map_or("", |params| params.get());
            record.lock().unwrap().push(params.to_owned());
        }
        next.run(request)
    }));
    for revision in Revision::ALL {
        let answer = call(
            &server,
            revision,
            "call_tool",
            json!({"name": "add", "arguments": {"a": 1, "b": 2}}),
        )
        .await;
        assert_eq!(text(&answer), "3.0");
        let params: Value = serde_json::from_str(seen.lock().unwrap().last().unwrap()).unwrap();
        assert_eq!(params["name"], "add");
        assert_eq!(params["arguments"], json!({"a": 1, "b": 2}));
        assert_eq!(params.get("_meta").is_some(), revision.is_modern());
        // It is not clear which tool is meant, so none is called.
        for arguments in [
            r#"{"name":"add","name":"greet"}"#,
            r#"{"name":"add","arguments":[1]}"#,
            r#"{"name":3}"#,
            r#"{"name":"call_tool","arguments":{"name":"add"}}"#,
            "{}",
        ] {
            let arguments: Box<serde_json::value::RawValue> =
                serde_json::from_str(arguments).unwrap();
            let session = connect(&server).revision(revision).await.unwrap();
            let answer = session.call_tool("call_tool", arguments).await.unwrap();
            assert!(answer.is_error, "{revision}");
        }
    }
}

#[tokio::test]
async fn found_tool_asks_the_user() {
    for revision in [
        Revision::V2025_06_18,
        Revision::V2025_11_25,
        Revision::LATEST,
    ] {
        let client = Client::new("client", "1").on_elicit(|_: ElicitFormParams| async {
            Accept(Name {
                name: "Ann".to_owned(),
            })
        });
        let connecting = connect(&many()).client(&client.revisions([revision]));
        let session = connecting.await.unwrap();
        let greeting = session.call_tool("call_tool", json!({"name": "greet"}));
        assert_eq!(
            greeting.await.unwrap().to_text(),
            "Hello, Ann!",
            "{revision}"
        );
    }
}

#[tokio::test]
async fn calling_tool_has_the_most_careful_annotations() {
    let tool = |name: &str| Tool::new(name, "Do it", || async {});
    let server = Server::new("s", "1")
        .tools([
            tool("reads").read_only().idempotent().open_world(false),
            tool("adds")
                .destructive(false)
                .idempotent()
                .open_world(false),
        ])
        .search_tools(SearchOptions::default().names("find", "use"));
    let annotations = async || {
        let session = connect(&server).await.unwrap();
        let tools = session.tools().all().await.unwrap();
        let calling = tools.into_iter().find(|tool| tool.name == "use");
        calling.unwrap().annotations.unwrap()
    };
    let hints = |read_only, destructive, idempotent, open| {
        ToolAnnotations::default()
            .with_read_only_hint(read_only)
            .with_destructive_hint(destructive)
            .with_idempotent_hint(idempotent)
            .with_open_world_hint(open)
    };
    assert_eq!(annotations().await, hints(false, false, true, false));
    server.remove_tools(["adds"]);
    assert_eq!(annotations().await, hints(true, false, true, false));
    server.add_tools([tool("unknown")]).unwrap();
    assert_eq!(annotations().await, hints(false, true, false, true));
    let session = connect(&server).await.unwrap();
    assert!(
        !session
            .call_tool("use", json!({"name": "unknown"}))
            .await
            .unwrap()
            .is_error
    );
}

#[cfg(feature = "auth")]
#[tokio::test]
async fn scopes_are_those_of_the_tool_found() {
    use ::http::StatusCode;
    use oxmcp::{Principal, auth::Secret};

    use crate::http::server::peer::{json as body, modern_builder, send};
    use crate::support::modern;

    let write = Tool::new("write", "Write a file", || async { "written" });
    let server = Server::new("s", "1")
        .tool(write.scopes("files:write"))
        .search_tools(SearchOptions::default());
    let endpoint = StreamableHttp::from(server).authenticate(|token: Secret| async move {
        Ok(Principal::new("ann").scopes([token.expose()]))
    });
    for (scope, status) in [
        ("files:read", StatusCode::FORBIDDEN),
        ("files:write", StatusCode::OK),
    ] {
        let found = json!({"name": "write", "arguments": {}});
        let message = modern(
            1,
            "tools/call",
            json!({"name": "call_tool", "arguments": found}),
        );
        let builder = modern_builder(&message).header("authorization", format!("Bearer {scope}"));
        let response = send(&endpoint, builder, message.to_string()).await;
        assert_eq!(response.status(), status, "{scope}");
        if status == StatusCode::OK {
            assert_eq!(text(&body(response).await), "written");
        }
    }
}

#[tokio::test]
async fn unknown_tools_are_named_with_similar_ones() {
    let session = connect(&many()).await.unwrap();
    let answer = session
        .call_tool("call_tool", json!({"name": "add_numbers"}))
        .await
        .unwrap();
    assert_eq!(
        answer.to_text(),
        "There is no tool \"add_numbers\". Find tools with search_tools. Similar tools: add."
    );
    let error = session.call_tool("other", json!({})).await.unwrap_err();
    assert_eq!(error.code(), ErrorCode::INVALID_PARAMS);
    assert!(
        error
            .message()
            .contains("(available: call_tool, search_tools, weather_7)"),
        "{error}"
    );
}
