//! Answers of clients: their forms, and the conditions under which they are accepted.

use oxmcp::{
    JsonSchema, Question, RequestContext, Revision, Server, Tool, ToolError,
    protocol::{ElicitFormParams, ElicitSchema, StringSchema},
};
use serde_json::json;

use crate::server::ask::{ASKING, User, accept};
use crate::support::text;

#[derive(serde::Deserialize, JsonSchema)]
struct Order {
    #[schemars(range(min = 1, max = 5))]
    cups: u8,
    #[serde(default)]
    milk: bool,
    note: Option<String>,
    extras: Vec<Extra>,
}

#[derive(Debug, serde::Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Extra {
    Honey,
    Lemon,
}

fn ordering() -> Server {
    Server::new("s", "1").tool(Tool::new("t", "", |cx: RequestContext| async move {
        let order: Order = cx.ask("order", "What would you like?").await?;
        let Order {
            cups,
            milk,
            note,
            extras,
        } = order;
        Ok::<_, ToolError>(format!("{cups} {milk} {note:?} {extras:?}"))
    }))
}

#[tokio::test]
async fn answers_are_read_in_every_revisions_form() {
    for revision in ASKING {
        let mut user = User::new(&ordering(), revision).await;
        let answer = user
            .call("t", json!({}), |_, params| {
                let extras =
                    match params["requestedSchema"]["properties"]["extras"]["type"].as_str() {
                        Some("string") => json!("honey, lemon"),
                        _ => json!(["honey", "lemon"]),
                    };
                accept(json!({"cups": 2.0, "note": null, "extras": extras}))
            })
            .await;
        assert_eq!(text(&answer), "2 false None [Honey, Lemon]", "{revision}");
    }
}

#[tokio::test]
async fn each_kind_of_question_receives_its_answer() {
    let tool = Tool::new("t", "", |cx: RequestContext| async move {
        let form = ElicitSchema::new().required("name", StringSchema::default());
        let form = ElicitFormParams::new("Who?", form);
        let asked = cx
            .put(Question::form_with("form", form).or_declined())
            .await?;
        Ok::<_, ToolError>(format!("{asked}, {:?}", asked.action()))
    });
    let server = Server::new("s", "1").tool(tool);
    for revision in ASKING {
        for (answered, expected) in [
            (accept(json!({"name": "ann"})), "accepted, Accept"),
            (json!({"action": "decline"}), "declined, Decline"),
            (json!({"action": "cancel"}), "cancelled, Cancel"),
        ] {
            let mut user = User::new(&server, revision).await;
            let answer = user.call("t", json!({}), |_, _| answered.clone()).await;
            assert_eq!(text(&answer), expected, "{revision}");
        }
    }
}

#[tokio::test]
async fn invalid_answer_is_refused_with_expected_form() {
    for revision in ASKING {
        for (content, told) in [
            (
                json!({"cups": 7, "extras": []}),
                "\"cups\": expected an integer from 1 to 5",
            ),
            (json!({"cups": 1}), "\"extras\" is missing"),
            (json!({"cups": "many", "extras": []}), "\"cups\": expected"),
        ] {
            let mut user = User::new(&ordering(), revision).await;
            let answer = user
                .call("t", json!({}), |_, _| accept(content.clone()))
                .await;
            let message = answer["error"]["message"]
                .as_str()
                .unwrap_or_else(|| panic!("{answer}"));
            assert!(message.contains(told), "{revision}: {message}");
            let code = if revision.is_modern() { -32602 } else { -32603 };
            assert_eq!(answer["error"]["code"], code);
        }
    }
}

#[tokio::test]
async fn odd_answers_are_read_unless_strict() {
    let roots = || {
        Tool::new("roots", "", |cx: RequestContext| async move {
            Ok::<_, ToolError>(format!("{} roots", cx.roots().await?.len()))
        })
    };
    let server = || ordering().tool(roots());
    let order = json!({"cups": 1, "extras": []});
    for revision in ASKING {
        for (tool, answered, expected) in [
            (
                "t",
                json!({"action": "Accepted", "content": order, "_meta": null}),
                "1 false None []",
            ),
            (
                "roots",
                json!({"roots": [{"uri": "file:///a", "name": null}, {}, null]}),
                "1 roots",
            ),
        ] {
            let mut user = User::new(&server(), revision).await;
            let answer = user.call(tool, json!({}), |_, _| answered.clone()).await;
            assert_eq!(text(&answer), expected, "{revision}: {answer}");
            let mut user = User::new(&server().strict(), revision).await;
            let answer = user.call(tool, json!({}), |_, _| answered.clone()).await;
            assert!(answer["error"].is_object(), "{revision}: {answer}");
        }
    }
    // An input response that is not an object is no answer.
    for odd in [json!(null), json!([]), json!(12345), json!("roots")] {
        for tool in ["t", "roots"] {
            let mut user = User::new(&server(), Revision::LATEST).await;
            let answer = user.call(tool, json!({}), |_, _| odd.clone()).await;
            assert!(answer["error"].is_object(), "{odd}: {answer}");
        }
    }
}

#[tokio::test]
async fn handwritten_forms_and_url_visits_are_supported() {
    let tool = Tool::new("t", "", |cx: RequestContext| async move {
        let form = ElicitSchema::new().required("name", StringSchema::default());
        let filled = cx
            .ask_form("form", ElicitFormParams::new("Who?", form))
            .await?;
        cx.ask_url("login", "Log in", "https://example.com/login")
            .await?;
        Ok::<_, ToolError>(filled.get().to_owned())
    });
    let server = Server::new("s", "1").tool(tool);
    for revision in [Revision::V2025_11_25, Revision::V2026_07_28] {
        let mut user = User::new(&server, revision).await;
        let answer = user
            .call("t", json!({}), |_, params| match params["mode"].as_str() {
                Some("url") => json!({"action": "accept"}),
                _ => accept(json!({"name": "Ann"})),
            })
            .await;
        assert_eq!(text(&answer), r#"{"name":"Ann"}"#);
        let url = &user.asked[1].1;
        assert_eq!(url["url"], "https://example.com/login");
        let id = url["elicitationId"].as_str().map(str::len);
        assert_eq!(id, (!revision.is_modern()).then_some(32), "{url}");
    }
}
