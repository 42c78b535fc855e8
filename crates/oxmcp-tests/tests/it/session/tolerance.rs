//! Messages that do not follow the specification: they are read leniently, and refused in strict mode.

use std::{
    fmt,
    future::IntoFuture,
    mem,
    sync::{Arc, Mutex},
};

use oxmcp::{
    Client,
    protocol::{CreateMessageParams, CreateMessageResult},
};
use tracing::{
    Event, Subscriber,
    field::{Field, Visit},
};
use tracing_subscriber::{
    Layer,
    layer::{Context, SubscriberExt},
    registry,
};

use crate::{session::*, support::subscribe};

/// The response of a server to a line, or `None` if there is none within a minute.
async fn answered(peer: &mut ScriptedPeer, line: &str) -> Option<Value> {
    peer.send_line(line).await.unwrap();
    let answer = timeout(Duration::from_secs(60), peer.receive()).await;
    answer.ok().map(|answer| answer.unwrap())
}

#[tokio::test(start_paused = true)]
async fn odd_requests_are_served_unless_strict() {
    let table = [
        (
            r#"{"jsonrpc":"2.0","id":7,"method":"ping","params":[]}"#,
            "{}",
        ),
        (
            r#"{"jsonrpc":"2.0","id":7,"method":"ping","error":null}"#,
            "{}",
        ),
        (
            r#"{"jsonrpc":"2.0","id":7,"method":"ping","result":null}"#,
            "{}",
        ),
    ];
    let mut peer = client_of(&server(), Revision::V2025_11_25).await;
    let mut strict = client_of(&server().strict(), Revision::V2025_11_25).await;
    for (line, expected) in table {
        let answer = answered(&mut peer, line).await.unwrap();
        assert_eq!(answer["result"].to_string(), expected, "{line}: {answer}");
        let answer = answered(&mut strict, line).await.unwrap();
        assert!(answer["error"].is_object(), "{line}: {answer}");
    }
    assert_alive(&mut peer).await;
    assert_alive(&mut strict).await;
}

#[tokio::test(start_paused = true)]
async fn odd_clients_open_sessions_unless_strict() {
    for params in [
        r#"{"protocolVersion":"2025-06-18","capabilities":[],"clientInfo":{"name":"a","version":"1"}}"#,
        r#"{"protocolVersion":"2025-06-18","capabilities":null,"clientInfo":{"name":"a"}}"#,
        r#"{"protocolVersion":"2025-06-18","capabilities":{"roots":[],"sampling":null}}"#,
    ] {
        let line = format!(r#"{{"jsonrpc":"2.0","id":7,"method":"initialize","params":{params}}}"#);
        for (server, is_strict) in [(server(), false), (server().strict(), true)] {
            let (mut peer, transport) = ScriptedPeer::new().await;
            server.connect(transport).await.unwrap();
            let answer = answered(&mut peer, &line).await.unwrap();
            let is_open = answer["result"]["protocolVersion"] == "2025-06-18";
            assert_eq!(is_open, !is_strict, "{line}: {answer}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn odd_element_does_not_fail_its_batch() {
    let line = r#"[{"jsonrpc":"2.0","id":1,"method":"ping","params":[]},{"jsonrpc":"2.0","id":2,"method":"ping"}]"#;
    for (server, failures) in [(server(), 0), (server().strict(), 1)] {
        let mut peer = client_of(&server, Revision::V2025_03_26).await;
        let answer = answered(&mut peer, line).await.unwrap();
        let answers = answer.as_array().unwrap();
        let failed = answers.iter().filter(|it| it["error"].is_object());
        assert_eq!((answers.len(), failed.count()), (2, failures), "{answer}");
    }
}

/// The outcome of a request of a client, as text. `ID` in the response is replaced by the ID.
async fn outcome(client: Client, request: &str, response: &str) -> Result<String, oxmcp::Error> {
    let (session, mut peer) = server_of(client).await;
    let asking = tokio::spawn({
        let (session, request) = (session.clone(), request.to_owned());
        async move {
            match &*request {
                "ping" => session.ping().await.map(|()| String::new()),
                "tools" => {
                    let tools = session.tools().all().await?;
                    let names = tools.into_iter().map(|tool| tool.name);
                    Ok(names.collect::<Vec<_>>().join(" "))
                }
                _ => session
                    .call_tool("t", ())
                    .into_future()
                    .await
                    .map(|it| it.to_text()),
            }
        }
    });
    let id = peer.receive().await.unwrap()["id"].to_string();
    peer.send_line(response.replace("ID", &id)).await.unwrap();
    asking.await.unwrap()
}

#[tokio::test(start_paused = true)]
async fn odd_results_are_read_unless_strict() {
    let client = || Client::new("test", "1.0.0");
    for (request, response, expected) in [
        ("ping", r#"{"jsonrpc":"2.0","id":ID,"result":[]}"#, ""),
        (
            "ping",
            r#"{"jsonrpc":"2.0","id":ID,"result":{},"error":null}"#,
            "",
        ),
        (
            "ping",
            r#"{"jsonrpc":"2.0","id":ID,"method":null,"result":{}}"#,
            "",
        ),
        ("ping", r#"{"id":ID,"result":{}}"#, ""),
        (
            "tools",
            r#"{"jsonrpc":"2.0","id":ID,"result":{"tools":[{"name":"a","inputSchema":{}},{"name":"b"},null]}}"#,
            "a",
        ),
        (
            "tools",
            r#"{"jsonrpc":"2.0","id":ID,"result":{"tools":[{"name":"a","inputSchema":[],"icons":null,"annotations":[]}]}}"#,
            "a",
        ),
        (
            "call",
            r#"{"jsonrpc":"2.0","id":ID,"result":{"content":"a"}}"#,
            "a",
        ),
        (
            "call",
            r#"{"jsonrpc":"2.0","id":ID,"result":{"content":[{"type":"text","text":"a\udc00"}],"isError":null}}"#,
            "a\u{fffd}",
        ),
        (
            "call",
            r#"{"jsonrpc":"2.0","id":ID,"result":{"content":[{"type":"image","data":"A"},{"type":"text","text":"a"}]}}"#,
            "a",
        ),
    ] {
        let read = outcome(client(), request, response).await.unwrap();
        assert_eq!(read, expected, "{response}");
        let strict = outcome(client().strict(), request, response).await;
        assert!(strict.is_err(), "{response}");
    }
    let response = r#"{"jsonrpc":"2.0","id":ID,"error":"out of paper"}"#;
    let error = outcome(client(), "ping", response).await.unwrap_err();
    assert!(error.message().contains("out of paper"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn odd_servers_are_connected_unless_strict() {
    for result in [
        r#""result":{"protocolVersion":"2025-06-18","capabilities":null,"serverInfo":{"name":"a","version":"1"}}"#,
        r#""result":{"protocolVersion":"2025-06-18","capabilities":{"tools":[]},"serverInfo":{"name":"a"}}"#,
        r#""error":null,"result":{"protocolVersion":"2025-06-18","capabilities":{}}"#,
    ] {
        for is_strict in [false, true] {
            let (mut peer, transport) = ScriptedPeer::new().await;
            let client = Client::new("test", "1.0.0").revisions([Revision::V2025_06_18]);
            let client = if is_strict { client.strict() } else { client };
            let connecting = tokio::spawn(async move { client.connect(transport).await });
            let id = peer.receive().await.unwrap()["id"].to_string();
            let line = format!(r#"{{"jsonrpc":"2.0","id":{id},{result}}}"#);
            peer.send_line(line).await.unwrap();
            assert_eq!(connecting.await.unwrap().is_err(), is_strict, "{result}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn odd_questions_are_answered_unless_strict() {
    let question = r#"{"jsonrpc":"2.0","id":"q","method":"sampling/createMessage","params":{"messages":[{"role":"user","content":"x"}],"maxTokens":100.0,"stopSequences":null}}"#;
    let client = || {
        Client::new("test", "1.0.0")
            .on_sample(|_: CreateMessageParams| async { CreateMessageResult::new("m", "a") })
    };
    let (_session, mut peer) = server_of(client()).await;
    let answer = answered(&mut peer, question).await.unwrap();
    assert_eq!(answer["result"]["model"], "m", "{answer}");
    let (_session, mut peer) = server_of(client().strict()).await;
    let answer = answered(&mut peer, question).await.unwrap();
    assert!(answer["error"].is_object(), "{answer}");
}

#[tokio::test(start_paused = true)]
async fn odd_notifications_are_handled_unless_strict() {
    let line = r#"{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"WARN","logger":null,"data":"x"}}"#;
    for (is_strict, expected) in [(false, 1), (true, 0)] {
        let seen = Arc::new(Mutex::new(0));
        let client = Client::new("test", "1.0.0").on_log({
            let seen = Arc::clone(&seen);
            move |_, _| {
                *seen.lock().unwrap() += 1;
                async {}
            }
        });
        let client = if is_strict { client.strict() } else { client };
        let (_session, mut peer) = server_of(client).await;
        peer.send_line(line).await.unwrap();
        assert_alive(&mut peer).await;
        assert_eq!(*seen.lock().unwrap(), expected);
    }
}

/// A layer that keeps the leniencies that were logged.
#[derive(Clone, Default)]
struct Warnings(Arc<Mutex<Vec<String>>>);

impl<S: Subscriber> Layer<S> for Warnings {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        #[derive(Default)]
        struct Fields(String);
        impl Visit for Fields {
            fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
                let name = field.name();
                self.0.push_str(&format!("{name}={value:?} "));
            }
        }
        let mut fields = Fields::default();
        event.record(&mut fields);
        if fields.0.contains("tolerated a message") {
            self.0.lock().unwrap().push(fields.0);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn tolerance_is_logged_once_per_peer_and_kind() {
    let warnings = Warnings::default();
    let _guard = subscribe(registry().with(warnings.clone()));
    let server = server();
    let mut peer = client_of(&server, Revision::V2025_11_25).await;
    let ping = r#"{"jsonrpc":"2.0","id":7,"method":"ping","params":[]}"#;
    for _ in 0..3 {
        answered(&mut peer, ping).await.unwrap();
    }
    let logged = mem::take(&mut *warnings.0.lock().unwrap());
    let [logged] = &*logged else {
        panic!("{logged:?}")
    };
    assert!(logged.contains(r#"leniency="empty-array""#), "{logged}");
    assert!(logged.contains("place=/params"), "{logged}");
    assert!(logged.contains("peer="), "{logged}");
    answered(
        &mut peer,
        r#"{"jsonrpc":"2.0","id":7,"method":"ping","error":null}"#,
    )
    .await
    .unwrap();
    let logged = mem::take(&mut *warnings.0.lock().unwrap());
    assert_eq!(logged.len(), 1, "{logged:?}");
}
