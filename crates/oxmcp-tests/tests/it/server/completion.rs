//! Completion of arguments while they are typed.

use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
};

use oxmcp::{
    Completer, CompletionInput, JsonSchema, Prompt, RequestContext, Revision, Server,
    protocol::{CompleteParams, Completion, CompletionReference, PromptArgument},
    testing,
};
use serde_json::{Value, json};

use crate::support::{LEGACY, answer, calculator, idle, script};

#[derive(serde::Deserialize, JsonSchema)]
#[expect(dead_code, reason = "only their names matter")]
struct Deploy {
    service: String,
    version: String,
    target: Target,
    dry_run: Option<bool>,
    #[schemars(extend("enum" = [1, 2, 10]))]
    level: Option<u8>,
    note: Option<String>,
}

#[derive(serde::Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Target {
    Production,
    Preview,
    /// where things are tried out
    Staging,
}

async fn versions(completing: CompletionInput) -> Completion {
    let service = completing.resolved("service").unwrap_or("any");
    completing.matching([format!("{service}-1"), format!("{service}-2")])
}

fn deploy() -> Prompt {
    Prompt::new("deploy", "Deploy", |_: Deploy| async { "" })
        .complete("service", ["shop", "Search", "search"])
        .complete("version", versions)
}

fn server() -> Server {
    Server::new("deployer", "1.0.0").prompt(deploy())
}

fn params(prompt: &str, argument: &str, value: &str) -> Value {
    json!({"ref": {"type": "ref/prompt", "name": prompt}, "argument": {"name": argument, "value": value}})
}

async fn completed(server: &Server, revision: Revision, params: Value) -> Value {
    let answer = answer(server, revision, "completion/complete", params).await;
    let completion = answer.pointer("/result/completion");
    completion.unwrap_or_else(|| panic!("{answer}")).clone()
}

#[tokio::test]
async fn enum_and_boolean_values_are_completed_automatically() {
    for revision in Revision::ALL {
        let cases = [
            ("target", "", json!(["production", "preview", "staging"])),
            ("target", "PR", json!(["production", "preview"])),
            ("target", "x", json!([])),
            ("dry_run", "", json!(["true", "false"])),
            ("level", "1", json!(["1", "10"])),
        ];
        for (argument, value, values) in cases {
            let completion =
                completed(&server(), revision, params("deploy", argument, value)).await;
            let total = values.as_array().unwrap().len();
            let expected = json!({"values": values, "total": total});
            assert_eq!(completion, expected, "{argument} in {revision}");
        }
        // The argument accepts any text.
        let free = completed(&server(), revision, params("deploy", "note", "x")).await;
        assert_eq!(free, json!({"values": []}));
    }
}

#[tokio::test]
async fn list_completes_by_prefix_with_best_first() {
    for revision in Revision::ALL {
        let completion = completed(&server(), revision, params("deploy", "service", "se")).await;
        assert_eq!(
            completion,
            json!({"values": ["search", "Search"], "total": 2}),
            "{revision}"
        );
    }
}

#[tokio::test]
async fn completion_function_receives_the_settled_arguments() {
    for revision in Revision::ALL {
        let session = testing::connect(&server())
            .revision(revision)
            .await
            .unwrap();
        let reference = CompletionReference::prompt("deploy");
        let params = CompleteParams::new(reference, "version", "s").resolved("service", "shop");
        let values = session.complete(params).await.unwrap().completion.values;
        // The SDK's client sends the resolved arguments only if the revision has a field for them.
        if revision >= Revision::V2025_06_18 {
            assert_eq!(values, ["shop-1", "shop-2"], "{revision}");
        } else {
            assert!(values.is_empty(), "{revision}");
        }
        let alone = session
            .complete_prompt("deploy", "version", "any-2")
            .await
            .unwrap();
        assert_eq!(alone.completion.values, ["any-2"], "{revision}");
    }
}

#[tokio::test]
async fn every_completer_form_completes() {
    fn with<Marker>(completer: impl oxmcp::traits::IntoCompleter<Marker>) -> Server {
        let arguments = [PromptArgument::new("a")];
        let prompt = Prompt::dynamic("p", "", arguments, |_, _| async { "" });
        Server::new("s", "1.0.0").prompt(prompt.complete("a", completer))
    }
    let colours = vec!["red".to_owned(), "green".to_owned()];
    let servers = [
        with(["red", "green"]),
        with(colours.clone()),
        with(&*colours),
        with(Completer::new(["red", "green"])),
        with(|_: CompletionInput| async { ["red"] }),
        with(|cx: RequestContext, _: CompletionInput| async move {
            assert!(cx.peer_info().is_some());
            vec!["red"]
        }),
        with(|_: CompletionInput| async { Ok::<_, io::Error>(vec!["red".to_owned()]) }),
        with(|it: CompletionInput| async move {
            assert_eq!((&*it.argument, &*it.value), ("a", "r"));
            Completion::new(["red"])
        }),
    ];
    for (index, server) in servers.iter().enumerate() {
        let completion = completed(server, Revision::LATEST, params("p", "a", "r")).await;
        assert_eq!(completion["values"], json!(["red"]), "{index}");
    }
    let fails =
        with(|_: CompletionInput| async { Err::<Vec<String>, _>(io::Error::other("no database")) });
    let answer = answer(
        &fails,
        Revision::LATEST,
        "completion/complete",
        params("p", "a", ""),
    )
    .await;
    assert_eq!(
        answer["error"],
        json!({"code": -32603, "message": "no database"})
    );
}

#[tokio::test]
async fn at_most_a_hundred_values_are_sent() {
    let many: Vec<_> = (0..150).map(|index| format!("v{index:03}")).collect();
    let returned = many.clone();
    let arguments = [PromptArgument::new("list"), PromptArgument::new("function")];
    let prompt = Prompt::dynamic("p", "", arguments, |_, _| async { "" })
        .complete("list", many.clone())
        .complete("function", move |_: CompletionInput| {
            let returned = returned.clone();
            async move { returned }
        });
    let server = Server::new("s", "1.0.0").prompt(prompt);
    for revision in Revision::ALL {
        for argument in ["list", "function"] {
            let completion = completed(&server, revision, params("p", argument, "v")).await;
            assert_eq!(completion["values"].as_array().unwrap().len(), 100);
            assert_eq!(
                (&completion["total"], &completion["hasMore"]),
                (&json!(150), &json!(true))
            );
        }
        let fewer = completed(&server, revision, params("p", "list", "v00")).await;
        assert_eq!((&fewer["total"], fewer.get("hasMore")), (&json!(10), None));
    }
}

#[tokio::test]
async fn completion_of_unknown_name_or_argument_is_refused() {
    let server =
        server().prompt(Prompt::new("hidden", "", |_: Deploy| async { "" }).visible_to(|_| false));
    let template = json!({"ref": {"type": "ref/resource", "uri": "file:///{path}"}, "argument": {"name": "path", "value": ""}});
    let odd = json!({"ref": {"type": "ref/tool", "name": "x"}, "argument": {"name": "path", "value": ""}});
    let cases = [
        (
            params("deplyo", "target", ""),
            "Unknown prompt: deplyo (available: deploy)",
        ),
        (
            params("hidden", "target", ""),
            "Unknown prompt: hidden (available: deploy)",
        ),
        (
            params("deploy", "targt", ""),
            "prompt \"deploy\": unknown argument \"targt\"; did you mean \"target\"? (arguments: \"service\", \"version\", \"target\", \"dry_run\", \"level\", \"note\")",
        ),
        (template, "Unknown resource template: "),
        (odd, "\"ref/prompt\" or \"ref/resource\""),
        (
            json!({"ref": {"type": "ref/prompt", "name": "deploy"}}),
            "argument",
        ),
        (json!({}), "ref"),
    ];
    for revision in Revision::ALL {
        for (params, told) in &cases {
            let answer = answer(&server, revision, "completion/complete", params.clone()).await;
            assert_eq!(answer["error"]["code"], -32602, "{answer}");
            let message = answer["error"]["message"].as_str().unwrap();
            assert!(message.contains(told), "{told} is not in {message}");
        }
    }
}

#[tokio::test]
async fn completion_is_declared_only_with_completers() {
    let plain = Prompt::new("plain", "", || async { "" });
    let cases = [
        (calculator(), false),
        (Server::new("s", "1.0.0").prompt(plain), false),
        (server(), true),
    ];
    for (server, declared) in cases {
        for revision in LEGACY {
            let answer = script(&server).await.initialize(revision).await.unwrap();
            let capability = answer["result"]["capabilities"].get("completions");
            let expected = declared && revision >= Revision::V2025_03_26;
            assert_eq!(capability.is_some(), expected, "{revision}");
        }
        let session = testing::connect(&server).await.unwrap();
        assert_eq!(
            session.server_capabilities().completions.is_some(),
            declared
        );
        if !declared {
            let error = session.complete_prompt("plain", "a", "").await.unwrap_err();
            assert_eq!(error.code().value(), -32601, "{error}");
        }
    }
    // Completion stays declared when the last prompt is removed.
    let server = server();
    let session = testing::connect(&server).await.unwrap();
    server.remove_prompts(["deploy"]);
    let error = session
        .complete_prompt("deploy", "target", "")
        .await
        .unwrap_err();
    assert_eq!(error.code().value(), -32602, "{error}");
    assert_eq!(error.message(), "Unknown prompt: deploy (none available)");
}

#[tokio::test]
async fn explicit_completer_replaces_the_inferred_one() {
    let prompt = deploy().complete("target", ["moon"]);
    let server = Server::new("s", "1.0.0").prompt(prompt);
    let completion = completed(&server, Revision::LATEST, params("deploy", "target", "")).await;
    assert_eq!(completion["values"], json!(["moon"]));
}

#[tokio::test(start_paused = true)]
async fn failing_completer_fails_only_its_own_request() {
    let calls = Arc::new(AtomicU32::new(0));
    let counted = Arc::clone(&calls);
    let completer = move |completing: CompletionInput| {
        counted.fetch_add(1, Ordering::Relaxed);
        async move {
            match &*completing.value {
                "panic" => panic!("boom"),
                "never" => std::future::pending().await,
                other => vec![other.to_owned()],
            }
        }
    };
    let prompt = Prompt::dynamic("p", "", [PromptArgument::new("a")], |_, _| async { "" });
    let server = Server::new("s", "1.0.0")
        .tool(idle("idle"))
        .prompt(prompt.complete("a", completer));
    let session = testing::connect(&server).await.unwrap();
    for _ in 0..4 {
        let error = session
            .complete_prompt("p", "a", "panic")
            .await
            .unwrap_err();
        assert_eq!(error.code().value(), -32603, "{error}");
        let never = session
            .complete_prompt("p", "a", "never")
            .timeout(std::time::Duration::from_secs(1));
        assert!(never.await.unwrap_err().is_timeout());
        let values = session
            .complete_prompt("p", "a", "x")
            .await
            .unwrap()
            .completion
            .values;
        assert_eq!(values, ["x"]);
    }
    assert_eq!(calls.load(Ordering::Relaxed), 12);
}
