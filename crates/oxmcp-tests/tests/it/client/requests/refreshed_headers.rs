//! Calls that a server refuses because the mirrored headers do not match: the list of tools is
//! requested again.

use std::time::Duration;

use oxmcp::{
    CancellationToken, ClientSession, Error, Result, Revision, protocol::CallToolResult,
    testing::ScriptedPeer,
};
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use crate::client::{
    answer, client, done, expect, refuse,
    requests::mirrored_headers::{list, session_of, tool, tools},
};

fn mismatch() -> Value {
    json!({"code": -32020, "message": "Header mismatch"})
}

fn calling(session: &ClientSession) -> JoinHandle<Result<CallToolResult>> {
    tokio::spawn(
        session
            .call_tool("run", json!({"region": "r"}))
            .into_future(),
    )
}

/// Refuses the next call, and returns its request.
async fn refuse_call(peer: &mut ScriptedPeer) -> Value {
    let request = expect(peer, "tools/call").await;
    refuse(peer, &request, mismatch()).await;
    request
}

/// Answers the next request for the list of tools.
async fn answer_list(peer: &mut ScriptedPeer, listed: &[Value]) {
    let request = expect(peer, "tools/list").await;
    answer(peer, &request, tools(listed)).await;
}

/// Asserts that the server receives nothing more.
async fn assert_quiet(peer: &mut ScriptedPeer) {
    let more = tokio::time::timeout(Duration::from_secs(100), peer.receive()).await;
    assert!(more.is_err(), "{more:?}");
}

#[tokio::test(start_paused = true)]
async fn call_is_retried_after_tools_are_relisted() {
    let (mut peer, way, session) = session_of(&client()).await;
    // The cached list is outdated.
    list(&mut peer, &session, &[tool("run", &json!("Region"))]).await;
    let call = calling(&session);
    let first = refuse_call(&mut peer).await;
    answer_list(&mut peer, &[tool("run", &json!("Zone"))]).await;
    let second = expect(&mut peer, "tools/call").await;
    assert_ne!(first["id"], second["id"]);
    assert_eq!(first["params"], second["params"]);
    assert_eq!(way.headers(&second).unwrap()["mcp-param-zone"], "r");
    answer(&mut peer, &second, done()).await;
    call.await.unwrap().unwrap();
    assert_quiet(&mut peer).await;
}

#[tokio::test(start_paused = true)]
async fn unlisted_tool_is_looked_up_after_a_refusal() {
    let (mut peer, way, session) = session_of(&client()).await;
    let call = calling(&session);
    refuse_call(&mut peer).await;
    answer_list(&mut peer, &[tool("run", &json!("Region"))]).await;
    let second = expect(&mut peer, "tools/call").await;
    assert_eq!(way.headers(&second).unwrap()["mcp-param-region"], "r");
    answer(&mut peer, &second, done()).await;
    call.await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn second_refusal_is_returned_to_the_caller() {
    let (mut peer, _way, session) = session_of(&client()).await;
    let call = calling(&session);
    refuse_call(&mut peer).await;
    answer_list(&mut peer, &[tool("run", &json!("Region"))]).await;
    refuse_call(&mut peer).await;
    let error = call.await.unwrap().unwrap_err();
    assert_eq!(error.code().value(), -32020);
    assert_quiet(&mut peer).await;
}

#[tokio::test(start_paused = true)]
async fn identical_call_is_not_retried() {
    let plain = json!({"name": "run", "inputSchema": {"type": "object"}});
    for listed in [
        vec![plain],
        // The tool is gone, or its annotation is invalid.
        vec![],
        vec![tool("run", &json!(""))],
    ] {
        let (mut peer, _way, session) = session_of(&client()).await;
        let call = calling(&session);
        refuse_call(&mut peer).await;
        answer_list(&mut peer, &listed).await;
        let error = call.await.unwrap().unwrap_err();
        assert_eq!(error.code().value(), -32020);
        assert_quiet(&mut peer).await;
    }
}

#[tokio::test(start_paused = true)]
async fn endless_tool_list_is_abandoned() {
    let limits = oxmcp::Limits::default().client(|client| client.max_listing_bytes(10_000));
    let (mut peer, _way, session) = session_of(&client().limits(limits)).await;
    let call = calling(&session);
    refuse_call(&mut peer).await;
    for page in 0..9 {
        let request = expect(&mut peer, "tools/list").await;
        let mut listed = tools(&[tool(&"n".repeat(1_000), &json!("Region"))]);
        listed["nextCursor"] = json!(format!("page {page}"));
        answer(&mut peer, &request, listed).await;
    }
    let error = call.await.unwrap().unwrap_err();
    assert_eq!(error.code().value(), -32020);
    assert_quiet(&mut peer).await;
}

/// Marks the process that runs the client of a list without end.
#[cfg(target_os = "linux")]
const ROLE: &str = "OXMCP_TEST_LISTING";

/// A client whose server lists tools without end, and a bound on its memory.
#[cfg(target_os = "linux")]
#[tokio::test]
#[ignore = "the process that the next test starts"]
async fn child() {
    /// The peak memory of this process, in KiB.
    fn high_water() -> usize {
        let status = std::fs::read_to_string("/proc/self/status").unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let size = line.unwrap().trim().trim_end_matches(" kB");
        size.parse().unwrap()
    }

    const LIMIT: usize = 16 << 20;
    if crate::child::role(ROLE).is_none() {
        return;
    }
    let limits = oxmcp::Limits::default().client(|client| client.max_listing_bytes(LIMIT));
    let (mut peer, _way, session) = session_of(&client().limits(limits)).await;
    let mut call = calling(&session);
    refuse_call(&mut peer).await;
    let before = high_water();
    let description = "x".repeat(1 << 20);
    for page in 0..300 {
        let request = tokio::select! {
            refused = &mut call => {
                let error = refused.unwrap().unwrap_err();
                assert_eq!(error.code().value(), -32020);
                break;
            }
            request = peer.receive() => request.unwrap(),
        };
        let mut listed = tools(&[tool("other", &json!("Region"))]);
        listed["tools"][0]["description"] = json!(description);
        listed["nextCursor"] = json!(format!("page {page}"));
        answer(&mut peer, &request, listed).await;
    }
    let grown = high_water() - before;
    // The scripted server runs in this process, too, and keeps its whole transcript.
    let most = 4 * (LIMIT >> 10);
    assert!(grown < most, "{grown} KiB more than {before} KiB");
}

#[cfg(target_os = "linux")]
#[test]
fn endless_list_uses_no_more_than_listing_limit() {
    let name = "client::requests::refreshed_headers::child";
    let output = crate::child::command(name, ROLE, "client").output();
    let output = output.unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stdout)
    );
}

#[tokio::test(start_paused = true)]
async fn failed_list_returns_the_first_refusal() {
    let (mut peer, way, session) = session_of(&client()).await;
    let call = calling(&session);
    refuse_call(&mut peer).await;
    let request = expect(&mut peer, "tools/list").await;
    way.fail(&request, Error::network("cut off")).await;
    let error = call.await.unwrap().unwrap_err();
    assert_eq!(error.code().value(), -32020, "{error}");
}

#[tokio::test(start_paused = true)]
async fn list_and_retry_share_the_first_calls_deadline() {
    let (mut peer, _way, session) = session_of(&client()).await;
    let run = || session.call_tool("run", json!({"region": "r"}));
    let call = run().timeout(Duration::from_secs(5));
    let call = tokio::spawn(call.into_future());
    refuse_call(&mut peer).await;
    expect(&mut peer, "tools/list").await;
    let start = tokio::time::Instant::now();
    assert_eq!(call.await.unwrap().unwrap_err().code().value(), -32020);
    assert_eq!(start.elapsed(), Duration::from_secs(5));
    expect(&mut peer, "notifications/cancelled").await;

    let call = run().timeout(Duration::from_secs(5));
    let call = call.max_total(Duration::from_secs(6));
    let call = tokio::spawn(call.into_future());
    tokio::time::sleep(Duration::from_secs(4)).await;
    refuse_call(&mut peer).await;
    answer_list(&mut peer, &[tool("run", &json!("Region"))]).await;
    expect(&mut peer, "tools/call").await;
    let start = tokio::time::Instant::now();
    assert!(call.await.unwrap().unwrap_err().is_timeout());
    assert_eq!(start.elapsed(), Duration::from_secs(2));
}

#[tokio::test(start_paused = true)]
async fn call_is_cancelled_while_tools_are_listed() {
    let (mut peer, _way, session) = session_of(&client()).await;
    let stop = CancellationToken::new();
    let call = session.call_tool("run", json!({"region": "r"}));
    let call = tokio::spawn(call.cancel_with(stop.clone()).into_future());
    refuse_call(&mut peer).await;
    expect(&mut peer, "tools/list").await;
    stop.cancel();
    assert!(call.await.unwrap().unwrap_err().is_cancelled());
    expect(&mut peer, "notifications/cancelled").await;
    assert_quiet(&mut peer).await;
}

#[tokio::test(start_paused = true)]
async fn concurrently_refused_calls_share_one_list() {
    let (mut peer, _way, session) = session_of(&client()).await;
    let calls: Vec<_> = (0..10).map(|_| calling(&session)).collect();
    let mut requests = Vec::new();
    for _ in &calls {
        requests.push(expect(&mut peer, "tools/call").await);
    }
    for request in &requests {
        refuse(&mut peer, request, mismatch()).await;
    }
    answer_list(&mut peer, &[tool("run", &json!("Region"))]).await;
    for _ in &calls {
        let request = expect(&mut peer, "tools/call").await;
        answer(&mut peer, &request, done()).await;
    }
    for call in calls {
        call.await.unwrap().unwrap();
    }
    assert_quiet(&mut peer).await;
}

#[tokio::test(start_paused = true)]
async fn progress_of_the_retried_call_is_reported() {
    let (mut peer, _way, session) = session_of(&client()).await;
    let (heard, mut hears) = tokio::sync::mpsc::channel(8);
    let call = session.call_tool("run", json!({"region": "r"}));
    let call = call.on_progress(move |update| heard.try_send(update.progress).unwrap());
    let call = tokio::spawn(call.into_future());
    refuse_call(&mut peer).await;
    answer_list(&mut peer, &[tool("run", &json!("Region"))]).await;
    let second = expect(&mut peer, "tools/call").await;
    let token = &second["params"]["_meta"]["progressToken"];
    let progress = json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progressToken": token, "progress": 3}});
    peer.send(progress).await.unwrap();
    answer(&mut peer, &second, done()).await;
    call.await.unwrap().unwrap();
    assert!(hears.recv().await.is_some());
}

#[tokio::test(start_paused = true)]
async fn refusal_is_returned_on_transports_without_headers() {
    let (mut peer, session) = crate::client::session(Revision::LATEST).await;
    let call = calling(&session);
    refuse_call(&mut peer).await;
    assert_eq!(call.await.unwrap().unwrap_err().code().value(), -32020);
    assert_quiet(&mut peer).await;
}

#[tokio::test(start_paused = true)]
async fn other_requests_are_not_retried() {
    let (mut peer, _way, session) = session_of(&client()).await;
    let read = tokio::spawn(session.read_resource("file:///a").into_future());
    let request = expect(&mut peer, "resources/read").await;
    refuse(&mut peer, &request, mismatch()).await;
    assert_eq!(read.await.unwrap().unwrap_err().code().value(), -32020);
    assert_quiet(&mut peer).await;
}
