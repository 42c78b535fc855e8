//! Tools as they are listed, added and removed.

use oxmcp::{
    Revision, Server, Tool, ToolError,
    protocol::{CallToolResult, Icon, ToolAnnotations},
    testing,
};
use serde_json::{Value, json};
use tokio::sync::mpsc;

use crate::support::{LEGACY, Pair, add, answer, calculator, call, idle, script, text};

async fn listed(server: &Server, revision: Revision) -> Vec<Value> {
    let mut answer = answer(server, revision, "tools/list", json!({})).await;
    answer["result"]["tools"]
        .as_array_mut()
        .unwrap()
        .split_off(0)
}

#[tokio::test]
async fn tool_list_contains_all_metadata() {
    let tool = add()
        .title("Addition")
        .read_only()
        .idempotent()
        .open_world(false)
        .destructive(false)
        .icon(Icon::new("https://example.com/add.png"))
        .meta("com.example/price", 3)
        .input(|s| s.property("a", |p| p.description("the first")));
    let server = Server::new("calculator", "1.0.0").tool(tool);
    let tools = listed(&server, Revision::LATEST).await;
    let [tool] = tools.as_slice() else {
        panic!("{tools:?}")
    };
    assert_eq!(tool["name"], "add");
    assert_eq!(tool["title"], "Addition");
    assert_eq!(tool["description"], "Add two numbers");
    assert_eq!(
        tool["annotations"],
        json!({"readOnlyHint": true, "destructiveHint": false, "idempotentHint": true, "openWorldHint": false})
    );
    assert_eq!(
        tool["icons"],
        json!([{"src": "https://example.com/add.png"}])
    );
    assert_eq!(tool["_meta"], json!({"com.example/price": 3}));
    assert_eq!(tool["inputSchema"]["type"], "object");
    assert_eq!(
        tool["inputSchema"]["properties"]["a"]["description"],
        "the first"
    );
    assert_eq!(tool["inputSchema"]["required"], json!(["a", "b"]));
    assert_eq!(tool["outputSchema"]["type"], "number");
}

#[tokio::test]
async fn unset_fields_are_not_listed() {
    let server = Server::new("quiet", "1.0.0").tool(idle("idle"));
    for revision in Revision::ALL {
        let tools = listed(&server, revision).await;
        let tool = tools[0].as_object().unwrap();
        let keys: Vec<_> = tool.keys().map(String::as_str).collect();
        assert_eq!(keys, ["description", "inputSchema", "name"], "{revision}");
        assert_eq!(tool["inputSchema"]["type"], "object");
    }
}

#[tokio::test]
async fn dynamic_tool_receives_arguments_verbatim() {
    let tool = Tool::dynamic(
        "raw",
        "",
        json!({"type": "object"}),
        |cx, arguments| async move {
            Ok::<_, ToolError>(format!("{} {}", cx.revision(), arguments.get()))
        },
    );
    let server = Server::new("s", "1").tool(tool);
    for revision in Revision::ALL {
        let arguments = json!({"b": [1.50, null], "a": "é"});
        let answer = call(&server, revision, "raw", arguments.clone()).await;
        assert_eq!(text(&answer), format!("{revision} {arguments}"));
    }
}

#[tokio::test]
async fn annotations_can_be_set_as_a_whole() {
    let annotations = ToolAnnotations::default()
        .with_title("Idle")
        .with_read_only_hint(false);
    let server = Server::new("quiet", "1.0.0").tool(idle("idle").annotations(annotations));
    let tools = listed(&server, Revision::LATEST).await;
    assert_eq!(
        tools[0]["annotations"],
        json!({"title": "Idle", "readOnlyHint": false})
    );
}

#[tokio::test]
async fn explicit_schemas_replace_the_inferred_ones() {
    let input = json!({"type": "object", "properties": {"a": {"type": "number", "multipleOf": 2}, "b": {"type": "number"}}, "required": ["a", "b"]});
    let output =
        json!({"type": "object", "properties": {"sum": {"type": "number"}}, "required": ["sum"]});
    let tool = Tool::new("add", "", |Pair { a, b }: Pair| async move {
        CallToolResult::structured(&json!({"sum": a + b})).map_err(ToolError::from)
    })
    .input_schema(input.clone())
    .output_schema(output.clone());
    let server = Server::new("calculator", "1.0.0").tool(tool);
    let tools = listed(&server, Revision::LATEST).await;
    assert_eq!(tools[0]["inputSchema"], input);
    assert_eq!(tools[0]["outputSchema"], output);
    for revision in Revision::ALL {
        let answer = call(&server, revision, "add", json!({"a": 1, "b": 1})).await;
        assert_eq!(answer["result"]["isError"], true, "{answer}");
        let session = testing::connect(&server).revision(revision).await.unwrap();
        let sum: Value = session
            .call_tool("add", json!({"a": 2, "b": 1}))
            .structured()
            .await
            .unwrap();
        assert_eq!(sum, json!({"sum": 3.0}), "{revision}");
    }
}

#[tokio::test]
async fn invalid_tool_is_refused_when_added() {
    let server = calculator();
    let object = json!({"type": "object"});
    let dynamic = |name: &str, schema: Value| {
        Tool::dynamic(name, "", schema, |_, _| async {
            Ok(CallToolResult::text(""))
        })
    };
    let table: [(Tool, &[&str]); 8] = [
        (idle(""), &["\"\"", "1 to 128"]),
        (idle("two words"), &["two words", "' '"]),
        (idle("naïve"), &["'ï'"]),
        (idle(&"x".repeat(129)), &["129"]),
        (
            dynamic("list", json!({"type": "array"})),
            &["\"list\"", "object"],
        ),
        (dynamic("odd", json!(7)), &["odd"]),
        (
            dynamic("bad", json!({"type": "objekt"})),
            &["bad", "objekt"],
        ),
        (
            dynamic("fine", object).output_schema(json!({"type": 7})),
            &["fine"],
        ),
    ];
    for (wrong, named) in table {
        let error = server.add_tools([idle("innocent"), wrong]).unwrap_err();
        for word in named {
            assert!(error.to_string().contains(word), "{word} is not in {error}");
        }
    }
    // None of the valid tools was added either.
    let names: Vec<_> = listed(&server, Revision::LATEST)
        .await
        .iter()
        .map(|tool| tool["name"].clone())
        .collect();
    assert_eq!(names, ["add"]);
}

#[tokio::test]
async fn invalid_tool_prevents_the_server_from_connecting() {
    let server = Server::new("wrong", "1.0.0")
        .tool(idle("two words"))
        .tool(idle("also wrong"));
    for _ in 0..2 {
        let error = testing::connect(&server).await.unwrap_err();
        assert!(error.to_string().contains("two words"), "{error}");
    }
    let (near, _far) = oxmcp::in_memory();
    assert!(
        server
            .run(near)
            .await
            .unwrap_err()
            .to_string()
            .contains("two words")
    );
}

#[tokio::test]
async fn list_order_is_independent_of_insertion_order() {
    let names = ["b", "a", "C", "c.d", "c", "Z_9"];
    let one = Server::new("one", "1.0.0").tools(names.map(idle));
    let other = Server::new("other", "1.0.0").tools(names.into_iter().rev().map(idle));
    for revision in Revision::ALL {
        assert_eq!(listed(&one, revision).await, listed(&other, revision).await);
    }
}

#[tokio::test]
async fn tool_of_same_name_replaces_the_other() {
    let server = calculator();
    let session = testing::connect(&server).await.unwrap();
    assert_eq!(
        session
            .call_tool("add", json!({"a": 1, "b": 2}))
            .structured::<f64>()
            .await
            .unwrap(),
        3.0
    );
    server
        .add_tools([Tool::new("add", "now with words", || async { "three" })])
        .unwrap();
    let tools = session.tools().all().await.unwrap();
    assert_eq!(tools.len(), 1);
    assert_eq!(tools[0].description.as_deref(), Some("now with words"));
    let result = session.call_tool("add", ()).await.unwrap();
    assert_eq!(result.content[0].as_text(), Some("three"));
}

#[tokio::test]
async fn running_call_continues_though_its_tool_is_removed() {
    for revision in Revision::ALL {
        let (started, mut starts) = mpsc::channel(1);
        let (go, gone) = tokio::sync::watch::channel(false);
        let slow = Tool::new("slow", "", move || {
            let (started, mut gone) = (started.clone(), gone.clone());
            async move {
                started.send(()).await.unwrap();
                gone.wait_for(|gone| *gone).await.unwrap();
                "done"
            }
        });
        let server = Server::new("slow", "1.0.0").tool(slow);
        let session = testing::connect(&server).revision(revision).await.unwrap();
        let call = tokio::spawn(session.call_tool("slow", ()).into_future());
        starts.recv().await.unwrap();
        server.remove_tools(["slow", "never there"]);
        assert!(session.tools().all().await.unwrap().is_empty());
        assert!(
            session
                .call_tool("slow", ())
                .await
                .unwrap_err()
                .is_protocol()
        );
        go.send(true).unwrap();
        assert_eq!(
            call.await.unwrap().unwrap().content[0].as_text(),
            Some("done")
        );
    }
}

#[tokio::test]
async fn tools_are_unknown_methods_until_some_are_declared() {
    for revision in Revision::ALL {
        let server = Server::new("empty", "1.0.0");
        for method in ["tools/list", "tools/call"] {
            let answer = answer(&server, revision, method, json!({"name": "x"})).await;
            assert_eq!(answer["error"]["code"], -32601, "{method} in {revision}");
        }
        let declared = server.tools([]);
        assert!(listed(&declared, revision).await.is_empty());
    }
}

#[tokio::test]
async fn declared_capabilities_follow_added_features_and_stay() {
    for revision in LEGACY {
        let server = Server::new("s", "1.0.0");
        let answer = script(&server).await.initialize(revision).await.unwrap();
        assert_eq!(answer["result"]["capabilities"], json!({}));

        server.add_tools([idle("a")]).unwrap();
        server.remove_tools(["a"]);
        let answer = script(&server).await.initialize(revision).await.unwrap();
        assert_eq!(
            answer["result"]["capabilities"],
            json!({"tools": {"listChanged": true}}),
            "{revision}"
        );
    }
    let discovered = answer(
        &Server::new("s", "1.0.0"),
        Revision::LATEST,
        "server/discover",
        json!({}),
    )
    .await;
    assert_eq!(discovered["result"]["capabilities"], json!({}));
    let discovered = answer(
        &calculator(),
        Revision::LATEST,
        "server/discover",
        json!({}),
    )
    .await;
    assert_eq!(
        discovered["result"]["capabilities"],
        json!({"tools": {"listChanged": true}})
    );
}

#[tokio::test]
async fn handlers_may_capture_state() {
    let mut count = std::sync::atomic::AtomicU32::new(0);
    *count.get_mut() = 5;
    let count = std::sync::Arc::new(count);
    let server = Server::new("counter", "1.0.0").tool(Tool::new("next", "", move || {
        let count = std::sync::Arc::clone(&count);
        async move { count.fetch_add(1, std::sync::atomic::Ordering::Relaxed) }
    }));
    assert_eq!(
        text(&call(&server, Revision::LATEST, "next", json!({})).await),
        "5"
    );
    assert_eq!(
        text(&call(&server, Revision::V2024_11_05, "next", json!({})).await),
        "6"
    );
}

#[tokio::test]
async fn schema_is_accepted_in_every_form() {
    use oxmcp::{Schema, Structured};
    use serde_json::value::RawValue;

    #[derive(serde::Serialize, serde::Deserialize, oxmcp::JsonSchema)]
    struct Point {
        y: f64,
        x: f64,
    }
    const TEXT: &str =
        r#"{"type":"object","properties":{"y":{"type":"number"},"x":{"type":"number"}}}"#;
    let raw = || RawValue::from_string(TEXT.to_owned()).unwrap();
    let tool = |name| Tool::new(name, "", |point: Point| async { Structured(point) });
    let server = Server::new("s", "1.0.0").tools([
        tool("a")
            .input_schema(Schema::of::<Point>())
            .output_schema(Schema::of_output::<Point>()),
        tool("b").input_schema(TEXT).output_schema(TEXT.to_owned()),
        tool("c").input_schema(raw()).output_schema(&*raw()),
        Tool::dynamic("d", "", TEXT, |_cx, _arguments| async { Ok("") }),
        tool("e").input_schema(json!({"type": "object"})),
    ]);
    server.check().unwrap();
    let session = testing::connect(&server).await.unwrap();
    for tool in session.tools().all().await.unwrap().iter().take(4) {
        for schema in [Some(&tool.input_schema), tool.output_schema.as_ref()]
            .into_iter()
            .flatten()
        {
            let text = schema.get();
            assert!(
                text.find("\"y\"") < text.find("\"x\""),
                "{}: {text}",
                tool.name
            );
        }
    }
    let wrong = Tool::dynamic("d", "", "{", |_cx, _arguments| async { Ok("") });
    let error = Server::new("s", "1.0.0")
        .tool(wrong)
        .check()
        .unwrap_err()
        .to_string();
    assert!(error.contains("cannot parse the schema"), "{error}");
}
