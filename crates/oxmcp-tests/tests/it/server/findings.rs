//! Findings about definitions that hosts are known to refuse.

use oxmcp::{JsonSchema, Prompt, Resource, Revision, Server, Structured, Tool};
use serde_json::json;

use crate::support::{answer, idle};

fn findings(server: &Server) -> Vec<String> {
    let findings = server.check().unwrap();
    findings.iter().map(ToString::to_string).collect()
}

#[test]
fn findings_name_the_place_and_the_remedy() {
    let tags = json!({"type": "object", "properties": {"tags": {"type": "array"}, "zone": {"type": ["string", "null"]}}});
    let server = Server::new("notes", "1.0.0")
        .tool(idle("write").input_schema(tags.clone()).title("Notes"))
        .tool(
            idle("list.all")
                .input_schema(tags)
                .exact_schema()
                .title("Notes"),
        )
        .tool(Tool::new("list_all", " \u{200b}\u{3164}", || async {}))
        .tool(idle(&"x".repeat(65)))
        .prompt(Prompt::new("write a note", "\u{feff}\n", || async { "" }))
        .resources(
            [("note://a", "a"), ("note://b", "b")]
                .map(|(uri, name)| Resource::new(uri, name, || async { "" }).title("Note")),
        );
    insta::assert_snapshot!(findings(&server).join("\n"), @r#"
    tool "list.all" at /name: tool-name: Claude and OpenAI refuse the name, and hosts replace its dots or drop the tool; use A-Z, a-z, 0-9, '_' and '-' only
    tool "list.all" at /inputSchema/properties/tags: no-items: VS Code, Copilot and OpenAI refuse the tool; add "items" with the schema of the items
    tool "list.all" at /inputSchema/properties/zone/type: type-array: Gemini refuses the tool; use "anyOf" with one type in each form
    tool "list_all" at /name: similar-name: hosts that replace characters in names confuse it with another tool; use names that differ in their letters and digits
    tool "list_all" at /description: no-description: models cannot know when to use it; describe what it does in a sentence
    tool "write" at /title: duplicate-title: users cannot tell it from another tool; give each tool another title
    tool "write" at /inputSchema/properties/zone/type: type-array: Gemini refuses the tool; use "anyOf" with one type in each form
    tool "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"… at /name: long-name: Claude and OpenAI refuse the name, and hosts cut it or drop the tool; use at most 64 characters
    prompt "write a note" at /name: prompt-name: hosts that offer prompts as commands cannot call it; use a name without spaces and slashes
    prompt "write a note" at /description: no-description: users cannot know what it does; describe it in a sentence
    resource "note://b" at /title: duplicate-title: users cannot tell it from another resource; give each resource another title
    "#);
}

#[test]
fn severe_findings_are_those_that_break_a_host() {
    let forms = r#"{"type": "object", "properties": {}, "anyOf": [{"required": ["a"]}, {"required": ["b"]}]}"#;
    let tool = || idle("either").input_schema(forms);
    let server = Server::new("notes", "1.0.0").tool(tool());
    assert_eq!(findings(&server), [""; 0]);
    let server = Server::new("notes", "1.0.0").tool(tool().exact_schema());
    let found = server.check().unwrap();
    assert_eq!(found.len(), 1);
    assert!(found[0].is_severe, "{}", found[0]);
    assert_eq!(
        (found[0].id, &*found[0].pointer),
        ("root-union", "/inputSchema/anyOf")
    );
}

#[test]
fn excessive_tool_count_is_a_finding() {
    let tools = (0..129).map(|n| idle(&format!("tool_{n}")));
    let server = Server::new("many", "1.0.0").tools(tools);
    assert!(findings(&server)[0].starts_with("server \"many\": many-tools"));
}

#[derive(serde::Deserialize, serde::Serialize, JsonSchema)]
#[serde(tag = "action")]
enum Action {
    /// Write a note.
    Write {
        text: String,
    },
    Delete {
        id: u32,
    },
}

/// Change the notes.
#[oxmcp::tool]
async fn change(#[serde(flatten)] action: Action, force: Option<bool>) -> Structured<Action> {
    let _ = force;
    Structured(action)
}

#[tokio::test]
async fn enums_are_listed_as_one_object() {
    for tool in [change::tool, built_tool] {
        let server = Server::new("notes", "1.0.0").tool(tool());
        assert_eq!(findings(&server), [""; 0]);
        for revision in Revision::ALL {
            let list = answer(&server, revision, "tools/list", json!({})).await;
            let tool = &list["result"]["tools"][0];
            for member in ["inputSchema", "outputSchema"] {
                let Some(schema) = tool.get(member) else {
                    continue;
                };
                assert_eq!(schema["type"], "object");
                assert_eq!(
                    schema["properties"]["action"]["enum"],
                    json!(["Write", "Delete"])
                );
                assert_eq!(schema.get("anyOf"), None, "{schema}");
                assert_eq!(schema["required"], json!(["action"]));
            }
        }
    }
}

fn built_tool() -> Tool {
    Tool::new("change", "Change the notes.", |action: Action| async move {
        Structured(action)
    })
}

#[tokio::test]
async fn exact_schemas_validate_and_can_be_listed() {
    let server = Server::new("notes", "1.0.0").tool(built_tool().exact_schema());
    let list = answer(&server, Revision::LATEST, "tools/list", json!({})).await;
    let schema = &list["result"]["tools"][0]["inputSchema"];
    assert_eq!(
        schema["anyOf"].as_array().map(Vec::len),
        Some(2),
        "{schema}"
    );
    // The listed schema accepts `id` with any action, and the exact one validates.
    let listing = Server::new("notes", "1.0.0").tool(built_tool());
    let arguments = json!({"name": "change", "arguments": {"action": "Write", "id": 5}});
    let refused = answer(&listing, Revision::LATEST, "tools/call", arguments).await;
    assert_eq!(refused["result"]["isError"], true, "{refused}");
}

#[tokio::test]
async fn tools_without_arguments_list_properties() {
    let server = Server::new("clock", "1.0.0").tools([
        idle("now"),
        idle("never").input_schema(json!({"type": "object"})),
    ]);
    for revision in Revision::ALL {
        let list = answer(&server, revision, "tools/list", json!({})).await;
        for tool in list["result"]["tools"].as_array().unwrap() {
            assert_eq!(tool["inputSchema"]["properties"], json!({}), "{tool}");
        }
    }
}
