//! Gateways: every feature through a proxy, with clients and upstreams of different revisions.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use oxmcp::{
    Accept, CancellationToken, Client, CompletionInput, Prompt, RequestContext, Resource,
    ResourceTemplate, Revision, Server, Tool, ToolError,
    protocol::{
        self, CallToolResult, CompleteParams, CompletionReference, ContentBlock,
        CreateMessageParams, CreateMessageResult, ElicitFormParams, LoggingLevel, Root,
        ToolAnnotations,
    },
};
use oxmcp_group::{GatewaySession, ProxyServer, Upstream};
use serde_json::{Value, json};
use tokio::sync::mpsc;

use crate::{
    gateway_support::{connect, connect_to, gateway, host, pairs, text},
    support::{Mode, Name, Nothing, Remote, server, tool},
};

/// The revisions of clients and upstreams, each with each: the oldest, the last with sessions, and the newest.
const REVISIONS: [Revision; 3] = [
    Revision::V2024_11_05,
    Revision::V2025_11_25,
    Revision::V2026_07_28,
];

async fn proxy(upstream: impl Into<Upstream>) -> GatewaySession {
    let proxy = ProxyServer::new(Client::new("proxy", "1.0.0"), upstream);
    proxy.start().await.unwrap()
}

/// A server with one feature of each kind.
fn office() -> Server {
    let echo = Tool::dynamic(
        "echo.it",
        "Returns what it got",
        r#"{"type":"object","properties":{"b":{"type":"integer"},"a":{"type":"integer"}}}"#,
        |cx: RequestContext, arguments| async move {
            let mut result = CallToolResult::text(arguments.get());
            let zone = cx.meta().get("com.example/zone").cloned();
            result.meta.insert("com.example/zone", zone);
            Ok(result)
        },
    );
    let link = || async {
        let link = protocol::Resource::new("file:///unlisted", "link");
        CallToolResult::new([ContentBlock::resource_link(link)])
    };
    let note = |Name { name }: Name| async move { format!("note {name}") };
    let fail = |Nothing {}: Nothing| async { Err::<String, _>(ToolError::new("no paper")) };
    Server::new("office", "1.2.3")
        .title("The office")
        .instructions("Knock first.")
        .tool(
            echo.annotations(ToolAnnotations::default().with_read_only_hint(true))
                .title("Echo"),
        )
        .tool(Tool::new("link", "Refers to a resource", link))
        .tool(Tool::new("fail", "Fails", fail))
        .prompt(
            Prompt::new("greet", "Greets", |Name { name }: Name| async move {
                format!("hello {name}")
            })
            .complete("name", |typed: CompletionInput| async move {
                vec![format!("{}da", typed.value)]
            }),
        )
        .resource(Resource::text("app://status", "status", "fine").mime_type("text/x-status"))
        .resource(Resource::text("file:///unlisted", "hidden", "found").entry(|it| it.size = None))
        .resource_template(
            ResourceTemplate::new("note://{name}", "note", note).complete("name", ["one", "two"]),
        )
        .subscriptions()
        .logging()
}

#[tokio::test(start_paused = true)]
async fn features_pass_through_a_proxy_unchanged() {
    for (front, revision) in pairs(REVISIONS) {
        let proxy = proxy(office().revisions([revision])).await;
        let direct = connect_to(&office(), host().revisions([front])).await;
        let session = connect(&proxy, host().revisions([front])).await;
        let what = format!("{front} in front of {revision}");
        session.ping().await.unwrap();
        let info = session.server_info().unwrap();
        assert_eq!(
            (info.name.as_str(), info.version.as_str()),
            ("office", "1.2.3"),
            "{what}"
        );
        assert_eq!(session.instructions(), Some("Knock first."));

        let tools = session.tools().all().await.unwrap();
        let names: Vec<_> = tools.iter().map(|it| it.name.as_str()).collect();
        assert_eq!(names, ["echo.it", "fail", "link"], "{what}");
        let schema = tools[0].input_schema.get();
        assert!(
            schema.find("\"b\"").unwrap() < schema.find("\"a\"").unwrap(),
            "{schema}"
        );
        let call = session
            .call_tool("echo.it", json!({"a": 1}))
            .meta("com.example/zone", "moon");
        let result = call.await.unwrap();
        assert_eq!(text(&result), r#"{"a":1}"#);
        assert_eq!(
            result.meta.get("com.example/zone"),
            Some(&json!("moon")),
            "{what}"
        );
        let failed = session.call_tool("fail", ()).await.unwrap();
        assert!(failed.is_error && text(&failed) == "no paper", "{failed:?}");
        // The upstream validates the arguments, in the words of a direct call.
        let wrong = json!({"a": "x"});
        let (theirs, ours) = (
            direct.call_tool("echo.it", wrong.clone()).await,
            session.call_tool("echo.it", wrong).await,
        );
        match (theirs, ours) {
            (Ok(theirs), Ok(ours)) => assert_eq!(text(&theirs), text(&ours)),
            (Err(theirs), Err(ours)) => assert_eq!(theirs.code(), ours.code(), "{what}"),
            (theirs, ours) => panic!("{what}: {theirs:?} {ours:?}"),
        }

        let prompts = session.prompts().all().await.unwrap();
        assert_eq!(prompts[0].arguments[0].name, "name");
        let got = session
            .get_prompt("greet", [("name", "Ada")])
            .await
            .unwrap();
        assert_eq!(got.messages[0].content.as_text(), Some("hello Ada"));
        let resources = session.resources().all().await.unwrap();
        assert_eq!(resources[0].uri, "app://status");
        assert_eq!(resources[0].mime_type.as_deref(), Some("text/x-status"));
        for (uri, expected) in [
            ("app://status", "fine"),
            ("note://7", "note 7"),
            ("file:///unlisted", "found"),
        ] {
            let read = session.read_resource(uri).await.unwrap();
            assert_eq!(read.contents[0].as_text(), Some(expected), "{what}");
            assert_eq!(read.contents[0].uri, uri);
        }
        let none = session.read_resource("none://x").await.unwrap_err();
        let direct_none = direct.read_resource("none://x").await.unwrap_err();
        assert_eq!(none.code(), direct_none.code(), "{what}: {none}");
        for (reference, value, expected) in [
            (CompletionReference::prompt("greet"), "A", vec!["Ada"]),
            (
                CompletionReference::resource("note://{name}"),
                "t",
                vec!["two"],
            ),
        ] {
            let params = CompleteParams::new(reference, "name", value);
            let completed = session.complete(params).await.unwrap();
            assert_eq!(completed.completion.values, expected, "{what}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn several_servers_are_one() {
    for (front, revision) in pairs(REVISIONS) {
        let gateway = gateway()
            .mount("first", office().revisions([revision]))
            .mount("second", office().revisions([revision]))
            .start(Server::new("all", "1.0.0"))
            .await
            .unwrap();
        let session = connect(&gateway, host().revisions([front])).await;
        let tools = session.tools().all().await.unwrap();
        assert_eq!(tools.len(), 6);
        let result = session
            .call_tool("second_echo_it", json!({"a": 2}))
            .await
            .unwrap();
        assert_eq!(text(&result), r#"{"a":2}"#);
        let resources = session.resources().all().await.unwrap();
        let uris: Vec<_> = resources.iter().map(|it| it.uri.as_str()).collect();
        assert!(uris.contains(&"app://server@second/status"), "{uris:?}");
        let linked = session.call_tool("second_link", ()).await;
        if let Ok(linked) = linked
            && let Some(ContentBlock::ResourceLink(link)) = linked.content.first()
        {
            assert_eq!(link.uri, "file://server@second//unlisted");
            let read = session.read_resource(&link.uri).await.unwrap();
            assert_eq!(read.contents[0].as_text(), Some("found"));
            assert_eq!(read.contents[0].uri, link.uri);
        }
        let read = session
            .read_resource("note://server@first/7")
            .await
            .unwrap();
        assert_eq!(read.contents[0].as_text(), Some("note 7"));
    }
}

/// A server whose tool asks for a name, for the model, and for the roots.
fn asking() -> Server {
    let ask = |cx: RequestContext| async move {
        cx.progress(1).total(2).message("asking").await;
        let name: Name = cx.ask("name", "Your name?").await?;
        let sampled = cx
            .sample("model", CreateMessageParams::new(vec![], 10))
            .await?;
        let roots = cx.roots().await?;
        let said = serde_json::to_string(&sampled.content).unwrap_or_default();
        Ok::<_, ToolError>(format!("{} {said} {}", name.name, roots[0].uri))
    };
    Server::new("asking", "1.0.0")
        .tool(Tool::new("ask", "Asks", ask))
        .tool(Tool::new(
            "greet",
            "Asks for a name",
            |cx: RequestContext| async move {
                let name: Name = cx.ask("name", "Your name?").await?;
                Ok::<_, ToolError>(format!("hello {}", name.name))
            },
        ))
}

fn answering(name: &str) -> Client {
    let name = name.to_owned();
    host()
        .on_elicit(move |form: ElicitFormParams| {
            assert_eq!(form.message, "Your name?");
            std::future::ready(Accept(Name { name: name.clone() }))
        })
        .on_sample(|_: CreateMessageParams| async { CreateMessageResult::new("model", "a poem") })
        .roots([Root::new("file:///tea")])
}

#[tokio::test(start_paused = true)]
async fn questions_reach_the_client_in_every_revision() {
    let asking_revisions = [
        Revision::V2025_06_18,
        Revision::V2025_11_25,
        Revision::V2026_07_28,
    ];
    for front in asking_revisions {
        for revision in asking_revisions {
            let proxy = proxy(asking().revisions([revision])).await;
            let session = connect(&proxy, answering("Ada").revisions([front])).await;
            for _ in 0..2 {
                let result = session.call_tool("ask", ()).await;
                let result = result.unwrap_or_else(|error| panic!("{front} {revision}: {error}"));
                let answer = text(&result);
                assert!(
                    answer.starts_with("Ada ")
                        && answer.contains("a poem")
                        && answer.contains("file:///tea"),
                    "{front} in front of {revision}: {answer}"
                );
            }
            // A client that cannot be asked: the upstream learns it, and says so in its own words.
            let silent = connect(&proxy, host().revisions([front])).await;
            let direct = connect_to(&asking().revisions([revision]), host()).await;
            let (theirs, ours) = (
                direct.call_tool("greet", ()).await,
                silent.call_tool("greet", ()).await,
            );
            match (theirs, ours) {
                (Ok(theirs), Ok(ours)) => assert_eq!(text(&theirs), text(&ours)),
                (Err(theirs), Err(ours)) => {
                    assert_eq!(theirs.message(), ours.message(), "{front} {revision}");
                }
                (theirs, ours) => panic!("{front} {revision}: {theirs:?} {ours:?}"),
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn questions_of_two_clients_are_not_mixed() {
    for revision in [Revision::V2025_11_25, Revision::V2026_07_28] {
        for front in [Revision::V2025_11_25, Revision::V2026_07_28] {
            let proxy = proxy(asking().revisions([revision])).await;
            let ada = connect(&proxy, answering("Ada").revisions([front])).await;
            let bob = connect(&proxy, answering("Bob").revisions([front])).await;
            let (first, second) =
                tokio::join!(ada.call_tool("greet", ()), bob.call_tool("greet", ()));
            assert_eq!(text(&first.unwrap()), "hello Ada");
            assert_eq!(text(&second.unwrap()), "hello Bob");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn progress_and_logs_pass_through() {
    let busy = || {
        Server::new("busy", "1.0.0").logging().tool(Tool::new(
            "work",
            "Works",
            |cx: RequestContext| async move {
                cx.log(LoggingLevel::Warning, "low on paper")
                    .logger("printer")
                    .await;
                cx.log(LoggingLevel::Debug, "not wanted").await;
                cx.progress(1).total(2).message("half").await;
                "done"
            },
        ))
    };
    for (front, revision) in pairs(REVISIONS) {
        let (sender, mut logs) = mpsc::channel(64);
        let client = host()
            .log_level(LoggingLevel::Info)
            .on_log(move |message, _| {
                let _ = sender.try_send((
                    message.logger.unwrap_or_default(),
                    message.data.get().to_owned(),
                ));
                std::future::ready(())
            })
            .revisions([front]);
        let proxy = proxy(busy().revisions([revision])).await;
        let session = connect(&proxy, client).await;
        let (sender, mut progress) = mpsc::channel(64);
        let call = session.call_tool("work", ()).on_progress(move |it| {
            let _ = sender.try_send((it.progress, it.total, it.message));
        });
        assert_eq!(text(&call.await.unwrap()), "done");
        let message = (front > Revision::V2024_11_05 && revision > Revision::V2024_11_05)
            .then(|| "half".to_owned());
        assert_eq!(progress.try_recv().unwrap(), (1.0, Some(2.0), message));
        let (logger, data) = logs.try_recv().unwrap();
        assert_eq!(
            (logger.as_str(), data),
            ("printer", "\"low on paper\"".to_owned()),
            "{front} {revision}"
        );
        assert!(logs.try_recv().is_err(), "{front} {revision}");
    }
}

#[tokio::test(start_paused = true)]
async fn cancelled_call_is_cancelled_at_the_upstream() {
    for (front, revision) in pairs(REVISIONS) {
        let (sender, mut events) = mpsc::channel(64);
        let stuck = Server::new("stuck", "1.0.0").tool(Tool::new(
            "wait",
            "Waits",
            move |cx: RequestContext| {
                let sender = sender.clone();
                async move {
                    let _ = sender.try_send("begun");
                    cx.cancelled().await;
                    let _ = sender.try_send("cancelled");
                    "late"
                }
            },
        ));
        let proxy = proxy(stuck.revisions([revision])).await;
        let session = connect(&proxy, host().revisions([front])).await;
        let stop = CancellationToken::new();
        let call = session.call_tool("wait", ()).cancel_with(stop.clone());
        let call = tokio::spawn(call.into_future());
        assert_eq!(events.recv().await, Some("begun"));
        stop.cancel();
        assert_eq!(events.recv().await, Some("cancelled"), "{front} {revision}");
        assert!(call.await.unwrap().unwrap_err().is_cancelled());
    }
}

#[tokio::test(start_paused = true)]
async fn updates_and_changed_lists_pass_through() {
    for (front, revision) in pairs(REVISIONS) {
        let upstream = office().revisions([revision]);
        let gateway = gateway()
            .mount("office", upstream.clone())
            .mount("other", server("other", &["x"]))
            .start(Server::new("all", "1.0.0"))
            .await
            .unwrap();
        let (sender, mut changed) = mpsc::channel(64);
        let client = host().revisions([front]).on_tools_changed(move |_| {
            let _ = sender.try_send(());
            std::future::ready(())
        });
        let session = connect(&gateway, client).await;
        let mut watch = session.watch_resource("app://status").await.unwrap();
        upstream.resource_updated("app://status");
        assert_eq!(
            watch.next().await.unwrap().uri,
            "app://status",
            "{front} {revision}"
        );
        upstream.add_tools([tool("new", "n")]).unwrap();
        changed.recv().await.unwrap();
        let result = session.call_tool("office_new", ()).await.unwrap();
        assert_eq!(text(&result), "n");
        upstream.remove_tools(["new"]);
        changed.recv().await.unwrap();
        assert!(session.call_tool("office_new", ()).await.is_err());
    }
}

/// A server that counts the calls of each session.
fn counting() -> Server {
    Server::new("counting", "1.0.0")
        .on_initialized(|_| async {})
        .tool(Tool::new(
            "count",
            "Counts the calls of the session",
            |cx: RequestContext| {
                static COUNTS: Mutex<Vec<(oxmcp::ServerSession, usize)>> = Mutex::new(Vec::new());
                let session = cx.server_session().unwrap();
                let mut counts = COUNTS.lock().unwrap();
                let count = match counts.iter_mut().find(|(it, _)| *it == session) {
                    Some((_, count)) => {
                        *count += 1;
                        *count
                    }
                    None => {
                        counts.push((session, 1));
                        1
                    }
                };
                std::future::ready(format!("{count}"))
            },
        ))
}

#[tokio::test(start_paused = true)]
async fn each_client_has_its_own_session_with_the_upstream() {
    let proxy = proxy(counting().revisions([Revision::V2025_11_25])).await;
    // A connection without a session counts as one.
    for revision in [Revision::V2025_11_25, Revision::V2026_07_28] {
        let client = || host().revisions([revision]);
        let (first, second) = (
            connect(&proxy, client()).await,
            connect(&proxy, client()).await,
        );
        for (session, expected) in [(&first, "1"), (&first, "2"), (&second, "1"), (&first, "3")] {
            let result = session.call_tool("count", ()).await.unwrap();
            assert_eq!(text(&result), expected, "{revision}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn upstream_is_chosen_for_each_client() {
    let opened = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&opened);
    let upstream = Upstream::for_client(move |client| {
        let name = client.map_or("nobody", |_| "somebody");
        counter.fetch_add(1, Ordering::Relaxed);
        Remote::new(server(name, &["x"]))
    });
    let proxy = proxy(upstream).await;
    let session = connect(&proxy, host()).await;
    for _ in 0..2 {
        let result = session.call_tool("x", ()).await.unwrap();
        assert_eq!(text(&result), "x of somebody");
    }
    assert_eq!(
        opened.load(Ordering::Relaxed),
        2,
        "one for the lists, and one for the client"
    );
}

#[tokio::test(start_paused = true)]
async fn loop_of_gateways_is_noticed() {
    let all = Server::new("all", "1.0.0");
    let gateway = gateway()
        .mount("own", all.clone())
        .mount("other", server("other", &["x"]))
        .start(all)
        .await
        .unwrap();
    let session = connect(&gateway, host()).await;
    tokio::time::sleep(Duration::from_secs(300)).await;
    let tools = session.tools().all().await.unwrap();
    let names: Vec<_> = tools.iter().map(|it| it.name.as_str()).collect();
    assert_eq!(names, ["other_x"]);
}

#[tokio::test(start_paused = true)]
async fn ninth_gateway_in_a_row_refuses() {
    let mut last = proxy(server("deep", &["x"])).await;
    for _ in 0..7 {
        last = proxy(last.server()).await;
    }
    let session = connect(&last, host()).await;
    let result = session.call_tool("x", ()).await.unwrap();
    assert_eq!(text(&result), "x of deep");
    let ninth = proxy(last.server()).await;
    let session = connect(&ninth, host()).await;
    let tools = session.tools().all().await.unwrap();
    assert!(tools.is_empty(), "{tools:?}");
}

#[tokio::test(start_paused = true)]
async fn everything_that_grows_has_a_limit() {
    let stuck = Server::new("stuck", "1.0.0")
        .subscriptions()
        .resources(["a:1", "a:2"].map(|uri| Resource::text(uri, "a", "")))
        .tool(Tool::new("wait", "Waits", || {
            std::future::pending::<String>()
        }));
    for front in [Revision::V2025_11_25, Revision::V2026_07_28] {
        let gateway = gateway()
            .mount("stuck", stuck.clone().revisions([Revision::V2025_11_25]))
            .mount("x", server("x", &["x"]).revisions([Revision::V2025_11_25]))
            .max_calls(2)
            .max_watches(1)
            .max_sessions(if front.is_modern() { 2 } else { 1 })
            .start(Server::new("all", "1.0.0"))
            .await
            .unwrap();
        let session = connect(&gateway, host().revisions([front])).await;
        let open: Vec<_> = (0..2)
            .map(|_| tokio::spawn(session.call_tool("stuck_wait", ()).into_future()))
            .collect();
        tokio::time::sleep(Duration::from_millis(10)).await;
        let error = session
            .call_tool("stuck_wait", ())
            .await
            .unwrap_err()
            .to_string();
        assert!(error.contains("already has 2 open calls"), "{error}");
        let _watch = session.watch_resource("a:1").await.unwrap();
        assert!(session.watch_resource("a:2").await.is_err());
        if front == Revision::V2025_11_25 {
            for call in &open {
                call.abort();
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
            let error = session.call_tool("x_x", ()).await.unwrap_err().to_string();
            assert!(error.contains("already has 1 sessions"), "{error}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn waiting_call_belongs_to_its_request_and_expires() {
    let proxy = proxy(asking().revisions([Revision::V2025_11_25])).await;
    let session = connect(&proxy, answering("Ada").revisions([Revision::V2026_07_28])).await;
    let asked = match session.call_tool("greet", ()).manual().await.unwrap() {
        oxmcp::CallOutcome::InputRequired(asked) => asked,
        other => panic!("{other:?}"),
    };
    let state = asked.request_state.unwrap();
    let other = session.call_tool("ask", ()).request_state(state.clone());
    let error = other.manual().await.unwrap_err().to_string();
    assert!(error.contains("no longer open"), "{error}");
    tokio::time::sleep(Duration::from_secs(601)).await;
    let late = session.call_tool("greet", ()).request_state(state);
    let error = late.manual().await.unwrap_err().to_string();
    assert!(error.contains("no longer open; call again"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn lost_upstream_comes_back() {
    for front in [Revision::V2025_11_25, Revision::V2026_07_28] {
        let mortal = Remote::new(office().revisions([Revision::V2025_11_25]));
        let transport = mortal.clone();
        let gateway = gateway()
            .mount("a", Upstream::new(move || transport.clone()))
            .mount("b", server("b", &["x"]))
            .start(Server::new("all", "1.0.0"))
            .await
            .unwrap();
        let session = connect(&gateway, host().revisions([front])).await;
        let mut watch = session.watch_resource("app://status").await.unwrap();
        tokio::time::sleep(Duration::from_secs(60)).await;
        mortal.set(Mode::Refuse);
        mortal.kill().await;
        tokio::time::sleep(Duration::from_millis(100)).await;
        assert!(session.call_tool("a_echo_it", ()).await.is_err());
        let result = session.call_tool("b_x", ()).await.unwrap();
        assert_eq!(text(&result), "x of b");
        mortal.set(Mode::Up);
        assert!(
            watch.next().await.is_some(),
            "it may have changed in between"
        );
        let result = session.call_tool("a_echo_it", json!({})).await.unwrap();
        assert_eq!(text(&result), "{}");
    }
}

#[tokio::test(start_paused = true)]
async fn unreachable_upstream_of_a_proxy_is_an_error() {
    let refusing = Remote::new(office());
    refusing.set(Mode::Refuse);
    let upstream = Upstream::new(move || refusing.clone());
    let proxy = ProxyServer::new(Client::new("proxy", "1.0.0"), upstream);
    let error = proxy.start().await.unwrap_err().to_string();
    assert!(error.contains("the server is not connected: "), "{error}");
}

#[tokio::test(start_paused = true)]
async fn structured_content_passes_through() {
    let numbers = Server::new("numbers", "1.0.0").tool(Tool::new("list", "Lists", || async {
        oxmcp::Structured(vec![1, 2, 3])
    }));
    for (front, revision) in pairs(REVISIONS) {
        let proxy = proxy(numbers.clone().revisions([revision])).await;
        let session = connect(&proxy, host().revisions([front])).await;
        let list: Value = session.call_tool("list", ()).structured().await.unwrap();
        assert_eq!(list, json!([1, 2, 3]), "{front} {revision}");
    }
}

#[tokio::test(start_paused = true)]
async fn users_learn_which_upstream_asks() {
    for revision in [Revision::V2025_11_25, Revision::V2026_07_28] {
        for front in [Revision::V2025_11_25, Revision::V2026_07_28] {
            let gateway = gateway()
                .mount("bank", asking().revisions([revision]))
                .mount("shop", asking().revisions([revision]))
                .start(Server::new("all", "1.0.0"))
                .await
                .unwrap();
            let client = host()
                .revisions([front])
                .on_elicit(|form: ElicitFormParams| {
                    std::future::ready(Accept(Name { name: form.message }))
                });
            let session = connect(&gateway, client).await;
            let result = session.call_tool("shop_greet", ()).await.unwrap();
            assert_eq!(text(&result), "hello shop: Your name?");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn failed_answer_ends_the_call_of_the_upstream() {
    let (sender, mut ended) = mpsc::channel(64);
    let asking = Server::new("asking", "1.0.0").tool(Tool::new(
        "greet",
        "Asks for a name",
        move |cx: RequestContext| {
            let sender = sender.clone();
            async move {
                tokio::select! {
                    biased;
                    () = cx.cancelled() => drop(sender.try_send(())),
                    name = cx.ask::<Name>("name", "Your name?") => drop(name),
                }
                "done"
            }
        },
    ));
    let proxy = proxy(asking.revisions([Revision::V2025_11_25])).await;
    let client = host().revisions([Revision::V2025_11_25]);
    let client = client.on_elicit(|_: ElicitFormParams| async {
        Err::<protocol::ElicitAction, _>(oxmcp::Error::internal("no window"))
    });
    let session = connect(&proxy, client).await;
    let begun = tokio::time::Instant::now();
    assert!(session.call_tool("greet", ()).await.is_err());
    ended.recv().await.unwrap();
    assert!(
        begun.elapsed() < Duration::from_secs(5),
        "it does not wait until it expires"
    );
}

#[tokio::test(start_paused = true)]
async fn upstream_session_ends_with_that_of_the_client() {
    let upstream = counting().revisions([Revision::V2025_11_25]);
    let proxy = proxy(upstream.clone()).await;
    let session = connect(&proxy, host().revisions([Revision::V2025_11_25])).await;
    session.call_tool("count", ()).await.unwrap();
    assert_eq!(upstream.sessions().count(), 2, "one is the gateway's own");
    session.close().await.unwrap();
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(upstream.sessions().count(), 1);
    // A connection without a session leaves none behind.
    let modern = connect(&proxy, host().revisions([Revision::V2026_07_28])).await;
    modern.call_tool("count", ()).await.unwrap();
    assert_eq!(upstream.sessions().count(), 2);
    modern.close().await.unwrap();
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(upstream.sessions().count(), 1);
}

#[tokio::test(start_paused = true)]
async fn upstream_can_ask_many_times() {
    for revision in [Revision::V2025_11_25, Revision::V2026_07_28] {
        let ask = |cx: RequestContext| async move {
            let mut names = 0;
            for index in 0..50 {
                let name: Name = cx.ask(format!("name {index}"), "Your name?").await?;
                names += usize::from(name.name == "Ada");
            }
            Ok::<_, ToolError>(format!("{names} names"))
        };
        let asking = Server::new("asking", "1.0.0").tool(Tool::new("ask", "Asks", ask));
        let proxy = proxy(asking.revisions([revision])).await;
        let client = answering("Ada").revisions([Revision::V2025_11_25]);
        let session = connect(&proxy, client).await;
        let result = session.call_tool("ask", ()).await.unwrap();
        assert_eq!(text(&result), "50 names", "{revision}");
    }
}
