//! Questions from prompts and resources, which ask as tools do.

use oxmcp::{
    JsonSchema, Prompt, Reply, RequestContext, Resource, ResourceTemplate, Result, Server,
    protocol::{ElicitParams, ElicitSchema, InputRequiredResult},
};
use serde_json::{Value, json};

use crate::server::ask::{ASKING, Name, User, accept};

#[derive(serde::Deserialize, JsonSchema)]
struct Topic {
    topic: String,
}

async fn ask(cx: &RequestContext, what: &str) -> Result<String> {
    let length = cx.step("length", || async { what.len() }).await?;
    let Name { name } = cx.ask("name", format!("Who wants {what}?")).await?;
    Ok(format!("{what} ({length}) for {name}"))
}

async fn by_hand(cx: RequestContext) -> Reply<String> {
    match cx.input_responses().get("sure") {
        Some(answer) => Reply::Complete(answer.get().get().to_owned()),
        None => {
            let form = ElicitParams::form("Sure?", ElicitSchema::new());
            Reply::InputRequired(InputRequiredResult::new().with_input_request("sure", form))
        }
    }
}

fn library() -> Server {
    let topic = |cx: RequestContext, Topic { topic }: Topic| async move { ask(&cx, &topic).await };
    Server::new("library", "1.0.0")
        .prompt(Prompt::new("explain", "Explain", topic))
        .prompt(Prompt::new("by_hand", "By hand", by_hand))
        .resource(Resource::new(
            "book://one",
            "one",
            |cx: RequestContext| async move { ask(&cx, "one").await },
        ))
        .resource(Resource::new("book://by_hand", "by_hand", by_hand))
        .resource_template(ResourceTemplate::new("book://of/{topic}", "of", topic))
}

/// The requests that ask: the method, its params, the pointer to the text of the result, and the expected text.
fn kinds() -> [(&'static str, Value, &'static str, &'static str); 3] {
    let prompt = json!({"name": "explain", "arguments": {"topic": "tea"}});
    let messages = "/result/messages/0/content/text";
    let contents = "/result/contents/0/text";
    [
        ("prompts/get", prompt, messages, "tea (3) for Ann"),
        (
            "resources/read",
            json!({"uri": "book://one"}),
            contents,
            "one (3) for Ann",
        ),
        (
            "resources/read",
            json!({"uri": "book://of/cats"}),
            contents,
            "cats (4) for Ann",
        ),
    ]
}

#[tokio::test]
async fn prompts_and_resources_ask_in_every_revision() {
    let server = library();
    for revision in ASKING {
        for (method, params, place, expected) in kinds() {
            let mut user = User::new(&server, revision).await;
            let ann = |_: &str, _: &Value| accept(json!({"name": "Ann"}));
            let answer = user.drive(method, params, ann).await;
            assert_eq!(answer.pointer(place), Some(&json!(expected)), "{answer}");
        }
    }
}

#[tokio::test]
async fn declined_question_fails_the_request() {
    let server = library();
    for revision in ASKING {
        for (method, params, ..) in kinds() {
            let mut user = User::new(&server, revision).await;
            let no = |_: &str, _: &Value| json!({"action": "decline"});
            let answer = user.drive(method, params, no).await;
            assert_eq!(answer["error"]["code"], -32600, "{answer}");
            let message = answer["error"]["message"].as_str().unwrap();
            assert!(message.contains("and declined"), "{answer}");
        }
    }
}

#[tokio::test]
async fn unanswerable_question_fails_the_request() {
    let server = library();
    for revision in ASKING {
        let by_hand = [
            ("prompts/get", json!({"name": "by_hand"})),
            ("resources/read", json!({"uri": "book://by_hand"})),
        ];
        let kinds = kinds()
            .into_iter()
            .map(|(method, params, ..)| (method, params));
        for (method, params) in kinds.chain(by_hand) {
            let mut user = User::able(&server, revision, json!({})).await;
            let answer = user.once(method, params).await;
            let code = if revision.is_modern() { -32021 } else { -32600 };
            assert_eq!(answer["error"]["code"], code, "{answer}");
            let required = &answer["error"]["data"]["requiredCapabilities"];
            assert_eq!(*required, json!({"elicitation": {"form": {}}}), "{answer}");
        }
    }
}

#[tokio::test]
async fn state_does_not_open_for_another_feature_kind() {
    let server = library();
    let mut user = User::new(&server, ASKING[2]).await;
    for (method, params, ..) in kinds() {
        let first = user.once(method, params.clone()).await;
        for (other, mut again, ..) in kinds() {
            let is_same = again == params;
            again["requestState"] = first["result"]["requestState"].clone();
            let answer = user.once(other, again).await;
            let refused = answer["error"]["message"] == "Invalid or expired requestState";
            assert_eq!(refused, !is_same, "{answer}");
        }
    }
}

#[tokio::test]
async fn prompts_and_resources_can_return_questions() {
    let server = library();
    for revision in ASKING {
        for (method, params, place) in [
            (
                "prompts/get",
                json!({"name": "by_hand"}),
                "/result/messages/0/content/text",
            ),
            (
                "resources/read",
                json!({"uri": "book://by_hand"}),
                "/result/contents/0/text",
            ),
        ] {
            let mut user = User::new(&server, revision).await;
            let no = |_: &str, _: &Value| json!({"action": "decline"});
            let answer = user.drive(method, params, no).await;
            assert_eq!(
                answer.pointer(place),
                Some(&json!(r#"{"action":"decline"}"#)),
                "{answer}"
            );
        }
    }
}
