//! Prompts as they are defined, listed, added and removed.

use std::{sync::Arc, time::Duration};

use base64::Engine;
use oxmcp::{
    Client, JsonSchema, Prompt, Revision, Server,
    protocol::{CacheHint, Icon, PromptArgument},
    testing,
};
use serde_json::{Value, json};
use tokio::sync::Notify;

use crate::server::prompt::{Review, got, idle, listed, names, review, server};
use crate::support::{LEGACY, answer, calculator, script};

#[tokio::test]
async fn arguments_are_the_fields_of_the_struct() {
    for revision in Revision::ALL {
        let prompts = listed(&server(review()), revision).await;
        let mut severity = json!({"name": "severity", "description": "how strict to be"});
        if revision >= Revision::V2025_06_18 {
            severity["title"] = json!("How strict");
        }
        let expected = json!([{
            "name": "review",
            "description": "Review code",
            "arguments": [
                {"name": "code", "description": "the code to review", "required": true},
                severity,
                {"name": "lines"},
            ],
        }]);
        assert_eq!(Value::Array(prompts), expected, "{revision}");
    }
}

#[tokio::test]
async fn option_describes_an_argument() {
    let prompt = review()
        .argument("code", |a| a.title("Code").description("what was changed"))
        .title("Review")
        .icon(Icon::new("https://example.com/icon.svg"))
        .meta("com.example/cost", 3);
    let prompts = listed(&server(prompt), Revision::LATEST).await;
    let expected = json!({"name": "code", "title": "Code", "description": "what was changed", "required": true});
    assert_eq!(prompts[0]["arguments"][0], expected);
    assert_eq!(prompts[0]["title"], "Review");
    assert_eq!(
        prompts[0]["icons"][0]["src"],
        "https://example.com/icon.svg"
    );
    assert_eq!(prompts[0]["_meta"]["com.example/cost"], 3);
}

#[tokio::test]
async fn listed_arguments_are_passed_through_verbatim() {
    let arguments = [
        PromptArgument::new("topic")
            .with_description("what to explain")
            .required(),
        PromptArgument::new("audience"),
    ];
    let handler =
        |_cx, given: oxmcp::protocol::OrderedMap<String>| async move { format!("{given:?}") };
    let server = server(Prompt::dynamic("explain", "Explain", arguments, handler));
    for revision in Revision::ALL {
        let prompts = listed(&server, revision).await;
        let expected = json!([
            {"name": "topic", "description": "what to explain", "required": true},
            {"name": "audience"},
        ]);
        assert_eq!(prompts[0]["arguments"], expected);
        let result = got(
            &server,
            revision,
            "explain",
            json!({"topic": "7", "more": "x"}),
        )
        .await;
        let text = &result["result"]["messages"][0]["content"]["text"];
        assert_eq!(text, r#"{"more": "x", "topic": "7"}"#, "{revision}");
        let error = got(&server, revision, "explain", json!({})).await;
        assert_eq!(error["error"]["code"], -32602, "{error}");
    }
}

#[tokio::test]
async fn unknown_prompt_error_names_the_known_ones() {
    let server = Server::new("views", "1.0.0")
        .prompt(review())
        .prompt(idle("mine").visible_to(|cx| cx.peer_info().is_some()))
        .prompt(idle("others").visible_to(|cx| cx.peer_info().is_none()))
        .cache_prompts(CacheHint::public(Duration::from_secs(60)));
    for revision in Revision::ALL {
        assert_eq!(names(&listed(&server, revision).await), ["mine", "review"]);
        assert!(got(&server, revision, "mine", json!({})).await["result"].is_object());
        for name in ["others", "never_there"] {
            let answer = got(&server, revision, name, json!({})).await;
            let message = format!("Unknown prompt: {name} (available: mine, review)");
            assert_eq!(answer["error"], json!({"code": -32602, "message": message}));
        }
        let nameless = answer(&server, revision, "prompts/get", json!({"name": 7})).await;
        assert_eq!(nameless["error"]["code"], -32602, "{nameless}");
    }
    let list = answer(&server, Revision::LATEST, "prompts/list", json!({})).await;
    assert_eq!(list["result"]["ttlMs"], 60_000);
    assert_eq!(
        list["result"]["cacheScope"], "private",
        "it depends on who asks"
    );
}

#[tokio::test]
async fn prompts_are_unknown_methods_until_some_are_declared() {
    for revision in Revision::ALL {
        for method in ["prompts/list", "prompts/get", "completion/complete"] {
            let answer = answer(&calculator(), revision, method, json!({"name": "x"})).await;
            assert_eq!(answer["error"]["code"], -32601, "{method} in {revision}");
        }
        assert!(listed(&calculator().prompts([]), revision).await.is_empty());
    }
    for revision in LEGACY {
        let server = Server::new("s", "1.0.0").prompts([]);
        let answer = script(&server).await.initialize(revision).await.unwrap();
        let expected = json!({"prompts": {"listChanged": true}});
        assert_eq!(answer["result"]["capabilities"], expected, "{revision}");
    }
}

#[tokio::test]
async fn invalid_prompt_is_refused_when_added_or_connected() {
    #[derive(serde::Deserialize, JsonSchema)]
    #[expect(dead_code, reason = "it is never read")]
    struct Nested {
        tags: Vec<String>,
    }
    #[derive(serde::Deserialize, JsonSchema)]
    #[expect(dead_code, reason = "it is never read")]
    struct Within {
        review: Option<Review>,
    }
    let twice = [PromptArgument::new("a"), PromptArgument::new("a")];
    let table: [(Prompt, &[&str]); 7] = [
        (idle(""), &["missing name"]),
        (
            Prompt::new("n", "", |_: Nested| async { "" }),
            &["\"n\"", "\"tags\"", "it is an array", "String"],
        ),
        (
            Prompt::new("w", "", |_: Within| async { "" }),
            &["\"review\"", "it is an object"],
        ),
        (
            Prompt::new("s", "", |_: String| async { "" }),
            &["\"s\"", "a string", "named fields"],
        ),
        (
            Prompt::new("v", "", |_: Vec<u8>| async { "" }),
            &["an array", "named fields"],
        ),
        (
            review().argument("cod", |a| a),
            &["\"cod\"", "did you mean \"code\"?", "\"severity\""],
        ),
        (
            Prompt::dynamic("d", "", twice, |_, _| async { "" }),
            &["duplicate argument \"a\""],
        ),
    ];
    let server = server(review());
    for (wrong, named) in table {
        let name = wrong.name().to_owned();
        let error = server.add_prompts([idle("innocent"), wrong]).unwrap_err();
        for word in named {
            assert!(
                error.to_string().contains(word),
                "{name}: {word} is not in {error}"
            );
        }
    }
    assert_eq!(names(&listed(&server, Revision::LATEST).await), ["review"]);

    let wrong = Server::new("wrong", "1.0.0").prompt(idle("p").argument("x", |a| a));
    let error = testing::connect(&wrong).await.unwrap_err();
    assert!(
        error
            .to_string()
            .contains("prompt \"p\": unknown argument \"x\""),
        "{error}"
    );
}

#[tokio::test(start_paused = true)]
async fn prompt_changes_reach_clients_in_every_revision() {
    for revision in Revision::ALL {
        let server = server(review());
        let changed = Arc::new(Notify::new());
        let notify = Arc::clone(&changed);
        let client = Client::new("test", "1.0.0").on_prompts_changed(move |_| {
            notify.notify_one();
            async {}
        });
        let session = testing::connect(&server)
            .client(&client)
            .revision(revision)
            .await
            .unwrap();
        let names = async || {
            let prompts = session.prompts().all().await.unwrap();
            prompts.into_iter().map(|it| it.name).collect::<Vec<_>>()
        };
        assert_eq!(names().await, ["review"]);
        server.add_prompts([idle("b"), idle("a")]).unwrap();
        changed.notified().await;
        assert_eq!(names().await, ["a", "b", "review"], "{revision}");
        server.remove_prompts(["review", "never there"]);
        changed.notified().await;
        assert_eq!(names().await, ["a", "b"], "{revision}");
        server.remove_prompts(["never there"]);
        let silent = tokio::time::timeout(Duration::from_secs(1), changed.notified());
        assert!(silent.await.is_err(), "nothing has changed");
    }
}

#[tokio::test]
async fn prompts_are_listed_in_pages() {
    let all = ["a", "b", "c", "d", "e"];
    let server = Server::new("pages", "1.0.0")
        .prompts(all.map(idle))
        .page_size(2);
    for revision in Revision::ALL {
        let session = testing::connect(&server).revision(revision).await.unwrap();
        let prompts = session.prompts().all().await.unwrap();
        let names: Vec<_> = prompts.iter().map(|it| it.name.as_str()).collect();
        assert_eq!(names, all, "{revision}");
    }
    // The cursor of another listing is invalid.
    let cursor = base64::prelude::BASE64_URL_SAFE_NO_PAD.encode(b"tools/list a");
    let refused = answer(
        &server,
        Revision::LATEST,
        "prompts/list",
        json!({"cursor": cursor}),
    )
    .await;
    assert_eq!(refused["error"]["code"], -32602);
}
