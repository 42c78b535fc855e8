//! Views that attack their host: with floods, with messages that are too large or malformed, and as somebody else.

use super::*;

// A view sends what is not JSON-RPC.
#[test]
fn malformed_messages_are_only_reported() {
    let mut rig = Rig::ready();
    let long_id = format!(
        "{{\"jsonrpc\":\"2.0\",\"id\":\"{}\",\"method\":\"ping\"}}",
        "x".repeat(300)
    );
    let deep = format!(
        "{{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{}1{}}}",
        "[".repeat(100_000),
        "]".repeat(100_000)
    );
    for bad in [
        "",
        "x",
        "null",
        "[]",
        "{}",
        "{\"jsonrpc\":\"1.0\",\"id\":1,\"method\":\"ping\"}",
        "{\"jsonrpc\":\"2.0\",\"id\":1.5,\"method\":\"ping\"}",
        "{\"jsonrpc\":\"2.0\",\"id\":{},\"method\":\"ping\"}",
        "{\"jsonrpc\":\"2.0\",\"id\":1}",
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\",\"result\":{}}",
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\",\"method\":\"tools/list\"}",
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{},\"error\":{\"code\":1,\"message\":\"\"}}",
        "{\"jsonrpc\":\"2.0\",\"id\":99,\"result\":{}}",
        &long_id,
    ] {
        assert_eq!(
            show(rig.bridge.receive(bad, rig.now)),
            ["report"],
            "{bad:.80}"
        );
    }
    // One that can be told from others gets an error.
    let refused = show(rig.bridge.receive(&deep, rig.now));
    assert_eq!(refused, ["report", "refuse 1 -32602"]);
}

// A view sends a message that is larger than the host can keep.
#[test]
fn oversized_message_is_dropped_unread() {
    let mut rig = Rig::ready();
    let limits = rig.bridge.limits;
    let padding = " ".repeat(limits.max_message_bytes);
    let message = format!("{{\"jsonrpc\":\"2.0\",\"id\":5,\"method\":\"ping\"}}{padding}");
    assert_eq!(show(rig.bridge.receive(&message, rig.now)), ["report"]);
}

// A view sends more messages than the host can work on.
#[test]
fn flood_is_refused_and_recovers() {
    let mut rig = Rig::ready();
    let mut done = 0;
    for _ in 0..1000 {
        done += usize::from(
            rig.notify("ui/notifications/request-teardown", json!({}))
                == ["notice TeardownRequested"],
        );
    }
    // Two seconds' worth, of which the initialization took two.
    assert_eq!(done, 198);
    let refused = rig.request("ping", json!({}));
    assert_eq!(refused.last().unwrap(), "refuse 2 -32000");
    rig.now += Duration::from_secs(1);
    assert_eq!(rig.request("ping", json!({})), ["answer 3 {}"]);
}

// A view has more requests in flight than the host can keep.
#[test]
fn requests_in_flight_are_bounded() {
    let mut rig = Rig::ready();
    let limit = rig.bridge.limits.max_requests;
    for _ in 0..limit {
        assert_eq!(
            rig.request("tools/call", json!({"name": "both"})),
            ["call both "]
        );
    }
    let refused = rig.request("tools/call", json!({"name": "both"}));
    assert_eq!(refused[1], format!("refuse {} -32000", rig.next_id));
    // A view cancels requests to have more of them. They count until the host has stopped to work on them, or some time passes.
    rig.notify("notifications/cancelled", json!({"requestId": 2}));
    let refused = rig.request("tools/call", json!({"name": "both"}));
    assert_eq!(refused[1], format!("refuse {} -32000", rig.next_id));
    rig.now += rig.bridge.limits.cancelled_time;
    assert_eq!(
        rig.request("tools/call", json!({"name": "both"})),
        ["call both "]
    );
    let message =
        json!({"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": {"name": "both"}});
    assert_eq!(rig.receive(&message), ["report"]);
}

#[test]
fn cancelled_request_is_freed_by_its_answer() {
    let mut rig = Rig::ready();
    rig.bridge.limits.max_requests = 1;
    let call =
        json!({"jsonrpc": "2.0", "id": "c", "method": "tools/call", "params": {"name": "both"}});
    let actions = rig.bridge.receive(&call.to_string(), rig.now);
    let [Action::Forward(request)] = <[Action; 1]>::try_from(actions).unwrap() else {
        panic!("not one request");
    };
    let cancelled = json!({"requestId": "c"});
    let method = "notifications/cancelled";
    assert_eq!(rig.notify(method, cancelled.clone()), ["cancel"]);
    // Cancelling it again does not prolong it.
    assert!(rig.notify(method, cancelled).is_empty());
    assert_eq!(rig.receive(&call), ["report", "refuse \"c\" -32000"]);
    assert!(rig.bridge.answer(request.deny("stopped")).is_empty());
    assert_eq!(rig.receive(&call), ["call both "]);
}

// A view has large requests in flight, and few of them.
#[test]
fn bytes_in_flight_are_bounded() {
    let mut rig = Rig::ready();
    rig.bridge.limits.max_request_bytes = 1200;
    let large = json!({"name": "both", "arguments": {"text": "x".repeat(400)}});
    let is_called = |sent: Vec<String>| sent[0].starts_with("call both ");
    assert!(is_called(rig.request("tools/call", large.clone())));
    assert!(is_called(rig.request("tools/call", large.clone())));
    let refused = rig.request("tools/call", large.clone());
    assert_eq!(
        refused,
        [
            "report".to_owned(),
            format!("refuse {} -32000", rig.next_id)
        ]
    );
    assert_eq!(rig.request("ping", json!({})), ["answer 5 {}"]);
    rig.notify("notifications/cancelled", json!({"requestId": 2}));
    assert_eq!(rig.request("tools/call", large.clone())[0], "report");
    rig.now += rig.bridge.limits.cancelled_time;
    assert!(is_called(rig.request("tools/call", large)));
}

// A view fills the log with violations.
#[test]
fn reports_are_bounded() {
    let mut rig = Rig::ready();
    let mut reports = Vec::new();
    for _ in 0..500 {
        rig.now += Duration::from_secs(1);
        reports.extend(rig.bridge.receive(&"x".repeat(100), rig.now));
    }
    assert_eq!(reports.len(), rig.bridge.limits.max_reports);
    assert!(matches!(reports.last(), Some(Action::Report(text)) if text.contains("not reported")));
}

// A view imitates the sandbox proxy.
#[test]
fn page_is_given_to_the_proxy_once() {
    let page = AppPage {
        uri: "ui://a".to_owned(),
        html: "<!doctype html>".to_owned(),
        meta: crate::AppMeta::default(),
    };
    let mut rig = Rig::new(everything());
    rig.bridge = rig.bridge.page(page);
    let ready = "ui/notifications/sandbox-proxy-ready";
    let sent = rig.notify(ready, json!({}));
    assert!(sent[0].starts_with(
        "send ui/notifications/sandbox-resource-ready {\"csp\":{\"baseUriDomains\":[]"
    ));
    assert!(sent[0].contains("\"html\":\"<!doctype html>\""));
    assert_eq!(rig.notify(ready, json!({})), ["report"]);
    // The view learns its policy.
    let answer = rig.request("ui/initialize", json!({}));
    assert!(answer[0].contains("\"sandbox\":{\"csp\""));
    assert_eq!(Rig::ready().notify(ready, json!({})), ["report"]);
}
