//! Results of extensions: a vendor's types and metadata.

use oxmcp::{
    RequestContext, Revision, Server, Tool,
    middleware::{self, Next, Request},
    protocol::{CallToolParams, CallToolResult, EmptyParams, Meta, Method, Payload},
};
use serde_json::{Value, json};

use crate::extension::*;

/// `tools/call` with a result that may be a ticket.
struct CallOrTicket;

#[derive(Debug, serde::Serialize, serde::Deserialize)]
#[serde(tag = "resultType", rename_all = "snake_case")]
enum Ticket {
    Ticket {
        number: u32,
    },
    #[serde(untagged)]
    Complete(CallToolResult),
}

impl Payload for Ticket {}

impl Method for CallOrTicket {
    const NAME: &'static str = "tools/call";
    type Params = CallToolParams;
    type Result = Ticket;
    const RESULT_TYPES: &'static [&'static str] = &["ticket"];
}

#[tokio::test]
async fn result_type_is_sent_only_to_declaring_clients() {
    let tickets = middleware::from_fn(|request: Request, next: Next| async move {
        if request.method() == "tools/call" {
            return middleware::Response::new(&json!({"resultType": "ticket", "number": 7}));
        }
        next.run(request).await
    });
    let server = Server::new("s", "1")
        .tool(Tool::new("t", "A tool", || async { "done" }))
        .layer(tickets);
    let knows = client(clock().result_type("ticket"));
    let session = connect(&server, &knows, Revision::LATEST).await;
    let ticket = session
        .request::<CallOrTicket>(CallToolParams::new("t"))
        .await
        .unwrap();
    assert!(matches!(ticket, Ticket::Ticket { number: 7 }), "{ticket:?}");
    // A ticket is an error for a method whose result cannot be read from it, and without the extension.
    session.call_tool("t", ()).await.unwrap_err();
    let session = connect(&server, &Client::new("c", "1"), Revision::LATEST).await;
    let unknown = session
        .request::<CallOrTicket>(CallToolParams::new("t"))
        .await
        .unwrap_err();
    assert!(
        unknown.message().contains("unknown result type"),
        "{unknown}"
    );
}

#[tokio::test]
async fn vendor_metadata_round_trips_through_the_handler() {
    #[derive(Debug, Default, serde::Serialize, serde::Deserialize)]
    struct Said {
        #[serde(rename = "_meta", default)]
        meta: Meta,
    }
    impl Payload for Said {
        fn metadata(&mut self) -> Option<&mut Meta> {
            Some(&mut self.meta)
        }
    }
    struct Echo;
    impl Method for Echo {
        const NAME: &'static str = "com.example/clock/echo";
        type Params = EmptyParams;
        type Result = Said;
    }
    let server = server(clock().meta_key("com.example/zone").method::<Echo, _>(
        ..,
        |cx: RequestContext| async move {
            let zone = cx.meta().get("com.example/zone").cloned();
            Said {
                meta: Meta::from_iter([("com.example/zone", zone.unwrap_or(Value::Null))]),
            }
        },
    ));
    for revision in Revision::ALL {
        let session = connect(&server, &client(clock()), revision).await;
        let call = session
            .request::<Echo>(EmptyParams::default())
            .meta("com.example/zone", "UTC");
        let said = call.await.unwrap();
        assert_eq!(
            said.meta.get("com.example/zone"),
            Some(&json!("UTC")),
            "{revision}"
        );
        let stamped = said
            .meta
            .get("io.modelcontextprotocol/serverInfo")
            .is_some();
        assert_eq!(stamped, revision.is_modern());
    }
}
