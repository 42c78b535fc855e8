//! What users answer, and what handlers make of it.

use std::sync::atomic::Ordering;

use oxmcp::{
    Asked, JsonSchema, Question, RequestContext, Revision, Server, Tool, ToolError,
    protocol::{
        CreateMessageParams, ElicitFormParams, ElicitSchema, SamplingMessage, StringSchema,
    },
};
use serde_json::{Value, json};

use super::{ASKING, Confirm, Name, User, accept, ann, deleting};
use crate::support::text;

#[tokio::test]
async fn one_handler_asks_in_every_revision_and_its_step_runs_once() {
    for revision in ASKING {
        let (server, counted, run) = deleting();
        let mut user = User::new(&server, revision).await;
        let answer = user.call("delete", json!({"project": "x"}), ann).await;
        assert_eq!(text(&answer), "Ann: 5 files, keep true", "{revision}");
        assert_eq!(counted.load(Ordering::Relaxed), 1, "{revision}");
        assert_eq!(
            run.load(Ordering::Relaxed),
            if revision.is_modern() { 3 } else { 1 }
        );
        let messages: Vec<_> = user
            .asked
            .iter()
            .map(|(_, it)| it["message"].clone())
            .collect();
        let expected = ["Who are you?", "Delete x with 5 files, Ann?"];
        assert_eq!(messages, expected, "{revision}");
        assert_eq!(
            user.asked[1].1["requestedSchema"],
            json!({
                "type": "object",
                "properties": {"keep": {"type": "boolean", "description": "Keep a copy"}},
                "required": ["keep"],
            })
        );
    }
}

#[tokio::test]
async fn who_declines_ends_the_handler_with_a_text_for_the_model() {
    for revision in ASKING {
        for (action, said) in [
            ("decline", "and declined"),
            ("cancel", "and gave no answer"),
        ] {
            let (server, counted, _) = deleting();
            let mut user = User::new(&server, revision).await;
            let answer = user
                .call(
                    "delete",
                    json!({"project": "x"}),
                    |_, _| json!({"action": action}),
                )
                .await;
            assert_eq!(answer["result"]["isError"], true, "{answer}");
            let expected = format!("The user was asked \"Who are you?\" {said}");
            assert!(text(&answer).starts_with(&expected), "{answer}");
            assert_eq!(counted.load(Ordering::Relaxed), 0);
        }
    }
}

#[tokio::test]
async fn declining_can_be_an_answer_like_any_other() {
    let tool = Tool::new("t", "", |cx: RequestContext| async move {
        let asked = cx.ask_or_declined::<Name>("name", "Who?").await?;
        let error = cx.ask::<Confirm>("sure", "Sure?").await.unwrap_err();
        if error.is_input_required() {
            return Err(error);
        }
        Ok::<_, oxmcp::Error>(match asked {
            Asked::Accepted(Name { name }) => name,
            Asked::Declined => format!("declined {}", error.is_dismissed()),
            Asked::Cancelled => format!("cancelled {}", error.is_dismissed()),
        })
    });
    let server = Server::new("s", "1").tool(tool);
    for revision in ASKING {
        for (first, second, expected) in [
            ("decline", "cancel", "declined true"),
            ("cancel", "decline", "cancelled false"),
        ] {
            let mut user = User::new(&server, revision).await;
            let answer = user
                .call("t", json!({}), |_, params| {
                    let action = if params["message"] == "Who?" {
                        first
                    } else {
                        second
                    };
                    json!({"action": action})
                })
                .await;
            assert_eq!(text(&answer), expected, "{revision}");
        }
    }
}

#[tokio::test]
async fn several_questions_are_asked_in_one_round() {
    let tool = Tool::new("t", "", |cx: RequestContext| async move {
        let params = CreateMessageParams::new([SamplingMessage::user("Hello")], 10);
        let (Name { name }, said, roots, more) = cx
            .ask_all((
                Question::form::<Name>("name", "Who?"),
                Question::sample("said", params),
                Question::roots(),
                vec![
                    Question::form::<Confirm>("one", "One?").or_declined(),
                    Question::form::<Confirm>("two", "Two?").or_declined(),
                ],
            ))
            .await?;
        let more = more.iter().filter(|it| matches!(it, Asked::Accepted(_)));
        let root = &roots[0].uri;
        Ok::<_, ToolError>(format!("{name} {} {root} {}", said.model, more.count()))
    });
    let server = Server::new("s", "1").tool(tool);
    for revision in ASKING {
        let mut user = User::able(&server, revision, super::everything()).await;
        let answers = |method: &str, params: &Value| match method {
            "sampling/createMessage" => {
                json!({"role": "assistant", "model": "m", "content": {"type": "text", "text": "hi"}})
            }
            "roots/list" => json!({"roots": [{"uri": "file:///a"}]}),
            _ => match params["message"].as_str() {
                Some("Who?") => accept(json!({"name": "Ann"})),
                Some("One?") => accept(json!({"keep": false})),
                _ => json!({"action": "decline"}),
            },
        };
        // An old session is asked at once as well; the script answers one after another.
        let answer = if revision.is_modern() {
            user.call("t", json!({}), answers).await
        } else {
            all_at_once(&mut user, 5, answers).await
        };
        assert_eq!(text(&answer), "Ann m file:///a 1", "{revision}: {answer}");
        if revision.is_modern() {
            assert_eq!(user.rounds, [5]);
        }
    }
}

/// Calls the tool `t`, receives all its questions, and only then answers them.
async fn all_at_once(
    user: &mut User,
    count: usize,
    answers: impl Fn(&str, &Value) -> Value,
) -> Value {
    let mut asked = vec![user.call_once("t", json!({}), json!({})).await];
    while asked.len() < count {
        asked.push(user.peer.receive().await.unwrap());
    }
    for question in asked {
        let result = answers(question["method"].as_str().unwrap(), &question["params"]);
        let message = json!({"jsonrpc": "2.0", "id": question["id"], "result": result});
        user.peer.send(message).await.unwrap();
    }
    user.peer.receive().await.unwrap()
}

#[tokio::test]
async fn questions_that_are_joined_go_in_one_round() {
    for join in ["join", "try_join"] {
        let tool = Tool::new("t", "", move |cx: RequestContext| async move {
            let (name, sure) = (cx.ask::<Name>("n", "Who?"), cx.ask::<Confirm>("c", "Sure?"));
            let (name, sure) = if join == "join" {
                let (name, sure) = tokio::join!(name, sure);
                (name?, sure?)
            } else {
                tokio::try_join!(name, sure)?
            };
            Ok::<_, ToolError>(format!("{} {}", name.name, sure.keep))
        });
        let server = Server::new("s", "1").tool(tool);
        let mut user = User::new(&server, Revision::LATEST).await;
        let answer = user
            .call("t", json!({}), |_, params| {
                match params["message"].as_str() {
                    Some("Who?") => accept(json!({"name": "Ann"})),
                    _ => accept(json!({"keep": true})),
                }
            })
            .await;
        assert_eq!(text(&answer), "Ann true");
        assert_eq!(user.rounds, [2], "{join}");
    }
}

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
async fn answers_are_read_whatever_the_revision_makes_of_them() {
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
async fn an_answer_that_does_not_fit_is_refused_with_what_would() {
    for revision in ASKING {
        for (content, told) in [
            (
                json!({"cups": 7, "extras": []}),
                "\"cups\": expected a whole number of 1 to 5",
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
async fn forms_can_be_written_by_hand_and_users_sent_to_a_url() {
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

#[tokio::test]
async fn what_a_client_cannot_do_is_not_asked_of_it() {
    let (server, ..) = deleting();
    for revision in Revision::ALL {
        let mut user = User::able(&server, revision, json!({"roots": {}})).await;
        let answer = user
            .call_once("delete", json!({"project": "x"}), json!({}))
            .await;
        let error = &answer["error"];
        let code = if revision.is_modern() { -32021 } else { -32600 };
        assert_eq!(error["code"], code, "{revision}: {answer}");
        assert_eq!(
            error["data"]["requiredCapabilities"],
            json!({"elicitation": {"form": {}}}),
            "{answer}"
        );
        let missing = match revision {
            Revision::V2024_11_05 | Revision::V2025_03_26 => "has no elicitation",
            _ => "did not declare the capability \"elicitation\"",
        };
        assert!(
            error["message"].as_str().unwrap().contains(missing),
            "{answer}"
        );
    }
}

#[tokio::test]
async fn a_client_that_shows_urls_only_is_shown_no_form_and_the_other_way_round() {
    let url = Tool::new("url", "", |cx: RequestContext| async move {
        let asked = cx.ask_url("u", "Log in", "https://example.com/").await;
        asked.unwrap_err().is_unsupported()
    });
    let form = Tool::new("form", "", |cx: RequestContext| async move {
        let asked = cx.ask::<Name>("n", "Who?").await;
        asked.err().is_some_and(|error| error.is_unsupported())
    });
    let server = Server::new("s", "1").tools([url, form]);
    for (revision, capabilities) in [
        (Revision::V2025_06_18, json!({"elicitation": {}})),
        (Revision::V2025_11_25, json!({"elicitation": {}})),
        (Revision::V2026_07_28, json!({"elicitation": {"form": {}}})),
    ] {
        let mut user = User::able(&server, revision, capabilities).await;
        let answer = user.call_once("url", json!({}), json!({})).await;
        assert_eq!(text(&answer), "true", "{revision}");
    }
    for revision in [Revision::V2025_11_25, Revision::V2026_07_28] {
        let mut user = User::able(&server, revision, json!({"elicitation": {"url": {}}})).await;
        let answer = user.call_once("form", json!({}), json!({})).await;
        assert_eq!(text(&answer), "true", "{revision}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_question_is_cancelled_with_its_request() {
    let (server, ..) = deleting();
    let mut user = User::new(&server, Revision::V2025_11_25).await;
    let question = user
        .call_once("delete", json!({"project": "x"}), json!({}))
        .await;
    assert_eq!(question["method"], "elicitation/create");
    let cancel =
        json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}});
    let cancelled = user.peer.ask(cancel).await.unwrap();
    assert_eq!(cancelled["method"], "notifications/cancelled");
    assert_eq!(cancelled["params"]["requestId"], question["id"]);
}

#[tokio::test(start_paused = true)]
async fn a_question_that_nobody_answers_times_out() {
    let (server, ..) = deleting();
    let server = server.ask_timeout(std::time::Duration::from_secs(7));
    let mut user = User::new(&server, Revision::V2025_06_18).await;
    let question = user
        .call_once("delete", json!({"project": "x"}), json!({}))
        .await;
    let start = tokio::time::Instant::now();
    assert_eq!(question["method"], "elicitation/create");
    let cancelled = user.peer.receive().await.unwrap();
    assert_eq!(cancelled["method"], "notifications/cancelled");
    assert_eq!(start.elapsed().as_secs(), 7);
    let answer = user.peer.receive().await.unwrap();
    assert!(
        answer["error"]["message"]
            .as_str()
            .unwrap()
            .contains("within 7s"),
        "{answer}"
    );
}

#[tokio::test]
async fn nothing_is_asked_in_a_batch() {
    let tool = Tool::new("t", "", |cx: RequestContext| async move {
        cx.roots().await.unwrap_err().to_string()
    });
    let server = Server::new("s", "1").tool(tool);
    let mut user = User::new(&server, Revision::V2025_03_26).await;
    let call = crate::support::request(1, "tools/call", json!({"name": "t"}));
    let answers = user.peer.ask(json!([call])).await.unwrap();
    assert!(text(&answers[0]).contains("in a batch"), "{answers}");
}
