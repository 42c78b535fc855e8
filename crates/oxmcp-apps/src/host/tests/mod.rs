//! The state machine: each test gives messages, and compares the actions.
#![expect(
    clippy::needless_pass_by_value,
    reason = "the values are written in place"
)]

use std::time::{Duration, Instant};

use oxmcp::protocol::{CallToolParams, CallToolResult, Implementation, Tool};
use serde_json::{Value, json};

use super::*;

mod hostile;

/// A bridge, and a clock that the test moves.
struct Rig {
    bridge: AppBridge,
    now: Instant,
    next_id: i64,
}

fn tool(name: &str, visibility: &[&str]) -> Tool {
    let mut tool = Tool::new(name, json!({"type": "object"}));
    tool.meta.insert("ui", json!({"visibility": visibility}));
    tool
}

fn everything() -> HostCapabilities {
    HostCapabilities {
        open_links: true,
        download_file: true,
        server_tools: true,
        server_resources: true,
        logging: true,
        update_model_context: Some(Modalities::ALL),
        message: Some(Modalities::TEXT),
        sampling: true,
        sampling_tools: false,
    }
}

fn host() -> Implementation {
    Implementation::new("host", "1.0.0")
}

impl Rig {
    #[expect(
        clippy::disallowed_methods,
        reason = "a start for times that pass only in the test"
    )]
    fn new(capabilities: HostCapabilities) -> Self {
        let tools = [
            tool("both", &["model", "app"]),
            tool("view", &["app"]),
            tool("agent", &["model"]),
        ];
        Self {
            bridge: AppBridge::new(host(), capabilities).tools(tools),
            now: Instant::now(),
            next_id: 0,
        }
    }

    /// A view that is ready, with all that a host can offer.
    fn ready() -> Self {
        let mut rig = Self::new(everything());
        rig.initialize(json!({}));
        rig
    }

    fn initialize(&mut self, capabilities: Value) {
        let params =
            json!({"appInfo": {"name": "view", "version": "1"}, "appCapabilities": capabilities});
        self.request("ui/initialize", params);
        self.notify("ui/notifications/initialized", json!({}));
    }

    fn receive(&mut self, message: &Value) -> Vec<String> {
        show(self.bridge.receive(&message.to_string(), self.now))
    }

    fn request(&mut self, method: &str, params: Value) -> Vec<String> {
        self.next_id += 1;
        let id = self.next_id;
        self.receive(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}))
    }

    fn notify(&mut self, method: &str, params: Value) -> Vec<String> {
        self.receive(&json!({"jsonrpc": "2.0", "method": method, "params": params}))
    }

    /// Accepts the request that the actions contain.
    fn decide(
        &mut self,
        method: &str,
        params: Value,
        answer: fn(HostRequest) -> Answer,
    ) -> Vec<String> {
        let message = json!({"jsonrpc": "2.0", "id": "d", "method": method, "params": params});
        let actions = self.bridge.receive(&message.to_string(), self.now);
        let [Action::Decide(request)] = <[Action; 1]>::try_from(actions).unwrap() else {
            panic!("not one request");
        };
        show(self.bridge.answer(answer(request)))
    }
}

/// Each action as one short line.
fn show(actions: Vec<Action>) -> Vec<String> {
    let line = |action| match action {
        Action::Send(text) => {
            let message: Value = serde_json::from_str(&text).unwrap();
            assert_eq!(message["jsonrpc"], "2.0");
            let code = &message["error"]["code"];
            match (message["method"].as_str(), message.get("result")) {
                (Some(method), _) => format!("send {method} {}", message["params"]),
                (None, Some(result)) => format!("answer {} {result}", message["id"]),
                (None, None) => format!("refuse {} {code}", message["id"]),
            }
        }
        Action::Forward(request) => match request.kind {
            ForwardedRequestKind::CallTool(call) => {
                assert!(call.meta.is_empty() && call.task.is_none());
                let arguments = call
                    .arguments
                    .map_or(String::new(), |it| it.get().to_owned());
                format!("call {} {arguments}", call.name)
            }
            other => format!("forward {other:?}"),
        },
        Action::Decide(request) => format!("decide {:?}", request.kind),
        Action::Cancel(_) => "cancel".to_owned(),
        Action::Notice(notice) => format!("notice {notice:?}"),
        Action::Unmount => "unmount".to_owned(),
        Action::Report(_) => "report".to_owned(),
    };
    actions.into_iter().map(line).collect()
}

#[test]
fn view_is_initialized_before_it_hears_anything() {
    let mut rig = Rig::new(everything());
    let context = HostContext {
        theme: Some(Theme::Dark),
        ..HostContext::default()
    };
    assert!(rig.bridge.change_context(context).unwrap().is_empty());
    assert!(
        rig.bridge
            .tool_input_partial(json!({"a": 1}))
            .unwrap()
            .is_empty()
    );
    assert!(
        rig.bridge
            .tool_input_partial(json!({"a": 2}))
            .unwrap()
            .is_empty()
    );
    let params = json!({"protocolVersion": "2026-01-26", "appInfo": {"name": "v", "version": "2"},
        "appCapabilities": {"tools": {"listChanged": true}, "availableDisplayModes": ["inline", "x"]}});
    let answer = rig.request("ui/initialize", params);
    let result: Value = serde_json::from_str(answer[0].strip_prefix("answer 1 ").unwrap()).unwrap();
    let expected = json!({
        "protocolVersion": "2026-01-26",
        "hostInfo": {"name": "host", "version": "1.0.0"},
        "hostCapabilities": {
            "openLinks": {}, "downloadFile": {}, "serverTools": {"listChanged": true}, "serverResources": {"listChanged": true},
            "logging": {}, "message": {"text": {}}, "sampling": {},
            "updateModelContext": {"text": {}, "image": {}, "audio": {}, "resource": {}, "resourceLink": {}, "structuredContent": {}},
        },
        "hostContext": {"theme": "dark"},
    });
    assert_eq!(result, expected);
    // Between the answer and the confirmation, the view hears nothing, either.
    let context = HostContext {
        locale: Some("de-DE".to_owned()),
        ..HostContext::default()
    };
    assert!(rig.bridge.change_context(context).unwrap().is_empty());
    assert!(rig.bridge.tools_changed([tool("new", &["app"])]).is_empty());
    assert!(rig.bridge.resources_changed().is_empty());
    assert!(!rig.bridge.is_ready());
    let actions = rig.notify("ui/notifications/initialized", json!({}));
    assert!(rig.bridge.is_ready());
    assert_eq!(
        actions,
        [
            "notice Initialized(AppInfo { name: \"v\", version: \"2\", has_tools: true, display_modes: Some([Inline]) })",
            "send ui/notifications/host-context-changed {\"locale\":\"de-DE\"}",
            "send ui/notifications/tool-input-partial {\"arguments\":{\"a\":2}}",
        ]
    );
}

#[test]
fn input_precedes_the_result_exactly_once() {
    let result = CallToolResult::text("r");
    let mut rig = Rig::new(everything());
    assert!(rig.bridge.tool_result(&result).is_err());
    let big = "{\"n\":12345678901234567890123}";
    let raw = serde_json::value::RawValue::from_string(big.to_owned()).unwrap();
    for wrong in [json!([1]), json!(null), json!("x")] {
        assert!(rig.bridge.tool_input(&wrong).is_err(), "{wrong}");
        assert!(rig.bridge.tool_input_partial(&wrong).is_err(), "{wrong}");
    }
    assert!(rig.bridge.tool_input(&raw).unwrap().is_empty());
    assert!(rig.bridge.tool_input(json!({})).is_err());
    assert!(rig.bridge.tool_input_partial(json!({})).is_err());
    assert!(rig.bridge.tool_result(&result).unwrap().is_empty());
    assert!(rig.bridge.tool_result(&result).is_err());
    assert!(rig.bridge.tool_cancelled("late").is_err());
    rig.request("ui/initialize", json!({}));
    let message = json!({"jsonrpc": "2.0", "method": "ui/notifications/initialized"});
    let sent = rig.bridge.receive(&message.to_string(), rig.now);
    // Numbers keep their text.
    assert!(matches!(&sent[1], Action::Send(text) if text.contains(big)));
    let lines = show(sent);
    assert!(lines[1].starts_with("send ui/notifications/tool-input "));
    assert_eq!(
        lines[2],
        "send ui/notifications/tool-result {\"content\":[{\"text\":\"r\",\"type\":\"text\"}]}"
    );
    assert_eq!(lines.len(), 3);

    // A call can be cancelled before its input is complete.
    let mut rig = Rig::ready();
    let sent = show(rig.bridge.tool_cancelled("stopped").unwrap());
    assert_eq!(
        sent,
        ["send ui/notifications/tool-cancelled {\"reason\":\"stopped\"}"]
    );
    assert!(rig.bridge.tool_input(json!({})).is_err());
}

#[test]
fn messages_out_of_order_have_no_effect() {
    let mut rig = Rig::new(everything());
    assert_eq!(rig.request("ping", json!({})), ["answer 1 {}"]);
    let early = [
        "tools/call",
        "tools/list",
        "ui/open-link",
        "resources/read",
        "nothing",
    ];
    for method in early {
        let refused = rig.request(
            method,
            json!({"name": "both", "url": "https://a.example", "uri": "ui://a"}),
        );
        assert_eq!(
            refused,
            [
                "report".to_owned(),
                format!("refuse {} -32000", rig.next_id)
            ]
        );
    }
    for method in [
        "ui/notifications/initialized",
        "ui/notifications/size-changed",
        "ui/notifications/request-teardown",
        "notifications/message",
    ] {
        assert_eq!(rig.notify(method, json!({})), ["report"]);
    }
    assert!(!rig.bridge.is_ready());
    rig.initialize(json!({}));
    assert!(rig.bridge.is_ready());
    // A second initialization changes nothing.
    let again = rig.request(
        "ui/initialize",
        json!({"appInfo": {"name": "other", "version": "1"}}),
    );
    assert!(again[1].starts_with("refuse") && again[1].ends_with("-32000"));
    assert_eq!(
        rig.notify("ui/notifications/initialized", json!({})),
        ["report"]
    );
}

#[test]
fn tool_calls_obey_visibility() {
    let mut rig = Rig::ready();
    let cases = [
        (
            json!({"name": "both", "arguments": {"n": 1}}),
            Ok("call both {\"n\":1}"),
        ),
        (json!({"name": "view"}), Ok("call view ")),
        (
            json!({"name": "view", "_meta": {"progressToken": 1}, "task": {}}),
            Ok("call view "),
        ),
        (json!({"name": "agent"}), Err(-32000)),
        // A tool of another server.
        (json!({"name": "foreign"}), Err(-32602)),
        (json!({"name": "both", "arguments": [1]}), Err(-32602)),
        (json!({"name": 7}), Err(-32602)),
        (json!({}), Err(-32602)),
    ];
    for (params, expected) in cases {
        let actions = rig.request("tools/call", params.clone());
        match expected {
            Ok(call) => assert_eq!(actions, [call], "{params}"),
            Err(code) => {
                let refused = format!("refuse {} {code}", rig.next_id);
                assert_eq!(actions, ["report".to_owned(), refused], "{params}");
            }
        }
    }
    let listed = rig.request("tools/list", json!({"cursor": "x"}));
    assert!(listed[0].contains("\"both\"") && listed[0].contains("\"view\""));
    assert!(!listed[0].contains("\"agent\""));
    // Changed tools count at once.
    let sent = show(rig.bridge.tools_changed([tool("agent", &["app"])]));
    assert_eq!(sent, ["send notifications/tools/list_changed {}"]);
    assert_eq!(
        rig.request("tools/call", json!({"name": "agent"})),
        ["call agent "]
    );
    assert_eq!(
        rig.request("tools/call", json!({"name": "both"}))[0],
        "report"
    );
}

#[test]
fn requests_without_a_capability_are_refused() {
    let methods = [
        "tools/call",
        "tools/list",
        "resources/read",
        "resources/list",
        "resources/templates/list",
        "prompts/list",
        "sampling/createMessage",
        "ui/open-link",
        "ui/download-file",
        "ui/message",
        "ui/update-model-context",
        "initialize",
        "ui/unknown",
    ];
    let mut rig = Rig::new(HostCapabilities::default());
    rig.initialize(json!({"tools": {}}));
    for method in methods {
        let refused = rig.request(
            method,
            json!({"name": "both", "uri": "ui://a", "url": "https://a.example"}),
        );
        let expected = format!("refuse {} -32601", rig.next_id);
        assert_eq!(refused, ["report".to_owned(), expected], "{method}");
    }
    let log = json!({"level": "info", "data": "x"});
    assert_eq!(rig.notify("notifications/message", log), ["report"]);
    // It is not notified of changes, either.
    assert!(rig.bridge.tools_changed([]).is_empty());
    assert!(rig.bridge.resources_changed().is_empty());
}

#[test]
fn requests_are_passed_to_the_host() {
    let mut rig = Rig::ready();
    let cases = [
        (
            "resources/read",
            json!({"uri": "ui://a"}),
            "forward ReadResource(\"ui://a\")",
        ),
        ("resources/list", json!({}), "forward ListResources(None)"),
        (
            "resources/templates/list",
            json!({}),
            "forward ListResourceTemplates(None)",
        ),
        (
            "ui/open-link",
            json!({"url": "HTTPS://a.example"}),
            "decide OpenLink(\"HTTPS://a.example\")",
        ),
        (
            "ui/open-link",
            json!({"url": "mailto:a@b.example"}),
            "decide OpenLink(\"mailto:a@b.example\")",
        ),
    ];
    for (method, params, expected) in cases {
        assert_eq!(rig.request(method, params), [expected]);
    }
    let sampled = rig.request(
        "sampling/createMessage",
        json!({"messages": [], "maxTokens": 5, "includeContext": "allServers"}),
    );
    assert!(sampled[0].starts_with("decide CreateMessage("));
    assert!(sampled[0].contains("ThisServer"), "{sampled:?}");
    let text = json!({"type": "text", "text": "hi"});
    for content in [json!(text), json!([text])] {
        let said = rig.request("ui/message", json!({"role": "user", "content": content}));
        assert!(said[0].starts_with("decide Message([Text("), "{said:?}");
    }
    let file = json!({"contents": [{"type": "resource", "resource": {"uri": "file:///a.txt", "text": "x"}},
        {"type": "resource_link", "uri": "https://a.example/b", "name": "b"}]});
    assert!(rig.request("ui/download-file", file)[0].starts_with("decide DownloadFile("));
}

#[test]
fn dangerous_requests_are_refused() {
    let mut rig = Rig::ready();
    let image = json!({"type": "image", "data": "AA==", "mimeType": "image/png"});
    let text = json!({"type": "text", "text": "hi"});
    let link =
        |uri: &str| json!({"contents": [{"type": "resource_link", "uri": uri, "name": "b"}]});
    let tools =
        json!({"messages": [], "maxTokens": 5, "tools": [{"name": "t", "inputSchema": {}}]});
    let cases = [
        ("ui/open-link", json!({"url": "javascript:alert(1)"})),
        ("ui/open-link", json!({"url": "file:///etc/passwd"})),
        ("ui/open-link", json!({"url": "https://"})),
        ("ui/open-link", json!({"url": "https://a.example/\nx"})),
        (
            "ui/open-link",
            json!({"url": format!("https://a.example/{}", "x".repeat(9000))}),
        ),
        ("ui/download-file", link("file:///etc/passwd")),
        ("ui/download-file", json!({"contents": []})),
        ("ui/download-file", json!({"contents": [text]})),
        ("ui/message", json!({"role": "assistant", "content": text})),
        ("ui/message", json!({"role": "user", "content": []})),
        ("ui/message", json!({"role": "user", "content": [image]})),
        ("sampling/createMessage", tools),
        (
            "ui/update-model-context",
            json!({"content": [{"type": "unknown"}]}),
        ),
    ];
    for (method, params) in cases {
        let refused = rig.request(method, params.clone());
        let expected = format!("refuse {} -32000", rig.next_id);
        assert_eq!(
            refused,
            ["report".to_owned(), expected],
            "{method} {params}"
        );
    }
}

#[test]
fn answers_reach_the_view_by_its_ids() {
    let mut rig = Rig::ready();
    let params = json!({"url": "https://a.example"});
    let done = rig.decide("ui/open-link", params.clone(), HostRequest::accept);
    assert_eq!(done, ["answer \"d\" {}"]);
    let denied = rig.decide("ui/open-link", params.clone(), |it| it.deny("no"));
    assert_eq!(denied, ["refuse \"d\" -32000"]);

    // A view sends the ID of a request in flight again, to get two answers.
    let message = json!({"jsonrpc": "2.0", "id": 7, "method": "ui/open-link", "params": params});
    let actions = rig.bridge.receive(&message.to_string(), rig.now);
    assert_eq!(rig.receive(&message), ["report"]);
    let [Action::Decide(request)] = <[Action; 1]>::try_from(actions).unwrap() else {
        panic!("not one request");
    };
    let key = request.key;
    assert_eq!(show(rig.bridge.answer(request.accept())), ["answer 7 {}"]);
    // The ID is free again, and cancelling it ends the request without an answer.
    let actions = rig.bridge.receive(&message.to_string(), rig.now);
    let [Action::Decide(request)] = <[Action; 1]>::try_from(actions).unwrap() else {
        panic!("not one request");
    };
    assert_ne!(request.key, key);
    let cancelled = rig.notify("notifications/cancelled", json!({"requestId": 7}));
    assert_eq!(cancelled, ["cancel"]);
    assert!(rig.bridge.answer(request.accept()).is_empty());
    assert!(
        rig.notify("notifications/cancelled", json!({"requestId": 7}))
            .is_empty()
    );
}

#[test]
fn model_context_is_replaced_when_accepted() {
    let mut rig = Rig::ready();
    let update = |text: &str| json!({"content": [{"type": "text", "text": text}]});
    let method = "ui/update-model-context";
    rig.decide(method, update("one"), HostRequest::accept);
    rig.decide(method, update("two"), |it| it.deny("no"));
    let text = |rig: &Rig| {
        rig.bridge.model_context().unwrap().content[0]
            .as_text()
            .unwrap()
            .to_owned()
    };
    assert_eq!(text(&rig), "one");
    rig.decide(method, update("three"), HostRequest::accept);
    assert_eq!(text(&rig), "three");
    rig.decide(
        method,
        json!({"structuredContent": {"a": 1}}),
        HostRequest::accept,
    );
    let context = rig.bridge.model_context().unwrap();
    assert!(context.content.is_empty() && context.structured_content.is_some());

    // The host accepts two updates in the other order: the one that was sent last counts.
    let sent = ["older", "newer"].map(|text| {
        let message =
            json!({"jsonrpc": "2.0", "id": text, "method": method, "params": update(text)});
        let actions = rig.bridge.receive(&message.to_string(), rig.now);
        let [Action::Decide(request)] = <[Action; 1]>::try_from(actions).unwrap() else {
            panic!("not one request");
        };
        request
    });
    for request in sent.into_iter().rev() {
        rig.bridge.answer(request.accept());
        assert_eq!(text(&rig), "newer");
    }
    let large = update(&"x".repeat(rig.bridge.limits.max_context_bytes));
    assert_eq!(rig.request(method, large)[0], "report");
}

#[test]
fn display_mode_needs_both_sides() {
    let context = HostContext {
        display_mode: Some(DisplayMode::Inline),
        available_display_modes: Some(vec![DisplayMode::Inline, DisplayMode::Fullscreen]),
        ..HostContext::default()
    };
    let mut rig = Rig::new(everything());
    rig.bridge = rig.bridge.context(context);
    rig.initialize(json!({"availableDisplayModes": ["inline", "fullscreen", "pip"]}));
    let method = "ui/request-display-mode";
    let ask = |mode: &str| json!({"mode": mode});
    // The host does not offer it.
    assert!(rig.request(method, ask("pip"))[0].ends_with("{\"mode\":\"inline\"}"));
    let shown = rig.decide(method, ask("fullscreen"), |it| {
        it.shown(DisplayMode::Inline)
    });
    assert_eq!(shown, ["answer \"d\" {\"mode\":\"inline\"}"]);
    let shown = rig.decide(method, ask("fullscreen"), HostRequest::accept);
    assert_eq!(shown, ["answer \"d\" {\"mode\":\"fullscreen\"}"]);
    assert!(rig.request(method, ask("fullscreen"))[0].ends_with("{\"mode\":\"fullscreen\"}"));
    assert!(rig.request(method, ask("cinema"))[1].ends_with("-32602"));
}

#[test]
fn undeclared_display_modes_are_refused() {
    let context = |mode| HostContext {
        display_mode: Some(mode),
        available_display_modes: Some(vec![DisplayMode::Inline, DisplayMode::Fullscreen]),
        ..HostContext::default()
    };
    let method = "ui/request-display-mode";
    for declared in [json!({}), json!({"availableDisplayModes": ["inline"]})] {
        let mut rig = Rig::new(everything());
        rig.bridge = rig.bridge.context(context(DisplayMode::Inline));
        rig.initialize(declared);
        let refused = rig.request(method, json!({"mode": "fullscreen"}));
        assert_eq!(refused, ["report", "refuse 2 -32000"]);
        // The host does not force it on the view, either.
        let change = rig.bridge.change_context(context(DisplayMode::Fullscreen));
        assert!(change.is_err());
        assert!(
            rig.bridge
                .change_context(context(DisplayMode::Inline))
                .is_ok()
        );
    }

    // A view that is in another mode asks for its own, and the host shows it in a third one.
    let mut rig = Rig::new(everything());
    let changed = rig.bridge.change_context(context(DisplayMode::Inline));
    assert!(changed.is_ok());
    rig.initialize(json!({"availableDisplayModes": ["inline", "fullscreen"]}));
    let shown = rig.decide(method, json!({"mode": "fullscreen"}), |it| {
        it.shown(DisplayMode::Pip)
    });
    assert_eq!(shown, ["refuse \"d\" -32000"]);
    assert_eq!(rig.bridge.context.display_mode, Some(DisplayMode::Inline));
}

// The answer to a view of one server reaches the view of another.
#[test]
fn answer_for_another_bridge_has_no_effect() {
    let mut rigs = [Rig::ready(), Rig::ready()];
    let sent = rigs.each_mut().map(|rig| {
        let message = json!({"jsonrpc": "2.0", "id": 1, "method": "ui/open-link", "params": {"url": "https://a.example"}});
        let actions = rig.bridge.receive(&message.to_string(), rig.now);
        let [Action::Decide(request)] = <[Action; 1]>::try_from(actions).unwrap() else {
            panic!("not one request");
        };
        request
    });
    let [one, other] = sent;
    assert_ne!(one.key, other.key);
    assert!(rigs[1].bridge.answer(one.accept()).is_empty());
    assert_eq!(show(rigs[1].bridge.answer(other.accept())), ["answer 1 {}"]);

    let keys = [0, 1].map(|_| {
        let mut rig = Rig::new(everything());
        rig.initialize(json!({"tools": {}}));
        rig.bridge.list_app_tools(rig.now).unwrap().0
    });
    assert_ne!(keys[0], keys[1]);
}

#[test]
fn notifications_become_notices() {
    let mut rig = Rig::ready();
    let size = json!({"width": 300, "height": 200.5});
    let method = "ui/notifications/size-changed";
    let changed = "notice SizeChanged { width: Some(300.0), height: Some(200.5) }";
    assert_eq!(rig.notify(method, size.clone()), [changed]);
    assert!(rig.notify(method, size).is_empty());
    for bad in [
        json!({"width": -1}),
        json!({"height": 1e9}),
        json!({"width": "x"}),
    ] {
        assert_eq!(rig.notify(method, bad), ["report"]);
    }
    let asked = rig.notify("ui/notifications/request-teardown", json!({}));
    assert_eq!(asked, ["notice TeardownRequested"]);
    let log = json!({"level": "warning", "logger": "l", "data": {"a": 1}});
    assert_eq!(
        rig.notify("notifications/message", log),
        ["notice Log { level: Warning, logger: Some(\"l\"), text: \"{\\\"a\\\":1}\" }"]
    );
    let limit = rig.bridge.limits.max_log_bytes;
    let long = json!({"level": "info", "data": "é".repeat(limit)});
    let cut = rig.notify("notifications/message", long);
    assert!(cut[0].contains('…') && cut[0].len() < limit + 100);
    assert_eq!(
        rig.notify("notifications/tools/list_changed", json!({})),
        ["report"]
    );
    assert_eq!(
        rig.notify("ui/notifications/unknown", json!({})),
        ["report"]
    );
}

#[test]
fn teardown_waits_for_the_view_with_a_limit() {
    let mut rig = Rig::ready();
    assert_eq!(rig.bridge.deadline(), None);
    let sent = show(rig.bridge.teardown("done", rig.now));
    assert_eq!(sent, ["send ui/resource-teardown {\"reason\":\"done\"}"]);
    // The view can still save its state.
    assert_eq!(
        rig.request("tools/call", json!({"name": "view"})),
        ["call view "]
    );
    let deadline = rig.bridge.deadline().unwrap();
    assert_eq!(deadline, rig.now + Duration::from_secs(3));
    assert!(rig.bridge.teardown("again", rig.now).is_empty());
    assert!(
        rig.bridge
            .expire(deadline - Duration::from_millis(1))
            .is_empty()
    );
    assert_eq!(show(rig.bridge.expire(deadline)), ["cancel", "unmount"]);
    assert_eq!(rig.bridge.deadline(), None);
    assert!(rig.request("ping", json!({})).is_empty());
    assert!(rig.bridge.tool_input(json!({})).unwrap().is_empty());

    let mut rig = Rig::ready();
    rig.bridge.teardown("done", rig.now);
    assert_eq!(
        rig.receive(&json!({"jsonrpc": "2.0", "id": 1, "result": {}})),
        ["unmount"]
    );

    // A view that is not ready hears nothing, and is removed at once.
    let mut rig = Rig::new(everything());
    assert_eq!(show(rig.bridge.teardown("done", rig.now)), ["unmount"]);
}

#[test]
fn tools_of_the_view_are_called_in_time() {
    let mut rig = Rig::ready();
    assert!(rig.bridge.list_app_tools(rig.now).is_err());

    let mut rig = Rig::new(everything());
    rig.initialize(json!({"tools": {}}));
    let (_, actions) = rig.bridge.list_app_tools(rig.now).unwrap();
    assert_eq!(show(actions), ["send tools/list {}"]);
    let many: Vec<_> = (0..60)
        .map(|it| json!({"name": format!("t{it}"), "inputSchema": {}}))
        .collect();
    let actions = rig.bridge.receive(
        &json!({"jsonrpc": "2.0", "id": 1, "result": {"tools": many}}).to_string(),
        rig.now,
    );
    assert!(
        matches!(&actions[0], Action::Report(text) if text.contains("60, and the limit is 50"))
    );
    assert!(
        matches!(&actions[1], Action::Notice(Notice::AppTools(_, Ok(tools))) if tools.len() == 50)
    );

    let call = CallToolParams::new("t1");
    let (_, actions) = rig.bridge.call_app_tool(&call, rig.now).unwrap();
    assert_eq!(show(actions), ["send tools/call {\"name\":\"t1\"}"]);
    let answer =
        json!({"jsonrpc": "2.0", "id": 2, "result": {"content": [{"type": "text", "text": "x"}]}});
    // A view answers with an ID that the host has not used, or twice.
    let wrong = json!({"jsonrpc": "2.0", "id": "2", "result": {}});
    assert_eq!(rig.receive(&wrong), ["report"]);
    let actions = rig.bridge.receive(&answer.to_string(), rig.now);
    let result = "a result";
    assert!(
        matches!(&actions[0], Action::Notice(Notice::AppToolResult(_, Ok(_)))),
        "{result}"
    );
    assert_eq!(rig.receive(&answer), ["report"]);

    rig.bridge.call_app_tool(&call, rig.now).unwrap();
    let bad = json!({"jsonrpc": "2.0", "id": 3, "result": 7});
    let actions = rig.bridge.receive(&bad.to_string(), rig.now);
    assert!(matches!(
        &actions[0],
        Action::Notice(Notice::AppToolResult(_, Err(_)))
    ));

    rig.bridge.call_app_tool(&call, rig.now).unwrap();
    let deadline = rig.bridge.deadline().unwrap();
    let actions = rig.bridge.expire(deadline);
    assert!(
        matches!(&actions[0], Action::Notice(Notice::AppToolResult(_, Err(error))) if error.message.contains("in time"))
    );
    assert!(rig.bridge.expire(deadline).is_empty());
}
