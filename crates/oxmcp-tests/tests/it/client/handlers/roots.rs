//! Roots of a client, and notifications of their changes.

use std::time::Duration;

use oxmcp::{Client, ClientSession, Revision, in_memory, protocol::Root, testing::ScriptedPeer};
use serde_json::{Value, json};
use tokio::time::{sleep, timeout};

use crate::client::{ask, client, expect, session_of};
use crate::support::LEGACY;

const CHANGED: &str = "notifications/roots/list_changed";

async fn listed(peer: &mut ScriptedPeer, session: &ClientSession) -> Value {
    let answer = ask((peer, session), "roots/list", json!({})).await;
    answer["result"]["roots"].clone()
}

async fn assert_silent(peer: &mut ScriptedPeer) {
    let next = timeout(Duration::from_secs(1), peer.receive()).await;
    assert!(next.is_err(), "it said {next:?}");
}

fn home() -> Client {
    client().roots([Root::new("file:///home").with_name("Home")])
}

#[tokio::test(start_paused = true)]
async fn roots_are_declared_only_when_possible() {
    for revision in Revision::ALL {
        let roots = if revision.is_modern() {
            json!({})
        } else {
            json!({"listChanged": true})
        };
        for client in [home(), client().roots([])] {
            let (_peer, _session, declared) = session_of(client, revision).await;
            assert_eq!(declared, json!({"roots": roots}), "{revision}");
        }
        let (mut peer, session, declared) = session_of(client(), revision).await;
        assert_eq!(declared, json!({}), "{revision}");
        let answer = ask((&mut peer, &session), "roots/list", json!({})).await;
        let said = answer["error"]["message"].as_str().unwrap();
        assert!(
            said.contains("did not declare the capability roots"),
            "{revision}: {said}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn roots_are_added_replaced_and_removed() {
    for revision in Revision::ALL {
        let client = home();
        let (mut peer, session, _) = session_of(client.clone(), revision).await;
        let home = json!({"uri": "file:///home", "name": "Home"});
        assert_eq!(
            listed(&mut peer, &session).await,
            json!([home]),
            "{revision}"
        );

        client
            .add_roots([
                Root::new("file:///home").with_name("House"),
                Root::new("file:///tmp"),
            ])
            .unwrap();
        if !revision.is_modern() {
            expect(&mut peer, CHANGED).await;
        }
        let house = json!({"uri": "file:///home", "name": "House"});
        let both = json!([house, {"uri": "file:///tmp"}]);
        assert_eq!(listed(&mut peer, &session).await, both, "{revision}");

        client.remove_roots(["file:///home", "file:///tmp", "file:///no/such"]);
        if !revision.is_modern() {
            expect(&mut peer, CHANGED).await;
        }
        assert_eq!(listed(&mut peer, &session).await, json!([]), "{revision}");
        client.remove_roots(["file:///home"]);
        client.add_roots([]).unwrap();
        assert_silent(&mut peer).await;
    }
}

#[tokio::test(start_paused = true)]
async fn simultaneous_root_changes_are_coalesced() {
    for revision in LEGACY {
        let client = home();
        let (mut first, _session, _) = session_of(client.clone(), revision).await;
        let (mut second, _other, _) = session_of(client.clone(), revision).await;
        for number in 0..3 {
            client
                .add_roots([Root::new(format!("file:///{number}"))])
                .unwrap();
            sleep(Duration::from_millis(2)).await;
        }
        for peer in [&mut first, &mut second] {
            expect(peer, CHANGED).await;
            assert_silent(peer).await;
        }
        client.remove_roots(["file:///0"]);
        expect(&mut first, CHANGED).await;
    }
}

#[tokio::test(start_paused = true)]
async fn root_changes_are_not_sent_without_declaration() {
    let client = client();
    let (mut peer, _session, _) = session_of(client.clone(), Revision::V2025_11_25).await;
    client.add_roots([Root::new("file:///home")]).unwrap();
    assert_silent(&mut peer).await;
}

#[tokio::test(start_paused = true)]
async fn roots_may_be_changed_from_any_thread() {
    let client = home();
    let (mut peer, _session, _) = session_of(client.clone(), Revision::V2025_06_18).await;
    std::thread::spawn(move || client.remove_roots(["file:///home"]))
        .join()
        .unwrap();
    expect(&mut peer, CHANGED).await;
}

#[tokio::test(start_paused = true)]
async fn non_file_uri_is_rejected_as_root() {
    let client = client();
    let both = [Root::new("file:///home"), Root::new("https://example.com/")];
    let error = client.add_roots(both.clone()).unwrap_err();
    assert!(error.message().contains("https://example.com/"), "{error}");
    // Neither root was added.
    let (_peer, _session, declared) = session_of(client, Revision::V2025_11_25).await;
    assert_eq!(declared, json!({}));

    let error = crate::client::client()
        .roots(both)
        .connect(in_memory().0)
        .await
        .unwrap_err();
    assert!(
        error.message().contains("must begin with \"file://\""),
        "{error}"
    );
}
