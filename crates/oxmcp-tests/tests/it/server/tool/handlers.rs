//! Handlers of tools: the arguments that they may take, and the types that they may return.

use std::{borrow::Cow, fmt, io};

use oxmcp::{
    Error, ErrorCode, JsonSchema, OrToolError, RequestContext, Revision, Server, Structured, Tool,
    ToolError,
    protocol::{CallToolResult, ContentBlock},
};
use serde_json::{Value, json};

use crate::support::{Pair, call, text};

async fn function(Pair { a, b }: Pair) -> f64 {
    a + b
}

async fn with_context(cx: RequestContext, Pair { a, b }: Pair) -> String {
    format!("{} {}", cx.revision(), a + b)
}

async fn nothing() -> &'static str {
    "nothing"
}

async fn only_context(cx: RequestContext) -> String {
    format!("{}", cx.revision())
}

#[tokio::test]
async fn every_handler_form_is_called_in_every_revision() {
    let server = Server::new("forms", "1.0.0").tools([
        Tool::new("function", "", function),
        Tool::new("with_context", "", with_context),
        Tool::new("nothing", "", nothing),
        Tool::new("only_context", "", only_context),
        Tool::new("closure", "", |pair: Pair| async move { pair.a - pair.b }),
        Tool::new(
            "closure_with_context",
            "",
            |cx: RequestContext, pair: Pair| async move { format!("{} {}", cx.revision(), pair.a) },
        ),
        Tool::new("closure_of_nothing", "", || async { 7 }),
        Tool::new("closure_of_context", "", |cx: RequestContext| async move {
            cx.peer_info()
                .map(|info| info.name.clone())
                .unwrap_or_default()
        }),
    ]);
    for revision in Revision::ALL {
        let expected = [
            ("function", "5.0".to_owned()),
            ("with_context", format!("{revision} 5")),
            ("nothing", "nothing".to_owned()),
            ("only_context", revision.to_string()),
            ("closure", "1.0".to_owned()),
            ("closure_with_context", format!("{revision} 3")),
            ("closure_of_nothing", "7".to_owned()),
            ("closure_of_context", "scripted".to_owned()),
        ];
        for (name, expected) in expected {
            let takes_input = !name.contains("nothing") && !name.ends_with("_context")
                || ["with_context", "closure_with_context"].contains(&name);
            let arguments = if takes_input {
                json!({"a": 3, "b": 2})
            } else {
                json!({})
            };
            let answer = call(&server, revision, name, arguments).await;
            assert_eq!(text(&answer), expected, "{name} in {revision}");
        }
    }
}

#[tokio::test]
async fn tool_without_input_declares_none_and_ignores_arguments() {
    let open = Tool::new("nothing", "", nothing);
    let closed = Tool::new("strict", "", nothing).deny_unknown_arguments();
    let written = Tool::new("written", "", nothing)
        .input_schema(json!({"type": "object", "properties": {"a": {"type": "string"}}}));
    let server = Server::new("forms", "1.0.0").tools([open, closed, written]);
    let listed = crate::support::answer(&server, Revision::LATEST, "tools/list", json!({})).await;
    for index in [0, 1] {
        let schema = &listed["result"]["tools"][index]["inputSchema"];
        let empty = json!({"type": "object", "properties": {}, "additionalProperties": false});
        assert_eq!(*schema, empty);
    }
    let answer = call(&server, Revision::LATEST, "nothing", json!({"a": 3})).await;
    assert_eq!(text(&answer), "nothing");
    for name in ["strict", "written"] {
        let answer = call(&server, Revision::LATEST, name, json!({"a": 3})).await;
        assert_eq!(answer["result"]["isError"], true, "{answer}");
    }
    let answer = call(&server, Revision::LATEST, "nothing", json!([3])).await;
    assert_eq!(answer["result"]["isError"], true, "{answer}");
}

#[derive(serde::Deserialize, JsonSchema)]
struct Count {
    count: u32,
}

#[tokio::test]
async fn values_refused_only_by_type_are_named() {
    let count = |Count { count }: Count| async move { count };
    let server = Server::new("counter", "1.0.0").tool(Tool::new("count", "", count));
    let mut peer = crate::support::script(&server).await;
    peer.initialize(Revision::V2025_11_25).await.unwrap();
    for (arguments, said) in [
        (
            r#"{"count": 5e9}"#,
            "/count: expected an integer from 0 to 4294967295, got the number 5000000000",
        ),
        (
            r#"{"count": 1, "count": 2}"#,
            "duplicate key \"count\"; send it once",
        ),
    ] {
        let params = format!(r#"{{"name":"count","arguments":{arguments}}}"#);
        let line = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{params}}}"#);
        peer.send_line(line).await.unwrap();
        let answer = peer.receive().await.unwrap();
        assert_eq!(answer["result"]["isError"], true, "{answer}");
        let expected = format!("The arguments of count are not valid.\n{said}");
        assert_eq!(text(&answer), expected);
    }
}

/// By JSON Schema `3.0` is an integer, so a tool accepts it, wherever it occurs.
#[tokio::test]
async fn integer_may_have_a_zero_fraction() {
    #[derive(serde::Deserialize, JsonSchema)]
    struct Order {
        count: u32,
        sizes: Vec<i8>,
        price: f64,
        note: String,
        hint: Option<String>,
    }
    let order = |it: Order| async move {
        assert_eq!(it.hint, None);
        format!("{} {:?} {} {}", it.count, it.sizes, it.price, it.note)
    };
    let server = Server::new("shop", "1.0.0").tool(Tool::new("order", "", order));
    let mut peer = crate::support::script(&server).await;
    peer.initialize(Revision::V2025_11_25).await.unwrap();
    for (last, said) in [
        ("", "3 [-10, 2] 2.5 4.0"),
        // Misspelt properties are detected in such arguments, too.
        (
            r#","hnt":"x""#,
            "The arguments of order are not valid.\n\"hnt\" is not accepted; did you mean \"hint\"?",
        ),
    ] {
        let arguments =
            format!(r#"{{"count":3.0,"sizes":[-1e1,2],"price":2.50,"note":"4.0"{last}}}"#);
        let params = format!(r#"{{"name":"order","arguments":{arguments}}}"#);
        let line = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{params}}}"#);
        peer.send_line(line).await.unwrap();
        let answer = peer.receive().await.unwrap();
        assert_eq!(text(&answer), said);
    }
}

#[derive(serde::Serialize, JsonSchema)]
struct Weather {
    celsius: f64,
}

async fn returned(tool: Tool, revision: Revision) -> Value {
    let server = Server::new("returns", "1.0.0").tool(tool);
    let mut answer = call(&server, revision, "t", json!({})).await;
    assert!(answer.get("error").is_none(), "{answer}");
    answer["result"].take()
}

#[tokio::test]
async fn helper_may_fail_with_any_boxable_error() {
    type Boxed = Box<dyn std::error::Error + Send + Sync>;
    let helper = |ours: bool| -> Result<u32, Boxed> {
        if ours {
            return Err(Error::invalid_params("a protocol error").into());
        }
        Ok("seven".parse()?)
    };
    let tool = |name: &str, ours: bool| {
        Tool::new(
            name,
            "",
            move || async move { helper(ours).or_tool_error() },
        )
    };
    let server = Server::new("s", "1.0.0").tools([tool("theirs", false), tool("ours", true)]);
    let answer = call(&server, Revision::LATEST, "theirs", json!({})).await;
    assert_eq!(answer["result"]["isError"], true);
    assert_eq!(text(&answer), "invalid digit found in string");
    let answer = call(&server, Revision::LATEST, "ours", json!({})).await;
    assert_eq!(answer["error"]["code"], -32602, "{answer}");
}

#[tokio::test]
async fn structured_content_may_have_separate_text() {
    for revision in Revision::ALL {
        let warm = || async { Structured(Weather { celsius: 22.5 }).with_text("It is warm.") };
        let tool = Tool::new("t", "", warm);
        let result = returned(tool, revision).await;
        assert_eq!(result["content"][0]["text"], "It is warm.", "{revision}");
        assert_eq!(result["content"].as_array().unwrap().len(), 1);
        if revision >= Revision::V2025_06_18 {
            assert_eq!(result["structuredContent"], json!({"celsius": 22.5}));
        }
    }
    let warm = || async { Structured(Weather { celsius: 22.5 }).with_text("It is warm.") };
    let server = Server::new("s", "1.0.0").tool(Tool::new("t", "", warm));
    let listed = crate::support::answer(&server, Revision::LATEST, "tools/list", json!({})).await;
    let schema = &listed["result"]["tools"][0]["outputSchema"];
    assert_eq!(schema["properties"]["celsius"]["type"], "number");
}

#[tokio::test]
async fn text_has_no_structured_content() {
    for revision in Revision::ALL {
        for tool in [
            Tool::new("t", "", || async { "x" }),
            Tool::new("t", "", || async { String::from("x") }),
            Tool::new("t", "", || async { Box::<str>::from("x") }),
            Tool::new("t", "", || async { Cow::Borrowed("x") }),
            Tool::new("t", "", || async { ContentBlock::text("x") }),
            Tool::new("t", "", || async { vec![ContentBlock::text("x")] }),
            Tool::new("t", "", || async { [ContentBlock::text("x")] }),
            Tool::new("t", "", || async { CallToolResult::text("x") }),
            Tool::new("t", "", || async { Ok::<_, ToolError>("x") }),
            Tool::new("t", "", || async { Ok::<_, io::Error>("x") }),
            Tool::new("t", "", || async { Ok::<_, Error>("x") }),
        ] {
            let result = returned(tool, revision).await;
            assert_eq!(
                result["content"],
                json!([{"type": "text", "text": "x"}]),
                "{revision}"
            );
            assert_eq!(result.get("structuredContent"), None, "{revision}");
            assert_eq!(result.get("isError"), None, "{revision}");
        }
    }
}

#[tokio::test]
async fn unit_is_an_empty_result() {
    for revision in Revision::ALL {
        let result = returned(Tool::new("t", "", || async {}), revision).await;
        assert_eq!(result["content"], json!([]), "{revision}");
    }
}

#[tokio::test]
async fn scalars_and_structures_are_text_and_structured_content() {
    let revision = Revision::LATEST;
    for (tool, value) in [
        (Tool::new("t", "", || async { true }), json!(true)),
        (Tool::new("t", "", || async { 7u8 }), json!(7)),
        (Tool::new("t", "", || async { -7i64 }), json!(-7)),
        (Tool::new("t", "", || async { 0.5f32 }), json!(0.5)),
        (Tool::new("t", "", || async { u64::MAX }), json!(u64::MAX)),
        (
            Tool::new("t", "", || async { Structured(Weather { celsius: 22.5 }) }),
            json!({"celsius": 22.5}),
        ),
        (
            Tool::new("t", "", || async { Structured(vec![1, 2]) }),
            json!([1, 2]),
        ),
        (
            Tool::new("t", "", || async { Structured(None::<u8>) }),
            json!(null),
        ),
        (
            Tool::new("t", "", || async {
                Ok::<_, ToolError>(Structured("word".to_owned()))
            }),
            json!("word"),
        ),
    ] {
        let result = returned(tool, revision).await;
        assert_eq!(result["structuredContent"], value);
        assert_eq!(result["content"][0]["text"], value.to_string());
    }
}

#[derive(Debug)]
struct Broken;

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the disk is on fire")
    }
}

impl std::error::Error for Broken {}

#[tokio::test]
async fn tool_error_reaches_the_model() {
    for revision in Revision::ALL {
        for (tool, said) in [
            (
                Tool::new("t", "", || async {
                    Err::<String, _>(ToolError::new("try b"))
                }),
                "try b",
            ),
            (
                Tool::new("t", "", || async { Err::<f64, _>(Broken) }),
                "the disk is on fire",
            ),
            (
                Tool::new("t", "", || async { Err::<(), _>(io::Error::other("no")) }),
                "no",
            ),
            (
                Tool::new("t", "", || async { CallToolResult::error("not today") }),
                "not today",
            ),
        ] {
            let result = returned(tool, revision).await;
            assert_eq!(result["isError"], true, "{revision}");
            assert_eq!(
                result["content"],
                json!([{"type": "text", "text": said}]),
                "{revision}"
            );
            assert_eq!(result.get("structuredContent"), None, "{revision}");
        }
    }
}

#[tokio::test]
async fn oxmcp_error_passes_through_unchanged() {
    let fail = || async {
        let error = Error::protocol(-32099, "quota").with_data(json!({"left": 0}));
        Err::<String, _>(error)
    };
    let by_question_mark = || async {
        Err(Error::protocol(-32099, "quota").with_data(json!({"left": 0})))?;
        Ok::<_, ToolError>("unreachable")
    };
    for revision in Revision::ALL {
        for tool in [
            Tool::new("t", "", fail),
            Tool::new("t", "", by_question_mark),
        ] {
            let server = Server::new("errors", "1.0.0").tool(tool);
            let answer = call(&server, revision, "t", json!({})).await;
            let expected = json!({"code": -32099, "message": "quota", "data": {"left": 0}});
            assert_eq!(answer["error"], expected, "{revision}");

            let session = oxmcp::testing::connect(&server)
                .revision(revision)
                .await
                .unwrap();
            let error = session.call_tool("t", ()).await.unwrap_err();
            assert_eq!(error.code(), ErrorCode::from(-32099));
            assert_eq!(error.message(), "quota");
            assert_eq!(error.data().unwrap().get(), r#"{"left":0}"#);
        }
    }
}

/// A type whose reading panics.
#[derive(JsonSchema)]
struct Bomb {}

impl<'de> serde::Deserialize<'de> for Bomb {
    fn deserialize<D: serde::Deserializer<'de>>(_: D) -> Result<Self, D::Error> {
        panic!("while it is read")
    }
}

#[tokio::test]
async fn panic_anywhere_in_handler_keeps_the_session() {
    let server = Server::new("panics", "1.0.0").tools([
        Tool::new("inside", "", || async {
            assert!(std::hint::black_box(false), "secret");
        }),
        Tool::new("before", "", || {
            assert!(std::hint::black_box(false), "secret");
            async {}
        }),
        Tool::new("reading", "", |_: Bomb| async {}),
        Tool::dynamic("dynamic", "", json!({"type": "object"}), |_, _| {
            assert!(std::hint::black_box(false), "secret");
            async { Ok(CallToolResult::text("")) }
        }),
        Tool::new("fine", "", || async { "fine" }),
    ]);
    let session = oxmcp::testing::connect(&server).await.unwrap();
    for name in ["inside", "before", "reading", "dynamic"] {
        // More than one call: from the third call on, a handler may run on another task.
        for _ in 0..4 {
            let error = session.call_tool(name, ()).await.unwrap_err();
            assert_eq!(error.code(), ErrorCode::INTERNAL_ERROR, "{name}");
            assert!(!error.message().contains("secret"), "{name}: {error}");
        }
    }
    let result = session.call_tool("fine", ()).await.unwrap();
    assert_eq!(result.content[0].as_text(), Some("fine"));
}
