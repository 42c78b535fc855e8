//! Questions outside of requests, while a session is open.

use std::{future::IntoFuture, sync::Arc};

use oxmcp::{
    Error, RequestContext, Revision, Server, ServerSession, Tool,
    protocol::{
        BooleanSchema, CreateMessageParams, ElicitAction, ElicitParams, ElicitSchema,
        ElicitUrlParams, SamplingMessage,
    },
    testing::ScriptedPeer,
};
use serde_json::{Value, json};
use tokio::{
    sync::mpsc,
    time::{Duration, Instant, timeout},
};
use tokio_util::sync::CancellationToken;

use crate::server::ask::{User, everything};
use crate::support::{LEGACY, notification, request, script};

fn session(server: &Server) -> ServerSession {
    server.sessions().next().unwrap()
}

/// Answers the server's next request with `result`. Returns the request's method and params.
async fn reply(user: &mut User, result: Value) -> (String, Value) {
    let asked = user.peer.receive().await.unwrap();
    let message = json!({"jsonrpc": "2.0", "id": asked["id"], "result": result});
    user.peer.send(message).await.unwrap();
    (
        asked["method"].as_str().unwrap().to_owned(),
        asked["params"].clone(),
    )
}

#[tokio::test]
async fn session_elicits_samples_and_lists_roots() {
    for revision in LEGACY {
        let server = Server::new("s", "1");
        let mut user = User::new(&server, revision).await;
        let session = session(&server);
        let (roots, _) = tokio::join!(
            async { session.list_roots().await },
            reply(&mut user, json!({"roots": [{"uri": "file:///a"}]})),
        );
        assert_eq!(roots.unwrap().roots[0].uri, "file:///a");

        let params = CreateMessageParams::new([SamplingMessage::user("Hello")], 10);
        let said =
            json!({"role": "assistant", "model": "m", "content": {"type": "text", "text": "hi"}});
        let (message, _) = tokio::join!(
            async { session.create_message(params).await },
            reply(&mut user, said),
        );
        assert_eq!(message.unwrap().model, "m");

        let form = ElicitParams::form("Sure?", ElicitSchema::new());
        if matches!(revision, Revision::V2024_11_05 | Revision::V2025_03_26) {
            let error = session.elicit(form).await.unwrap_err();
            assert!(error.is_unsupported(), "{error}");
            continue;
        }
        let (elicited, (_, params)) = tokio::join!(
            async { session.elicit(form).await },
            reply(&mut user, json!({"action": "decline"})),
        );
        assert_eq!(elicited.unwrap().action, ElicitAction::Decline);
        assert_eq!(params["message"], "Sure?");
    }
}

#[tokio::test]
async fn question_carries_metadata_and_reports_progress() {
    let server = Server::new("s", "1");
    let mut user = User::new(&server, Revision::V2025_11_25).await;
    let session = session(&server);
    let (told, mut heard) = mpsc::channel(1);
    let call = session
        .list_roots()
        .meta("com.example/why", "tests")
        .on_progress(move |progress| told.try_send(progress.progress.to_string()).unwrap());
    let (roots, ()) = tokio::join!(call.into_future(), async {
        let asked = user.peer.receive().await.unwrap();
        let meta = &asked["params"]["_meta"];
        assert_eq!(meta["com.example/why"], "tests");
        let params = json!({"progressToken": meta["progressToken"], "progress": 1});
        let progress =
            json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": params});
        user.peer.send(progress).await.unwrap();
        let answer = json!({"jsonrpc": "2.0", "id": asked["id"], "result": {"roots": []}});
        user.peer.send(answer).await.unwrap();
    });
    assert!(roots.unwrap().roots.is_empty());
    assert_eq!(heard.recv().await.unwrap(), "1");

    let refused = session
        .list_roots()
        .meta("io.modelcontextprotocol/zone", 1)
        .await;
    assert!(refused.unwrap_err().message().contains("_meta"));

    // The metadata of the params and that of the call are merged.
    let mut params = CreateMessageParams::new([SamplingMessage::user("Hello")], 10);
    params.meta.insert("com.example/who", "params");
    let said =
        json!({"role": "assistant", "model": "m", "content": {"type": "text", "text": "hi"}});
    let call = session
        .create_message(params)
        .meta("com.example/why", "tests");
    let (message, (_, params)) = tokio::join!(call.into_future(), reply(&mut user, said));
    message.unwrap();
    let meta = json!({"com.example/who": "params", "com.example/why": "tests"});
    assert_eq!(params["_meta"], meta);
}

#[tokio::test(start_paused = true)]
async fn progress_does_not_extend_a_questions_deadline() {
    let second = Duration::from_secs(1);
    let server = Server::new("s", "1").ask_timeout(second / 2);
    let mut user = User::new(&server, Revision::V2025_11_25).await;
    let start = Instant::now();
    let call = session(&server).list_roots().timeout(3 * second);
    let call = call.on_progress(|_| ()).into_future();
    let ended = async { (call.await.unwrap_err(), start.elapsed()) };
    let ((late, after), ()) = tokio::join!(ended, async {
        let asked = user.peer.receive().await.unwrap();
        let token = &asked["params"]["_meta"]["progressToken"];
        for progress in 1..=4 {
            tokio::time::sleep(second).await;
            let params = json!({"progressToken": token, "progress": progress});
            let progress =
                json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": params});
            user.peer.send(progress).await.unwrap();
        }
    });
    assert!(late.is_timeout(), "{late}");
    assert_eq!(after, 3 * second);
    let cancelled = user.peer.receive().await.unwrap();
    assert_eq!(cancelled["method"], "notifications/cancelled");
}

#[tokio::test]
async fn modern_clients_receive_no_server_requests() {
    let server = Server::new("s", "1");
    let _user = User::new(&server, Revision::LATEST).await;
    let error = session(&server).list_roots().await.unwrap_err();
    assert!(
        error.is_unsupported()
            && error
                .message()
                .contains("modern clients accept no requests"),
        "{error}"
    );
}

#[tokio::test]
async fn roots_are_cached_until_they_change() {
    let (changed, mut heard) = mpsc::channel(8);
    let server = Server::new("s", "1").on_roots_changed(move |session: ServerSession| {
        let changed = changed.clone();
        async move {
            changed.send(session.revision()).await.unwrap();
        }
    });
    let mut user = User::new(&server, Revision::V2025_11_25).await;
    let session = session(&server);
    let one = json!({"roots": [{"uri": "file:///a"}]});
    let (first, _) = tokio::join!(session.roots(), reply(&mut user, one));
    let first = first.unwrap();
    // The roots are cached: the client is not asked again, and would not answer.
    assert!(Arc::ptr_eq(&first, &session.roots().await.unwrap()));

    user.notify("notifications/roots/list_changed").await;
    assert_eq!(heard.recv().await.unwrap(), Some(Revision::V2025_11_25));
    let two = json!({"roots": [{"uri": "file:///a"}, {"uri": "file:///b"}]});
    let (second, _) = tokio::join!(session.roots(), reply(&mut user, two));
    assert_eq!(second.unwrap().len(), 2);

    // An answer to a question that precedes a change is stale when it arrives.
    user.notify("notifications/roots/list_changed").await;
    heard.recv().await.unwrap();
    let late = async {
        let asked = user.peer.receive().await.unwrap();
        user.notify("notifications/roots/list_changed").await;
        let message = json!({"jsonrpc": "2.0", "id": asked["id"], "result": {"roots": []}});
        user.peer.send(message).await.unwrap();
    };
    let (old, ()) = tokio::join!(session.roots(), late);
    assert!(old.unwrap().is_empty());
    let one = json!({"roots": [{"uri": "file:///c"}]});
    let (new, _) = tokio::join!(session.roots(), reply(&mut user, one));
    assert_eq!(new.unwrap()[0].uri, "file:///c");
}

#[tokio::test]
async fn client_without_roots_changes_is_asked_each_time() {
    let server = Server::new("s", "1");
    let mut user = User::able(&server, Revision::V2025_06_18, json!({"roots": {}})).await;
    let session = session(&server);
    for uri in ["file:///a", "file:///b"] {
        let roots = json!({"roots": [{"uri": uri}]});
        let (roots, _) = tokio::join!(session.roots(), reply(&mut user, roots));
        assert_eq!(roots.unwrap()[0].uri, uri);
    }
}

#[tokio::test]
async fn url_elicitation_completion_is_notified_by_id() {
    let server = Server::new("s", "1");
    for (revision, told) in [
        (Revision::V2025_11_25, true),
        (Revision::V2025_06_18, false),
    ] {
        let mut user = User::new(&server, revision).await;
        let session = server
            .sessions()
            .find(|it| it.revision() == Some(revision))
            .unwrap();
        session.notify_elicitation_complete("7").await.unwrap();
        if told {
            let message = user.peer.receive().await.unwrap();
            assert_eq!(message["method"], "notifications/elicitation/complete");
            assert_eq!(message["params"], json!({"elicitationId": "7"}));
            let params =
                ElicitUrlParams::new("Log in", "https://example.com/").with_elicitation_id("8");
            let (_, (_, params)) = tokio::join!(
                async { session.elicit(params).await.unwrap() },
                reply(&mut user, json!({"action": "accept"})),
            );
            assert_eq!(params["elicitationId"], "8");
        } else {
            let pong = user.once("ping", json!({})).await;
            assert_eq!(pong["result"], json!({}));
        }
    }
}

#[tokio::test]
async fn request_can_require_a_url_visit_first() {
    let tool = Tool::new("t", "", |_: RequestContext| async {
        let login = ElicitUrlParams::new("Log in", "https://example.com/").with_elicitation_id("7");
        Err::<(), _>(Error::url_elicitation_required([login]))
    });
    let server = Server::new("s", "1").tool(tool);
    let mut user = User::able(&server, Revision::V2025_11_25, everything()).await;
    let answer = user.call_once("t", json!({}), json!({})).await;
    assert_eq!(answer["error"]["code"], -32042);
    assert_eq!(
        answer["error"]["data"],
        json!({"elicitations": [{
            "mode": "url", "message": "Log in", "url": "https://example.com/", "elicitationId": "7",
        }]})
    );
}

#[tokio::test]
async fn answers_to_session_questions_match_their_form() {
    let server = Server::new("s", "1");
    let mut user = User::new(&server, Revision::V2025_06_18).await;
    let session = session(&server);
    let form = ElicitSchema::new().required("sure", BooleanSchema::default());
    for (content, fits) in [(json!({"sure": true}), true), (json!({"sure": 7}), false)] {
        let params = ElicitParams::form("Sure?", form.clone());
        let (elicited, _) = tokio::join!(
            async { session.elicit(params).await },
            reply(&mut user, json!({"action": "accept", "content": content})),
        );
        match elicited {
            Ok(_) => assert!(fits),
            Err(error) => assert!(error.message().contains("\"sure\": expected"), "{error}"),
        }
    }
}

/// A client that has sent `initialize` only.
async fn half_open(server: &Server) -> ScriptedPeer {
    let mut peer = script(server).await;
    let params = json!({
        "protocolVersion": Revision::V2025_11_25,
        "capabilities": everything(),
        "clientInfo": {"name": "user", "version": "1.0.0"},
    });
    peer.ask(request(0, "initialize", params)).await.unwrap();
    peer
}

#[tokio::test(start_paused = true)]
async fn client_is_asked_once_it_is_initialized() {
    let tool = Tool::new("t", "", |cx: RequestContext| async move {
        cx.roots().await.map(|roots| roots.len())
    });
    let server = Server::new("s", "1").tool(tool);
    let mut peer = half_open(&server).await;
    let own = session(&server);
    tokio::spawn(async move { own.list_roots().await });
    peer.send(request(1, "tools/call", json!({"name": "t"})))
        .await
        .unwrap();
    let early = timeout(Duration::from_millis(1_900), peer.receive()).await;
    assert!(early.is_err(), "{early:?}");
    // A ping does not wait, since it is not a question.
    let own = session(&server);
    tokio::spawn(async move { own.ping().await });
    assert_eq!(peer.receive().await.unwrap()["method"], "ping");
    let start = Instant::now();
    peer.send(notification("notifications/initialized"))
        .await
        .unwrap();
    for _ in 0..2 {
        assert_eq!(peer.receive().await.unwrap()["method"], "roots/list");
    }
    assert_eq!(start.elapsed(), Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn client_never_reporting_ready_is_asked_after_delay() {
    let server = Server::new("s", "1");
    let mut peer = half_open(&server).await;
    let start = Instant::now();
    for waited in [2, 2] {
        let own = session(&server);
        tokio::spawn(async move { own.list_roots().await });
        assert_eq!(peer.receive().await.unwrap()["method"], "roots/list");
        // The second question does not wait again.
        assert_eq!(start.elapsed().as_secs(), waited);
    }
}

#[tokio::test(start_paused = true)]
async fn question_awaiting_readiness_times_out_or_is_cancelled() {
    let server = Server::new("s", "1");
    let mut peer = half_open(&server).await;
    let session = session(&server);
    let start = Instant::now();
    let brief = Duration::from_millis(50);
    let late = session.list_roots().timeout(brief).await.unwrap_err();
    assert!(late.is_timeout(), "{late}");
    assert_eq!(start.elapsed(), brief);
    let token = CancellationToken::new();
    let asking = session.list_roots().cancel_with(token.clone());
    let cancel = async {
        tokio::time::sleep(brief).await;
        token.cancel();
    };
    let (cancelled, ()) = tokio::join!(asking.into_future(), cancel);
    let cancelled = cancelled.unwrap_err();
    assert!(cancelled.is_cancelled(), "{cancelled}");
    assert_eq!(start.elapsed(), 2 * brief);
    // Nothing was sent to the client.
    assert!(timeout(brief, peer.receive()).await.is_err());
}
