//! Required arguments of prompts, and arguments that are invalid.

use oxmcp::{JsonSchema, Prompt, Revision, Server, testing};
use serde_json::{Value, json};

use crate::server::prompt::arguments::read;
use crate::support::answer;

#[derive(serde::Deserialize, JsonSchema)]
struct Required {
    code: String,
    count: u32,
    #[serde(default)]
    spare: String,
}

fn requiring() -> Server {
    let handler = |it: Required| async move { format!("{}{}{}", it.code, it.count, it.spare) };
    Server::new("s", "1.0.0").prompt(Prompt::new("p", "", handler))
}

#[tokio::test]
async fn n5_all_that_is_missing_is_named_in_every_revision() {
    for revision in Revision::ALL {
        let session = testing::connect(&requiring())
            .revision(revision)
            .await
            .unwrap();
        let error = session.get_prompt("p", ()).await.unwrap_err();
        let expected =
            "The arguments of p are not valid.\n\"code\" is missing\n\"count\" is missing";
        assert_eq!((error.code().value(), error.message()), (-32602, expected));
        let error = session
            .get_prompt("p", [("cod", "x"), ("count", "1")])
            .await
            .unwrap_err();
        assert!(
            error
                .message()
                .ends_with("\n\"code\" is missing; \"cod\" is not its name"),
            "{error}"
        );
        session
            .get_prompt("p", [("code", "x"), ("count", "1")])
            .await
            .unwrap();
    }
    let absent = answer(
        &requiring(),
        Revision::LATEST,
        "prompts/get",
        json!({"name": "p"}),
    )
    .await;
    assert_eq!(absent["error"]["code"], -32602, "{absent}");
    // An empty text is a text, but no number.
    assert_eq!(
        read(&requiring(), json!({"code": "", "count": "7"}))
            .await
            .unwrap(),
        "7"
    );
    let empty = read(&requiring(), json!({"code": "", "count": ""}))
        .await
        .unwrap_err();
    assert!(
        empty.contains("\"count\": expected an integer of at least 0, got the string \"\""),
        "{empty}"
    );
}

#[tokio::test]
async fn n5_arguments_that_are_no_strings_are_refused_by_name() {
    let code = |value: Value| json!({"code": value, "count": "1"});
    for value in [
        json!(7),
        json!(null),
        json!(true),
        json!(["a"]),
        json!({"a": "b"}),
    ] {
        let told = read(&requiring(), code(value)).await.unwrap_err();
        assert!(told.contains("\"code\": expected a string"), "{told}");
    }
    for whole in [json!([]), json!("code"), json!(7)] {
        let told = read(&requiring(), whole).await.unwrap_err();
        assert!(told.contains("an object of strings"), "{told}");
    }
}
