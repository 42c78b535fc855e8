//! Features that are hidden from a caller by the scopes of its token or by a function, as if they did not exist.

use std::{collections::HashMap, time::Duration};

use http::Response;
use http_body_util::BodyExt;
use oxmcp::{
    Prompt, Resource, ResourceTemplate, Server, Tool,
    http::{LegacySse, ProtectedResource, ResponseBody, SseTransport, StreamableHttp},
    protocol::CacheHint,
};
use serde_json::{Value, json};

use super::issuer::{Issuer, bearing, call, files, open, refusal};
use crate::http::server::peer::{Events, json, send};
use crate::http::sse_2024::Client;
use crate::support::{add, notification, request};

const LISTS: [&str; 4] = [
    "tools/list",
    "prompts/list",
    "resources/list",
    "resources/templates/list",
];

/// The revisions whose clients have sessions.
const SESSIONS: [&str; 4] = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"];

const ALL: &str = "mcp files:read files:write files:any";

/// The features of [`files`] that a caller with the scope `mcp` may see, and all its features.
const FEW_AND_ALL: [(&[&str], &[&str]); 4] = [
    (&["add", "whoami"], &["add", "whoami", "write"]),
    (&[], &["review"]),
    (&["file:///open"], &["file:///open", "file:///shut"]),
    (&[], &["file:///{name}"]),
];

/// The names or URIs in the result of a listing.
fn listed(answer: &Value) -> Vec<String> {
    let result = answer["result"].as_object().unwrap();
    let entries = result.values().find_map(Value::as_array).unwrap();
    let of = |entry: &Value| {
        let ids = ["uri", "uriTemplate", "name"];
        let id = ids.iter().find_map(|id| entry[id].as_str());
        id.unwrap().to_owned()
    };
    entries.iter().map(of).collect()
}

/// A resource that hides the features that a token does not permit, if `hides`.
fn resource(issuer: &Issuer, hides: bool) -> ProtectedResource {
    let resource = issuer.resource();
    if hides {
        resource.hide_unpermitted()
    } else {
        resource
    }
}

fn public() -> Server {
    let hint = CacheHint::public(Duration::from_secs(60));
    files()
        .cache_tools(hint)
        .cache_prompts(hint)
        .cache_resources(hint)
        .cache_resource_templates(hint)
}

#[tokio::test]
async fn lists_can_be_restricted_to_permitted_features() {
    let issuer = Issuer::new();
    let (few, all) = (issuer.token("mcp"), issuer.token(ALL));
    for hides in [false, true] {
        let resource = resource(&issuer, hides);
        let endpoint = StreamableHttp::from(public()).protect(resource);
        for (list, (of_few, of_all)) in LISTS.into_iter().zip(FEW_AND_ALL) {
            // Encoded pages are cached: a second caller must not get the pages of the first.
            for (token, permitted) in [(&few, of_few), (&all, of_all), (&few, of_few)] {
                let expected = if hides { permitted } else { of_all };
                let answer = json(call(&endpoint, token, list, json!({})).await).await;
                assert_eq!(listed(&answer), expected, "{list}");
                let scope = if hides { "private" } else { "public" };
                assert_eq!(answer["result"]["cacheScope"], scope, "{list}");
                for version in SESSIONS {
                    let session = open(&endpoint, token, version).await;
                    let request = bearing(session.builder("POST"), token);
                    let message = crate::support::request(1, list, json!({}));
                    let answer = send(&endpoint, request, message.to_string()).await;
                    assert_eq!(listed(&json(answer).await), expected, "{list} {version}");
                }
            }
        }
    }
}

#[tokio::test]
async fn lists_show_only_permitted_features_over_2024_transport() {
    let issuer = Issuer::new();
    for hides in [false, true] {
        let resource = resource(&issuer, hides);
        let service = LegacySse::from(files()).protect(resource);
        for (token, is_few) in [("mcp", true), (ALL, false)] {
            let mut client = Client::opened_with(&service, &issuer.token(token)).await;
            for (list, (few, all)) in LISTS.into_iter().zip(FEW_AND_ALL) {
                let expected = if hides && is_few { few } else { all };
                let answer = client.ask(request(1, list, json!({}))).await;
                assert_eq!(listed(&answer), expected, "{list}");
            }
        }
    }
}

/// A server with a feature of each kind that no caller sees, or that needs a scope which hides it.
fn hidden(is_for_nobody: bool) -> Server {
    macro_rules! hide {
        ($feature:expr) => {{
            let feature = $feature.scopes("admin");
            if is_for_nobody {
                feature.visible_to(|_| false)
            } else {
                feature
            }
        }};
    }
    Server::new("files", "1.0.0")
        .tool(add())
        .tool(hide!(Tool::new("secret", "", || async { "" })))
        .prompt(Prompt::new("plain", "", || async { "" }))
        .prompt(hide!(Prompt::new("secret", "", || async { "" })))
        .resource(hide!(Resource::text("secret:///a", "a", "a")))
        .resource_template(hide!(
            ResourceTemplate::new(
                "hidden:///{name}",
                "any",
                |_: HashMap<String, String>| async { "any" },
            )
            .complete("name", ["a"])
        ))
        .subscriptions()
}

/// Requests that name a hidden feature, each with the same request for a feature that does not exist.
fn pairs() -> Vec<(&'static str, Value, Value)> {
    let name = |name: &str| json!({"name": name, "arguments": {}});
    let uri = |uri: &str| json!({"uri": uri});
    let completion =
        |reference: Value| json!({"ref": reference, "argument": {"name": "name", "value": ""}});
    let prompt = |name: &str| completion(json!({"type": "ref/prompt", "name": name}));
    let template = |uri: &str| completion(json!({"type": "ref/resource", "uri": uri}));
    vec![
        ("tools/call", name("secret"), name("nohere")),
        ("prompts/get", name("secret"), name("nohere")),
        ("resources/read", uri("secret:///a"), uri("nohere:///a")),
        ("resources/read", uri("hidden:///b"), uri("nohere:///b")),
        ("completion/complete", prompt("secret"), prompt("nohere")),
        (
            "completion/complete",
            template("hidden:///{name}"),
            template("nohere:///{name}"),
        ),
    ]
}

/// The parts of a response to compare, with the names of hidden features replaced by those of missing ones.
async fn alike(response: Response<ResponseBody>) -> (u16, bool, String) {
    let status = response.status().as_u16();
    let is_challenged = response.headers().contains_key("www-authenticate");
    let body = response.into_body().collect().await.unwrap().to_bytes();
    let text = String::from_utf8(body.to_vec()).unwrap();
    let text = text.replace("secret", "nohere").replace("hidden", "nohere");
    (status, is_challenged, text)
}

#[tokio::test]
async fn hidden_features_look_like_missing_ones() {
    let issuer = Issuer::new();
    for is_for_nobody in [true, false] {
        let resource = resource(&issuer, !is_for_nobody);
        let server = hidden(is_for_nobody);
        let endpoint = StreamableHttp::from(server.clone()).protect(resource.clone());
        let token = issuer.token("mcp");
        let session = open(&endpoint, &token, "2025-03-26").await;
        let post = async |message: Value| {
            let request = bearing(session.builder("POST"), &token);
            alike(send(&endpoint, request, message.to_string()).await).await
        };
        let service = LegacySse::from(server).protect(resource);
        let mut sse = Client::opened_with(&service, &token).await;
        for (method, secret, nohere) in pairs() {
            let modern = alike(call(&endpoint, &token, method, secret.clone()).await).await;
            let missing = alike(call(&endpoint, &token, method, nohere.clone()).await).await;
            assert_eq!(modern, missing, "{method} {secret}");
            assert!(modern.2.contains("error"), "{}", modern.2);
            let [secret, nohere] = [secret, nohere].map(|params| request(1, method, params));
            assert_eq!(
                post(secret.clone()).await,
                post(nohere.clone()).await,
                "{method}"
            );
            let batches = [&secret, &nohere].map(|message| json!([message]));
            let [secret_batch, nohere_batch] = batches;
            assert_eq!(
                post(secret_batch).await,
                post(nohere_batch).await,
                "{method}"
            );
            let [secret, nohere] = [sse.ask(secret).await, sse.ask(nohere).await];
            let secret = secret.to_string();
            let secret = secret
                .replace("secret", "nohere")
                .replace("hidden", "nohere");
            assert_eq!(secret, nohere.to_string(), "{method}");
        }
        for uri in ["secret:///a", "hidden:///b"] {
            let subscribe = |uri: &str| request(1, "resources/subscribe", json!({"uri": uri}));
            assert_eq!(
                post(subscribe(uri)).await,
                post(subscribe("nohere:///a")).await,
                "{uri}"
            );
            let listen = json!({"notifications": {"resourceSubscriptions": [uri]}});
            let listened = call(&endpoint, &token, "subscriptions/listen", listen).await;
            assert_eq!(listened.status(), 200, "{uri}");
        }
    }
}

#[tokio::test]
async fn caller_seeing_a_feature_learns_its_required_scopes() {
    let issuer = Issuer::new();
    // The visibility depends on all that handlers can see of a caller.
    let tool = Tool::new("write", "", || async { "written" })
        .scopes("files:write")
        .visible_to(|cx| {
            let is_known = cx.peer_info().is_some_and(|it| it.name == "by hand");
            is_known
                || cx
                    .http_request()
                    .is_some_and(|it| it.headers.contains_key("x-staff"))
        });
    let endpoint = StreamableHttp::from(Server::new("files", "1.0.0").tool(tool).tool(add()))
        .protect(issuer.resource());
    let token = issuer.token("mcp");
    let write = json!({"name": "write", "arguments": {}});
    // The client of the session names itself in `initialize`.
    let session = open(&endpoint, &token, "2025-11-25").await;
    let message = request(1, "tools/call", write.clone());
    let posted = bearing(session.builder("POST"), &token);
    let refused = send(&endpoint, posted, message.to_string()).await;
    assert_eq!(refusal(&refused).2, "files:write");
    let message = crate::support::modern(1, "tools/call", write);
    for is_staff in [true, false] {
        let request = bearing(crate::http::server::peer::modern_builder(&message), &token);
        let request = if is_staff {
            request.header("x-staff", "1")
        } else {
            request
        };
        let answer = send(&endpoint, request, message.to_string()).await;
        if is_staff {
            assert_eq!(refusal(&answer).2, "files:write");
        } else {
            let why = json(answer).await["error"]["message"].to_string();
            assert!(why.contains("Unknown tool: write"), "{why}");
        }
    }
}

#[tokio::test]
async fn hidden_list_changes_are_still_notified() {
    let issuer = Issuer::new();
    let server = files();
    let resource = issuer.resource().hide_unpermitted();
    let endpoint = StreamableHttp::from(server.clone()).protect(resource);
    let token = issuer.token("mcp");
    let filter = json!({"notifications": {"toolsListChanged": true}});
    let mut modern = Events::of(call(&endpoint, &token, "subscriptions/listen", filter).await);
    assert_eq!(
        modern.next().await.unwrap().data["method"],
        "notifications/subscriptions/acknowledged"
    );
    let session = open(&endpoint, &token, "2025-11-25").await;
    let initialized = bearing(session.builder("POST"), &token);
    send(
        &endpoint,
        initialized,
        notification("notifications/initialized").to_string(),
    )
    .await;
    let get = bearing(session.builder("GET"), &token);
    let mut legacy = Events::of(send(&endpoint, get, "").await);
    let more = Tool::new("more", "", || async { "" }).scopes("admin");
    server.add_tools([more]).unwrap();
    for events in [&mut modern, &mut legacy] {
        let told = loop {
            let event = events.next().await.unwrap();
            if !event.data.is_null() {
                break event.data;
            }
        };
        assert_eq!(told["method"], "notifications/tools/list_changed");
    }
}

#[tokio::test]
async fn scopes_apply_to_manually_posted_messages() {
    let server = files();
    let (transport, inbox, response) = SseTransport::open("/messages");
    let _session = server.connect(transport).await.unwrap();
    let mut stream = response.into_body();
    stream.frame().await.unwrap().unwrap();
    let mut ask = async |message: Value| -> Value {
        inbox.post(message.to_string()).await.unwrap();
        let frame = stream.frame().await.unwrap().unwrap();
        let text = String::from_utf8(frame.into_data().unwrap().to_vec()).unwrap();
        let data = text.lines().find_map(|line| line.strip_prefix("data: "));
        serde_json::from_str(data.unwrap()).unwrap()
    };
    ask(crate::http::server::peer::initialize(
        "2024-11-05",
        json!({}),
    ))
    .await;
    let write = json!({"name": "write", "arguments": {}});
    let read = json!({"uri": "file:///shut"});
    let any = json!({"uri": "file:///other"});
    for (method, params) in [
        ("tools/call", write.clone()),
        ("resources/read", read.clone()),
        ("resources/read", any),
        ("resources/subscribe", read),
        ("prompts/get", json!({"name": "review"})),
    ] {
        let refused = ask(request(1, method, params)).await;
        let why = refused["error"]["message"].as_str().unwrap();
        assert!(
            why.contains("the server checks no access tokens"),
            "{method}: {why}"
        );
    }
    let add = json!({"name": "add", "arguments": {"a": 1, "b": 2}});
    let served = ask(request(2, "tools/call", add)).await;
    assert_eq!(served["result"]["content"][0]["text"], "3.0");
}
