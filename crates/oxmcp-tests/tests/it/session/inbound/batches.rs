//! Batches, which only revision 2025-03-26 has.

use oxmcp::{Client, Limits, Revision};
use serde_json::{Value, json};

use crate::session::*;

async fn send_batch(peer: &mut ScriptedPeer, messages: &[Value]) {
    peer.send(Value::Array(messages.to_vec())).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn other_revisions_refuse_batches() {
    for revision in Revision::ALL {
        if revision.is_modern() || revision == Revision::V2025_03_26 {
            continue;
        }
        let mut peer = client_of(&server(), revision).await;
        send_batch(&mut peer, &[ping(1)]).await;
        let answer = peer.receive().await.unwrap();
        // 2024-11-05 does not mention batches, and no client of that revision sends any.
        assert_eq!(answer["error"]["code"], -32600, "{revision}: {answer}");
        assert!(
            answer["error"]["message"]
                .as_str()
                .unwrap()
                .contains("2025-03-26")
        );
        assert_alive(&mut peer).await;
    }
}

#[tokio::test(start_paused = true)]
async fn batch_before_initialize_is_refused() {
    let (mut peer, transport) = ScriptedPeer::new().await;
    server().connect(transport).await.unwrap();
    send_batch(&mut peer, &[ping(1)]).await;
    assert_eq!(peer.receive().await.unwrap()["error"]["code"], -32600);
    assert_alive(&mut peer).await;
}

#[tokio::test(start_paused = true)]
async fn answers_to_a_batch_are_sent_together() {
    let mut peer = client_of(&server(), Revision::V2025_03_26).await;
    let messages = [
        call(1, "slow", json!({"ms": 50})),
        notification("notifications/one", json!({})),
        notification("notifications/two", json!({})),
        call(2, "fast", json!({})),
        request(3, "no/such", json!({})),
        json!({"jsonrpc": "2.0", "id": 77, "result": {}}),
        json!([ping(4)]),
        json!(5),
    ];
    send_batch(&mut peer, &messages).await;
    // A message outside of the batch does not wait for it.
    assert_alive(&mut peer).await;
    let answer = peer.receive().await.unwrap();
    let mut ids: Vec<_> = answer
        .as_array()
        .unwrap()
        .iter()
        .map(|it| it["id"].to_string())
        .collect();
    ids.sort();
    assert_eq!(ids, ["1", "2", "3", "null", "null"], "{answer}");
    assert_silent(&mut peer).await;
}

#[tokio::test(start_paused = true)]
async fn fully_refused_batch_is_answered() {
    let mut peer = client_of(&server(), Revision::V2025_03_26).await;
    send_batch(&mut peer, &[json!(5), json!([])]).await;
    let answer = peer.receive().await.unwrap();
    for refusal in [&answer[0], &answer[1]] {
        assert_eq!(refusal["error"]["code"], -32600, "{answer}");
    }
}

#[tokio::test(start_paused = true)]
async fn batch_without_requests_is_not_answered() {
    let mut peer = client_of(&server(), Revision::V2025_03_26).await;
    send_batch(&mut peer, &[notification("notifications/one", json!({}))]).await;
    assert_silent(&mut peer).await;
}

#[tokio::test(start_paused = true)]
async fn batches_are_bounded() {
    let limits = Limits::default().max_batch(3);
    let mut peer = client_of(&server().limits(limits), Revision::V2025_03_26).await;
    for messages in [vec![], vec![ping(1); 4], vec![json!(1); 100_000]] {
        send_batch(&mut peer, &messages).await;
        let answer = peer.receive().await.unwrap();
        assert_eq!(answer["error"]["code"], -32600, "{answer}");
        assert!(
            answer["error"]["message"]
                .as_str()
                .unwrap()
                .contains("1 to 3")
        );
        assert_alive(&mut peer).await;
    }
    send_batch(&mut peer, &[ping(1), ping(2), ping(3)]).await;
    assert_eq!(peer.receive().await.unwrap().as_array().unwrap().len(), 3);
    for torn in [
        "[",
        r#"[{"jsonrpc":"2.0","id":1,"method":"ping"}"#,
        "[1,]",
        "[1] 2",
    ] {
        peer.send_line(torn).await.unwrap();
        assert_eq!(
            peer.receive().await.unwrap()["error"]["code"],
            -32700,
            "{torn}"
        );
    }
    assert_alive(&mut peer).await;
}

#[tokio::test(start_paused = true)]
async fn duplicate_id_in_a_batch_is_refused_once() {
    let mut peer = client_of(&server(), Revision::V2025_03_26).await;
    let slow = call(1, "slow", json!({"ms": 50}));
    send_batch(&mut peer, &[slow.clone(), slow]).await;
    let answer = peer.receive().await.unwrap();
    let answers = answer.as_array().unwrap();
    assert_eq!(answers.len(), 2, "{answer}");
    assert_eq!(answers[0]["error"]["code"], -32600);
    assert_eq!(text(&answers[1]), "slow");
}

#[tokio::test(start_paused = true)]
async fn cancelled_request_is_missing_from_batch_answer() {
    let mut peer = client_of(&server(), Revision::V2025_03_26).await;
    send_batch(
        &mut peer,
        &[call(1, "stuck", json!({})), call(2, "fast", json!({}))],
    )
    .await;
    assert_alive(&mut peer).await;
    peer.send(cancel(1)).await.unwrap();
    let answer = peer.receive().await.unwrap();
    assert_eq!(answer.as_array().unwrap().len(), 1, "{answer}");
    assert_eq!(answer[0]["id"], 2);
    // The answer of a handler that reacts to its cancellation is missing, too.
    let hears = Tool::new("hears", "Waits", |cx: RequestContext| async move {
        cx.cancelled().await;
        "cancelled"
    });
    let mut listening = client_of(&server().tool(hears), Revision::V2025_03_26).await;
    let batch = [call(1, "hears", json!({})), call(2, "fast", json!({}))];
    send_batch(&mut listening, &batch).await;
    listening.send(cancel(1)).await.unwrap();
    let answer = listening.receive().await.unwrap();
    assert_eq!(answer.as_array().unwrap().len(), 1, "{answer}");
    assert_eq!(answer[0]["id"], 2);
    // If every request of a batch is cancelled, there is no answer.
    send_batch(&mut peer, &[call(3, "stuck", json!({}))]).await;
    peer.send(cancel(3)).await.unwrap();
    assert_silent(&mut peer).await;
}

#[tokio::test(start_paused = true)]
async fn client_accepts_a_batch_of_answers() {
    let (mut peer, transport) = ScriptedPeer::new().await;
    let client = Client::new("test", "1.0.0").revisions([Revision::V2025_03_26]);
    let opening = tokio::spawn(async move { client.connect(transport).await });
    let id = peer.receive().await.unwrap()["id"].clone();
    peer.send(json!({"jsonrpc": "2.0", "id": id, "result": {
        "protocolVersion": "2025-03-26", "capabilities": {}, "serverInfo": {"name": "s", "version": "1"},
    }}))
    .await
    .unwrap();
    let session = opening.await.unwrap().unwrap();
    peer.receive().await.unwrap();
    let pings = (session.clone(), session.clone());
    let pings = tokio::spawn(async move { tokio::join!(pings.0.ping(), pings.1.ping()) });
    let first = peer.receive().await.unwrap()["id"].clone();
    let second = peer.receive().await.unwrap()["id"].clone();
    send_batch(
        &mut peer,
        &[
            json!({"jsonrpc": "2.0", "id": second, "result": {}}),
            ping("from the server"),
            json!({"jsonrpc": "2.0", "id": first, "result": {}}),
            json!("nonsense"),
        ],
    )
    .await;
    let (one, two) = pings.await.unwrap();
    one.unwrap();
    two.unwrap();
    // The server's request is answered in a batch, and an invalid message is not answered.
    let answer = peer.receive().await.unwrap();
    assert_eq!(
        answer,
        json!([{"jsonrpc": "2.0", "id": "from the server", "result": {}}])
    );
    drop(session);
}
