//! Methods of extensions, in both directions.

use std::io;

use oxmcp::{
    Error, RequestContext, Revision, Server, Tool,
    middleware::{self, Next, Request},
    protocol::Method,
};
use serde_json::json;

use crate::extension::*;
use crate::support::{LEGACY, answer, request, script};

#[tokio::test]
async fn method_is_served_in_every_revision() {
    let server =
        server(clock().method::<Add, _>(.., |Hours { hours: h }| async move { hours(h + 1) }));
    for revision in Revision::ALL {
        let session = connect(&server, &client(clock()), revision).await;
        let later = session.request::<Add>(hours(3)).await.unwrap();
        assert_eq!(later, hours(4), "{revision}");
    }
}

#[tokio::test]
async fn results_follow_the_revision() {
    let server = server(clock().method::<Add, _>(.., async |now: Hours| now));
    let mut seen = Vec::new();
    for revision in [Revision::V2025_11_25, Revision::LATEST] {
        let answer = answer(&server, revision, Add::NAME, json!({"hours": 2})).await;
        seen.push(answer["result"].clone());
    }
    let info = json!({"io.modelcontextprotocol/serverInfo": {"name": "clock", "version": "1.0.0"}});
    let modern = json!({"resultType": "complete", "_meta": info, "hours": 2});
    assert_eq!(seen, [json!({"hours": 2}), modern]);
}

#[tokio::test]
async fn extension_handlers_support_the_same_types_as_others() {
    async fn whole(cx: RequestContext, now: Hours) -> oxmcp::Result<Hours> {
        assert!(cx.request_id().is_some());
        Ok(now)
    }
    let extensions = [
        clock().method::<Add, _>(.., whole),
        clock().method::<Add, _>(.., |_cx: RequestContext| async { hours(1) }),
        clock().method::<Add, _>(.., || async { Ok::<_, io::Error>(hours(1)) }),
        clock().method::<Add, _>(.., |now: Hours| async { now }),
    ];
    for extension in extensions {
        let answer = answer(
            &server(extension),
            Revision::LATEST,
            Add::NAME,
            json!({"hours": 1}),
        )
        .await;
        assert_eq!(answer["result"]["hours"], 1, "{answer}");
    }
}

#[tokio::test]
async fn extension_errors_match_protocol_errors() {
    let own = clock().method::<Add, _>(.., |_: Hours| async {
        Err::<Hours, _>(Error::protocol(4711, "it is broken"))
    });
    let other = clock().method::<Add, _>(.., |_: Hours| async {
        Err::<Hours, _>(io::Error::other("it is rusty"))
    });
    let panics = clock().method::<Add, _>(.., |Hours { hours: h }: Hours| async move {
        assert!(h > 1_000, "the handler panics");
        hours(h)
    });
    let cases = [
        (own, json!({"hours": 1}), 4711, "it is broken"),
        (other, json!({"hours": 1}), -32603, "it is rusty"),
        (panics, json!({"hours": 1}), -32603, "failed unexpectedly"),
        (
            clock().method::<Add, _>(.., async |now: Hours| now),
            json!({"hours": "many"}),
            -32602,
            "invalid params of",
        ),
        (
            clock().method::<Add, _>(.., async |now: Hours| now),
            json!({}),
            -32602,
            "missing field `hours`",
        ),
    ];
    for (extension, params, code, message) in cases {
        let server = server(extension);
        for revision in Revision::ALL {
            let answer = answer(&server, revision, Add::NAME, params.clone()).await;
            assert_eq!(answer["error"]["code"], code, "{answer}");
            assert!(
                answer["error"]["message"]
                    .as_str()
                    .unwrap()
                    .contains(message),
                "{answer}"
            );
        }
    }
    // Params that are not an object are invalid in every revision.
    let server = server(clock().method::<Add, _>(.., async |now: Hours| now));
    let mut peer = script(&server).await;
    peer.initialize(Revision::V2025_11_25).await.unwrap();
    let array = peer.ask(request(1, Add::NAME, json!([1]))).await.unwrap();
    assert!(
        array["error"]["code"] == -32602 || array["error"]["code"] == -32600,
        "{array}"
    );
}

#[tokio::test]
async fn method_exists_only_in_its_revisions() {
    let new = Revision::V2025_06_18..;
    let old = ..Revision::V2025_06_18;
    let server = Server::new("s", "1")
        .extension(clock().method::<Add, _>(new, |_: Hours| async { hours(2) }))
        // Another extension may have the same method in other revisions.
        .extension(
            Extension::new("com.example/old").method::<Add, _>(old, |_: Hours| async { hours(1) }),
        );
    for revision in Revision::ALL {
        let answer = answer(&server, revision, Add::NAME, json!({"hours": 0})).await;
        let is_new = revision >= Revision::V2025_06_18;
        assert_eq!(
            answer["result"]["hours"],
            if is_new { 2 } else { 1 },
            "{revision}"
        );
    }
    let server = crate::extension::server(clock().method::<Add, _>(
        Revision::V2025_03_26..=Revision::V2025_06_18,
        |_: Hours| async { hours(2) },
    ));
    for revision in Revision::ALL {
        let answer = answer(&server, revision, Add::NAME, json!({"hours": 0})).await;
        let has = matches!(revision, Revision::V2025_03_26 | Revision::V2025_06_18);
        assert_eq!(
            answer["error"]["code"] == -32601,
            !has,
            "{revision}: {answer}"
        );
    }
}

#[tokio::test]
async fn unsupported_extension_method_is_never_sent() {
    let serves = server(clock().method::<Add, _>(.., async |now: Hours| now));
    let knows_nothing = Server::new("s", "1");
    let calls = || client(clock().calls::<Add>(Revision::V2025_06_18..));
    for revision in Revision::ALL {
        let answer = connect(&serves, &calls(), revision)
            .await
            .request::<Add>(hours(1))
            .await;
        assert_eq!(
            answer.is_ok(),
            revision >= Revision::V2025_06_18,
            "{revision}"
        );
        if let Err(error) = answer {
            assert!(
                error.is_unsupported() && error.message().contains(revision.as_str()),
                "{error}"
            );
        }
        let session = connect(&knows_nothing, &calls(), revision).await;
        let error = session.request::<Add>(hours(1)).await.unwrap_err();
        assert!(error.is_unsupported(), "{error}");
        // If no extension of the client declares the method, the server decides.
        let session = connect(&knows_nothing, &Client::new("c", "1"), revision).await;
        let error = session.request::<Add>(hours(1)).await.unwrap_err();
        assert_eq!(error.code(), oxmcp::ErrorCode::METHOD_NOT_FOUND, "{error}");
    }
}

#[tokio::test]
async fn servers_ask_clients_in_legacy_sessions() {
    let asks = Tool::new("ask", "Ask the client", |cx: RequestContext| async move {
        let session = cx.server_session().unwrap();
        session.request::<Add>(hours(3)).await.map(|it| it.hours)
    });
    let server = server(clock().calls::<Add>(..)).tool(asks);
    let client = client(clock().method::<Add, _>(
        ..,
        |cx: RequestContext, Hours { hours: h }| async move {
            assert!(cx.client_session().is_some());
            hours(h * 2)
        },
    ));
    for revision in LEGACY {
        let session = connect(&server, &client, revision).await;
        let doubled: u32 = session.call_tool("ask", ()).structured().await.unwrap();
        assert_eq!(doubled, 6, "{revision}");
        // A client that has not declared the extension is not asked.
        let session = connect(&server, &Client::new("c", "1"), revision).await;
        let refused = session.call_tool("ask", ()).await.unwrap_err();
        assert!(refused.message().contains(ID), "{refused}");
    }
    let session = connect(&server, &client, Revision::LATEST).await;
    let refused = session.call_tool("ask", ()).await.unwrap_err();
    assert!(
        refused
            .message()
            .contains("modern clients accept no requests"),
        "{refused}"
    );
}

#[tokio::test]
async fn invalid_client_answer_is_an_error_for_server() {
    let server = server(clock().calls::<Add>(..));
    let client = client(
        clock().method::<Add, _>(..Revision::V2025_06_18, |_: Hours| async {
            Err::<Hours, _>(Error::invalid_params("not now"))
        }),
    );
    let _session = connect(&server, &client, Revision::V2025_03_26).await;
    let error = server
        .sessions()
        .next()
        .unwrap()
        .request::<Add>(hours(1))
        .await
        .unwrap_err();
    assert_eq!((error.code().value(), error.message()), (-32602, "not now"));
    drop(_session);
    let newer = connect(&server, &client, Revision::V2025_11_25).await;
    let session = server
        .sessions()
        .find(|it| it.revision() == Some(Revision::V2025_11_25))
        .unwrap();
    let error = session.request::<Add>(hours(1)).await.unwrap_err();
    assert_eq!(error.code().value(), -32601);
    drop(newer);
}

#[tokio::test]
async fn middleware_sees_extension_methods_on_both_sides() {
    let seen: &'static std::sync::Mutex<Vec<String>> = Box::leak(Box::default());
    let note = |side: &'static str| {
        middleware::from_fn(move |request: Request, next: Next| async move {
            if request.method() == Add::NAME {
                seen.lock()
                    .unwrap()
                    .push(format!("{side} {}", request.params::<Hours>()?.hours));
            }
            next.run(request).await
        })
    };
    let server = server(clock().method::<Add, _>(.., async |now: Hours| now)).layer(note("server"));
    let client = client(clock().calls::<Add>(..)).outgoing_layer(note("client"));
    for revision in Revision::ALL {
        let session = connect(&server, &client, revision).await;
        assert_eq!(session.request::<Add>(hours(5)).await.unwrap(), hours(5));
        assert_eq!(
            seen.lock().unwrap().drain(..).collect::<Vec<_>>(),
            ["client 5", "server 5"]
        );
    }
}

#[derive(serde::Deserialize, oxmcp::JsonSchema)]
#[serde(deny_unknown_fields)]
struct Search {
    query: String,
    #[serde(default)]
    most: Option<u8>,
}

#[derive(serde::Serialize)]
struct Found {
    names: Vec<String>,
}

async fn search(cx: RequestContext, search: Search) -> Result<Found, io::Error> {
    assert!(cx.request_id().is_some());
    if search.query.is_empty() {
        return Err(io::Error::other("what for?"));
    }
    let most = search.most.unwrap_or(1).into();
    Ok(Found {
        names: vec![search.query; most],
    })
}

#[tokio::test]
async fn method_from_a_function_has_types_and_schema() {
    let name = "com.example/acme/search";
    let declared = Extension::new("com.example/acme").method_fn(name, .., search);
    let new = || Server::new("acme", "1.0.0");
    for server in [new().extension(declared), new().method(name, search)] {
        server.check().unwrap();
        for revision in Revision::ALL {
            let ask = async |params| answer(&server, revision, name, params).await;
            let found = ask(json!({"query": "x", "most": 2})).await;
            assert_eq!(found["result"]["names"], json!(["x", "x"]), "{revision}");
            for (params, said) in [
                (json!({"query": 7}), "/query"),
                (json!({}), "\"query\" is missing"),
                (json!({"query": "x", "mots": 2}), "\"mots\" is not accepted"),
            ] {
                let refused = ask(params).await;
                assert_eq!(refused["error"]["code"], -32602, "{refused}");
                let message = refused["error"]["message"].as_str().unwrap();
                assert!(message.contains(said), "{message}");
            }
            let failed = ask(json!({"query": ""})).await;
            assert_eq!(failed["error"]["message"], "what for?", "{failed}");
        }
    }
    let other = answer(
        &new().method("a/b", search),
        Revision::LATEST,
        name,
        json!({}),
    )
    .await;
    assert_eq!(other["error"]["code"], -32601);
}

#[tokio::test]
async fn custom_server_method_is_undeclared_and_clashes_fail() {
    let none = || async { Ok::<_, Error>(json!({})) };
    let server = Server::new("s", "1.0.0")
        .method("a/b", none)
        .method("a/c", none);
    server.check().unwrap();
    let session = testing::connect(&server).await.unwrap();
    assert!(session.server_capabilities().extensions.is_none());
    for (name, said) in [
        ("a/b", "a/b is already served"),
        ("tools/call", "is part of the protocol"),
        ("", "a method has an empty name"),
    ] {
        let wrong = Server::new("s", "1.0.0")
            .method("a/b", none)
            .method(name, none);
        let error = wrong.check().unwrap_err().to_string();
        assert!(error.contains(said), "{error}");
    }
}

#[tokio::test]
async fn extension_method_returns_an_object_or_nothing() {
    let server = Server::new("s", "1.0.0")
        .method("a/nothing", async || Ok::<_, Error>(()))
        .method("a/number", async || Ok::<_, Error>(7))
        .method("a/list", async || Ok::<_, Error>(vec![json!({})]));
    for revision in Revision::ALL {
        let done = answer(&server, revision, "a/nothing", json!({})).await;
        assert!(done["result"].is_object(), "{revision}: {done}");
        let is_typed = done["result"]["resultType"] == "complete";
        assert_eq!(is_typed, revision.is_modern(), "{revision}: {done}");
        for name in ["a/number", "a/list"] {
            let failed = answer(&server, revision, name, json!({})).await;
            assert_eq!(failed["error"]["code"], -32603, "{failed}");
            let message = failed["error"]["message"].as_str().unwrap();
            assert!(
                message.contains(name) && message.contains("must be a JSON object"),
                "{message}"
            );
        }
    }
}
