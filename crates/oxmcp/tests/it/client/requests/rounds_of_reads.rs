//! Rounds of questions while a resource is read.

use std::time::Duration;

use oxmcp::{
    Accept, Client, RequestContext, Revision,
    protocol::{ElicitFormParams, ReadResourceResult},
    testing::ScriptedPeer,
};
use serde_json::{Value, json};

use crate::client::{answer, asks, client, expect, requests::rounds::form, session_of, soon};

const URI: &str = "file:///a";

/// A client that reads the resource before it answers what it is asked.
fn curious() -> Client {
    client().on_elicit(|_: ElicitFormParams, cx: RequestContext| async move {
        let session = cx.client_session().unwrap();
        let read: ReadResourceResult = session.read_resource(URI).await?;
        Ok::<_, oxmcp::Error>(Accept(json!({"name": read.contents.len().to_string()})))
    })
}

fn contents() -> Value {
    json!({"resultType": "complete", "contents": [{"uri": URI, "text": "x"}], "ttlMs": 60_000})
}

/// Takes the question for the resource that the handler has.
async fn let_it_read(peer: &mut ScriptedPeer) {
    let nested = expect(peer, "resources/read").await;
    assert_eq!(nested["params"].get("inputResponses"), None);
    answer(peer, &nested, contents()).await;
}

#[tokio::test(start_paused = true)]
async fn a_handler_may_read_what_it_is_asked_for() {
    let (mut peer, session, _) = session_of(curious(), Revision::LATEST).await;
    let reading = tokio::spawn(session.read_resource(URI).into_future());
    let request = expect(&mut peer, "resources/read").await;
    answer(&mut peer, &request, asks(json!({"key": form()}))).await;
    let_it_read(&mut peer).await;
    let again = expect(&mut peer, "resources/read").await;
    let said = &again["params"]["inputResponses"]["key"]["content"]["name"];
    assert_eq!(said, "1");
    answer(&mut peer, &again, contents()).await;
    let read = soon("answer", reading).await.unwrap().unwrap();
    assert_eq!(read.contents.len(), 1);

    let (mut peer, session, _) = session_of(curious(), Revision::V2025_11_25).await;
    let reading = tokio::spawn(session.read_resource(URI).into_future());
    let request = expect(&mut peer, "resources/read").await;
    let mut question = form();
    question["jsonrpc"] = "2.0".into();
    question["id"] = "q".into();
    peer.send(question).await.unwrap();
    let_it_read(&mut peer).await;
    let said = soon("answer", peer.receive()).await.unwrap();
    assert_eq!(said["result"]["content"]["name"], "1");
    answer(&mut peer, &request, contents()).await;
    soon("answer", reading).await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn who_waits_for_the_same_does_not_wait_for_a_person() {
    let client = client().on_elicit(|_: ElicitFormParams| async {
        tokio::time::sleep(Duration::from_secs(3600)).await;
        Accept(json!({"name": "Ann"}))
    });
    let (mut peer, session, _) = session_of(client, Revision::LATEST).await;
    let read = || {
        tokio::spawn(
            session
                .read_resource(URI)
                .max_total(Duration::MAX)
                .into_future(),
        )
    };
    let [first, second] = [read(), read()];
    let request = expect(&mut peer, "resources/read").await;
    answer(&mut peer, &request, asks(json!({"key": form()}))).await;
    let request = expect(&mut peer, "resources/read").await;
    assert_eq!(request["params"].get("inputResponses"), None);
    answer(&mut peer, &request, contents()).await;
    soon("answer", second).await.unwrap().unwrap();
    // The person takes longer than any answer may, and that is all right.
    let again = expect(&mut peer, "resources/read").await;
    assert!(again["params"]["inputResponses"].is_object());
    answer(&mut peer, &again, contents()).await;
    soon("answer", first).await.unwrap().unwrap();
}
