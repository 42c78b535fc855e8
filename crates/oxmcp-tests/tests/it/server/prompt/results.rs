//! Results of prompts: the context that handlers receive, and the types that they may return.

use std::{borrow::Cow, io, sync::Arc};

use oxmcp::{
    Error, Prompt, RequestContext, Revision, Server,
    middleware::{self, Next, Request},
    protocol::{ContentBlock, GetPromptResult, PromptMessage, Resource, ResourceContents},
    testing,
};
use serde_json::json;

use crate::server::prompt::{Review, got, idle, review, server};
use crate::support::{LEGACY, modern, request, script};

#[tokio::test]
async fn handler_gets_the_struct_in_every_revision() {
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
async fn every_handler_form_is_called() {
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
async fn return_value_of_a_handler_becomes_messages() {
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
async fn content_of_every_kind_fits_the_revision() {
    let handler = || async {
        [
            PromptMessage::user(ContentBlock::image(b"i", "image/png")),
            PromptMessage::user(ContentBlock::audio(b"a", "audio/wav")),
            PromptMessage::user(ContentBlock::resource_link(Resource::new("file:///x", "x"))),
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
async fn handler_error_becomes_the_clients_error() {
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
        let own = session.get_prompt("own", ()).await.unwrap_err();
        assert_eq!(
            (own.code().value(), own.message()),
            (-32602, "no such ticket")
        );
        let other = session.get_prompt("other", ()).await.unwrap_err();
        assert_eq!(
            (other.code().value(), other.message()),
            (-32603, "the disk is full")
        );
        let panics = session.get_prompt("panics", ()).await.unwrap_err();
        assert_eq!(panics.code().value(), -32603, "{panics}");
        session.ping().await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn slow_prompt_is_cancelled_without_delaying_others() {
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

#[tokio::test]
async fn middleware_sees_prompts_and_completions() {
    let pass = |request: Request, next: Next| async move { next.run(request).await };
    let plain = server(review());
    let layered = server(review()).layer(middleware::from_fn(pass));
    for revision in Revision::ALL {
        let arguments = json!({"code": "x"});
        let direct = got(&plain, revision, "review", arguments.clone()).await;
        assert_eq!(got(&layered, revision, "review", arguments).await, direct);
        let session = testing::connect(&layered).revision(revision).await.unwrap();
        let completed = session
            .complete_prompt("review", "severity", "h")
            .await
            .unwrap();
        assert_eq!(completed.completion.values, ["harsh"], "{revision}");
    }
}
