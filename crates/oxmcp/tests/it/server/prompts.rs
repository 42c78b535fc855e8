//! Prompts: how they are defined, listed and got, and what their handlers may return.

use std::{borrow::Cow, io, sync::Arc, time::Duration};

use oxmcp::{
    Client, Error, JsonSchema, Prompt, RequestContext, Revision, Server,
    protocol::{
        CacheHint, ContentBlock, GetPromptResult, Icon, PromptArgument, PromptMessage, Resource,
        ResourceContents,
    },
    testing,
};
use serde_json::{Value, json};
use tokio::sync::Notify;

use crate::support::{LEGACY, answer, calculator, modern, request, script};

#[derive(serde::Deserialize, JsonSchema)]
struct Review {
    /// the code to review
    code: String,
    /// how strict to be
    #[schemars(title = "How strict")]
    severity: Option<Severity>,
    #[serde(default)]
    lines: u32,
}

#[derive(Debug, serde::Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Severity {
    Kind,
    Harsh,
}

fn review() -> Prompt {
    let handler = |review: Review| async move {
        let severity = review.severity.unwrap_or(Severity::Kind);
        format!("{severity:?}, {} lines: {}", review.lines, review.code)
    };
    Prompt::new("review", "Review code", handler)
}

/// A prompt that does nothing.
fn idle(name: &str) -> Prompt {
    Prompt::new(name, "Do nothing", || async { "nothing" })
}

fn server(prompt: Prompt) -> Server {
    Server::new("prompts", "1.0.0").prompt(prompt)
}

async fn listed(server: &Server, revision: Revision) -> Vec<Value> {
    let list = answer(server, revision, "prompts/list", json!({})).await;
    let prompts = list["result"]["prompts"].as_array();
    prompts.unwrap_or_else(|| panic!("{list}")).clone()
}

fn names(prompts: &[Value]) -> Vec<&str> {
    let names = prompts.iter().map(|it| it["name"].as_str().unwrap());
    names.collect()
}

async fn got(server: &Server, revision: Revision, name: &str, arguments: Value) -> Value {
    let params = json!({"name": name, "arguments": arguments});
    answer(server, revision, "prompts/get", params).await
}

#[tokio::test]
async fn n1_the_arguments_are_the_fields_of_the_struct() {
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
async fn n1_the_handler_gets_the_struct_in_every_revision() {
    for revision in Revision::ALL {
        let arguments = json!({"code": "x = 1", "severity": "harsh", "lines": "1"});
        let answer = got(&server(review()), revision, "review", arguments).await;
        let mut result = answer["result"].clone();
        let object = result.as_object_mut().unwrap();
        object.remove("_meta");
        object.remove("resultType");
        let content = json!({"type": "text", "text": "Harsh, 1 lines: x = 1"});
        let expected = json!({
            "description": "Review code",
            "messages": [{"role": "user", "content": content}],
        });
        assert_eq!(result, expected, "{revision}");
    }
}

#[tokio::test]
async fn n2_an_argument_is_described_by_an_option() {
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
async fn n2_arguments_may_be_a_list_and_are_given_as_they_come() {
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
async fn n1_every_form_of_handler_is_called() {
    async fn of_context(cx: RequestContext) -> String {
        cx.revision().to_string()
    }
    let server = Server::new("forms", "1.0.0").prompts([
        Prompt::new("nothing", "", || async { "nothing" }),
        Prompt::new("context", "", of_context),
        Prompt::new(
            "both",
            "",
            |cx: RequestContext, review: Review| async move {
                format!("{} {}", cx.revision(), review.code)
            },
        ),
        Prompt::new(
            "shared",
            "",
            |cx: Arc<RequestContext>, _: Review| async move { cx.revision().to_string() },
        ),
    ]);
    for revision in Revision::ALL {
        let expected = [
            ("nothing", "nothing".to_owned()),
            ("context", revision.to_string()),
            ("both", format!("{revision} c")),
            ("shared", revision.to_string()),
        ];
        for (name, expected) in expected {
            let answer = got(&server, revision, name, json!({"code": "c"})).await;
            let text = &answer["result"]["messages"][0]["content"]["text"];
            assert_eq!(*text, expected, "{name} in {revision}: {answer}");
        }
    }
}

#[tokio::test]
async fn what_a_handler_returns_becomes_messages() {
    let text =
        |role: &str, text: &str| json!({"role": role, "content": {"type": "text", "text": text}});
    let one = |text_: &str| json!([text("user", text_)]);
    let pair = || [PromptMessage::user("q"), PromptMessage::assistant("a")];
    let both = json!([text("user", "q"), text("assistant", "a")]);
    let cases = [
        (Prompt::new("p", "", || async { "s" }), one("s")),
        (
            Prompt::new("p", "", || async { String::from("s") }),
            one("s"),
        ),
        (
            Prompt::new("p", "", || async { Box::<str>::from("s") }),
            one("s"),
        ),
        (
            Prompt::new("p", "", || async { Cow::Borrowed("s") }),
            one("s"),
        ),
        (
            Prompt::new("p", "", || async { ContentBlock::text("s") }),
            one("s"),
        ),
        (
            Prompt::new("p", "", || async { PromptMessage::user("s") }),
            one("s"),
        ),
        (
            Prompt::new("p", "", move || async move { pair() }),
            both.clone(),
        ),
        (
            Prompt::new("p", "", move || async move { pair().to_vec() }),
            both.clone(),
        ),
        (
            Prompt::new("p", "", move || async move { GetPromptResult::new(pair()) }),
            both.clone(),
        ),
        (
            Prompt::new("p", "", || async { Ok::<_, io::Error>("s") }),
            one("s"),
        ),
    ];
    for (prompt, messages) in cases {
        let answer = got(&server(prompt), Revision::LATEST, "p", json!({})).await;
        assert_eq!(answer["result"]["messages"], messages);
    }
    let whole = || async { GetPromptResult::new([]).with_description("mine") };
    let answer = got(
        &server(Prompt::new("p", "d", whole)),
        Revision::LATEST,
        "p",
        json!({}),
    )
    .await;
    assert_eq!(answer["result"]["description"], "mine");
    assert_eq!(answer["result"]["messages"], json!([]));
}

#[tokio::test]
async fn content_of_every_kind_is_fitted_to_the_revision() {
    let handler = || async {
        [
            PromptMessage::user(ContentBlock::image(b"i", "image/png")),
            PromptMessage::user(ContentBlock::audio(b"a", "audio/wav")),
            PromptMessage::user(ContentBlock::link(Resource::new("file:///x", "x"))),
            PromptMessage::assistant(ContentBlock::resource(ResourceContents::text(
                "file:///y",
                "y",
            ))),
        ]
    };
    let server = server(Prompt::new("p", "", handler));
    for revision in Revision::ALL {
        let answer = got(&server, revision, "p", json!({})).await;
        let messages = answer["result"]["messages"].as_array().unwrap();
        let types: Vec<_> = messages
            .iter()
            .map(|it| it["content"]["type"].as_str().unwrap())
            .collect();
        let audio = if revision >= Revision::V2025_03_26 {
            "audio"
        } else {
            "text"
        };
        let link = if revision >= Revision::V2025_06_18 {
            "resource_link"
        } else {
            "text"
        };
        assert_eq!(types, ["image", audio, link, "resource"], "{revision}");
    }
}

#[tokio::test]
async fn k1_a_handlers_error_is_the_clients_error() {
    let server = Server::new("failing", "1.0.0").prompts([
        Prompt::new("own", "", || async {
            Err::<String, _>(Error::invalid_params("no such ticket"))
        }),
        Prompt::new("other", "", || async {
            Err::<String, _>(io::Error::other("the disk is full"))
        }),
        Prompt::new("panics", "", || async {
            [""; 0].first().map(ToString::to_string).unwrap()
        }),
    ]);
    for revision in Revision::ALL {
        let session = testing::connect(&server).revision(revision).await.unwrap();
        let none: [(&str, &str); 0] = [];
        let own = session.get_prompt("own", none).await.unwrap_err();
        assert_eq!(
            (own.code().value(), own.message()),
            (-32602, "no such ticket")
        );
        let other = session.get_prompt("other", none).await.unwrap_err();
        assert_eq!(
            (other.code().value(), other.message()),
            (-32603, "the disk is full")
        );
        let panics = session.get_prompt("panics", none).await.unwrap_err();
        assert_eq!(panics.code().value(), -32603, "{panics}");
        session.ping().await.unwrap();
    }
}

#[tokio::test]
async fn an_unknown_prompt_is_told_with_those_that_there_are() {
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
            let message = format!("Unknown prompt: {name} (there are: mine, review)");
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
async fn n3_what_is_wrong_with_a_prompt_is_told_when_it_is_added_or_connected() {
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
        (idle(""), &["needs a name"]),
        (
            Prompt::new("n", "", |_: Nested| async { "" }),
            &["\"n\"", "\"tags\" is an array", "String"],
        ),
        (
            Prompt::new("w", "", |_: Within| async { "" }),
            &["\"review\" is an object"],
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
            &["two arguments \"a\""],
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
            .contains("prompt \"p\": there is no argument \"x\""),
        "{error}"
    );
}

#[tokio::test(start_paused = true)]
async fn n3_p4_clients_hear_of_changes_in_every_revision() {
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
async fn n4_r1_the_list_comes_in_pages() {
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
    // The cursor of another list means nothing here.
    let cursor = data_encoding::BASE64URL_NOPAD.encode(b"tools/list a");
    let refused = answer(
        &server,
        Revision::LATEST,
        "prompts/list",
        json!({"cursor": cursor}),
    )
    .await;
    assert_eq!(refused["error"]["code"], -32602);
}

#[tokio::test(start_paused = true)]
async fn k6_a_slow_prompt_is_cancelled_and_holds_up_nobody() {
    let prompt = Prompt::new("slow", "", |cx: RequestContext| async move {
        cx.cancelled().await;
        "never sent"
    });
    let server = server(prompt).prompt(idle("quick"));
    let mut peer = script(&server).await;
    peer.initialize(LEGACY[3]).await.unwrap();
    for round in 0..4 {
        let slow = 10 + round;
        peer.send(request(slow, "prompts/get", json!({"name": "slow"})))
            .await
            .unwrap();
        let quick = peer
            .ask(modern(20 + round, "prompts/get", json!({"name": "quick"})))
            .await
            .unwrap();
        assert_eq!(quick["id"], 20 + round);
        let cancel = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": slow}});
        peer.send(cancel).await.unwrap();
        let next = peer
            .ask(request(30 + round, "ping", json!({})))
            .await
            .unwrap();
        assert_eq!(
            next["id"],
            30 + round,
            "nothing is sent for what was cancelled"
        );
    }
}
