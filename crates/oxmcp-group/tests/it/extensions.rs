//! Extensions through a gateway: what is declared, and methods and notifications that the gateway does not know.

use oxmcp::{
    Client, ErrorCode, Extension, RequestContext, Resource, Revision, SearchOptions, Server, Tool,
    protocol::{EmptyParams, Method, Notification, NotificationParams, Payload},
};
use serde_json::{
    Value, json,
    value::{RawValue, to_raw_value},
};
use tokio::sync::mpsc;

use crate::{
    gateway_support::{REVISIONS, connect, gateway, host},
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
