//! Invalid definitions of extensions, which are reported when a session connects.

use oxmcp::{
    Revision,
    protocol::{EmptyParams, EmptyResult, NotificationParams},
    transport::in_memory,
};
use serde_json::json;

use crate::extension::*;

macro_rules! method {
    ($type:ident, $name:literal) => {
        struct $type;

        impl Method for $type {
            const NAME: &'static str = $name;
            type Params = EmptyParams;
            type Result = EmptyResult;
        }
    };
}

method!(Ping, "ping");
method!(Call, "tools/call");
method!(Sample, "sampling/createMessage");
method!(GetTask, "tasks/get");

struct Cancelled;

impl Notification for Cancelled {
    const NAME: &'static str = "notifications/cancelled";
    type Params = NotificationParams;
}

async fn empty() -> EmptyResult {
    EmptyResult::default()
}

async fn problem_of_server(extensions: impl IntoIterator<Item = Extension>) -> Option<String> {
    let server = Server::new("s", "1");
    let server = extensions.into_iter().fold(server, Server::extension);
    let (_near, far) = in_memory();
    let error = server.connect(far).await.err()?;
    Some(error.message().to_owned())
}

async fn problem_of_client(extension: Extension) -> Option<String> {
    let server = Server::new("s", "1");
    let client = client(extension);
    let error = testing::connect(&server).client(&client).await.err()?;
    Some(error.message().to_owned())
}

#[tokio::test]
async fn identifiers_are_checked() {
    for good in [
        "com.example/clock",
        "io.modelcontextprotocol/tasks",
        "a/b",
        "x-y.z/a_b.c-2",
    ] {
        assert_eq!(
            problem_of_server([Extension::new(good)]).await,
            None,
            "{good}"
        );
    }
    for bad in [
        "clock",
        "/clock",
        "com.example/",
        "com..example/clock",
        "1com/clock",
        "com.example/a/b",
        "a b/c",
        "",
    ] {
        let problem = problem_of_server([Extension::new(bad)]).await.unwrap();
        assert!(problem.contains("com.example/clock"), "{bad}: {problem}");
        assert!(
            problem_of_client(Extension::new(bad)).await.is_some(),
            "{bad}"
        );
    }
}

#[tokio::test]
async fn conflicting_extensions_are_refused() {
    let add = || clock().method::<Add, _>(.., async |now: Hours| now);
    let other = || Extension::new("com.example/other");
    let cases = [
        (
            vec![clock().method::<Ping, _>(.., empty)],
            "ping is part of the protocol",
        ),
        (
            vec![clock().method::<Call, _>(Revision::LATEST.., empty)],
            "tools/call is part of the protocol",
        ),
        (
            vec![clock().method::<GetTask, _>(.., empty)],
            "tasks/get is part of the protocol",
        ),
        (
            vec![clock().notification::<Cancelled, _>(.., || async {})],
            "notifications/cancelled is part of the protocol",
        ),
        (
            vec![clock().listen_key("toolsListChanged")],
            "the filter key toolsListChanged",
        ),
        (
            vec![clock().result_type("complete")],
            "is reserved by the protocol",
        ),
        (vec![clock().meta_key("zone!")], "invalid _meta key"),
        (vec![clock().meta_key("progressToken")], "invalid _meta key"),
        (
            vec![clock().meta_key("io.modelcontextprotocol/zone")],
            "invalid _meta key",
        ),
        (vec![clock().settings(json!([1]))], "must be a JSON object"),
        (
            vec![clock().header::<Add>("hours", "X-Hours")],
            "must begin with \"Mcp-\"",
        ),
        (
            vec![clock().header::<Add>("hours", "Mcp-a\r\nb")],
            "must begin with \"Mcp-\"",
        ),
        (
            vec![clock().header::<Add>("hours", "MCP-Session-Id")],
            "is reserved by the protocol",
        ),
        (
            vec![
                clock()
                    .method::<Add, _>(Revision::LATEST..Revision::LATEST, async |now: Hours| now),
            ],
            "has an empty range of revisions",
        ),
        (
            vec![clock(), clock()],
            "duplicate extension; add each extension once",
        ),
        (
            vec![
                add(),
                other().method::<Add, _>(Revision::LATEST.., async |now: Hours| now),
            ],
            "is already served by com.example/clock",
        ),
        (
            vec![clock().listen_key("k"), other().listen_key("k")],
            "the key k already belongs to com.example/clock",
        ),
    ];
    for (extensions, expected) in cases {
        let problem = problem_of_server(extensions).await.unwrap_or_default();
        assert!(
            problem.starts_with("the extension com.example/"),
            "{expected}: {problem}"
        );
        assert!(problem.contains(expected), "{expected}: {problem}");
    }
}

#[tokio::test]
async fn extension_may_define_methods_a_revision_lacks() {
    assert_eq!(
        problem_of_server([clock().method::<Ping, _>(Revision::LATEST.., empty)]).await,
        None
    );
    assert_eq!(
        problem_of_server([clock().method::<GetTask, _>(Revision::LATEST.., empty)]).await,
        None
    );
    let tasks = Extension::new("io.modelcontextprotocol/tasks");
    assert_eq!(
        problem_of_server([tasks.meta_key("io.modelcontextprotocol/related-task")]).await,
        None
    );
}

#[tokio::test]
async fn client_extension_must_not_clash_with_server_requests() {
    let sample = problem_of_client(clock().method::<Sample, _>(.., empty))
        .await
        .unwrap();
    assert!(
        sample.contains("sampling/createMessage is part of the protocol"),
        "{sample}"
    );
    assert_eq!(
        problem_of_client(clock().method::<Add, _>(.., async |now: Hours| now)).await,
        None
    );
}
