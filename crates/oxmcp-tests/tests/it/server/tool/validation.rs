//! Validation of arguments and results against their schemas.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use oxmcp::{
    ErrorCode, JsonSchema, Reply, RequestContext, Revision, Server, Structured, Tool, ToolError,
    protocol::CallToolResult,
};
use serde_json::{Value, json};

use crate::support::{answer, calculator, call, text};

#[derive(serde::Deserialize, JsonSchema)]
struct Order {
    count: u32,
    #[serde(default)]
    color: Option<Color>,
}

#[derive(Debug, serde::Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Color {
    Red,
    Green,
}

fn shop() -> (Server, Arc<AtomicUsize>) {
    let calls = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&calls);
    let tool = Tool::new("order", "Order something", move |order: Order| {
        counted.fetch_add(1, Ordering::Relaxed);
        async move { format!("{} {:?}", order.count, order.color) }
    })
    .input(|s| s.property("count", |p| p.minimum(1).maximum(100)));
    (Server::new("shop", "1.0.0").tool(tool), calls)
}

#[tokio::test]
async fn invalid_arguments_are_reported_without_calling_the_handler() {
    let table: [(Value, &[&str]); 7] = [
        (json!({}), &["order", "count"]),
        (json!({"count": "two"}), &["/count", "integer", "\"two\""]),
        (json!({"count": 0}), &["/count", "1"]),
        (json!({"count": 101}), &["/count", "100"]),
        (json!({"count": 1.5}), &["/count", "integer"]),
        (
            json!({"count": 1, "color": "blue"}),
            &["/color", "red", "green", "blue"],
        ),
        (json!([1]), &["object"]),
    ];
    for revision in Revision::ALL {
        let (server, calls) = shop();
        for (arguments, named) in &table {
            let answer = call(&server, revision, "order", arguments.clone()).await;
            assert_eq!(answer["result"]["isError"], true, "{revision} {answer}");
            for word in *named {
                assert!(
                    text(&answer).contains(word),
                    "{word} is not in {:?}",
                    text(&answer)
                );
            }
        }
        assert_eq!(calls.load(Ordering::Relaxed), 0);
        let answer = call(
            &server,
            revision,
            "order",
            json!({"count": 1, "color": "red"}),
        )
        .await;
        assert_eq!(text(&answer), "1 Some(Red)");
        assert_eq!(calls.load(Ordering::Relaxed), 1);
    }
}

#[tokio::test]
async fn problems_are_all_reported_at_once() {
    let (server, _) = shop();
    let answer = call(
        &server,
        Revision::LATEST,
        "order",
        json!({"count": 0, "color": "blue"}),
    )
    .await;
    assert!(
        text(&answer).contains("/count") && text(&answer).contains("/color"),
        "{answer}"
    );
}

#[tokio::test]
async fn missing_or_null_arguments_mean_an_empty_object() {
    let server = Server::new("quiet", "1.0.0").tools([
        Tool::new("none", "", || async { "called" }),
        Tool::new("optional", "", |order: Option1| async move {
            format!("{:?}", order.count)
        }),
    ]);
    for revision in Revision::ALL {
        for params in [
            json!({"name": "none"}),
            json!({"name": "none", "arguments": null}),
            json!({"name": "none", "arguments": {}}),
        ] {
            let answer = answer(&server, revision, "tools/call", params).await;
            assert_eq!(text(&answer), "called", "{revision}");
        }
        let params = json!({"name": "optional", "arguments": null});
        assert_eq!(
            text(&answer(&server, revision, "tools/call", params).await),
            "None"
        );
    }
}

#[derive(serde::Deserialize, JsonSchema)]
struct Option1 {
    count: Option<u32>,
}

#[tokio::test]
async fn extra_arguments_are_accepted_unless_type_forbids_them() {
    #[derive(serde::Deserialize, JsonSchema)]
    #[serde(deny_unknown_fields)]
    struct Strict {
        count: u32,
    }
    let (server, _) = shop();
    let server = server.tool(Tool::new("strict", "", |strict: Strict| async move {
        strict.count
    }));
    let arguments = json!({"count": 1, "cuont": 2});
    let lenient = call(&server, Revision::LATEST, "order", arguments.clone()).await;
    assert_eq!(text(&lenient), "1 None");
    let strict = call(&server, Revision::LATEST, "strict", arguments).await;
    assert_eq!(strict["result"]["isError"], true);
    assert!(text(&strict).contains("cuont"), "{strict}");
}

#[tokio::test]
async fn misspelled_argument_is_refused_unlike_client_additions() {
    #[derive(serde::Deserialize, JsonSchema)]
    struct Update {
        id: u32,
        text: Option<String>,
        /// One that is not read by the fast path.
        color: Option<Color>,
    }
    let update = |update: Update| async move {
        format!("{} {:?} {:?}", update.id, update.text, update.color)
    };
    let schema =
        r#"{"type":"object","properties":{"id":{"type":"integer"},"text":{"type":"string"}}}"#;
    let server = Server::new("notes", "1.0.0").tools([
        Tool::new("update", "", update),
        Tool::new("strict", "", update).deny_unknown_arguments(),
        Tool::new("written", "", update).input_schema(schema),
        Tool::new("proxy", "", update).without_validation(),
    ]);
    for revision in Revision::ALL {
        for (name, arguments, said) in [
            (
                "update",
                json!({"id": 1, "txt": "x"}),
                "\"txt\" is not accepted; did you mean \"text\"?",
            ),
            (
                "update",
                json!({"id": 1, "colour": "red"}),
                "did you mean \"color\"?",
            ),
            (
                "update",
                json!({"id": 1, "color": "red", "txt": "x"}),
                "did you mean \"text\"?",
            ),
            (
                "update",
                json!({"id": 1, "text": "y", "txt": "x"}),
                "1 Some(\"y\") None",
            ),
            (
                "update",
                json!({"id": 1, "toolCallId": "x", "color": "red"}),
                "1 None Some(Red)",
            ),
            (
                "strict",
                json!({"id": 1, "txt": "x"}),
                "\"txt\" is not accepted; did you mean \"text\"?",
            ),
            (
                "strict",
                json!({"id": 1, "toolCallId": "x"}),
                "\"toolCallId\" is not accepted",
            ),
            ("written", json!({"id": 1, "txt": "x"}), "1 None None"),
            ("proxy", json!({"id": 1, "txt": "x"}), "1 None None"),
        ] {
            let answer = call(&server, revision, name, arguments).await;
            assert!(text(&answer).contains(said), "{name} {said}: {answer}");
            let refused = said.contains("accepted") || said.contains("mean");
            assert_eq!(answer["result"]["isError"] == true, refused, "{answer}");
        }
    }
}

#[tokio::test]
async fn params_invalid_for_the_method_are_protocol_errors() {
    for revision in Revision::ALL {
        for params in [json!({}), json!({"name": 1}), json!({"name": null})] {
            let answer = answer(&calculator(), revision, "tools/call", params).await;
            assert_eq!(answer["error"]["code"], -32602, "{answer}");
        }
    }
}

#[tokio::test]
async fn unknown_tool_error_names_the_existing_ones() {
    for revision in Revision::ALL {
        let answer = call(&calculator(), revision, "ad", json!({})).await;
        assert_eq!(answer["error"]["code"], -32602);
        let message = answer["error"]["message"].as_str().unwrap();
        assert!(
            message.contains("Unknown tool: ad") && message.contains("available: add"),
            "{message}"
        );
    }
    let none = Server::new("empty", "1.0.0").tools([]);
    let answer = call(&none, Revision::LATEST, "ad", json!({})).await;
    assert!(
        answer["error"]["message"]
            .as_str()
            .unwrap()
            .contains("none available"),
        "{answer}"
    );
}

#[tokio::test]
async fn unknown_tool_error_truncates_long_names() {
    let answer = call(
        &calculator(),
        Revision::LATEST,
        &"x".repeat(1 << 20),
        json!({}),
    )
    .await;
    assert!(answer.to_string().len() < 1000);
}

#[tokio::test]
async fn result_violating_its_schema_hides_details() {
    let object =
        json!({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]});
    let server = Server::new("liar", "1.0.0").tools([
        Tool::new("wrong", "", || async { Structured(json!({"n": "secret"})) })
            .output_schema(object.clone()),
        Tool::new("missing", "", || async { CallToolResult::text("secret") })
            .output_schema(object.clone()),
        Tool::new("failed", "", || async { CallToolResult::error("broken") })
            .output_schema(object.clone()),
        Tool::new("not_a_number", "", || async { f64::NAN }),
        Tool::new("let_go", "", || async { CallToolResult::text("free") })
            .output_schema(object)
            .without_validation(),
    ]);
    for revision in Revision::ALL {
        for name in ["wrong", "missing", "not_a_number"] {
            let answer = call(&server, revision, name, json!({})).await;
            assert_eq!(
                answer["error"]["code"], -32603,
                "{name} in {revision}: {answer}"
            );
            assert!(!answer.to_string().contains("secret"), "{answer}");
        }
        // The result of a failed tool need not fit the schema.
        assert_eq!(
            text(&call(&server, revision, "failed", json!({})).await),
            "broken"
        );
        assert_eq!(
            text(&call(&server, revision, "let_go", json!({})).await),
            "free"
        );
    }
}

#[tokio::test]
async fn dynamic_tools_are_validated_by_default() {
    let schema =
        json!({"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]});
    let echo = |name: &str| {
        Tool::dynamic(name, "", schema.clone(), |_cx, arguments| async move {
            Ok(CallToolResult::text(arguments.get()))
        })
    };
    let server = Server::new("dynamic", "1.0.0")
        .tools([echo("checked"), echo("proxy").without_validation()]);
    for revision in Revision::ALL {
        let answer = call(&server, revision, "checked", json!({"city": 1})).await;
        assert_eq!(answer["result"]["isError"], true);
        assert!(text(&answer).contains("/city"), "{answer}");
        let answer = call(&server, revision, "proxy", json!({"city": 1})).await;
        assert_eq!(text(&answer), r#"{"city":1}"#, "{revision}");
    }
}

#[tokio::test]
async fn duplicate_argument_is_refused_by_every_tool() {
    #[derive(serde::Deserialize, JsonSchema)]
    struct Any {
        a: Value,
    }
    #[derive(serde::Deserialize, JsonSchema)]
    struct Plain {
        #[expect(dead_code, reason = "only its reading is tested")]
        a: Option<Vec<Inner>>,
        #[expect(dead_code, reason = "only its reading is tested")]
        b: Option<BTreeMap<String, u8>>,
    }
    #[derive(serde::Deserialize, JsonSchema)]
    struct Inner {
        #[expect(dead_code, reason = "only its reading is tested")]
        #[serde(default)]
        b: u8,
    }
    let open = json!({"type": "object"});
    let echo = |name: &str| {
        Tool::dynamic(name, "", open.clone(), |_cx, arguments| async move {
            Ok(CallToolResult::text(arguments.get()))
        })
    };
    let server = Server::new("strict", "1.0.0").tools([
        echo("dynamic"),
        echo("proxy").without_validation(),
        Tool::new("typed", "", |any: Any| async move { any.a.to_string() }),
        Tool::new("nested", "", |_: Plain| async { "called" }),
        Tool::new("trusting", "", |any: Any| async move { any.a.to_string() }).without_validation(),
        Tool::new("none", "", || async { "called" }),
        Tool::new("asking", "", |_: RequestContext, _: Plain| async {
            "called"
        }),
    ]);
    let mut peer = crate::support::script(&server).await;
    peer.initialize(Revision::V2025_11_25).await.unwrap();
    for name in [
        "dynamic", "proxy", "typed", "nested", "trusting", "none", "asking",
    ] {
        for (arguments, doubled) in [
            (r#"{"a":1,"a":2}"#, "a"),
            (r#"{"a":[],"a":[]}"#, "a"),
            (r#"{"a":null,"\u0061":[]}"#, "a"),
            (r#"{"a":[{"b":1},{"b":1,"b":1}]}"#, "b"),
            (r#"{"a":[{"b":1,"\u0062":1}]}"#, "b"),
            (r#"{"b":1,"a":{"x":null,"x":null}}"#, "x"),
            (r#"{"a":[],"b":{"x":1,"x":1}}"#, "x"),
            (r#"{"a":[],"more":1,"more":2}"#, "more"),
            (r#"{"a":[{"y":[{"z":1,"z":1}]}]}"#, "z"),
        ] {
            let params = format!(r#"{{"name":"{name}","arguments":{arguments}}}"#);
            let line =
                format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{params}}}"#);
            peer.send_line(line).await.unwrap();
            let answer = peer.receive().await.unwrap();
            assert_eq!(answer["result"]["isError"], true, "{name}: {answer}");
            let fault = format!("duplicate key {doubled:?}; send it once");
            let expected = format!("The arguments of {name} are not valid.\n{fault}");
            assert_eq!(text(&answer), expected, "{arguments}");
        }
    }
}

#[tokio::test]
async fn tool_output_is_validated_despite_its_type() {
    /// Its schema is derived, and what it writes is not what that says.
    #[derive(JsonSchema)]
    struct Liar {
        #[expect(dead_code, reason = "only the schema is made of it")]
        count: u32,
    }
    impl serde::Serialize for Liar {
        fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            serializer.collect_map([("count", "many")])
        }
    }
    #[derive(serde::Serialize, JsonSchema)]
    struct Reading {
        celsius: f64,
        #[schemars(range(max = 100))]
        humidity: u8,
    }
    let reading =
        |celsius, humidity| move || async move { Structured(Reading { celsius, humidity }) };
    let server = Server::new("liars", "1.0.0").tools([
        Tool::new("liar", "", || async { Structured(Liar { count: 1 }) }),
        Tool::new("infinite", "", reading(f64::INFINITY, 50)),
        Tool::new("damp", "", reading(20.0, 101)),
        Tool::new("text", "", || async {
            Structured(Liar { count: 1 }).with_text("many")
        }),
        Tool::new("maybe", "", || async {
            Ok::<_, ToolError>(Structured(Liar { count: 1 }))
        }),
        Tool::new("asking", "", |_: RequestContext| async {
            Reply::Complete(Structured(Liar { count: 1 }))
        }),
        Tool::new("narrowed", "", reading(20.0, 50)).output_schema(json!({
            "type": "object", "properties": {"celsius": {"maximum": 19}},
        })),
        Tool::new("honest", "", reading(20.0, 50)),
        Tool::new("trusting", "", || async { Structured(Liar { count: 1 }) }).without_validation(),
    ]);
    for revision in Revision::ALL {
        for name in [
            "liar", "infinite", "damp", "text", "maybe", "asking", "narrowed",
        ] {
            let answer = call(&server, revision, name, json!({})).await;
            let message = format!("the result of tool {name} does not match its output schema");
            assert_eq!(answer["error"]["message"], message, "{answer}");
        }
        for name in ["honest", "trusting"] {
            let answer = call(&server, revision, name, json!({})).await;
            assert!(answer["result"].is_object(), "{answer}");
        }
    }
}

#[tokio::test]
async fn dynamic_tool_fails_like_others() {
    let server = Server::new("dynamic", "1.0.0").tool(Tool::dynamic(
        "t",
        "",
        json!({"type": "object"}),
        |_cx, arguments| async move {
            serde_json::from_str::<u32>(arguments.get())?;
            Err::<CallToolResult, _>(ToolError::new("unreachable"))
        },
    ));
    let answer = call(&server, Revision::LATEST, "t", json!({})).await;
    assert_eq!(answer["result"]["isError"], true);
    assert!(text(&answer).contains("invalid type"), "{answer}");
}

#[tokio::test]
async fn recursive_types_are_valid_inputs() {
    #[derive(serde::Deserialize, JsonSchema)]
    struct Tree {
        #[serde(default)]
        children: Vec<Self>,
    }
    fn count(tree: &Tree) -> usize {
        1 + tree.children.iter().map(count).sum::<usize>()
    }
    let server =
        Server::new("trees", "1.0.0").tool(Tool::new("count", "", |tree: Tree| async move {
            count(&tree)
        }));
    for revision in Revision::ALL {
        let tree = json!({"children": [{"children": [{}]}, {}]});
        assert_eq!(text(&call(&server, revision, "count", tree).await), "4");
        let wrong = json!({"children": [{"children": [7]}]});
        let answer = call(&server, revision, "count", wrong).await;
        assert!(text(&answer).contains("/children/0/children/0"), "{answer}");
    }
}

#[tokio::test]
async fn input_refused_only_by_serde_reaches_model() {
    #[derive(Debug, serde::Deserialize)]
    #[serde(try_from = "u32")]
    struct Even;

    impl TryFrom<u32> for Even {
        type Error = &'static str;

        fn try_from(n: u32) -> Result<Self, Self::Error> {
            n.is_multiple_of(2).then_some(Self).ok_or("n must be even")
        }
    }
    #[derive(serde::Deserialize, JsonSchema)]
    struct Input {
        #[schemars(with = "u32")]
        n: Even,
    }
    let server = Server::new("even", "1.0.0").tool(Tool::new("t", "", |input: Input| async move {
        format!("{:?}", input.n)
    }));
    let answer = call(&server, Revision::LATEST, "t", json!({"n": 3})).await;
    assert_eq!(answer["result"]["isError"], true);
    assert!(text(&answer).contains("n must be even"), "{answer}");
    assert!(!text(&answer).contains("line 1"), "{answer}");
}

#[tokio::test]
async fn deeply_nested_arguments_are_refused() {
    let deep = format!("{}{}", "[".repeat(5_000), "]".repeat(5_000));
    let mut peer = crate::support::script(&calculator()).await;
    peer.initialize(Revision::V2025_06_18).await.unwrap();
    let line = format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"add","arguments":{{"a":{deep},"b":1}}}}}}"#
    );
    peer.send_line(line).await.unwrap();
    let answer = peer.receive().await.unwrap();
    assert!(
        answer.get("error").is_some() || answer["result"]["isError"] == true,
        "{answer}"
    );
    let code = answer.pointer("/error/code").and_then(Value::as_i64);
    assert_ne!(code, Some(ErrorCode::INTERNAL_ERROR.value()), "{answer}");
}

#[tokio::test]
async fn non_object_params_are_refused() {
    let mut peer = crate::support::script(&calculator().strict()).await;
    peer.initialize(Revision::V2025_06_18).await.unwrap();
    for (method, params) in [
        ("tools/call", json!(["add", {"a": 1, "b": 2}])),
        ("tools/list", json!([])),
        ("tools/list", json!("x")),
        ("ping", json!([])),
    ] {
        let answer = peer
            .ask(crate::support::request(1, method, params))
            .await
            .unwrap();
        let code = answer["error"]["code"].as_i64();
        assert!(matches!(code, Some(-32602 | -32600)), "{method}: {answer}");
    }
}
