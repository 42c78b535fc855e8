//! Revisions of an extension, and extensions that a revision of the protocol has adopted.

use oxmcp::{
    Revision,
    protocol::{DiscoverResult, EmptyParams, Meta, method::Discover},
};
use serde_json::{Value, json};

use crate::extension::*;
use crate::support::{modern, script};

fn served() -> Extension {
    clock()
        .requires_client()
        .method::<Add, _>(.., async |now: Hours| now)
}

async fn is_served(server: &Server, settings: Value) -> bool {
    let mut peer = script(server).await;
    let mut declaring = modern(1, Add::NAME, json!({"hours": 1}));
    declaring["params"]["_meta"][Meta::CLIENT_CAPABILITIES] = json!({"extensions": {ID: settings}});
    let answer = peer.ask(declaring).await.unwrap();
    if answer.get("error").is_some() {
        assert_eq!(answer["error"]["code"], -32021, "{answer}");
    }
    answer.get("result").is_some()
}

#[tokio::test]
async fn peer_with_unknown_extension_revision_counts_as_undeclared() {
    let first = server(served());
    let second = server(served().revision("2").settings(json!({"alarms": true})));
    let both = server(
        served()
            .revision("2")
            .accepts_revision(|it| matches!(it, None | Some("2"))),
    );
    // Settings may have unknown members.
    for (settings, expected) in [
        (json!({}), [true, false, true]),
        (json!({"hands": 2}), [true, false, true]),
        (json!({"revision": "2"}), [false, true, true]),
        (json!({"revision": "2", "hands": 2}), [false, true, true]),
        (json!({"revision": "3"}), [false, false, false]),
    ] {
        for (server, expected) in [&first, &second, &both].into_iter().zip(expected) {
            assert_eq!(
                is_served(server, settings.clone()).await,
                expected,
                "{settings}"
            );
        }
    }
}

#[tokio::test]
async fn revision_is_declared_in_the_settings() {
    let calls = || clock().calls::<Add>(..);
    let server = server(served().settings(json!({"alarms": true})).revision("2"));
    let session = connect(&server, &client(calls().revision("2")), Revision::LATEST).await;
    let declared = session.server_capabilities().extensions.clone();
    assert_eq!(
        Value::from(declared),
        json!({ID: {"alarms": true, "revision": "2"}})
    );
    session.request::<Add>(hours(1)).await.unwrap();
    // A client of the first revision finds that the server lacks its extension, and fails before anything is sent.
    let session = connect(&server, &client(calls()), Revision::LATEST).await;
    let refused = session.request::<Add>(hours(1)).await.unwrap_err();
    assert!(refused.is_unsupported(), "{refused}");
    // A client that sends the request nevertheless gets an error with the revision that it needs.
    let session = connect(&server, &client(clock()), Revision::LATEST).await;
    let refused = session.request::<Add>(hours(1)).await.unwrap_err();
    let data: Value = serde_json::from_str(refused.data().unwrap().get()).unwrap();
    assert_eq!(
        data["requiredCapabilities"]["extensions"],
        json!({ID: {"revision": "2"}})
    );
}

/// An extension up to 2025-11-25 whose method belongs to the protocol from 2026-07-28 on: with such a row the tables of both eras
/// have the same name.
#[tokio::test]
async fn extension_method_ends_where_the_protocol_adopts_it() {
    const OURS: &str = "as an extension";
    let promoted = Extension::new(ID)
        .core_since(Revision::V2026_07_28)
        .requires_client()
        .method::<Discover, _>(.., async |_: EmptyParams| {
            let mut found = DiscoverResult::default();
            found.instructions = Some(OURS.to_owned());
            found
        })
        .method::<Add, _>(.., async |now: Hours| now);
    let server = server(promoted);
    server.check().unwrap();
    let knows = client(
        clock()
            .core_since(Revision::V2026_07_28)
            .calls::<Discover>(..),
    );
    for revision in Revision::ALL {
        let session = connect(&server, &knows, revision).await;
        let declared = session.server_capabilities().extensions.as_ref();
        let found = session.request::<Discover>(EmptyParams::default());
        let found = found.await.unwrap().instructions;
        let added = session.request::<Add>(hours(1)).await;
        if revision.is_modern() {
            assert_eq!((declared, found), (None, None));
            assert_eq!(added.unwrap_err().code().value(), -32601);
        } else {
            assert!(declared.unwrap().contains_key(ID), "{revision}");
            assert_eq!(found.as_deref(), Some(OURS), "{revision}");
            assert_eq!(added.unwrap(), hours(1), "{revision}");
        }
    }
}
