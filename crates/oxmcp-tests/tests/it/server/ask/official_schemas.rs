//! Messages of questions on the wire, against the official schemas.

use oxmcp::{RequestContext, Revision, Server, Tool, ToolError};
use serde_json::{Value, json};

use crate::schemas::Schema;
use crate::server::ask::{ASKING, Name, User, accept, ann, deleting};

/// Asserts that a message fits a definition of a revision.
fn assert_fits(schemas: &[Schema], revision: Revision, definition: &str, message: &Value) {
    let schema = schemas.iter().find(|it| it.revision == revision).unwrap();
    schema.assert_fits(definition, message);
}

#[tokio::test]
#[ignore = "needs the official schemas; cargo xtask test schema runs it"]
async fn questions_fit_the_official_schemas() {
    let schemas = Schema::all();
    for revision in ASKING {
        let (server, ..) = deleting();
        let mut user = User::new(&server, revision).await;
        let asked = user
            .call_once("delete", json!({"project": "x"}), json!({}))
            .await;
        if revision.is_modern() {
            assert_fits(&schemas, revision, "InputRequiredResult", &asked["result"]);
            assert_fits(&schemas, revision, "JSONRPCResultResponse", &asked);
        } else {
            assert_fits(&schemas, revision, "ElicitRequest", &asked);
        }
        let mut user = User::new(&server, revision).await;
        let answer = user.call("delete", json!({"project": "x"}), ann).await;
        assert_fits(&schemas, revision, "CallToolResult", &answer["result"]);
    }
}

#[tokio::test]
async fn two_rounds_match_the_recorded_transcript() {
    let tool = Tool::new("greet", "", |cx: RequestContext| async move {
        let Name { name } = cx.ask("name", "Who are you?").await?;
        Ok::<_, ToolError>(format!("Hello, {name}!"))
    });
    let server = Server::new("s", "1").tool(tool);
    let mut user = User::able(&server, Revision::LATEST, json!({"elicitation": {}})).await;
    let answers = |_: &str, _: &Value| accept(json!({"name": "Ann"}));
    user.call("greet", json!({}), answers).await;
    let mut transcript = String::new();
    let lines = user.peer.transcript().lines();
    for line in lines.filter_map(|line| line.strip_prefix("<- ")) {
        // The state differs in every run.
        let mut message: Value = serde_json::from_str(line).unwrap();
        if let Some(state) = message.pointer_mut("/result/requestState") {
            *state = json!("…");
        }
        transcript.push_str(&serde_json::to_string_pretty(&message).unwrap());
        transcript.push('\n');
    }
    insta::assert_snapshot!(transcript, @r#"
    {
      "id": 1,
      "jsonrpc": "2.0",
      "result": {
        "_meta": {
          "io.modelcontextprotocol/serverInfo": {
            "name": "s",
            "version": "1"
          }
        },
        "inputRequests": {
          "name": {
            "method": "elicitation/create",
            "params": {
              "message": "Who are you?",
              "requestedSchema": {
                "properties": {
                  "name": {
                    "type": "string"
                  }
                },
                "required": [
                  "name"
                ],
                "type": "object"
              }
            }
          }
        },
        "requestState": "…",
        "resultType": "input_required"
      }
    }
    {
      "id": 2,
      "jsonrpc": "2.0",
      "result": {
        "_meta": {
          "io.modelcontextprotocol/serverInfo": {
            "name": "s",
            "version": "1"
          }
        },
        "content": [
          {
            "text": "Hello, Ann!",
            "type": "text"
          }
        ],
        "resultType": "complete"
      }
    }
    "#);
}
