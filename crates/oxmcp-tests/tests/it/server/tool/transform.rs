//! Transformed tools: their schemas, and the arguments that their handlers get.

use oxmcp::{JsonSchema, Revision, Server, Tool, ToolTransform, testing::connect};
use serde_json::{Value, json};

use crate::support::{call, text};

#[derive(Debug, serde::Deserialize, JsonSchema)]
#[expect(dead_code, reason = "the fields are printed")]
struct Query {
    /// the words
    q: String,
    index: String,
    #[serde(default)]
    page: u32,
    size: u32,
}

fn search() -> Tool {
    Tool::new("search", "Search", |query: Query| async move {
        format!("{query:?}")
    })
}

fn manuals(t: ToolTransform) -> ToolTransform {
    t.name("manuals")
        .title("Manuals")
        .description("Search the manuals")
        .argument("q", |a| a.name("words").description("words to find"))
        .argument("index", |a| a.fixed("manuals"))
        .argument("page", |a| a.hide())
        .argument("size", |a| a.default(10))
}

async fn schema(tool: Tool) -> Value {
    let session = connect(&Server::new("s", "1").tool(tool)).await.unwrap();
    let mut tools = session.tools().all().await.unwrap();
    serde_json::from_str(tools.remove(0).input_schema.get()).unwrap()
}

fn mistake(change: impl FnOnce(ToolTransform) -> ToolTransform) -> String {
    let server = Server::new("s", "1").tool(search().transform(change));
    server.check().unwrap_err().to_string()
}

#[tokio::test]
async fn listing_shows_the_transformed_tool() {
    let server = Server::new("s", "1").tool(search().transform(manuals));
    let session = connect(&server).await.unwrap();
    let tool = session.tools().all().await.unwrap().remove(0);
    assert_eq!(tool.name, "manuals");
    assert_eq!(tool.title.as_deref(), Some("Manuals"));
    assert_eq!(tool.description.as_deref(), Some("Search the manuals"));
    let schema: Value = serde_json::from_str(tool.input_schema.get()).unwrap();
    assert_eq!(schema["required"], json!(["words"]));
    let properties = schema["properties"].as_object().unwrap();
    assert_eq!(properties.keys().collect::<Vec<_>>(), ["size", "words"]);
    assert_eq!(
        properties["words"],
        json!({"type": "string", "description": "words to find"})
    );
    assert_eq!(properties["size"]["default"], 10);
    let text = tool.input_schema.get();
    assert!(
        text.find("words") < text.find("size"),
        "the order stays: {text}"
    );
}

#[tokio::test]
async fn handler_gets_the_original_arguments() {
    let server = Server::new("s", "1").tool(search().transform(manuals));
    for revision in Revision::ALL {
        for (sent, expected) in [
            (
                json!({"words": "oven"}),
                r#"Query { q: "oven", index: "manuals", page: 0, size: 10 }"#,
            ),
            (
                json!({"words": "oven", "size": "3"}),
                r#"Query { q: "oven", index: "manuals", page: 0, size: 3 }"#,
            ),
            // Hidden arguments cannot be set, under any name.
            (
                json!({"words": "oven", "q": "x", "index": "secrets", "page": 7}),
                r#"Query { q: "oven", index: "manuals", page: 0, size: 10 }"#,
            ),
        ] {
            let answer = call(&server, revision, "manuals", sent).await;
            assert_eq!(text(&answer), expected, "{revision}");
        }
        let answer = call(&server, revision, "manuals", json!({"q": "oven"})).await;
        assert_eq!(answer["result"]["isError"], true);
        let refusal = text(&answer);
        assert!(
            refusal.contains("manuals") && refusal.contains("\"words\""),
            "{refusal}"
        );
        let answer = call(&server, revision, "search", json!({"q": "oven"})).await;
        assert_eq!(answer["error"]["code"], -32602);
    }
}

#[tokio::test]
async fn transformations_can_be_combined() {
    let tool = search()
        .transform(manuals)
        .transform(|t| t.name("ovens").argument("words", |a| a.fixed("oven")))
        .transform(|t| t.argument("size", |a| a.name("count")));
    let server = Server::new("s", "1").tool(tool.input(|s| s.property("count", |p| p.maximum(5))));
    let session = connect(&server).await.unwrap();
    let answer = session
        .call_tool("ovens", json!({"count": 2, "words": "x"}))
        .await
        .unwrap();
    assert_eq!(
        answer.to_text(),
        r#"Query { q: "oven", index: "manuals", page: 0, size: 2 }"#
    );
    let answer = session
        .call_tool("ovens", json!({"count": 6}))
        .await
        .unwrap();
    assert!(answer.is_error);
    // Two arguments can exchange their names.
    let swapped = search().transform(|t| {
        t.argument("q", |a| a.name("index"))
            .argument("index", |a| a.name("q"))
    });
    let session = connect(&Server::new("s", "1").tool(swapped)).await.unwrap();
    let sent = json!({"q": "a", "index": "b", "size": 1});
    let answer = session.call_tool("search", sent).await.unwrap();
    assert_eq!(
        answer.to_text(),
        r#"Query { q: "b", index: "a", page: 0, size: 1 }"#
    );
}

#[tokio::test]
async fn impossible_transformations_are_mistakes() {
    for (said, expected) in [
        (
            mistake(|t| t.argument("qq", |a| a.hide())),
            "tool \"search\": cannot transform the argument \"qq\": the input schema has no such property (properties: index, page, q, size)",
        ),
        (
            mistake(|t| t.argument("q", |a| a.hide())),
            "tool \"search\": cannot hide the argument \"q\": it is required; give it a value with `fixed`",
        ),
        (
            mistake(|t| t.argument("q", |a| a.name("size"))),
            "tool \"search\": cannot transform the arguments: two of them have the same name",
        ),
    ] {
        assert_eq!(said, expected);
    }
    let said = mistake(|t| t.argument("size", |a| a.default("many")));
    assert!(
        said.starts_with(
            "tool \"search\": cannot transform the argument \"size\": its value is not valid"
        ),
        "{said}"
    );
    assert!(mistake(|t| t.name("two words")).contains("' ' is not allowed"));
    let either = r#"{"type": "object", "properties": {"a": {}, "b": {}}, "anyOf": [{"required": ["a"]}, {"required": ["b"]}]}"#;
    let either = || Tool::dynamic("either", "", either, |_, _| async { Ok("") });
    let server =
        Server::new("s", "1").tool(either().transform(|t| t.argument("a", |a| a.name("c"))));
    let said = server.check().unwrap_err().to_string();
    assert!(
        said.contains("the input schema has `anyOf`, which may depend on it"),
        "{said}"
    );
    let described = either().transform(|t| t.argument("a", |a| a.description("the first")));
    assert_eq!(
        schema(described.exact_schema()).await["properties"]["a"]["description"],
        "the first"
    );
}

#[tokio::test]
async fn strict_schemas_refuse_hidden_arguments() {
    let tool = search().deny_unknown_arguments().transform(manuals);
    let server = Server::new("s", "1").tool(tool);
    let session = connect(&server).await.unwrap();
    let sent = json!({"words": "oven", "index": "secrets"});
    let answer = session.call_tool("manuals", sent).await.unwrap();
    assert!(
        answer.is_error && answer.to_text().contains("\"index\""),
        "{}",
        answer.to_text()
    );
    let dynamic = Tool::dynamic(
        "echo",
        "Echo",
        json!({"type": "object", "properties": {"a": {}, "b": {}}, "required": ["a", "b"]}),
        |_, arguments| async move { Ok(arguments.get().to_owned()) },
    );
    let dynamic = dynamic.transform(|t| t.argument("b", |a| a.fixed(json!({"x": [1]}))));
    let session = connect(&Server::new("s", "1").tool(dynamic)).await.unwrap();
    let sent = json!({"a": "\u{1F600}\"", "other": null, "b": 2});
    let answer = session.call_tool("echo", sent).await.unwrap().to_text();
    let answer: Value = serde_json::from_str(&answer).unwrap();
    assert_eq!(
        answer,
        json!({"a": "\u{1F600}\"", "other": null, "b": {"x": [1]}})
    );
}
