//! Rounds of questions of modern clients: repeated, changed and unusual rounds (2026-07-28 and later).

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use oxmcp::{
    Question, RequestContext, Revision, Server, Tool, ToolError, protocol::ElicitUrlParams,
};
use serde_json::{Value, json};

use crate::server::ask::{Confirm, Name, User, accept, ann, deleting};
use crate::support::text;

const MODERN: Revision = Revision::LATEST;

fn asked(answer: &Value) -> &Value {
    assert_eq!(answer["result"]["resultType"], "input_required", "{answer}");
    &answer["result"]["inputRequests"]
}

#[tokio::test]
async fn unanswered_questions_repeat_and_unrequested_answers_are_ignored() {
    let (server, ..) = deleting();
    let mut user = User::new(&server, MODERN).await;
    let first = user
        .call_once("delete", json!({"project": "x"}), json!({}))
        .await;
    let state = &first["result"]["requestState"];
    for responses in [
        json!({}),
        json!(null),
        json!({"wrong_key": accept(json!({"name": "Ann"}))}),
    ] {
        let more = json!({"requestState": state, "inputResponses": responses});
        let again = user
            .call_once("delete", json!({"project": "x"}), more)
            .await;
        assert_eq!(asked(&again), asked(&first));
        // `null` is the same as a missing member.
        let none = json!({"requestState": null, "inputResponses": null});
        let again = user
            .call_once("delete", json!({"project": "x"}), none)
            .await;
        assert_eq!(asked(&again), asked(&first));
    }
    let responses = json!({"name": accept(json!({"name": "Ann"})), "other": 7});
    let more = json!({"requestState": state, "inputResponses": responses});
    let second = user
        .call_once("delete", json!({"project": "x"}), more)
        .await;
    assert!(asked(&second).get("confirm").is_some());
}

#[tokio::test]
async fn answer_without_request_state_is_accepted() {
    let (server, ..) = deleting();
    let mut user = User::new(&server, MODERN).await;
    let more = json!({"inputResponses": {"name": accept(json!({"name": "Ann"}))}});
    let answer = user
        .call_once("delete", json!({"project": "x"}), more)
        .await;
    assert!(asked(&answer).get("confirm").is_some());
}

#[tokio::test]
async fn malformed_responses_are_refused() {
    let (server, ..) = deleting();
    let mut user = User::new(&server, MODERN).await;
    for (more, told) in [
        (
            json!({"inputResponses": [1]}),
            "`inputResponses` must be an object",
        ),
        (
            json!({"inputResponses": {"name": 12345}}),
            "invalid answer to elicitation/create (\"name\")",
        ),
        (
            json!({"inputResponses": {"name": {"action": "maybe"}}}),
            "invalid answer to elicitation/create",
        ),
        (
            json!({"requestState": 7}),
            "`requestState` must be a string",
        ),
    ] {
        let answer = user
            .call_once("delete", json!({"project": "x"}), more)
            .await;
        assert_eq!(answer["error"]["code"], -32602, "{answer}");
        assert!(
            answer["error"]["message"].as_str().unwrap().contains(told),
            "{answer}"
        );
    }
}

#[tokio::test]
async fn question_that_has_changed_is_asked_again() {
    let count = Arc::new(AtomicUsize::new(1));
    let tool = {
        let count = Arc::clone(&count);
        Tool::new("t", "", move |cx: RequestContext| {
            let files = count.load(Ordering::Relaxed);
            async move {
                let message = format!("Delete {files} files?");
                let Confirm { keep } = cx.ask("confirm", message).await?;
                let Name { name } = cx.ask("name", "Who?").await?;
                Ok::<_, ToolError>(format!("{name} {files} {keep}"))
            }
        })
    };
    let server = Server::new("s", "1").tool(tool);
    let mut user = User::new(&server, MODERN).await;
    let first = user.call_once("t", json!({}), json!({})).await;
    // The answer is to a question that is no longer asked.
    count.store(2, Ordering::Relaxed);
    let yes = json!({"confirm": accept(json!({"keep": true}))});
    let more = json!({"requestState": first["result"]["requestState"], "inputResponses": yes});
    let second = user.call_once("t", json!({}), more).await;
    assert_eq!(
        asked(&second)["confirm"]["params"]["message"],
        "Delete 2 files?"
    );
    // So is an answer of an earlier round.
    let more = json!({"requestState": second["result"]["requestState"], "inputResponses": yes});
    let third = user.call_once("t", json!({}), more).await;
    assert!(asked(&third).get("name").is_some());
    count.store(3, Ordering::Relaxed);
    let name = json!({"name": accept(json!({"name": "Ann"}))});
    let more = json!({"requestState": third["result"]["requestState"], "inputResponses": name});
    let fourth = user.call_once("t", json!({}), more).await;
    assert_eq!(
        asked(&fourth)["confirm"]["params"]["message"],
        "Delete 3 files?"
    );
    let more = json!({"requestState": fourth["result"]["requestState"], "inputResponses": yes});
    let fifth = user.call_once("t", json!({}), more).await;
    // The name was not asked for in the fourth round, so its answer was not kept.
    assert!(asked(&fifth).get("name").is_some());
}

#[tokio::test]
async fn handler_that_ignores_suspension_still_only_asks() {
    let done = Arc::new(AtomicUsize::new(0));
    let swallow = Tool::new("swallow", "", |cx: RequestContext| async move {
        let _ = cx.ask::<Name>("name", "Who?").await;
        "done"
    });
    let panic = Tool::new("panic", "", |cx: RequestContext| async move {
        let Name { name } = cx.ask("name", "Who?").await.unwrap();
        name
    });
    let error = Tool::new("error", "", |cx: RequestContext| async move {
        let asked = cx.ask::<Name>("name", "Who?").await;
        asked
            .map(|it| it.name)
            .map_err(|_| ToolError::new("failed"))
    });
    let step = {
        let done = Arc::clone(&done);
        Tool::new("step", "", move |cx: RequestContext| {
            let done = Arc::clone(&done);
            async move {
                let asked = cx.ask::<Name>("name", "Who?").await;
                let did = cx
                    .step("do", || async { done.fetch_add(1, Ordering::Relaxed) })
                    .await;
                assert_eq!(asked.is_ok(), did.is_ok());
                "done"
            }
        })
    };
    let server = Server::new("s", "1").tools([swallow, panic, error, step]);
    for tool in ["swallow", "panic", "error", "step"] {
        let mut user = User::new(&server, MODERN).await;
        let answer = user.call_once(tool, json!({}), json!({})).await;
        assert!(asked(&answer).get("name").is_some(), "{tool}");
        assert_eq!(done.load(Ordering::Relaxed), 0);
    }
}

#[tokio::test]
async fn key_reuse_is_allowed_only_for_identical_questions() {
    let tool = Tool::new("t", "", |cx: RequestContext| async move {
        let Name { name } = cx.ask("name", "Who?").await?;
        let Name { name: same } = cx.ask("name", "Who?").await?;
        assert_eq!(name, same);
        let other = cx.ask::<Name>("name", "Who else?").await.err();
        Ok::<_, ToolError>(other.map(|error| error.to_string()).unwrap_or_default())
    });
    let server = Server::new("s", "1").tool(tool);
    for revision in crate::server::ask::ASKING {
        let mut user = User::new(&server, revision).await;
        let answer = user
            .call("t", json!({}), |_, _| accept(json!({"name": "Ann"})))
            .await;
        assert!(
            text(&answer).contains("two different questions use it"),
            "{answer}"
        );
        assert_eq!(user.asked.len(), 1);
    }
}

/// A middleware is not a handler: it has the context, but a later round would not run it again.
#[tokio::test]
async fn only_handlers_can_ask() {
    use oxmcp::middleware::{Next, Request, from_fn};
    let layer = from_fn(|request: Request, next: Next| async move {
        let cx = request.context().cloned().unwrap();
        if let Err(error) = cx.ask::<Name>("name", "Who?").await
            && !error.is_unsupported()
        {
            return Err(error);
        }
        next.run(request).await
    });
    let server = deleting().0.layer(layer);
    let mut user = User::new(&server, MODERN).await;
    let answer = user
        .call_once("delete", json!({"project": "x"}), json!({}))
        .await;
    let message = answer["error"]["message"].as_str().unwrap();
    assert!(
        message.contains("only handlers of tools, prompts and resources"),
        "{answer}"
    );
}

#[tokio::test]
async fn steps_are_remembered_within_one_run_too() {
    let tool = Tool::new("t", "", |cx: RequestContext| async move {
        let one = cx.step("a", || async { 1 }).await?;
        let same = cx.step("a", || async { 2 }).await?;
        let failed: Result<u8, ToolError> = cx
            .try_step("b", || async { Err(ToolError::new("no")) })
            .await;
        let then: u8 = cx.try_step("b", || async { Ok::<_, ToolError>(3) }).await?;
        let still = cx.step("a", || async { 4 }).await?;
        Ok::<_, ToolError>(format!("{one} {same} {} {then} {still}", failed.is_err()))
    });
    let server = Server::new("s", "1").tool(tool);
    for revision in Revision::ALL {
        let mut user = User::able(&server, revision, json!({})).await;
        let answer = user.call_once("t", json!({}), json!({})).await;
        assert_eq!(text(&answer), "1 1 true 3 1", "{revision}");
    }
}

#[tokio::test]
async fn new_request_starts_without_answers() {
    let (server, counted, _) = deleting();
    let mut user = User::new(&server, MODERN).await;
    let answer = user.call("delete", json!({"project": "x"}), ann).await;
    assert_eq!(text(&answer), "Ann: 5 files, keep true");
    let answer = user.call("delete", json!({"project": "x"}), ann).await;
    assert_eq!(text(&answer), "Ann: 6 files, keep true");
    assert_eq!(counted.load(Ordering::Relaxed), 2);
}

#[tokio::test]
async fn elicitation_id_does_not_change_a_question() {
    let id = Arc::new(AtomicUsize::new(0));
    let tool = Tool::new("t", "", move |cx: RequestContext| {
        let id = id.fetch_add(1, Ordering::Relaxed).to_string();
        async move {
            let login = ElicitUrlParams::new("Log in", "https://example.com/");
            cx.ask_all(Question::url_with("login", login.with_elicitation_id(id)))
                .await
        }
    });
    let server = Server::new("s", "1").tool(tool);
    let mut user = User::new(&server, MODERN).await;
    let answer = user
        .call("t", json!({}), |_, _| json!({"action": "accept"}))
        .await;
    assert_eq!(answer["result"]["content"], json!([]), "{answer}");
    assert_eq!(user.asked.len(), 1);
}
