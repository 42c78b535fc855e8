//! The methods of each revision: the tables against the answers of servers and clients.

use oxmcp::{
    Client, JsonSchema, Prompt, Resource, ResourceTemplate, Revision, Server,
    protocol::{
        CreateMessageParams, CreateMessageResult, ElicitAction, ElicitFormParams, ElicitResult,
        ElicitUrlParams, Root,
        method::{self, Row},
    },
    testing::ScriptedPeer,
};
use serde_json::{Value, json};

use crate::support::{add, modern, request, script};

/// A server with a feature of every kind.
fn equipped_server() -> Server {
    #[derive(serde::Deserialize, JsonSchema)]
    struct Greeting {
        name: String,
    }
    let greet = |Greeting { name }: Greeting| async move { format!("Hello, {name}!") };
    let motto = Resource::new("motto:///", "motto", || async { "festina lente" });
    let names = ResourceTemplate::new("name:///{name}", "name", async |it: Greeting| it.name)
        .complete("name", ["Ann", "Ben"]);
    Server::new("equipped", "1.0.0")
        .logging()
        .tool(add())
        .prompt(Prompt::new("greet", "Greet", greet))
        .resource(motto)
        .resource_template(names)
        .subscriptions()
}

/// A client with a handler for every request of servers.
fn equipped_client() -> Client {
    Client::new("equipped", "1.0.0")
        .on_elicit(|_: ElicitFormParams| async { ElicitResult::new(ElicitAction::Cancel) })
        .on_elicit_url(|_: ElicitUrlParams| async { ElicitResult::new(ElicitAction::Cancel) })
        .on_sample(|_: CreateMessageParams| async { CreateMessageResult::new("model", "hello") })
        .roots([Root::new("file:///project")])
}

/// The tasks of 2025-11-25 are served by an extension, which neither side has here.
fn is_of_extension(name: &str) -> bool {
    name.starts_with("tasks/")
}

/// Whether the answer shows that the method exists. Other errors of the request do not matter here.
fn is_served(answer: &Value) -> bool {
    answer["error"]["code"] != -32601
}

/// Every name of every table, and a name that is in no table.
fn names() -> Vec<&'static str> {
    let tables = [
        method::REQUESTS_TO_SERVER,
        method::REQUESTS_TO_CLIENT,
        method::NOTIFICATIONS_TO_SERVER,
        method::NOTIFICATIONS_TO_CLIENT,
    ];
    let rows = tables.into_iter().flatten();
    let mut names: Vec<_> = rows.map(|row| row.name).chain(["no/such/method"]).collect();
    names.sort_unstable();
    names.dedup();
    names
}

/// A line for each name, with a cross for each revision, the oldest first. Names without a cross are left out.
fn drawn(served: impl Fn(&str, Revision) -> bool) -> String {
    let mut drawn = String::new();
    for name in names() {
        let line: String = Revision::ALL
            .map(|it| if served(name, it) { " x" } else { " ." })
            .concat();
        if line.contains('x') {
            drawn.push_str(&format!("{name:32}{line}\n"));
        }
    }
    drawn
}

fn in_table(table: &'static [Row]) -> impl Fn(&str, Revision) -> bool {
    move |name, revision| method::is_in(table, name, revision)
}

/// Whether the SDK's server serves a request with this name from a client of this revision.
async fn asked_of_server(server: &Server, name: &str, revision: Revision) -> bool {
    let mut peer = script(server).await;
    let request = if revision.is_modern() {
        modern(7, name, json!({"notifications": {}}))
    } else {
        if name != "initialize" {
            peer.initialize(revision).await.unwrap();
        }
        request(7, name, json!({}))
    };
    let answer = peer.ask(request).await.unwrap();
    // A subscription is acknowledged first, and answered at its end.
    assert!(
        answer["id"] == 7 || name == method_name::<method::Listen>(),
        "{answer}"
    );
    is_served(&answer)
}

fn method_name<M: oxmcp::protocol::Method>() -> &'static str {
    M::NAME
}

#[tokio::test]
async fn server_serves_the_methods_of_its_revision() {
    let server = equipped_server();
    let mut served = Vec::new();
    for name in names() {
        for revision in Revision::ALL {
            if asked_of_server(&server, name, revision).await {
                served.push((name, revision));
            }
        }
    }
    let observed = drawn(|name, revision| served.contains(&(name, revision)));
    let table = in_table(method::REQUESTS_TO_SERVER);
    let offered = |name: &str, revision| !is_of_extension(name) && table(name, revision);
    assert_eq!(observed, drawn(offered));
}

/// Whether the SDK's client serves a request with this name from a server of this revision.
async fn asked_of_client(client: &Client, name: &str, revision: Revision) -> bool {
    let (mut peer, transport) = ScriptedPeer::new().await;
    // A client with a single modern revision would not probe.
    let revisions = [
        Some(revision),
        revision.is_modern().then_some(Revision::V2025_11_25),
    ];
    let client = client.clone().revisions(revisions.into_iter().flatten());
    let connecting = tokio::spawn(async move { client.connect(transport).await });
    let opening = peer.receive().await.unwrap();
    let opened = json!({
        "protocolVersion": revision,
        "resultType": "complete",
        "supportedVersions": [revision],
        "serverInfo": {"name": "s", "version": "1"},
        "capabilities": {},
    });
    let opened = json!({"jsonrpc": "2.0", "id": opening["id"], "result": opened});
    peer.send(opened).await.unwrap();
    let session = connecting.await.unwrap().unwrap();
    if !revision.is_modern() {
        assert_eq!(
            peer.receive().await.unwrap()["method"],
            "notifications/initialized"
        );
    }
    peer.send(request(7, name, json!({}))).await.unwrap();
    // Modern servers make no requests: the next message is the first that the client sends.
    let ping = tokio::spawn(async move { session.ping().await.map(|()| session) });
    let first = peer.receive().await.unwrap();
    ping.abort();
    if revision.is_modern() {
        assert_eq!(first["method"], "server/discover", "{first}");
        return false;
    }
    let answer = if first["id"] == 7 && first["method"].is_null() {
        first
    } else {
        peer.receive().await.unwrap()
    };
    assert_eq!(answer["id"], 7, "{answer}");
    is_served(&answer)
}

#[tokio::test]
async fn client_serves_the_methods_of_its_revision() {
    let client = equipped_client();
    let mut served = Vec::new();
    for name in names() {
        for revision in Revision::ALL {
            if asked_of_client(&client, name, revision).await {
                served.push((name, revision));
            }
        }
    }
    let observed = drawn(|name, revision| served.contains(&(name, revision)));
    let table = in_table(method::REQUESTS_TO_CLIENT);
    let answered = |name: &str, revision| !is_of_extension(name) && table(name, revision);
    assert_eq!(observed, drawn(answered));
}

#[tokio::test]
async fn notifications_are_never_answered() {
    let server = equipped_server();
    for revision in Revision::ALL {
        let mut peer = script(&server).await;
        if !revision.is_modern() {
            peer.initialize(revision).await.unwrap();
        }
        for name in names() {
            let said = json!({"jsonrpc": "2.0", "method": name, "params": {"requestId": 99}});
            peer.send(said).await.unwrap();
        }
        let alive = modern(7, "server/discover", json!({}));
        assert_eq!(peer.ask(alive).await.unwrap()["id"], 7, "{revision}");
    }
}

/// From the pages of the specification, 2024-11-05 to 2026-07-28.
#[test]
fn request_tables_match_the_answers() {
    let to_server = in_table(method::REQUESTS_TO_SERVER);
    insta::assert_snapshot!(drawn(to_server), @r"
    completion/complete              x x x x x
    initialize                       x x x x .
    logging/setLevel                 x x x x .
    ping                             x x x x .
    prompts/get                      x x x x x
    prompts/list                     x x x x x
    resources/list                   x x x x x
    resources/read                   x x x x x
    resources/subscribe              x x x x .
    resources/templates/list         x x x x x
    resources/unsubscribe            x x x x .
    server/discover                  . . . . x
    subscriptions/listen             . . . . x
    tasks/cancel                     . . . x .
    tasks/get                        . . . x .
    tasks/list                       . . . x .
    tasks/result                     . . . x .
    tools/call                       x x x x x
    tools/list                       x x x x x
    ");
    let to_client = in_table(method::REQUESTS_TO_CLIENT);
    insta::assert_snapshot!(drawn(to_client), @r"
    elicitation/create               . . x x .
    ping                             x x x x .
    roots/list                       x x x x .
    sampling/createMessage           x x x x .
    tasks/cancel                     . . . x .
    tasks/get                        . . . x .
    tasks/list                       . . . x .
    tasks/result                     . . . x .
    ");
}

/// From the pages of the specification, 2024-11-05 to 2026-07-28.
#[test]
fn notification_tables_match_the_behavior() {
    let to_server = in_table(method::NOTIFICATIONS_TO_SERVER);
    insta::assert_snapshot!(drawn(to_server), @r"
    notifications/cancelled          x x x x x
    notifications/initialized        x x x x .
    notifications/progress           x x x x .
    notifications/roots/list_changed x x x x .
    notifications/tasks/status       . . . x .
    ");
    let to_client = in_table(method::NOTIFICATIONS_TO_CLIENT);
    insta::assert_snapshot!(drawn(to_client), @r"
    notifications/cancelled          x x x x x
    notifications/elicitation/complete . . . x .
    notifications/message            x x x x x
    notifications/progress           x x x x x
    notifications/prompts/list_changed x x x x x
    notifications/resources/list_changed x x x x x
    notifications/resources/updated  x x x x x
    notifications/subscriptions/acknowledged . . . . x
    notifications/tasks/status       . . . x .
    notifications/tools/list_changed x x x x x
    ");
}

/// The SDK's client refuses at once the methods that the revision lacks, and sends all others.
#[tokio::test]
async fn client_session_offers_methods_of_its_revision() {
    let server = equipped_server();
    for revision in Revision::ALL {
        let session = oxmcp::testing::connect(&server)
            .revision(revision)
            .await
            .unwrap();
        let level = session.set_level(oxmcp::protocol::LoggingLevel::Info).await;
        let has = method::is_in(method::REQUESTS_TO_SERVER, "logging/setLevel", revision);
        assert_eq!(level.is_ok(), has, "{revision}");
        assert!(has || level.unwrap_err().is_unsupported());
    }
}
