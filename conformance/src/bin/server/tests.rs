//! Tests of the fixtures without the suite: the answers of each to a client that supports every question.

use oxmcp::{
    Accept, Client, ClientSession, Revision,
    protocol::{CreateMessageParams, CreateMessageResult, ElicitFormParams, Root},
    testing,
};
use serde_json::{Value, json};

use super::server;

fn client() -> Client {
    let user = |form: ElicitFormParams| async move {
        let mut known = json!({
            "name": "Alice", "color": "blue", "ok": true, "context": "tea",
            "username": "alice", "email": "a@example.com",
        });
        let fields = form.requested_schema.properties;
        if let Some(known) = known.as_object_mut() {
            known.retain(|name, _| fields.get(name).is_some());
        }
        Accept(known)
    };
    let model = |_: CreateMessageParams| async { CreateMessageResult::new("model", "Paris") };
    Client::new("tests", "1.0.0")
        .roots([Root::new("file:///home/alice")])
        .on_elicit(user)
        .on_sample(model)
}

/// A tool, its arguments, and a text in its answer.
#[rustfmt::skip]
fn calls() -> Vec<(&'static str, Value, &'static str)> {
    let none = || json!({});
    vec![
        ("about", none(), "conformance suite"),
        ("greet", json!({"name": "Alice"}), "Hello, Alice!"),
        ("slow_compute", json!({"seconds": 0.1, "label": "it"}), "done: it"),
        ("json_schema_2020_12_tool", json!({"email": "a@example.com"}), "a@example.com"),
        ("json_schema_2020_12_tool", none(), r#""isError":true"#),
        ("test_audio_content", none(), r#""mimeType":"audio/wav""#),
        ("test_elicitation", json!({"message": "Who?"}), "alice, a@example.com"),
        ("test_elicitation_sep1034_defaults", none(), "action=accept"),
        ("test_elicitation_sep1330_enums", none(), "content={}"),
        ("test_embedded_resource", none(), "test://embedded-resource"),
        ("test_error_handling", none(), r#""isError":true"#),
        ("test_header_mirroring", json!({"value": "Hello"}), "Hello"),
        ("test_image_content", none(), r#""mimeType":"image/png""#),
        ("test_input_required_result_capabilities", none(), "Paris"),
        ("test_input_required_result_elicitation", none(), "Hello, Alice!"),
        ("test_input_required_result_list_roots", none(), "file:///home/alice"),
        ("test_input_required_result_multi_round", none(), "Alice likes blue"),
        ("test_input_required_result_multiple_inputs", none(), "Paris, Alice, from 1 places"),
        ("test_input_required_result_request_state", none(), "state-ok"),
        ("test_input_required_result_sampling", none(), "Paris"),
        ("test_input_required_result_tampered_state", none(), "state-ok"),
        ("test_logging_tool", none(), "A message"),
        ("test_missing_capability", none(), "Paris"),
        ("test_multiple_content_types", none(), "test://mixed-content-resource"),
        ("test_reconnection", none(), "completed"),
        ("test_sampling", json!({"prompt": "Where?"}), "LLM response: Paris"),
        ("test_simple_text", none(), "simple text"),
        ("test_streaming_elicitation", none(), "Hello, Alice!"),
        ("test_tool_with_logging", none(), "Three messages"),
        ("test_tool_with_progress", none(), "All is done"),
        ("test_tool_with_task", none(), "Hello, Alice!"),
        ("test_trigger_prompt_change", none(), "has changed"),
        ("test_trigger_tool_change", none(), "has changed"),
    ]
}

/// Tools that answer only clients with tasks, or that always fail.
const OF_TASKS: [&str; 4] = [
    "confirm_delete",
    "failing_job",
    "multi_input",
    "protocol_error_job",
];

async fn connect(revision: Revision) -> ClientSession {
    testing::connect(&server())
        .client(&client())
        .revision(revision)
        .await
        .expect("a session")
}

#[tokio::test(start_paused = true)]
async fn every_tool_answers_in_revisions_with_forms() {
    for revision in Revision::ALL.into_iter().filter(has_forms) {
        let session = connect(revision).await;
        for (tool, arguments, wanted) in calls() {
            let result = session.call_tool(tool, arguments).await.expect(tool);
            let result = serde_json::to_string(&result).expect("JSON");
            assert!(result.contains(wanted), "{tool} in {revision}: {result}");
        }
        for tool in session.tools().all().await.expect("the tools") {
            let is_of_tasks = OF_TASKS.contains(&&*tool.name);
            let is_tried = is_of_tasks || calls().iter().any(|(name, ..)| *name == tool.name);
            assert!(is_tried, "{} has no row in the table", tool.name);
        }
    }
}

#[tokio::test]
async fn every_prompt_and_resource_is_readable() {
    for revision in Revision::ALL {
        let session = connect(revision).await;
        let prompts = session.prompts().all().await.expect("the prompts");
        let asks = |name: &str| name.contains("input_required");
        for prompt in prompts
            .iter()
            .filter(|it| has_forms(&revision) || !asks(&it.name))
        {
            let arguments = prompt.arguments.iter().map(|it| (&*it.name, "a://b"));
            let got = session.get_prompt(&*prompt.name, arguments).await;
            assert!(
                !got.expect("messages").messages.is_empty(),
                "{}",
                prompt.name
            );
        }
        let resources = session.resources().all().await.expect("the resources");
        let mut uris: Vec<_> = resources.iter().map(|it| &*it.uri).collect();
        uris.push("test://template/123/data");
        for uri in uris {
            let read = session.read_resource(uri).await.expect(uri);
            assert_eq!(read.contents.len(), 1, "{uri}");
        }
    }
}

fn has_forms(revision: &Revision) -> bool {
    *revision >= Revision::V2025_06_18
}
