//! The answers that a client sends to servers, against the official schemas.

use oxmcp::{
    Accept, Client, Revision,
    protocol::{
        CreateMessageParams, CreateMessageResult, ElicitAction, ElicitFormParams, ElicitUrlParams,
        LoggingLevel, Root,
    },
};
use serde_json::{Value, json};

use super::official::Schema;
use crate::client::{ask, client, expect, session_of};

/// A client that supports every request of servers.
fn everything() -> Client {
    client()
        .title("Tester")
        .description("It tests")
        .website_url("https://example.com/")
        .log_level(LoggingLevel::Info)
        .on_elicit(|_: ElicitFormParams| async {
            Accept(json!({"name": "Ann", "age": 40, "weight": 60.5, "agree": true, "colours": ["red", "blue"]}))
        })
        .on_elicit_url(|_: ElicitUrlParams| async { ElicitAction::Accept })
        .sampling_tools()
        .sampling_context()
        .on_sample(|_: CreateMessageParams| async { CreateMessageResult::new("abacus", "4") })
        .roots([Root::new("file:///home").with_name("Home")])
}

/// The requests that servers of a revision may send: methods, params and the definitions of the answers.
fn questions(revision: Revision) -> Vec<(&'static str, Value, &'static str)> {
    let fields = json!({
        "name": {"type": "string"},
        "age": {"type": "integer"},
        "agree": {"type": "boolean"},
        "cups": {"type": "integer", "default": 2},
    });
    let form = json!({"message": "?", "requestedSchema": {"type": "object", "properties": fields}});
    let url =
        json!({"mode": "url", "message": "?", "url": "https://example.com/", "elicitationId": "1"});
    let sample = json!({"messages": [{"role": "user", "content": {"type": "text", "text": "?"}}], "maxTokens": 1});
    let mut questions = vec![
        ("sampling/createMessage", sample, "CreateMessageResult"),
        ("roots/list", json!({}), "ListRootsResult"),
    ];
    if revision >= Revision::V2025_06_18 {
        questions.push(("elicitation/create", form, "ElicitResult"));
    }
    if revision >= Revision::V2025_11_25 {
        questions.push(("elicitation/create", url, "ElicitResult"));
    }
    questions
}

/// Asserts that a message, or a part of one, fits a definition. Numbers follow the schema in TypeScript, which is authoritative.
fn assert_fits(schema: &Schema, definition: &str, sent: &Value) {
    let key = if schema.root.get("$defs").is_some() {
        "$defs"
    } else {
        "definitions"
    };
    let mut root = schema.root.clone();
    if let Some(answer) = root[key].get_mut("ElicitResult") {
        let text = answer.to_string().replace("integer", "number");
        *answer = serde_json::from_str(&text).unwrap();
    }
    root["$ref"] = json!(format!("#/{key}/{definition}"));
    let validator = jsonschema::validator_for(&root).unwrap();
    if let Err(error) = validator.validate(sent) {
        panic!("{definition} of {}: {error}: {sent}", schema.revision);
    }
}

fn definition<'a>(schema: &'a Schema, method: &Value) -> &'a str {
    let mut all = schema.definitions().iter();
    let found = all.find(|(_, it)| it["properties"]["method"]["const"] == *method);
    found
        .map(|(name, _)| &**name)
        .unwrap_or_else(|| panic!("{method} has no definition"))
}

#[tokio::test(start_paused = true)]
#[ignore = "needs the official schemas; cargo xtask test schema runs it"]
async fn client_answers_fit_the_revision() {
    for schema in Schema::all() {
        let revision = schema.revision;
        let client = everything();
        let (mut peer, session, declared) = session_of(client.clone(), revision).await;
        assert_fits(&schema, "ClientCapabilities", &declared);
        for (method, params, result) in questions(revision) {
            let answer = ask((&mut peer, &session), method, params).await;
            assert_fits(&schema, result, &answer["result"]);
        }
        client.remove_roots(["file:///home"]);
        if !revision.is_modern() {
            expect(&mut peer, "notifications/roots/list_changed").await;
        }
        let mut count = 0;
        let sent = peer
            .transcript()
            .lines()
            .filter_map(|line| line.strip_prefix("<- "));
        for line in sent {
            let message: Value = serde_json::from_str(line).unwrap();
            if message.get("method").is_some() {
                assert_fits(&schema, definition(&schema, &message["method"]), &message);
                count += 1;
            }
        }
        assert!(count >= 3, "only {count} messages of {revision}");
    }
}
