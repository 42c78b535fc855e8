//! Tasks of 2025-11-25, which clients request, in sessions without identities.

use oxmcp::{Error, JsonSchema, Revision, protocol::CallToolResult, tasks::ServerTasks};

use super::*;
use crate::support::{LEGACY, answer, idle, notification, request};

/// A scripted client in a session of 2025-11-25.
pub(super) struct Session {
    peer: ScriptedPeer,
    id: i64,
    /// The other messages that arrived while the client waited for an answer.
    heard: Vec<Value>,
}

impl Session {
    pub(super) async fn of(server: &Server) -> Self {
        Self::declaring(server, json!({"elicitation": {}})).await.0
    }

    /// Opens a session with these client capabilities. Also returns the server's capabilities.
    async fn declaring(server: &Server, capabilities: Value) -> (Self, Value) {
        let mut peer = script(server).await;
        let params = json!({
            "protocolVersion": "2025-11-25",
            "capabilities": capabilities,
            "clientInfo": {"name": "scripted", "version": "1.0.0"},
        });
        let opened = peer.ask(request(0, "initialize", params)).await.unwrap();
        peer.send(notification("notifications/initialized"))
            .await
            .unwrap();
        let session = Self {
            peer,
            id: 0,
            heard: Vec::new(),
        };
        (session, opened["result"]["capabilities"].clone())
    }

    /// Sends a request, and returns its id.
    pub(super) async fn send(&mut self, method: &str, params: Value) -> i64 {
        self.id += 1;
        let request = request(self.id, method, params);
        self.peer.send(request).await.unwrap();
        self.id
    }

    async fn receive(&mut self) -> Value {
        let received = tokio::time::timeout(Duration::from_secs(7200), self.peer.receive());
        received.await.expect("nothing comes").unwrap()
    }

    /// The answer to a request.
    pub(super) async fn answer(&mut self, id: i64) -> Value {
        loop {
            let message = self.receive().await;
            if message["id"] == id && message.get("method").is_none() {
                return message;
            }
            self.heard.push(message);
        }
    }

    async fn ask(&mut self, method: &str, params: Value) -> Value {
        let id = self.send(method, params).await;
        self.answer(id).await
    }

    /// The first message with this method, received now or earlier.
    pub(super) async fn hear(&mut self, method: &str) -> Value {
        if let Some(at) = self.heard.iter().position(|it| it["method"] == method) {
            return self.heard.remove(at);
        }
        loop {
            let message = self.receive().await;
            if message["method"] == method {
                return message;
            }
            self.heard.push(message);
        }
    }

    /// Answers a request of the server.
    pub(super) async fn reply(&mut self, asked: &Value, result: Value) {
        let reply = json!({"jsonrpc": "2.0", "id": asked["id"], "result": result});
        self.peer.send(reply).await.unwrap();
    }

    /// Calls a tool as a task, and returns the task's id.
    pub(super) async fn begin(&mut self, tool: &str) -> String {
        let params = json!({"name": tool, "task": {}});
        let created = self.ask("tools/call", params).await;
        let id = created["result"]["task"]["taskId"].as_str();
        id.unwrap_or_else(|| panic!("{created}")).to_owned()
    }

    async fn get(&mut self, id: &str) -> Value {
        let got = self.ask("tasks/get", json!({"taskId": id})).await;
        got["result"].clone()
    }

    pub(super) async fn until(&mut self, id: &str, status: &str) -> Value {
        for _ in 0..1000 {
            let task = self.get(id).await;
            if task["status"] == status {
                return task;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        panic!("the task never is {status}: {}", self.get(id).await);
    }

    pub(super) async fn result(&mut self, id: &str) -> Value {
        self.ask("tasks/result", json!({"taskId": id})).await
    }
}

fn related(id: &str) -> Value {
    json!({Meta::RELATED_TASK: {"taskId": id}})
}

#[tokio::test(start_paused = true)]
async fn tasks_are_declared_only_to_their_revision() {
    let (tool, _open) = gated(TaskPolicy::Always);
    let server = server(tool);
    for revision in LEGACY {
        let mut peer = script(&server).await;
        let opened = peer.initialize(revision).await.unwrap();
        let declared = &opened["result"]["capabilities"];
        let expected = match revision {
            // A session without an identity cannot list tasks.
            Revision::V2025_11_25 => json!({"cancel": {}, "requests": {"tools": {"call": {}}}}),
            _ => Value::Null,
        };
        assert_eq!(declared["tasks"], expected, "{revision}: {declared}");
    }
    let discovered = answer(&server, Revision::LATEST, "server/discover", json!({})).await;
    let declared = &discovered["result"]["capabilities"];
    assert!(
        declared.get("tasks").is_none() && declared["extensions"].get(ID).is_some(),
        "{declared}"
    );
    let plain = Server::new("s", "1").tool(idle("idle"));
    let (mut session, declared) = Session::declaring(&plain, json!({})).await;
    assert!(declared.get("tasks").is_none(), "{declared}");
    for method in ["tasks/get", "tasks/result", "tasks/cancel", "tasks/list"] {
        let refused = session.ask(method, json!({"taskId": "t"})).await;
        assert_eq!(refused["error"]["code"], -32601, "{method}: {refused}");
    }
    // A `task` member that the server does not declare is ignored.
    let params = json!({"name": "idle", "task": {"ttl": 7}});
    let done = session.ask("tools/call", params).await;
    assert!(done["result"]["content"].is_array(), "{done}");
}

#[tokio::test(start_paused = true)]
async fn tool_lists_declare_task_support() {
    let later = TaskPolicy::After(Duration::from_secs(1));
    let server = Server::new("office", "1.0.0")
        .extension(Tasks::in_memory().extension())
        .tool(idle("a").task(later))
        .tool(idle("b").task(TaskPolicy::Always))
        .tool(idle("c").task(TaskPolicy::Never))
        .tool(idle("d").task(TaskPolicy::Required))
        .tool(idle("e"))
        .tool(idle("f").task(TaskPolicy::Required).listed_to(|_| false))
        .tool(
            idle("g")
                .task(TaskPolicy::Required)
                .visible_to(|cx| cx.revision().is_modern()),
        );
    for revision in Revision::ALL {
        let listed = answer(&server, revision, "tools/list", json!({})).await;
        let tools = listed["result"]["tools"].as_array().unwrap();
        let shown: Vec<_> = tools
            .iter()
            .map(|tool| {
                let support = tool["execution"]["taskSupport"].as_str();
                format!(
                    "{} {}",
                    tool["name"].as_str().unwrap(),
                    support.unwrap_or("-")
                )
            })
            .collect();
        let expected: &[_] = match revision {
            Revision::V2025_11_25 => &["a optional", "b optional", "c -", "d required", "e -"],
            _ if revision.is_modern() => &["a -", "b -", "c -", "d -", "e -", "g -"],
            _ => &["a -", "b -", "c -", "e -"],
        };
        assert_eq!(shown, expected, "{revision}");
    }
}

#[tokio::test(start_paused = true)]
async fn call_becomes_a_task_when_client_requests_it() {
    let (tool, open) = gated(TaskPolicy::After(Duration::from_secs(60)));
    let server = server(tool);
    let mut session = Session::of(&server).await;
    // The lifetime is at most the server's own, and not so short that the task must be written all the time.
    for (asked, given) in [
        (json!({}), 3_600_000),
        (json!({"ttl": 60_000}), 60_000),
        (json!({"ttl": 1}), 10_000),
        (json!({"ttl": u64::MAX}), 3_600_000),
    ] {
        let params = json!({"name": "report", "task": asked});
        let created = session.ask("tools/call", params).await;
        assert_eq!(members(&created["result"]), ["task"], "{created}");
        let task = &created["result"]["task"];
        let expected = [
            "createdAt",
            "lastUpdatedAt",
            "pollInterval",
            "status",
            "taskId",
            "ttl",
        ];
        assert_eq!(members(task), expected, "{created}");
        assert_eq!(
            (&task["status"], &task["ttl"], &task["pollInterval"]),
            (&json!("working"), &json!(given), &json!(1000)),
            "{asked}"
        );
        let got = session.get(task["taskId"].as_str().unwrap()).await;
        assert_eq!(got, *task);
    }
    let id = session.begin("report").await;
    let waiting = session.send("tasks/result", json!({"taskId": id})).await;
    assert_eq!(session.get(&id).await["status"], "working");
    open.send(true).unwrap();
    let done = session.answer(waiting).await;
    let plain = session.ask("tools/call", json!({"name": "report"})).await;
    let mut result = done["result"].clone();
    assert_eq!(result["_meta"], related(&id), "{done}");
    result.as_object_mut().unwrap().remove("_meta");
    assert_eq!(result, plain["result"]);
    assert_eq!(session.get(&id).await["status"], "completed");
    // The result can be requested again once the task has ended.
    assert_eq!(session.result(&id).await["result"], done["result"]);
}

#[tokio::test(start_paused = true)]
async fn calls_violating_the_tools_task_policy_are_refused() {
    let (tool, _open) = gated(TaskPolicy::Required);
    let server = server(tool).tool(idle("never").task(TaskPolicy::Never));
    let mut session = Session::of(&server).await;
    for (params, code, word) in [
        (json!({"name": "never", "task": {}}), -32601, "never"),
        (json!({"name": "report"}), -32601, "`task`"),
        (json!({"name": "report", "task": null}), -32601, "`task`"),
        (json!({"name": "report", "task": 7}), -32602, "`ttl`"),
        (
            json!({"name": "report", "task": {"ttl": -1}}),
            -32602,
            "`ttl`",
        ),
        (json!({"name": "nothing", "task": {}}), -32602, "nothing"),
    ] {
        let refused = session.ask("tools/call", params.clone()).await;
        assert_eq!(refused["error"]["code"], code, "{params}: {refused}");
        let said = refused["error"]["message"].as_str().unwrap();
        assert!(said.contains(word), "{params}: {said}");
    }
    // Older revisions have no tasks, and ignore the `task` member.
    for revision in LEGACY.into_iter().filter(|it| *it != Revision::V2025_11_25) {
        let params = json!({"name": "never", "task": {}});
        let done = answer(&server, revision, "tools/call", params).await;
        assert!(done["result"]["content"].is_array(), "{revision}: {done}");
        let params = json!({"name": "report", "task": {}});
        let refused = answer(&server, revision, "tools/call", params).await;
        assert_eq!(refused["error"]["code"], -32602, "{revision}: {refused}");
        let got = answer(&server, revision, "tasks/get", json!({"taskId": "t"})).await;
        assert_eq!(got["error"]["code"], -32601, "{revision}: {got}");
    }
}

#[tokio::test(start_paused = true)]
async fn failed_task_returns_the_calls_own_result() {
    let server = server(idle("idle"))
        .tool(
            Tool::new("bad", "Fail", || async {
                Err::<String, _>(ToolError::new("no paper"))
            })
            .task(TaskPolicy::Always),
        )
        .tool(
            Tool::new("broken", "Fail", || async {
                Err::<String, _>(Error::invalid_params("no").with_data(json!({"why": 7})))
            })
            .task(TaskPolicy::Always),
        );
    let mut session = Session::of(&server).await;
    for tool in ["bad", "broken"] {
        let plain = session.ask("tools/call", json!({"name": tool})).await;
        let id = session.begin(tool).await;
        let failed = session.until(&id, "failed").await;
        assert!(failed["statusMessage"].is_string(), "{failed}");
        let result = session.result(&id).await;
        assert_eq!(result["error"], plain["error"], "{tool}");
        if tool == "bad" {
            assert_eq!(result["result"]["content"], plain["result"]["content"]);
            assert_eq!(result["result"]["isError"], true);
        }
        let refused = session.ask("tasks/cancel", json!({"taskId": id})).await;
        assert_eq!(refused["error"]["code"], -32602, "{refused}");
    }
}

#[tokio::test(start_paused = true)]
async fn task_results_follow_the_creating_revision() {
    #[derive(serde::Serialize, JsonSchema)]
    struct Sum {
        sum: Vec<f64>,
    }
    let tool = Tool::new("add", "Add", || async {
        oxmcp::Structured(Sum { sum: vec![1.0] })
    });
    let server = server(tool.task(TaskPolicy::Always));
    let mut session = Session::of(&server).await;
    let plain = session.ask("tools/call", json!({"name": "add"})).await;
    let id = session.begin("add").await;
    let mut result = session.result(&id).await["result"].clone();
    assert!(result.get("resultType").is_none(), "{result}");
    result.as_object_mut().unwrap().remove("_meta");
    assert_eq!(result, plain["result"]);
    // The result of a task that is completed from elsewhere is the same, too.
    let waits = Tool::new("wait", "Wait", std::future::pending::<String>);
    server.add_tools([waits.task(TaskPolicy::Always)]).unwrap();
    let id = session.begin("wait").await;
    let tasks = server.tasks().unwrap();
    tasks
        .complete(&id, CallToolResult::text("here"))
        .await
        .unwrap();
    let result = session.result(&id).await["result"].clone();
    assert_eq!(members(&result), ["_meta", "content"], "{result}");
}

#[tokio::test(start_paused = true)]
async fn cancelled_task_is_shown_cancelled_at_once() {
    let deaf = Tool::new("deaf", "Wait", || async {
        tokio::time::sleep(Duration::from_millis(500)).await;
        "late"
    });
    let server = server(deaf.task(TaskPolicy::Always));
    let mut session = Session::of(&server).await;
    let id = session.begin("deaf").await;
    let waiting = session.send("tasks/result", json!({"taskId": id})).await;
    let cancelled = session.ask("tasks/cancel", json!({"taskId": id})).await;
    assert_eq!(cancelled["result"]["status"], "cancelled", "{cancelled}");
    assert_eq!(cancelled["result"]["taskId"], *id);
    let ended = session.answer(waiting).await;
    assert_eq!(ended["error"]["code"], -32602, "{ended}");
    tokio::time::sleep(Duration::from_secs(10)).await;
    assert_eq!(session.get(&id).await["status"], "cancelled");
    let again = session.ask("tasks/cancel", json!({"taskId": id})).await;
    assert_eq!(again["error"]["code"], -32602, "{again}");
    let said = again["error"]["message"].as_str().unwrap();
    assert!(said.contains("cancelled"), "{said}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn concurrent_cancellation_and_completion_agree_on_one_outcome() {
    for _ in 0..40 {
        let (tool, open) = gated(TaskPolicy::Required);
        let server = server(tool);
        let mut session = Session::of(&server).await;
        let id = session.begin("report").await;
        open.send(true).unwrap();
        let cancelled = session.ask("tasks/cancel", json!({"taskId": id})).await;
        let task = session.get(&id).await;
        let result = session.result(&id).await;
        if cancelled.get("error").is_some() {
            assert_eq!(task["status"], "completed", "{cancelled} {task}");
            assert!(result["result"]["content"].is_array(), "{result}");
        } else {
            assert_eq!(task["status"], "cancelled", "{cancelled} {task}");
            assert!(result.get("result").is_none(), "{result}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn progress_continues_under_the_calls_token() {
    let tool = Tool::new("write", "Write", |cx: RequestContext| async move {
        for page in [1, 2, 2, 1, 3] {
            cx.progress(page)
                .total(3)
                .message(format!("page {page}"))
                .await;
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
        cx.progress(4).await;
        "written"
    });
    let server = server(tool.task(TaskPolicy::Always));
    let mut session = Session::of(&server).await;
    let params = json!({"name": "write", "task": {}, "_meta": {"progressToken": "mine"}});
    let created = session.ask("tools/call", params).await;
    let id = created["result"]["task"]["taskId"].as_str().unwrap();
    session.result(id).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    session.get(id).await;
    let of = |method: &str| {
        let heard = session.heard.iter().filter(|it| it["method"] == method);
        heard.map(|it| it["params"].clone()).collect::<Vec<_>>()
    };
    let told = of("notifications/progress");
    let done: Vec<_> = told
        .iter()
        .map(|it| it["progress"].as_f64().unwrap())
        .collect();
    assert_eq!(done, [1.0, 2.0, 3.0, 4.0]);
    for one in &told {
        assert_eq!(one["progressToken"], "mine");
        assert_eq!(one["_meta"], related(id));
    }
    assert_eq!(
        (&told[0]["total"], &told[0]["message"]),
        (&json!(3), &json!("page 1"))
    );
    // The end of the task is notified, too.
    let statuses = of("notifications/tasks/status");
    assert_eq!(statuses.len(), 1, "{statuses:?}");
    assert_eq!(statuses[0]["taskId"], *id);
    assert_eq!(statuses[0]["status"], "completed");
    // Without a token no progress is sent.
    let id = session.begin("write").await;
    session.heard.clear();
    session.result(&id).await;
    let mut heard = session.heard.iter();
    assert!(heard.all(|it| it["method"] != "notifications/progress"));
}

#[tokio::test(start_paused = true)]
async fn task_is_visible_only_in_its_own_era() {
    let (tool, _open) = gated(TaskPolicy::Always);
    let server = server(tool);
    let mut session = Session::of(&server).await;
    let mut peer = Peer::of(&server).await;
    let (old, new) = (session.begin("report").await, peer.begin("report").await);
    let mut texts = Vec::new();
    for id in [&*new, "", "é", "unknown", &"A".repeat(32)] {
        for method in ["tasks/get", "tasks/result", "tasks/cancel"] {
            let refused = session.ask(method, json!({"taskId": id})).await;
            texts.push(refused["error"].clone());
        }
    }
    for (method, more) in [
        ("tasks/get", json!({})),
        ("tasks/update", json!({"inputResponses": {}})),
        ("tasks/cancel", json!({})),
    ] {
        let mut params = more;
        params["taskId"] = json!(old);
        let refused = peer.ask(method, params).await;
        texts.push(refused["error"].clone());
    }
    texts.dedup();
    assert_eq!(texts.len(), 1, "{texts:?}");
    assert_eq!(texts[0]["code"], -32602);
    assert_eq!(session.get(&old).await["status"], "working");
    assert_eq!(peer.get(&new).await["status"], "working");
    // A session without an identity cannot list tasks.
    let refused = session.ask("tasks/list", json!({})).await;
    assert_eq!(refused["error"]["code"], -32601, "{refused}");
}

#[tokio::test(start_paused = true)]
async fn expired_task_is_reported_to_its_waiters() {
    #[derive(serde::Deserialize, JsonSchema)]
    struct Nothing {}

    let asks = Tool::new("ask", "Ask", |cx: RequestContext| async move {
        cx.ask::<Nothing>("sure", "Sure?").await.map(|_| "sure")
    });
    let naps = Tool::new("nap", "Sleep", || async {
        tokio::time::sleep(Duration::from_secs(59)).await;
        "slept"
    });
    let server = server(asks.task(TaskPolicy::Always)).tool(naps.task(TaskPolicy::Always));
    let mut session = Session::of(&server).await;
    let mut begun = Vec::new();
    for tool in ["ask", "nap"] {
        let params = json!({"name": tool, "task": {"ttl": 20_000}});
        let created = session.ask("tools/call", params).await;
        let id = created["result"]["task"]["taskId"].as_str().unwrap();
        begun.push(id.to_owned());
    }
    let waiting = session
        .send("tasks/result", json!({"taskId": begun[0]}))
        .await;
    let expired = session.answer(waiting).await;
    assert_eq!(expired["error"]["code"], -32602, "{expired}");
    // A working task is kept, as in the other era, and expires some time after its end.
    tokio::time::sleep(Duration::from_secs(38)).await;
    assert_eq!(session.get(&begun[1]).await["status"], "working");
    tokio::time::sleep(Duration::from_secs(2)).await;
    let done = session.get(&begun[1]).await;
    assert_eq!(done["status"], "completed", "{done}");
    tokio::time::sleep(Duration::from_secs(20)).await;
    for method in ["tasks/get", "tasks/result", "tasks/cancel"] {
        let gone = session.ask(method, json!({"taskId": begun[1]})).await;
        assert_eq!(gone["error"], expired["error"], "{method}");
    }
}

#[derive(serde::Deserialize, JsonSchema)]
struct Confirm {
    sure: bool,
}

fn yes() -> Value {
    json!({"action": "accept", "content": {"sure": true}})
}

/// A tool that asks two questions, one after the other.
fn asking() -> Tool {
    let tool = Tool::new("delete", "Delete", |cx: RequestContext| async move {
        let first: Confirm = cx.ask("first", "Delete it?").await?;
        let second: Confirm = cx.ask("second", "For good?").await?;
        Ok::<_, Error>(format!("{} {}", first.sure, second.sure))
    });
    tool.task(TaskPolicy::Required)
}

#[tokio::test(start_paused = true)]
async fn tasks_result_request_receives_the_tasks_questions() {
    let server = server(asking());
    let mut session = Session::of(&server).await;
    let id = session.begin("delete").await;
    session.until(&id, "input_required").await;
    let status = session.hear("notifications/tasks/status").await;
    assert_eq!(status["params"]["status"], "input_required", "{status}");
    // The client is not asked before it requests the result.
    assert!(session.heard.is_empty(), "{:?}", session.heard);
    let waiting = session.send("tasks/result", json!({"taskId": id})).await;
    for expected in ["Delete it?", "For good?"] {
        let asked = session.hear("elicitation/create").await;
        assert_eq!(asked["params"]["message"], expected, "{asked}");
        assert_eq!(asked["params"]["_meta"], related(&id));
        assert_eq!(session.get(&id).await["status"], "input_required");
        session.reply(&asked, yes()).await;
    }
    let done = session.answer(waiting).await;
    assert_eq!(done["result"]["content"][0]["text"], "true true", "{done}");
}

#[tokio::test(start_paused = true)]
async fn question_reaches_all_waiters_and_one_answer_suffices() {
    let server = server(asking());
    let mut one = Session::of(&server).await;
    let mut other = Session::of(&server).await;
    let id = one.begin("delete").await;
    let first = one.send("tasks/result", json!({"taskId": id})).await;
    let second = other.send("tasks/result", json!({"taskId": id})).await;
    let asked = one.hear("elicitation/create").await;
    let also = other.hear("elicitation/create").await;
    let start = tokio::time::Instant::now();
    one.reply(&asked, yes()).await;
    // The other session need not answer any more.
    let taken_back = other.hear("notifications/cancelled").await;
    assert_eq!(taken_back["params"]["requestId"], also["id"]);
    assert!(
        start.elapsed() < Duration::from_secs(1),
        "it was left to its time-out"
    );
    let also = other.hear("elicitation/create").await;
    other.reply(&also, yes()).await;
    for done in [one.answer(first).await, other.answer(second).await] {
        assert_eq!(done["result"]["content"][0]["text"], "true true", "{done}");
    }
}

#[tokio::test(start_paused = true)]
async fn unanswered_question_is_asked_again_by_tasks_result() {
    let server = server(asking());
    let mut session = Session::of(&server).await;
    let id = session.begin("delete").await;
    let waiting = session.send("tasks/result", json!({"taskId": id})).await;
    let asked = session.hear("elicitation/create").await;
    let mut cancel = notification("notifications/cancelled");
    cancel["params"] = json!({"requestId": waiting});
    session.peer.send(cancel).await.unwrap();
    let taken_back = session.hear("notifications/cancelled").await;
    assert_eq!(taken_back["params"]["requestId"], asked["id"]);
    assert_eq!(session.get(&id).await["status"], "input_required");
    // The end of the session does not end the task either.
    drop(session);
    let mut session = Session::of(&server).await;
    let waiting = session.send("tasks/result", json!({"taskId": id})).await;
    for _ in 0..2 {
        let asked = session.hear("elicitation/create").await;
        session.reply(&asked, yes()).await;
    }
    let done = session.answer(waiting).await;
    assert_eq!(done["result"]["content"][0]["text"], "true true", "{done}");
}

#[tokio::test(start_paused = true)]
async fn client_error_answer_is_handled_by_the_handler() {
    let tool = Tool::new("ask", "Ask", |cx: RequestContext| async move {
        let asked = cx.ask::<Confirm>("sure", "Sure?").await;
        asked.map_or_else(|error| error.to_string(), |it| it.sure.to_string())
    });
    let server = server(tool.task(TaskPolicy::Always));
    let mut session = Session::of(&server).await;
    for (reply, word) in [
        (
            json!({"error": {"code": -1, "message": "no window"}}),
            "no window",
        ),
        (
            json!({"result": {"action": "accept", "content": {"sure": 7}}}),
            "invalid answer to",
        ),
        (json!({"result": {"action": "decline"}}), "decline"),
    ] {
        let id = session.begin("ask").await;
        let waiting = session.send("tasks/result", json!({"taskId": id})).await;
        let asked = session.hear("elicitation/create").await;
        let mut reply = reply;
        reply["jsonrpc"] = json!("2.0");
        reply["id"] = asked["id"].clone();
        session.peer.send(reply).await.unwrap();
        let done = session.answer(waiting).await;
        let text = done["result"]["content"][0]["text"].as_str().unwrap();
        assert!(text.contains(word), "{word}: {done}");
    }
}

#[tokio::test(start_paused = true)]
async fn client_without_elicitation_is_asked_nothing() {
    let server = server(asking());
    let (mut session, _) = Session::declaring(&server, json!({})).await;
    let id = session.begin("delete").await;
    let refused = session.result(&id).await;
    assert_eq!(refused["result"]["isError"], true, "{refused}");
    // This client is not asked the questions of another session's task either; that session is asked.
    let mut able = Session::of(&server).await;
    let id = able.begin("delete").await;
    let unable = session.send("tasks/result", json!({"taskId": id})).await;
    let waiting = able.send("tasks/result", json!({"taskId": id})).await;
    for _ in 0..2 {
        let asked = able.hear("elicitation/create").await;
        able.reply(&asked, yes()).await;
    }
    able.answer(waiting).await;
    let done = session.answer(unable).await;
    assert_eq!(done["result"]["content"][0]["text"], "true true", "{done}");
    assert!(
        session
            .heard
            .iter()
            .all(|it| it["method"] != "elicitation/create")
    );
}

#[tokio::test(start_paused = true)]
async fn returned_questions_are_asked_by_the_task() {
    let server = server(returning_questions(TaskPolicy::Always));
    let mut session = Session::of(&server).await;
    let id = session.begin("twice").await;
    let waiting = session.send("tasks/result", json!({"taskId": id})).await;
    for message in ["1", "2"] {
        let asked = session.hear("elicitation/create").await;
        assert_eq!(asked["params"]["message"], message, "{asked}");
        session.reply(&asked, yes()).await;
    }
    let done = session.answer(waiting).await;
    assert_eq!(done["result"]["content"][0]["text"], "asked", "{done}");
}
