//! Metadata (`_meta`) that a middleware sets.

use futures_util::future::BoxFuture;
use oxmcp::{
    Client, RequestContext, Revision, Tool,
    middleware::{self, Next, Request, Response},
    protocol::Meta,
    testing::connect,
};
use serde_json::{Value, json};

use crate::session::*;

/// The value that the middleware sets, which must be valid for its key.
const VALUE: &str = "00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01";

/// A middleware that sets a key of the metadata.
fn sets(
    key: &'static str,
) -> impl Fn(Request, Next) -> BoxFuture<'static, oxmcp::Result<Response>> + Clone + use<> {
    move |mut request: Request, next: Next| {
        Box::pin(async move {
            request.set_meta(key, VALUE)?;
            next.run(request).await
        })
    }
}

#[tokio::test(start_paused = true)]
async fn middleware_sets_the_metadata_of_sent_messages() {
    let heard = Tool::new("heard", "", |cx: RequestContext| async move {
        let meta = cx.meta();
        let of = |key: &str| meta.get(key).and_then(Value::as_str).map(str::to_owned);
        format!("{:?} {:?}", of(Meta::TRACEPARENT), of("com.example/own"))
    });
    let server = server().tool(heard);
    let client =
        Client::new("test", "1.0.0").outgoing_layer(middleware::from_fn(sets(Meta::TRACEPARENT)));
    for revision in Revision::ALL {
        let session = connect(&server)
            .client(&client)
            .revision(revision)
            .await
            .unwrap();
        for _ in 0..2 {
            let call = session
                .call_tool("heard", ())
                .meta("com.example/own", "kept");
            let said = call.await.unwrap();
            assert_eq!(
                said.as_text(),
                Some(&*format!("Some({VALUE:?}) Some(\"kept\")")),
                "{revision}"
            );
        }
        assert_eq!(session.tools().all().await.unwrap().len(), 6, "{revision}");
    }
    let server = server.outgoing_layer(middleware::from_fn(sets("com.example/told")));
    let mut peer = client_of(&server, Revision::V2025_11_25).await;
    server.remove_tools(["heard"]);
    let told = peer.receive().await.unwrap();
    assert_eq!(
        told["params"],
        json!({"_meta": {"com.example/told": VALUE}})
    );
}

#[tokio::test(start_paused = true)]
async fn middleware_cannot_set_reserved_keys() {
    let misused = async |client: Client| {
        let revision = Revision::V2026_07_28;
        let session = connect(&server())
            .client(&client)
            .revision(revision)
            .await
            .unwrap();
        let error = session.call_tool("fast", ()).await.unwrap_err();
        error.message().to_owned()
    };
    let calls_only = |set: fn(&mut Request) -> oxmcp::Result<()>| {
        let layer = move |mut request: Request, next: Next| async move {
            if request.method() == "tools/call" {
                set(&mut request)?;
            }
            next.run(request).await
        };
        Client::new("test", "1.0.0").outgoing_layer(middleware::from_fn(layer))
    };
    let said = misused(calls_only(|it| it.set_meta(Meta::CLIENT_INFO, "me"))).await;
    assert!(said.contains("the session sets it"), "{said}");
    let said = misused(calls_only(|it| {
        it.set_params(&json!({"name": "fast", "_meta": {}}))
    }))
    .await;
    assert!(said.contains("set_meta"), "{said}");

    let late = |mut request: Request, next: Next| async move {
        let error = request.set_meta("com.example/late", 1).unwrap_err();
        assert!(error.message().contains("incoming message"), "{error}");
        next.run(request).await
    };
    let mut peer = client_of(
        &server().layer(middleware::from_fn(late)),
        Revision::V2025_11_25,
    )
    .await;
    assert_alive(&mut peer).await;
}
