//! Building a server: the builder, its mistakes, and changes of a server that is already shared.

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use oxmcp::{
    Client, Prompt, RequestContext, Resource, ResourceTemplate, Revision, Server, ServerSession,
    Tool,
    http::{LegacySse, StreamableHttp},
    in_memory,
    protocol::SubscriptionFilter,
    testing,
};
use serde_json::json;
use tokio::sync::mpsc;
use tracing::{
    Event, Subscriber,
    field::{Field, Visit},
};
use tracing_subscriber::{Layer, layer::Context, prelude::*};

use crate::support::{LEGACY, call, subscribe, text};

fn tool(name: &str) -> Tool {
    Tool::new(name, "", || async { "done" })
}

/// Servers with invalid definitions, and a part of the error of each.
fn wrong() -> [(Server, &'static str); 6] {
    let new = || Server::new("wrong", "1.0.0");
    let template = |uri: &str| ResourceTemplate::dynamic(uri, "t", |_cx, _variables| async { "" });
    [
        (new().tool(tool("two words")), "' ' is not allowed"),
        (
            new().tool(tool("a")).tool(tool("a")),
            "duplicate tool \"a\"",
        ),
        (
            new().tools([tool("a"), tool("b"), tool("a")]),
            "duplicate tool \"a\"",
        ),
        (
            new()
                .prompt(Prompt::new("p", "", || async { "" }))
                .prompt(Prompt::new("p", "", || async { "" })),
            "duplicate prompt \"p\"",
        ),
        (
            new()
                .resource(Resource::text("a:b", "r", ""))
                .resource(Resource::text("a:b", "s", "")),
            "duplicate resource \"a:b\"",
        ),
        (
            new()
                .resource_template(template("a:{b}"))
                .resource_template(template("a:{b}")),
            "duplicate resource template \"a:{b}\"",
        ),
    ]
}

#[cfg(feature = "auth")]
#[test]
fn feature_that_would_lose_scopes_is_not_added() {
    let many: Vec<_> = (0..257).map(|i| format!("s{i}")).collect();
    let new = || Server::new("wrong", "1.0.0");
    let template = ResourceTemplate::dynamic("a:{b}", "t", |_cx, _variables| async { "" });
    for (server, said) in [
        (
            new().tool(tool("a").scopes(&many.join(" "))),
            "tool \"a\": too many scopes: \"s256\" exceeds the limit of 256",
        ),
        (
            new().prompt(Prompt::new("p", "", || async { "" }).scopes("a\nb")),
            "prompt \"p\": invalid scope \"a\\nb\"",
        ),
        (
            new().resource(Resource::text("a:b", "r", "").scopes("read \"all\"")),
            "resource \"a:b\": invalid scope \"\\\"all\\\"\"",
        ),
        (
            new().resource_template(template.scopes("l\u{e9}")),
            "invalid scope",
        ),
    ] {
        let error = server.check().unwrap_err().to_string();
        assert!(error.contains(said), "{error}");
    }
    let server = new();
    let added = server.add_tools([tool("a").scopes(&many.join(" "))]);
    assert!(added.is_err(), "while it serves, too");
    assert!(
        new()
            .tool(tool("a").scopes(&many[1..].join(" ")))
            .check()
            .is_ok()
    );
}

#[tokio::test]
async fn misconfigured_server_reports_it_before_serving() {
    for (server, said) in wrong() {
        let (_near, far) = in_memory();
        let errors = [
            server.check().unwrap_err(),
            server.run(far).await.unwrap_err(),
            StreamableHttp::from(server.clone())
                .serve("127.0.0.1:0")
                .await
                .unwrap_err(),
            LegacySse::from(server)
                .serve("127.0.0.1:0")
                .await
                .unwrap_err(),
        ];
        for error in errors {
            assert!(error.to_string().contains(said), "{error}");
        }
    }
    let right = Server::new("right", "1.0.0").tools([tool("a"), tool("b")]);
    right.check().unwrap();
    drop(
        StreamableHttp::from(right)
            .serve("127.0.0.1:0")
            .await
            .unwrap(),
    );
}

#[tokio::test]
async fn feature_added_while_serving_replaces_its_namesake() {
    let server = Server::new("s", "1.0.0").tool(tool("a"));
    server
        .add_tools([Tool::new("a", "new", || async { "new" })])
        .unwrap();
    server.check().unwrap();
    let answer = call(&server, Revision::LATEST, "a", json!({})).await;
    assert_eq!(text(&answer), "new");
}

#[test]
fn ten_thousand_tools_can_be_chained() {
    // If each step copied the state of the server, this test would take minutes.
    let add = |server: Server, n: u32| server.tool(tool(&format!("t{n}")));
    let server = (0..10_000).fold(Server::new("s", "1.0.0"), add);
    server.check().unwrap();
    assert!(format!("{server:?}").contains("tools: 10000"));
}

/// A layer that counts the warnings about changes of a server that is already shared.
#[derive(Clone, Default)]
struct Warnings(Arc<AtomicUsize>);

impl<S: Subscriber> Layer<S> for Warnings {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        struct Message(bool);
        impl Visit for Message {
            fn record_debug(&mut self, _: &Field, value: &dyn fmt::Debug) {
                self.0 |= format!("{value:?}").contains("called on a shared server");
            }
        }
        let mut message = Message(false);
        event.record(&mut message);
        self.0.fetch_add(message.0.into(), Ordering::Relaxed);
    }
}

#[test]
fn builder_on_a_shared_server_logs_a_warning() {
    let told = |run: fn()| {
        let warnings = Warnings::default();
        let guard = subscribe(tracing_subscriber::registry().with(warnings.clone()));
        run();
        drop(guard);
        warnings.0.load(Ordering::Relaxed)
    };
    let alone = told(|| {
        let server = Server::new("s", "1.0.0")
            .tool(tool("a"))
            .title("S")
            .tool(tool("b"));
        assert!(format!("{server:?}").contains("tools: 2"));
        server.check().unwrap();
        drop(server.instructions("be kind"));
    });
    assert_eq!(alone, 0);
    let shared = told(|| {
        let server = Server::new("s", "1.0.0");
        let clone = server.clone();
        let server = server.tool(tool("a")).title("S");
        drop(server.tool(tool("b")));
        assert!(format!("{clone:?}").contains("tools: 2"));
        clone.check().unwrap();
    });
    assert_eq!(shared, 1);
    let meant = told(|| {
        let server = Server::new("s", "1.0.0");
        let clone = server.clone();
        server.add_tools([tool("a")]).unwrap();
        clone.remove_tools(["a"]);
    });
    assert_eq!(meant, 0);
}

#[test]
fn adding_tools_does_not_end_building() {
    let warnings = Warnings::default();
    let guard = subscribe(tracing_subscriber::registry().with(warnings.clone()));
    let server = Server::new("s", "1.0.0");
    for number in 0..5_000 {
        server.add_tools([tool(&format!("t{number}"))]).unwrap();
    }
    server.remove_tools(["t1", "none"]);
    let server = server.title("S").tool(tool("t1"));
    server.check().unwrap();
    let doubled = server.tool(tool("t2")).check().unwrap_err();
    assert!(doubled.message().contains("duplicate tool \"t2\""));
    drop(guard);
    assert_eq!(warnings.0.load(Ordering::Relaxed), 0);
}

#[tokio::test]
async fn server_declares_configured_capabilities() {
    let server = Server::new("s", "1.0.0")
        .tool(tool("a"))
        .resource(Resource::text("a:b", "r", ""))
        .subscriptions()
        .experimental("com.example/tracing", json!({"level": 2}))
        .without_list_changes();
    for revision in Revision::ALL {
        let session = testing::connect(&server).revision(revision).await.unwrap();
        let capabilities = session.server_capabilities();
        let experimental = capabilities.experimental.clone().unwrap();
        assert_eq!(
            json!(experimental),
            json!({"com.example/tracing": {"level": 2}})
        );
        assert!(!capabilities.tools.as_ref().unwrap().list_changed);
        let resources = capabilities.resources.as_ref().unwrap();
        assert!(resources.subscribe && !resources.list_changed);
    }
    let wrong = Server::new("s", "1.0.0").experimental("x", 7).check();
    assert!(
        wrong
            .unwrap_err()
            .to_string()
            .contains("must be a JSON object")
    );
}

#[tokio::test]
async fn ready_hook_runs_for_each_client() {
    let (hears, mut heard) = mpsc::channel(8);
    let server = Server::new("s", "1.0.0").on_initialized(move |session: ServerSession| {
        let hears = hears.clone();
        async move {
            // From here on the client can be asked.
            session.ping().await.unwrap();
            let name = session.client_info().unwrap().name.clone();
            hears.send((name, session.revision())).await.unwrap();
        }
    });
    for revision in LEGACY {
        let client = Client::new("someone", "1.0.0");
        let session = testing::connect(&server).client(&client).revision(revision);
        let session = session.await.unwrap();
        let expected = ("someone".to_owned(), Some(revision));
        assert_eq!(heard.recv().await.unwrap(), expected);
        session.close().await.unwrap();
    }
    testing::connect(&server)
        .revision(Revision::LATEST)
        .await
        .unwrap();
    assert!(heard.try_recv().is_err());
}

#[tokio::test]
async fn handler_can_access_its_server() {
    let retire = |cx: RequestContext| async move {
        cx.resource_updated("a:b");
        cx.server()?.remove_tools(["old"]);
        Ok::<_, oxmcp::Error>("retired")
    };
    let server = Server::new("s", "1.0.0")
        .tools([tool("old"), Tool::new("retire", "", retire)])
        .resource(Resource::text("a:b", "r", ""))
        .subscriptions();
    let session = testing::connect(&server).await.unwrap();
    let filter = SubscriptionFilter::default().with_resource_subscription("a:b");
    let mut updates = session.listen(filter).await.unwrap();
    session.call_tool("retire", json!({})).await.unwrap();
    assert!(updates.next().await.is_some());
    assert_eq!(session.tools().all().await.unwrap().len(), 1);
}
