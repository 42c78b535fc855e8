//! Arguments that models write slightly wrong, and that are taken as they are meant.

use std::collections::BTreeMap;

use oxmcp::{JsonSchema, Prompt, Revision, Server, Tool, protocol::PromptArgument};
use serde_json::{Value, json, value::RawValue};

use crate::support::{answer, call, modern, request, script, text};

/// The arguments of the tool, which returns those that its handler got.
#[derive(Debug, serde::Deserialize, serde::Serialize, JsonSchema)]
struct Query {
    text: String,
    #[serde(default)]
    limit: u32,
    #[serde(default)]
    tags: Vec<String>,
    #[serde(default)]
    exact: bool,
    #[serde(default)]
    filters: BTreeMap<String, u8>,
    #[serde(default)]
    shape: Option<Shape>,
    #[serde(default)]
    id: Option<Id>,
}

#[derive(Debug, serde::Deserialize, serde::Serialize, JsonSchema)]
#[serde(tag = "kind")]
enum Shape {
    Circle {
        r: f64,
        #[serde(default)]
        sides: u8,
    },
    Dot,
}

#[derive(Debug, serde::Deserialize, serde::Serialize, JsonSchema)]
#[serde(untagged)]
enum Id {
    Number(u64),
    Name(String),
}

fn query() -> Tool {
    Tool::new("query", "Search", |query: Query| async move {
        serde_json::to_string(&query).unwrap()
    })
}

fn server() -> Server {
    let schema = json!({
        "type": "object",
        "properties": {"n": {"type": "integer"}, "list": {"type": "array", "items": {"type": "integer"}}, "any": {}},
    });
    let echo = |_, arguments: Box<RawValue>| async move { Ok(arguments.get().to_owned()) };
    Server::new("search", "1.0.0").tools([
        query(),
        query()
            .strict_arguments()
            .entry(|it| it.name = "strict".into()),
        Tool::dynamic("written", "Search", schema, echo),
        Tool::new("idle", "Do nothing", || async { "done" }),
    ])
}

/// The arguments that the handler got, without those that are as they are by default; or the error that the model reads.
async fn got(revision: Revision, tool: &str, arguments: Value) -> Result<Value, String> {
    let answer = call(&server(), revision, tool, arguments).await;
    if answer["result"]["isError"] == true {
        return Err(text(&answer).to_owned());
    }
    let mut got: Value = serde_json::from_str(text(&answer)).unwrap();
    if let Value::Object(got) = &mut got {
        got.retain(|_, it| !it.is_null() && *it != json!([]) && *it != json!({}));
    }
    Ok(got)
}

#[tokio::test]
async fn almost_valid_arguments_are_corrected() {
    let table = [
        (
            json!({"text": "a", "limit": null, "tags": null, "exact": null, "filters": null}),
            json!({"text": "a", "limit": 0, "exact": false}),
        ),
        (
            json!({"text": "5", "limit": "5"}),
            json!({"text": "5", "limit": 5, "exact": false}),
        ),
        (
            json!({"text": "true", "exact": "true"}),
            json!({"text": "true", "limit": 0, "exact": true}),
        ),
        (
            json!({"text": "a", "tags": "[\"x\", \"1\"]"}),
            json!({"text": "a", "limit": 0, "exact": false, "tags": ["x", "1"]}),
        ),
        (
            json!({"text": "a", "filters": "{\"x\": 1}"}),
            json!({"text": "a", "limit": 0, "exact": false, "filters": {"x": 1}}),
        ),
        (
            json!({"text": "a", "filters": {"x": "1", "y": null}}),
            json!({"text": "a", "limit": 0, "exact": false, "filters": {"x": 1}}),
        ),
        (
            json!({"text": "a", "limit": 1, "shape": {"kind": "Circle", "r": "1.5", "sides": null}}),
            json!({"text": "a", "limit": 1, "exact": false, "shape": {"kind": "Circle", "r": 1.5, "sides": 0}}),
        ),
        (
            json!({"text": "a", "shape": "{\"kind\": \"Circle\", \"r\": \"2\"}"}),
            json!({"text": "a", "limit": 0, "exact": false, "shape": {"kind": "Circle", "r": 2.0, "sides": 0}}),
        ),
        // The schema accepts a string here, which therefore stays one.
        (
            json!({"text": "a", "limit": "1", "id": "5"}),
            json!({"text": "a", "limit": 1, "exact": false, "id": "5"}),
        ),
        (
            json!("{\"text\": \"a\"}"),
            json!({"text": "a", "limit": 0, "exact": false}),
        ),
        (
            json!({"text": "a", "limit": "null"}),
            json!({"text": "a", "limit": 0, "exact": false}),
        ),
    ];
    for revision in Revision::ALL {
        for (sent, expected) in &table {
            let got = got(revision, "query", sent.clone()).await;
            assert_eq!(got.as_ref(), Ok(expected), "{revision}: {sent}");
        }
    }
}

#[tokio::test]
async fn validation_errors_refer_to_arguments_as_sent() {
    let table = [
        // No other value of the same call is changed, if one cannot be mended.
        (
            json!({"text": null, "limit": "5"}),
            "/limit: expected an integer of at least 0, got the string \"5\"\n/text: expected a string, got null",
        ),
        (json!({"limit": "5"}), "\"text\" is missing"),
        (
            json!({"text": "a", "limit": "five"}),
            "/limit: expected an integer of at least 0, got the string \"five\"",
        ),
        (
            json!({"text": "a", "limit": "-5"}),
            "/limit: expected an integer of at least 0, got the string \"-5\"",
        ),
        (json!({"text": "a", "limit": "05"}), "got the string \"05\""),
        (
            json!({"text": "a", "filters": "{\"x\": 1, \"x\": 2}"}),
            "/filters: expected an object, got the string",
        ),
        (
            json!({"text": "a", "filters": {"x": 300}}),
            "/filters/x: 300 is too large",
        ),
        (
            json!({"text": 5}),
            "/text: expected a string, got the number 5",
        ),
        (
            json!({"text": "a", "tags": "x"}),
            "/tags: expected an array, got the string \"x\"",
        ),
        (
            json!({"text": "a", "tags": [null]}),
            "/tags/0: expected a string, got null",
        ),
        (
            json!({"text": "a", "shape": {"kind": "Square", "r": "1"}}),
            "/shape/kind: \"Square\" is not accepted",
        ),
        (json!([1]), "expected an object"),
    ];
    for revision in [Revision::V2024_11_05, Revision::LATEST] {
        for (sent, expected) in &table {
            let error = got(revision, "query", sent.clone()).await.unwrap_err();
            assert!(error.contains(expected), "{sent}: {error}");
        }
    }
}

#[tokio::test]
async fn arguments_for_handwritten_schemas_are_corrected() {
    let table = [
        (
            json!({"n": "7", "list": "[1, 2]", "any": "3"}),
            json!({"n": 7, "list": [1, 2], "any": "3"}),
        ),
        (json!({"n": null, "list": ["1"]}), json!({"list": [1]})),
        (json!([]), json!({})),
    ];
    for (sent, expected) in table {
        let got = got(Revision::LATEST, "written", sent.clone()).await;
        assert_eq!(got, Ok(expected), "{sent}");
    }
    // Numbers keep their digits.
    let mut peer = script(&server()).await;
    peer.initialize(Revision::V2025_11_25).await.unwrap();
    let line = r#"{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{"name":"written","arguments":{"any":123456789012345678901234567890.10,"n":"18446744073709551615"}}}"#;
    peer.send_line(line).await.unwrap();
    let answer: Value = peer.receive().await.unwrap();
    assert_eq!(
        text(&answer),
        r#"{"any":123456789012345678901234567890.10,"n":18446744073709551615}"#
    );
}

#[tokio::test]
async fn empty_values_mean_no_arguments() {
    for revision in Revision::ALL {
        for nothing in [json!([]), json!(""), json!(null), json!({})] {
            let answer = call(&server(), revision, "idle", nothing.clone()).await;
            assert_eq!(text(&answer), "done", "{nothing}: {answer}");
        }
    }
}

#[tokio::test]
async fn strict_arguments_are_not_corrected() {
    let sent = json!({"text": "a", "limit": "5"});
    let error = got(Revision::LATEST, "strict", sent.clone())
        .await
        .unwrap_err();
    assert!(error.contains("/limit: expected an integer"), "{error}");
    let answer = call(
        &server().strict_arguments(),
        Revision::LATEST,
        "query",
        sent,
    )
    .await;
    assert_eq!(answer["result"]["isError"], true, "{answer}");
}

#[derive(Debug, serde::Deserialize, JsonSchema)]
#[expect(dead_code, reason = "only its text is compared")]
struct Poem {
    topic: String,
    lines: Option<u8>,
    rhymes: Option<bool>,
}

fn poems() -> Server {
    let poem = |poem: Poem| async move { format!("{poem:?}") };
    let given = |_, given: oxmcp::protocol::OrderedMap<String>| async move { format!("{given:?}") };
    Server::new("poems", "1.0.0")
        .prompt(Prompt::new("typed", "Write", poem).complete("topic", ["1", "2"]))
        .prompt(Prompt::dynamic(
            "dynamic",
            "Write",
            [PromptArgument::new("a")],
            given,
        ))
}

async fn prompted(server: &Server, revision: Revision, name: &str, arguments: Value) -> Value {
    let params = json!({"name": name, "arguments": arguments});
    let mut answer = answer(server, revision, "prompts/get", params).await;
    match answer.pointer_mut("/result/messages/0/content/text") {
        Some(text) => text.take(),
        None => answer["error"]["message"].take(),
    }
}

#[tokio::test]
async fn prompt_arguments_may_be_sent_as_scalars() {
    for revision in Revision::ALL {
        let sent = json!({"topic": 1.50, "lines": 3, "rhymes": true});
        let text = prompted(&poems(), revision, "typed", sent).await;
        assert_eq!(
            text,
            r#"Poem { topic: "1.5", lines: Some(3), rhymes: Some(true) }"#
        );
        let sent = json!({"topic": "sheep", "lines": null});
        let text = prompted(&poems(), revision, "typed", sent).await;
        assert_eq!(
            text,
            r#"Poem { topic: "sheep", lines: None, rhymes: None }"#
        );
        let text = prompted(&poems(), revision, "dynamic", json!({"a": 7, "b": null})).await;
        assert_eq!(text, r#"{"a": "7"}"#);
        for nothing in [json!([]), json!("")] {
            let text = prompted(&poems(), revision, "dynamic", nothing).await;
            assert_eq!(text, "{}");
        }
    }
    let text = prompted(&poems(), Revision::LATEST, "typed", json!({"topic": ["x"]})).await;
    assert!(
        text.as_str()
            .unwrap()
            .contains("\"topic\": expected a string"),
        "{text}"
    );
    let strict = poems().strict_arguments();
    let text = prompted(&strict, Revision::LATEST, "typed", json!({"topic": 1})).await;
    assert!(
        text.as_str()
            .unwrap()
            .contains("\"topic\": expected a string"),
        "{text}"
    );
}

/// The answer to a request whose arguments are `arguments`, letter by letter.
async fn answer_to_text(
    server: &Server,
    revision: Revision,
    (method, name): (&str, &str),
    arguments: &str,
) -> Value {
    let mut peer = script(server).await;
    let params = json!({"name": name, "arguments": "ARGUMENTS"});
    let message = if revision.is_modern() {
        modern(7, method, params)
    } else {
        peer.initialize(revision).await.unwrap();
        request(7, method, params)
    };
    let line = message.to_string().replace("\"ARGUMENTS\"", arguments);
    peer.send_line(line).await.unwrap();
    peer.receive().await.unwrap()
}

#[tokio::test]
async fn lone_surrogates_in_arguments_are_replaced() {
    let server = || {
        let echo = |_, arguments: Box<RawValue>| async move { Ok(arguments.get().to_owned()) };
        let raw = Tool::dynamic("raw", "Search", json!({"type": "object"}), echo);
        server().tools([
            query()
                .without_validation()
                .entry(|it| it.name = "unvalidated".into()),
            raw.without_validation(),
        ])
    };
    for revision in Revision::ALL {
        for (tool, arguments, expected) in [
            (
                "query",
                r#"{"text":"a\ud83d"}"#,
                "\"text\":\"a\u{fffd}\",\"limit\":0",
            ),
            (
                "query",
                r#"{"text":"\udc00 \ud83d\ude00","limit":"5"}"#,
                "\"text\":\"\u{fffd} 😀\",\"limit\":5",
            ),
            (
                "unvalidated",
                r#"{"text":"a\ud83d"}"#,
                "\"text\":\"a\u{fffd}\"",
            ),
            ("written", r#"{"any":"\ud83d"}"#, r#"{"any":"\ufffd"}"#),
            (
                "written",
                r#"{"other":{"\ud83d":1}}"#,
                r#"{"other":{"\ufffd":1}}"#,
            ),
            ("raw", r#"{"a":"\ud83d"}"#, r#"{"a":"\ufffd"}"#),
            ("idle", r#"{"a":"\ud83d"}"#, "done"),
        ] {
            let called = ("tools/call", tool);
            let answer = answer_to_text(&server(), revision, called, arguments).await;
            assert!(
                text(&answer).contains(expected),
                "{revision} {tool} {arguments}: {answer}"
            );
        }
        // Two names must not become one.
        let twice = r#"{"text":"a","filters":{"\ud83d":1,"\ud83e":2}}"#;
        for server in [server(), server().strict()] {
            let answer = answer_to_text(&server, revision, ("tools/call", "query"), twice).await;
            assert_eq!(answer["result"]["isError"], true, "{answer}");
        }
        let lone = r#"{"text":"a\ud83d"}"#;
        let answer =
            answer_to_text(&server().strict(), revision, ("tools/call", "query"), lone).await;
        assert_eq!(answer["result"]["isError"], true, "{answer}");
        for (prompt, arguments, expected) in [
            (
                "typed",
                r#"{"topic":"\ud83d","lines":3}"#,
                "topic: \"\u{fffd}\", lines: Some(3)",
            ),
            (
                "dynamic",
                r#"{"a":"x\ud83d","b":null}"#,
                "{\"a\": \"x\u{fffd}\"}",
            ),
        ] {
            let asked = ("prompts/get", prompt);
            let answer = answer_to_text(&poems(), revision, asked, arguments).await;
            let text = answer["result"]["messages"][0]["content"]["text"].as_str();
            assert!(
                text.is_some_and(|it| it.contains(expected)),
                "{revision} {prompt}: {answer}"
            );
            let answer = answer_to_text(&poems().strict(), revision, asked, arguments).await;
            assert!(answer["error"].is_object(), "{answer}");
        }
    }
}

#[tokio::test]
async fn completed_values_may_be_sent_as_scalars() {
    let params = json!({
        "ref": {"type": "ref/prompt", "name": "typed"},
        "argument": {"name": "topic", "value": 1},
        "context": {"arguments": {"lines": 3, "rhymes": null}},
    });
    let completed = answer(&poems(), Revision::LATEST, "completion/complete", params).await;
    assert_eq!(
        completed["result"]["completion"]["values"],
        json!(["1"]),
        "{completed}"
    );
}
