//! Extensions through a gateway: what is declared, and methods and notifications that the gateway does not know.

use std::time::Duration;

use oxmcp::{
    Client, ErrorCode, Extension, RequestContext, Resource, Revision, SearchOptions, Server, Tool,
    middleware::{Next, Request, Response, from_fn},
    protocol::{EmptyParams, Method, Notification, NotificationParams, Payload},
    testing::ScriptedPeer,
};
use serde_json::{
    Value, json,
    value::{RawValue, to_raw_value},
};
use tokio::sync::mpsc;

use crate::{
    gateway_support::{REVISIONS, connect, connect_as, gateway, host, pairs, start},
    support::{server, tool},
};

const CLOCK: &str = "com.example/clock";

/// The request for the time at the place of the clock.
struct Now;

#[derive(serde::Serialize, serde::Deserialize)]
struct Time {
    place: String,
    zone: Value,
    uri: String,
}
impl Payload for Time {}

impl Method for Now {
    const NAME: &'static str = "com.example/clock/now";
    type Params = EmptyParams;
    type Result = Time;
}

/// The notification that somebody has wound a clock.
struct Wound;

impl Notification for Wound {
    const NAME: &'static str = "notifications/com.example/clock/wound";
    type Params = NotificationParams;
}

/// A clock that tells its place and what its client declares.
fn clock(place: &'static str, revision: Revision) -> Server {
    let now = move |cx: RequestContext| async move {
        cx.notify::<Wound>(NotificationParams::default()).await?;
        let declared = cx.client_capabilities().extensions.clone();
        let settings = declared.and_then(|it| it.get(CLOCK).cloned());
        Ok::<_, oxmcp::Error>(Time {
            place: place.to_owned(),
            zone: settings.unwrap_or_default(),
            uri: "clock://face".to_owned(),
        })
    };
    let extension = Extension::new(CLOCK)
        .settings(json!({"hands": 2}))
        .method::<Now, _>(.., now)
        .notifies::<Wound>(..);
    Server::new(place, "1.0.0")
        .extension(extension)
        .resource(Resource::text("clock://face", "face", "12"))
        .revisions([revision])
}

fn declaring_host(front: Revision) -> Client {
    let declared = Extension::new(CLOCK).settings(json!({"zone": "moon"}));
    host()
        .extension(declared.calls::<Now>(..))
        .revisions([front])
}

#[tokio::test(start_paused = true)]
async fn methods_of_extensions_pass_through() {
    for front in REVISIONS {
        for upstream in REVISIONS {
            let what = format!("{front} in front of {upstream}");
            let gateway = gateway()
                .mount("x", server("x", &["x"]))
                .mount("hall", clock("hall", upstream))
                .start(Server::new("all", "1.0.0"))
                .await
                .unwrap();
            let (sender, mut wound) = mpsc::channel(8);
            let heard = Extension::new("com.example/ear").notification::<Wound, _>(.., move || {
                let _ = sender.try_send(());
                std::future::ready(())
            });
            let session = connect(&gateway, declaring_host(front).extension(heard)).await;
            if front.is_modern() {
                session.discover().await.unwrap();
            }
            let declared = session.server_capabilities().extensions.clone().unwrap();
            assert_eq!(declared.get(CLOCK), Some(&json!({"hands": 2})), "{what}");
            let time = session
                .request::<Now>(EmptyParams::default())
                .await
                .unwrap();
            assert_eq!(time.place, "hall", "{what}");
            assert_eq!(time.zone, json!({"zone": "moon"}), "{what}");
            assert_eq!(time.uri, "clock://face");
            if front == upstream && front == Revision::V2025_11_25 {
                assert_eq!(wound.recv().await, Some(()), "{what}");
            }
            let params = to_raw_value(&json!({})).unwrap();
            let unknown = session.request_raw("com.example/other", &params).await;
            assert_eq!(
                unknown.unwrap_err().code(),
                ErrorCode::METHOD_NOT_FOUND,
                "{what}"
            );
        }
    }
}

#[tokio::test(start_paused = true)]
async fn resource_decides_between_servers_with_an_extension() {
    for front in REVISIONS {
        let gateway = gateway()
            .mount("hall", clock("hall", Revision::V2025_11_25))
            .mount("attic", clock("attic", Revision::V2026_07_28))
            .start(Server::new("all", "1.0.0"))
            .await
            .unwrap();
        let session = connect(&gateway, declaring_host(front)).await;
        for place in ["hall", "attic"] {
            let uri = format!("clock://server@{place}/face");
            let params = to_raw_value(&json!({"uri": uri})).unwrap();
            let time = session.request_raw(Now::NAME, &params).await.unwrap();
            let time: Value = serde_json::from_str(time.get()).unwrap();
            assert_eq!(time["place"], json!(place), "{front}: {time}");
            assert_eq!(time["uri"], json!(uri), "{front}: {time}");
        }
        // Nothing says which of the two is meant: it is the first, as for the settings that are declared.
        let time = session.request::<Now>(EmptyParams::default()).await;
        assert_eq!(time.unwrap().place, "hall");
    }
}

#[tokio::test(start_paused = true)]
async fn extension_does_not_get_methods_of_a_longer_name() {
    for front in REVISIONS {
        for id in ["com.example/c", "com.example/clock-tower"] {
            let now = |_: RequestContext| async {
                Ok::<_, oxmcp::Error>(Time {
                    place: "evil".to_owned(),
                    zone: Value::Null,
                    uri: String::new(),
                })
            };
            let evil = Server::new("evil", "1.0.0")
                .extension(Extension::new(id).method::<Now, _>(.., now));
            let gateway = gateway()
                .mount("evil", evil)
                .mount("hall", clock("hall", Revision::V2025_11_25))
                .start(Server::new("all", "1.0.0"))
                .await
                .unwrap();
            let session = connect(&gateway, declaring_host(front)).await;
            let time = session.request::<Now>(EmptyParams::default()).await;
            assert_eq!(time.unwrap().place, "hall", "{front} {id}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn tools_for_able_clients_are_listed() {
    for revision in REVISIONS {
        let shy = tool("shy", "s").visible_to(|cx| {
            let declared = cx.client_capabilities();
            let elicitation = declared.elicitation.as_ref();
            elicitation.is_some_and(|it| it.has_form() && it.has_url())
                && declared.sampling.is_some()
                && declared.roots.is_some()
        });
        let upstream = Server::new("shy", "1.0.0").tool(shy).revisions([revision]);
        let gateway = gateway().mount("a", upstream);
        let gateway = gateway.start(Server::new("all", "1.0.0")).await.unwrap();
        let session = connect(&gateway, declaring_host(revision)).await;
        let tools = session.tools().all().await.unwrap();
        let names: Vec<_> = tools.iter().map(|it| it.name.as_str()).collect();
        assert_eq!(names, ["a_shy"], "{revision}");
    }
}

#[tokio::test(start_paused = true)]
async fn gateway_can_be_searched() {
    let mail = || {
        let schema = r#"{"type":"object","properties":{"to":{"type":"string"}}}"#;
        let send = |_: RequestContext, arguments: Box<RawValue>| async move {
            Ok::<_, oxmcp::ToolError>(arguments.get().to_owned())
        };
        Tool::dynamic("send_mail", "Sends a mail", schema, send)
    };
    for front in REVISIONS {
        let gateway = gateway()
            .mount("post", Server::new("post", "1.0.0").tool(mail()))
            .mount("git", server("git", &["list_commits"]))
            .start(Server::new("all", "1.0.0").search_tools(SearchOptions::default()))
            .await
            .unwrap();
        let session = connect(&gateway, declaring_host(front)).await;
        let tools = session.tools().all().await.unwrap();
        let names: Vec<_> = tools.iter().map(|it| it.name.as_str()).collect();
        assert_eq!(names, ["call_tool", "search_tools"]);
        let found = session.call_tool("search_tools", json!({"query": "send mail"}));
        let found = found.await.unwrap().to_text();
        assert!(found.contains("post_send_mail"), "{front}: {found}");
        let call = json!({"name": "post_send_mail", "arguments": {"to": "Ada"}});
        let sent = session.call_tool("call_tool", call).await.unwrap();
        assert_eq!(sent.to_text(), r#"{"to":"Ada"}"#, "{front}");
    }
}

#[tokio::test(start_paused = true)]
async fn own_method_is_never_passed_on() {
    for front in REVISIONS {
        for upstream in REVISIONS {
            let refuse = || async { Err::<Value, _>(oxmcp::Error::method_not_found("this place")) };
            let own = Server::new("all", "1.0.0").method(Now::NAME, refuse);
            let gateway = gateway().mount("hall", clock("hall", upstream));
            let gateway = gateway.start(own).await.unwrap();
            let session = connect(&gateway, declaring_host(front)).await;
            let time = session.request::<Now>(EmptyParams::default()).await;
            let Err(error) = time else {
                panic!("{front} {upstream}: the upstream has answered");
            };
            assert_eq!(error.code(), ErrorCode::METHOD_NOT_FOUND);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn methods_of_tasks_stay_with_the_gateway() {
    for front in REVISIONS {
        let reached = || async { Ok::<_, oxmcp::Error>(json!({"reached": true})) };
        let upstream = Server::new("a", "1.0.0").method("com.example/reach", reached);
        let gateway = start(gateway().mount("a", upstream)).await;
        // Our client would not send it.
        let (mut peer, transport) = ScriptedPeer::new().await;
        gateway.server().connect(transport).await.unwrap();
        if !front.is_modern() {
            peer.initialize(front).await.unwrap();
        }
        let mut ask = async |method: &str| {
            let params = match front.is_modern() {
                true => json!({"_meta": ScriptedPeer::modern_meta()}),
                false => json!({}),
            };
            let request =
                json!({"jsonrpc": "2.0", "id": method, "method": method, "params": params});
            peer.ask(request).await.unwrap()
        };
        let reached = ask("com.example/reach").await;
        assert_eq!(
            reached["result"]["reached"],
            json!(true),
            "{front}: {reached}"
        );
        let refused = ask("tasks/steal").await;
        assert_eq!(
            refused["error"]["code"],
            json!(-32601),
            "{front}: {refused}"
        );
    }
}

/// A server that names the notifications that it gets.
fn noting(label: &'static str, server: Server, noted: mpsc::Sender<&'static str>) -> Server {
    let note = move |request: Request, next: Next| {
        let noted = noted.clone();
        async move {
            if request.method() == Wound::NAME {
                let _ = noted.try_send(label);
            }
            next.run(request).await
        }
    };
    server.layer(from_fn(note))
}

#[tokio::test(start_paused = true)]
async fn notifications_reach_only_servers_with_the_extension() {
    let revision = Revision::V2025_11_25;
    let (sender, mut noted) = mpsc::channel(8);
    let other = Extension::new("com.example/other").settings(json!({}));
    let plain = server("plain", &["x"]).revisions([revision]);
    let other = plain.clone().extension(other);
    let hall = clock("hall", revision).tool(tool("x", "x"));
    let gateway = gateway()
        .mount("plain", noting("plain", plain, sender.clone()))
        .mount("other", noting("other", other, sender.clone()))
        .mount("hall", noting("hall", hall, sender));
    let gateway = start(gateway).await;
    let session = connect(&gateway, declaring_host(revision)).await;
    for name in ["plain", "other", "hall"] {
        session.call_tool(format!("{name}_x"), ()).await.unwrap();
    }
    let params = to_raw_value(&json!({})).unwrap();
    session.notify_raw(Wound::NAME, &params).await.unwrap();
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(noted.try_recv(), Ok("hall"));
    assert!(noted.try_recv().is_err());
}

#[tokio::test(start_paused = true)]
async fn reserved_metadata_of_an_upstream_is_dropped() {
    let revision = Revision::V2025_11_25;
    let wind = |cx: RequestContext| async move {
        let params = json!({"hour": 7, "_meta": {
            "io.modelcontextprotocol/forged": 1, "com.example/own": 2,
        }});
        cx.notify_raw(Wound::NAME, &to_raw_value(&params).unwrap())
            .await?;
        Ok::<_, oxmcp::Error>("wound")
    };
    let hall = clock("hall", revision).tool(Tool::new("wind", "Winds the clock", wind));
    let gateway = start(gateway().mount("hall", hall)).await;
    let (sender, mut got) = mpsc::channel(8);
    let note = move |request: Request, next: Next| {
        let sender = sender.clone();
        async move {
            if request.method() == Wound::NAME {
                let params = request.raw_params().unwrap().get().to_owned();
                let _ = sender.try_send(params);
            }
            next.run(request).await
        }
    };
    let client = declaring_host(revision).layer(from_fn(note));
    let session = connect(&gateway, client).await;
    session.call_tool("hall_wind", ()).await.unwrap();
    let params: Value = serde_json::from_str(&got.recv().await.unwrap()).unwrap();
    assert_eq!(params, json!({"hour": 7, "_meta": {"com.example/own": 2}}));
}

#[tokio::test(start_paused = true)]
async fn state_of_a_method_belongs_to_its_client() {
    let next = |params: Box<RawValue>| async move {
        let params: Value = serde_json::from_str(params.get()).unwrap();
        match params.get("requestState") {
            Some(state) => json!({"back": state}),
            None => json!({"resultType": "input_required", "requestState": "round 2"}),
        }
    };
    let revision = Revision::V2026_07_28;
    let upstream =
        Server::new("a", "1.0.0").layer(from_fn(move |request: Request, run: Next| async move {
            if request.method() != "com.example/next" {
                return run.run(request).await;
            }
            let params = request.raw_params().unwrap().to_owned();
            Response::new(&next(params).await)
        }));
    let gateway = start(gateway().mount("a", upstream.pass_unknown_methods())).await;
    let client = || host().revisions([revision]);
    let ann = connect_as(&gateway, client(), "ann").await;
    let bob = connect_as(&gateway, client(), "bob").await;
    let params = to_raw_value(&json!({})).unwrap();
    let asked = ann.request_raw("com.example/next", &params).await.unwrap();
    let asked: Value = serde_json::from_str(asked.get()).unwrap();
    let state = asked["requestState"].as_str().unwrap();
    assert_ne!(state, "round 2");
    let params = to_raw_value(&json!({"requestState": state})).unwrap();
    let error = bob.request_raw("com.example/next", &params).await;
    let error = error.unwrap_err();
    assert_eq!(error.message(), "Invalid or expired requestState");
    let back = ann.request_raw("com.example/next", &params).await.unwrap();
    let back: Value = serde_json::from_str(back.get()).unwrap();
    assert_eq!(back["back"], json!("round 2"));
}

#[tokio::test(start_paused = true)]
async fn pages_of_tools_are_those_of_their_server() {
    for (front, upstream) in pairs(REVISIONS) {
        let app = |place: &str| {
            let show = tool("show", "shown").entry(|entry| {
                entry.meta.insert(
                    "ui",
                    json!({"resourceUri": "ui://page", "visibility": ["model"]}),
                );
                entry.meta.insert("ui/resourceUri", json!("ui://page"));
            });
            let page = Resource::text("ui://page", "page", format!("page of {place}"));
            let server = Server::new(place, "1.0.0").tool(show).resource(page);
            server.revisions([upstream])
        };
        let gateway = gateway()
            .mount("hall", app("hall"))
            .mount("attic", app("attic"));
        let gateway = start(gateway).await;
        let session = connect(&gateway, host().revisions([front])).await;
        let tools = session.tools().all().await.unwrap();
        assert_eq!(tools.len(), 2);
        for tool in &tools {
            let ui = tool.meta.get("ui").unwrap();
            assert_eq!(ui["visibility"], json!(["model"]));
            let uri = ui["resourceUri"].as_str().unwrap();
            assert_eq!(tool.meta.get("ui/resourceUri"), Some(&json!(uri)));
            let read = session.read_resource(uri).await.unwrap();
            let place = tool.name.strip_suffix("_show").unwrap();
            let expected = format!("page of {place}");
            assert_eq!(
                read.contents[0].as_text(),
                Some(expected.as_str()),
                "{front} {upstream}"
            );
        }
    }
}
