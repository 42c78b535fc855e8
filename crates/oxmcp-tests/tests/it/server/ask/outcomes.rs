//! Outcomes of questions, as handlers see them.

use std::sync::atomic::Ordering;

use oxmcp::{
    Question, Reply, RequestContext, Revision, Server, Tool, ToolError, UserDecision,
    middleware::{Next, Request, from_fn},
    protocol::{
        CreateMessageParams, ElicitParams, ElicitSchema, InputRequiredResult, SamplingMessage,
        StringSchema,
    },
};
use serde_json::{Value, json};

use crate::server::ask::{ASKING, Confirm, Name, User, accept, ann, deleting};
use crate::support::text;

#[tokio::test]
async fn asking_handler_runs_its_step_once_everywhere() {
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
async fn declined_question_ends_handler_with_text_for_model() {
    for revision in ASKING {
        for (action, said) in [
            ("decline", "and declined"),
            ("cancel", "and did not answer"),
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
async fn declining_can_be_an_ordinary_answer() {
    let tool = Tool::new("t", "", |cx: RequestContext| async move {
        let asked = cx.ask_or_declined::<Name>("name", "Who?").await?;
        let error = cx.ask::<Confirm>("sure", "Sure?").await.unwrap_err();
        if error.is_input_required() {
            return Err(error);
        }
        Ok::<_, oxmcp::Error>(match asked {
            UserDecision::Accepted(Name { name }) => name,
            UserDecision::Declined => format!("declined {}", error.is_dismissed()),
            UserDecision::Cancelled => format!("cancelled {}", error.is_dismissed()),
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
        let more = more
            .iter()
            .filter(|it| matches!(it, UserDecision::Accepted(_)));
        let root = &roots[0].uri;
        Ok::<_, ToolError>(format!("{name} {} {root} {}", said.model, more.count()))
    });
    let server = Server::new("s", "1").tool(tool);
    for revision in ASKING {
        let mut user = User::able(&server, revision, crate::server::ask::everything()).await;
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
        // A legacy session is asked all questions at once as well, though the script answers them one after another.
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
async fn joined_questions_are_asked_in_one_round() {
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

#[tokio::test]
async fn questions_work_behind_middleware_and_in_spawned_tasks() {
    let pass = || from_fn(|request: Request, next: Next| async move { next.run(request).await });
    let (server, counted, _) = deleting();
    let own_task = Tool::new("own", "", |cx: RequestContext| async move {
        let (Name { name }, Confirm { keep }) = tokio::try_join!(
            cx.ask("name", "Who are you?"),
            cx.ask("confirm", "Keep a copy?"),
        )?;
        Ok::<_, ToolError>(format!("{name} {keep}"))
    });
    let by_hand = Tool::new("by_hand", "", |cx: RequestContext| async move {
        let answers = cx.input_responses();
        let Some(answer) = answers.get("name") else {
            let form = ElicitSchema::new().required("name", StringSchema::default());
            let asked = InputRequiredResult::new()
                .with_input_request("name", ElicitParams::form("Who are you?", form));
            return Ok::<_, ToolError>(Reply::InputRequired(asked));
        };
        Ok(Reply::Complete(answer.get().to_string()))
    });
    let server = server
        .tools([own_task.spawned(), by_hand.spawned()])
        .layer(pass());
    for (round, revision) in ASKING.into_iter().enumerate() {
        let mut user = User::new(&server, revision).await;
        let answer = user.call("delete", json!({"project": "x"}), ann).await;
        let expected = format!("Ann: {} files, keep true", 5 + round);
        assert_eq!(text(&answer), expected, "{revision}");
        assert_eq!(counted.load(Ordering::Relaxed), round + 1);
        let answer = user.call("own", json!({}), ann).await;
        assert_eq!(text(&answer), "Ann true", "{revision}");
        let answer = user.call("by_hand", json!({}), ann).await;
        assert!(text(&answer).contains("Ann"), "{revision}: {answer}");
    }
}
