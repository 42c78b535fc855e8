//! Middleware of extensions.

use std::sync::{Arc, Mutex};

use oxmcp::{
    Revision,
    middleware::{self, MiddlewareLayer, Next, Request},
    protocol::EmptyParams,
};

use crate::extension::*;

type Seen = Arc<Mutex<Vec<String>>>;

/// A layer that records its name and the method of each message.
fn noting(seen: &Seen, name: &'static str) -> impl MiddlewareLayer {
    let seen = Arc::clone(seen);
    middleware::from_fn(move |request: Request, next: Next| {
        let mut seen = seen.lock().unwrap();
        seen.push(format!("{name} {}", request.method()));
        next.run(request)
    })
}

#[tokio::test]
async fn layers_run_in_order_of_their_extensions() {
    let seen = Seen::default();
    let other = Extension::new("com.example/other").layer(noting(&seen, "other"));
    let clock = clock()
        .method::<Add, _>(.., async |now: Hours| now)
        .layer(noting(&seen, "clock 1"))
        .layer(noting(&seen, "clock 2"));
    let server = Server::new("s", "1")
        .layer(noting(&seen, "first"))
        .extension(other)
        .layer(noting(&seen, "between"))
        .extension(clock)
        .layer(noting(&seen, "last"));
    let client = client(Extension::new(ID).outgoing_layer(noting(&seen, "sent")));
    let session = connect(&server, &client, Revision::LATEST).await;
    seen.lock().unwrap().clear();
    session.request::<Add>(hours(1)).await.unwrap();
    let order = [
        "sent", "first", "other", "between", "clock 1", "clock 2", "last",
    ];
    let order = order.map(|name| format!("{name} {}", Add::NAME));
    assert_eq!(*seen.lock().unwrap(), order);
}

#[tokio::test]
async fn refused_extension_adds_nothing() {
    let seen = Seen::default();
    let server = server(clock());
    let session = connect(&server, &Client::new("c", "1"), Revision::LATEST).await;
    // The extension was added before, under the same identifier.
    let again = clock()
        .method::<Add, _>(.., async |now: Hours| now)
        .layer(noting(&seen, "refused"));
    let server = server.extension(again);
    assert!(server.check().is_err());
    let refused = session.request::<Add>(hours(1)).await.unwrap_err();
    assert_eq!(refused.code().value(), -32601, "{refused}");
    session
        .request::<oxmcp::protocol::method::Discover>(EmptyParams::default())
        .await
        .unwrap();
    assert!(seen.lock().unwrap().is_empty());
}
