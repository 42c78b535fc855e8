//! Structured results, read as types.

use oxmcp::{JsonSchema, Revision, Server, Structured, Tool, ToolError, Wrapped, testing};
use serde_json::{Value, json};

use crate::client::{answer, expect, session};

#[derive(Debug, PartialEq, serde::Serialize, serde::Deserialize, JsonSchema)]
struct Weather {
    celsius: f64,
}

#[derive(Debug, PartialEq, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
enum Color {
    Red,
}

#[tokio::test]
async fn structured_reads_every_shape_in_every_revision() {
    let server = Server::new("shapes", "1.0.0").tools([
        Tool::new("object", "", || async {
            Structured(Weather { celsius: 22.5 })
        }),
        Tool::new("number", "", || async { 7 }),
        Tool::new("flag", "", || async { true }),
        Tool::new("list", "", || async { Structured(vec![1, 2, 3]) }),
        Tool::new("word", "", || async { Structured("red".to_owned()) }),
        Tool::new("nothing", "", || async { Structured(None::<u8>) }),
        Tool::new("text", "", || async { "red" }),
    ]);
    for revision in Revision::ALL {
        let session = testing::connect(&server).revision(revision).await.unwrap();
        let call = |name: &'static str| session.call_tool(name, json!({}));
        assert_eq!(
            call("object").structured::<Weather>().await.unwrap(),
            Weather { celsius: 22.5 }
        );
        assert_eq!(call("number").structured::<i32>().await.unwrap(), 7);
        assert_eq!(
            call("number").structured::<Value>().await.unwrap(),
            json!(7)
        );
        assert!(call("flag").structured::<bool>().await.unwrap());
        assert_eq!(
            call("list").structured::<Vec<u8>>().await.unwrap(),
            [1, 2, 3]
        );
        assert_eq!(call("word").structured::<String>().await.unwrap(), "red");
        assert_eq!(
            call("nothing").structured::<Option<u8>>().await.unwrap(),
            None
        );
        // The tool returns text without structured content.
        assert_eq!(call("text").structured::<String>().await.unwrap(), "red");
        assert_eq!(
            call("text").structured::<Color>().await.unwrap(),
            Color::Red
        );
        let error = call("text").structured::<i32>().await.unwrap_err();
        assert!(
            !error.is_tool_error()
                && error
                    .message()
                    .contains("does not match the requested type"),
            "{error}"
        );
    }
}

#[tokio::test]
async fn structured_results_have_one_shape_in_every_revision() {
    let values = [
        json!(["a"]),
        json!({"result": ["a"]}),
        json!({"result": {"result": 1}}),
        json!({"result": 1, "more": 2}),
        json!("text"),
        json!(null),
    ];
    for value in values {
        let returned = value.clone();
        let tool = Tool::new("t", "", move || {
            let returned = returned.clone();
            async { Structured(returned) }
        });
        let server = Server::new("shapes", "1.0.0").tool(tool);
        for revision in Revision::ALL {
            let session = testing::connect(&server).revision(revision).await.unwrap();
            let read = session.call_tool("t", json!({})).structured::<Value>();
            assert_eq!(read.await.unwrap(), value, "{revision}");
        }
    }
}

#[tokio::test]
async fn wrapped_results_have_one_shape_in_every_revision() {
    async fn list() -> Structured<Wrapped<Vec<Weather>>> {
        Structured::wrapped(vec![Weather { celsius: 22.5 }])
    }

    let server = Server::new("shapes", "1.0.0").tool(Tool::new("t", "", list));
    for revision in Revision::ALL {
        let session = testing::connect(&server).revision(revision).await.unwrap();
        let whole = json!({"result": [{"celsius": 22.5}]});
        let result = session.call_tool("t", ()).await.unwrap();
        let text: Value = serde_json::from_str(&result.to_text()).unwrap();
        assert_eq!(text, whole, "{revision}");
        let mark = result.meta.get("dev.oxmcp/wrapped");
        assert!(mark.is_none(), "the projection has not wrapped it");
        let read = session.call_tool("t", ()).structured::<Value>();
        assert_eq!(read.await.unwrap(), whole, "{revision}");
        let read = session.call_tool("t", ()).structured::<Vec<Weather>>();
        assert_eq!(read.await.unwrap(), [Weather { celsius: 22.5 }]);
        let tools = session.tools().all().await.unwrap();
        let schema = tools.first().unwrap().output_schema.as_ref();
        let Some(schema) = schema else {
            assert!(result.structured_content.is_none(), "{revision}");
            continue;
        };
        let structured = result.structured_content.unwrap();
        assert_eq!(
            structured.get(),
            result.content.first().unwrap().as_text().unwrap()
        );
        let schema: Value = serde_json::from_str(schema.get()).unwrap();
        assert_eq!(
            schema,
            json!({
                "type": "object",
                "properties": {"result": {
                    "type": "array",
                    "items": {
                        "type": "object",
                        "properties": {"celsius": {"type": "number"}},
                        "required": ["celsius"],
                    },
                }},
                "required": ["result"],
            }),
            "{revision}"
        );
    }
}

/// The outcome of `structured` for a scripted result.
async fn read<T: serde::de::DeserializeOwned + Send + 'static>(result: Value) -> oxmcp::Result<T> {
    let (mut peer, session) = session(Revision::V2025_06_18).await;
    let call = tokio::spawn(async move { session.call_tool("t", ()).structured::<T>().await });
    let request = expect(&mut peer, "tools/call").await;
    answer(&mut peer, &request, result).await;
    call.await.unwrap()
}

#[tokio::test]
async fn structured_accepts_the_shapes_of_other_servers() {
    let text = |text: &str| json!({"content": [{"type": "text", "text": text}]});
    assert_eq!(read::<f64>(text("4.5")).await.unwrap(), 4.5);
    assert_eq!(
        read::<Weather>(text("{\"celsius\": 1}"))
            .await
            .unwrap()
            .celsius,
        1.0
    );
    assert_eq!(read::<String>(text("sunny")).await.unwrap(), "sunny");
    assert_eq!(read::<String>(text("\"sunny\"")).await.unwrap(), "sunny");
    assert_eq!(read::<String>(text("4")).await.unwrap(), "4");
    let wrapped = json!({"content": [], "structuredContent": {"result": [1, 2]}});
    assert_eq!(read::<Vec<u8>>(wrapped).await.unwrap(), [1, 2]);
    // An object that has its own member `result` is read as it is.
    #[derive(Debug, serde::Deserialize)]
    struct Own {
        result: u8,
    }
    let own = json!({"content": [], "structuredContent": {"result": 7}});
    assert_eq!(read::<Own>(own).await.unwrap().result, 7);
    let foreign = json!({"content": [], "structuredContent": {"result": ["a"]}});
    assert_eq!(
        read::<Value>(foreign).await.unwrap(),
        json!({"result": ["a"]})
    );
    let more = json!({"content": [], "structuredContent": {"result": 7, "more": 8}});
    assert!(read::<u8>(more).await.is_err());
    let error = read::<u8>(json!({"content": []})).await.unwrap_err();
    assert!(error.message().contains("no structured content"), "{error}");
    let image = json!({"content": [{"type": "image", "data": "", "mimeType": "image/png"}]});
    assert!(read::<u8>(image).await.is_err());
}

#[tokio::test]
async fn tool_error_shows_the_tools_message() {
    for revision in Revision::ALL {
        let server = Server::new("s", "1").tools([
            Tool::new("fails", "", || async {
                Err::<u8, _>(ToolError::new("try b"))
            }),
            Tool::new("mute", "", || async {
                Err::<u8, _>(ToolError::from_content([]))
            }),
        ]);
        let session = testing::connect(&server).revision(revision).await.unwrap();
        let error = session
            .call_tool("fails", ())
            .structured::<u8>()
            .await
            .unwrap_err();
        assert!(error.is_tool_error() && !error.is_protocol());
        assert_eq!(error.to_string(), "try b");
        let error = session
            .call_tool("mute", ())
            .structured::<u8>()
            .await
            .unwrap_err();
        assert!(error.is_tool_error() && error.message().contains("failed without a message"));
        // Without `structured`, a failure of the tool is a result.
        assert!(session.call_tool("fails", ()).await.unwrap().is_error);
    }
}

#[tokio::test]
async fn results_are_validated_against_the_listed_schema() {
    let schema = json!({"type": "object", "properties": {"celsius": {"type": "number"}}, "required": ["celsius"]});
    let good = json!({"celsius": 22.5});
    let bad = json!({"celsius": "warm"});
    for revision in [Revision::V2025_11_25, Revision::LATEST] {
        // Whether the tool is listed, its schema, whether results are validated, the content, and whether the content is accepted.
        for (listed, schema, validates, content, is_taken) in [
            (true, &schema, true, &good, true),
            (true, &schema, true, &bad, false),
            (false, &schema, true, &bad, true),
            (true, &schema, false, &bad, true),
            (true, &json!({"type": "nonsense"}), true, &bad, true),
        ] {
            let client = crate::client::client().validate_results(validates);
            let (mut peer, session, _) = crate::client::session_of(client, revision).await;
            if listed {
                let listing = tokio::spawn(session.tools().all());
                let request = expect(&mut peer, "tools/list").await;
                let tool = json!({"name": "weather", "inputSchema": {"type": "object"}, "outputSchema": schema});
                let page = json!({"resultType": "complete", "tools": [tool]});
                answer(&mut peer, &request, page).await;
                listing.await.unwrap().unwrap();
            }
            let result =
                json!({"resultType": "complete", "content": [], "structuredContent": content});
            let call = || session.call_tool("weather", json!({}));
            let read = tokio::spawn(call().structured::<Value>());
            let request = expect(&mut peer, "tools/call").await;
            answer(&mut peer, &request, result.clone()).await;
            match read.await.unwrap() {
                Ok(read) => assert!(is_taken && read == *content),
                Err(error) => {
                    assert!(!is_taken, "{error}");
                    for words in ["\"weather\"", "/celsius", "validate_results"] {
                        assert!(error.message().contains(words), "{error}");
                    }
                }
            }
            // The raw result is always available.
            let plain = tokio::spawn(call().into_future());
            let request = expect(&mut peer, "tools/call").await;
            answer(&mut peer, &request, result.clone()).await;
            plain.await.unwrap().unwrap();
            // The result of a failed tool is not validated.
            let mut failed = result;
            failed["isError"] = json!(true);
            let validated = tokio::spawn(call().validated());
            let request = expect(&mut peer, "tools/call").await;
            answer(&mut peer, &request, failed).await;
            assert!(validated.await.unwrap().unwrap().is_error);
        }
    }
}

#[tokio::test]
async fn tool_change_discards_the_listed_output_schema() {
    let (mut peer, session) = session(Revision::V2025_11_25).await;
    let listing = tokio::spawn(session.tools().all());
    let request = expect(&mut peer, "tools/list").await;
    let tool = json!({"name": "t", "inputSchema": {"type": "object"}, "outputSchema": {"type": "object", "required": ["a"]}});
    answer(&mut peer, &request, json!({"tools": [tool]})).await;
    listing.await.unwrap().unwrap();
    for is_taken in [false, true] {
        let call = tokio::spawn(session.call_tool("t", json!({})).validated());
        let request = expect(&mut peer, "tools/call").await;
        let result = json!({"content": [], "structuredContent": {"b": 1}});
        answer(&mut peer, &request, result).await;
        assert_eq!(call.await.unwrap().is_ok(), is_taken);
        let changed = json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"});
        peer.send(changed).await.unwrap();
    }
}
