//! The sites of `oxmcp ui`, as a browser, a foreign page and another program see them.

use std::{
    fs,
    io::{BufRead, BufReader, Read, Write},
    net::TcpStream,
    path::PathBuf,
    process::{Child, Command, Stdio},
    time::Duration,
};

use serde_json::{Value, json};

use crate::support::{OXMCP, folder, notes};

/// The time of the slowest answer on a busy machine.
const LIMIT: Duration = Duration::from_secs(60);

/// A program that serves the page, until it is dropped.
struct Ui {
    child: Child,
    host: String,
    token: String,
}

impl Drop for Ui {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Ui {
    fn start() -> Self {
        Self::run(Command::new(OXMCP).args(["ui", "--no-browser", "--", &notes()]))
    }

    fn run(command: &mut Command) -> Self {
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut line = String::new();
        let stdout = child.stdout.take().unwrap();
        BufReader::new(stdout).read_line(&mut line).unwrap();
        // With `--json`, it is in an object.
        let url = line.split("http://").nth(1).unwrap();
        let (host, token) = url.split_once("/#").unwrap();
        let token: String = token.chars().take_while(char::is_ascii_hexdigit).collect();
        Self {
            host: host.to_owned(),
            token,
            child,
        }
    }

    fn send(&self, head: &str, body: &[u8]) -> TcpStream {
        let mut stream = TcpStream::connect(&self.host).unwrap();
        stream.set_read_timeout(Some(LIMIT)).unwrap();
        let length = body.len();
        let head = format!("{head}\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n");
        stream.write_all(head.as_bytes()).unwrap();
        // A server that refuses a body need not read it.
        let _ = stream.write_all(body);
        stream
    }

    /// The status, and the whole response.
    fn ask(&self, head: &str, body: &[u8]) -> (u16, String) {
        let mut response = Vec::new();
        let _ = self.send(head, body).read_to_end(&mut response);
        let response = String::from_utf8(response).unwrap();
        let status = response.split(' ').nth(1).unwrap().parse().unwrap();
        (status, response)
    }

    fn get(&self, path: &str) -> (u16, String) {
        self.ask(&format!("GET {path} HTTP/1.1\r\nhost: {}", self.host), b"")
    }

    /// The head of a request of the page.
    fn head(&self, path: &str) -> String {
        let (host, token) = (&self.host, &self.token);
        format!(
            "POST /api/{path} HTTP/1.1\r\nhost: {host}\r\norigin: http://{host}\r\nx-oxmcp-token: {token}\r\n\
             content-type: application/json"
        )
    }

    fn post(&self, path: &str, body: &Value) -> (u16, String) {
        self.ask(&self.head(path), body.to_string().as_bytes())
    }

    /// The first event for which a function returns something.
    fn event<T>(&self, mut find: impl FnMut(&Value) -> Option<T>) -> T {
        let stream = self.send(&self.head("events"), br#"{"from": 0}"#);
        for line in BufReader::new(stream).lines() {
            if let Some(event) = line.unwrap().strip_prefix("data: ")
                && let Some(found) = find(&serde_json::from_str(event).unwrap())
            {
                return found;
            }
        }
        panic!("the stream has ended")
    }
}

#[test]
fn page_is_only_for_its_own_origin_and_token() {
    let ui = Ui::start();
    assert_eq!(ui.token.len(), 48);
    let head = |path: &str, headers: &str| format!("{path} HTTP/1.1\r\n{headers}");
    let (host, token) = (&ui.host, &ui.token);
    let port = host.split_once(':').unwrap().1;
    let own = format!("host: {host}\r\nx-oxmcp-token: {token}");
    let wrong_token = format!("host: {host}\r\nx-oxmcp-token: {}", "0".repeat(48));
    for (path, headers, expected) in [
        ("POST /api/state", own.clone(), 200),
        ("POST /api/state", format!("host: {host}"), 401),
        ("POST /api/state", wrong_token, 401),
        (
            "POST /api/state",
            format!("{own}\r\norigin: http://{host}"),
            200,
        ),
        (
            "POST /api/state",
            format!("{own}\r\norigin: http://evil.example"),
            403,
        ),
        ("POST /api/state", format!("{own}\r\norigin: null"), 403),
        ("GET /", format!("host: localhost:{port}"), 403),
        ("GET /", "host: evil.example".to_owned(), 403),
        ("GET /", format!("host: {host}"), 200),
    ] {
        let (status, response) = ui.ask(&head(path, &headers), b"");
        assert_eq!(status, expected, "{path} {headers}: {response}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn browser_is_started_without_the_token() {
    use std::os::unix::fs::PermissionsExt;

    let home = folder("ui-browser");
    let (browser, pipe) = (home.join("browser"), home.join("arguments"));
    assert!(
        Command::new("mkfifo")
            .arg(&pipe)
            .status()
            .unwrap()
            .success()
    );
    let script = format!("#!/bin/sh\necho \"$@\" > '{}'\n", pipe.display());
    fs::write(&browser, script).unwrap();
    fs::set_permissions(&browser, fs::Permissions::from_mode(0o755)).unwrap();
    // Only a person at a terminal gets a browser.
    let line = format!("'{OXMCP}' ui -- '{}'", notes());
    let mut command = Command::new("script");
    command
        .args(["-qec", &line, "/dev/null"])
        .env("BROWSER", &browser);
    let ui = Ui::run(&mut command);
    let arguments = fs::read_to_string(&pipe).unwrap();
    assert!(!arguments.contains(&ui.token), "{arguments}");
    let (page, code) = arguments.trim().split_once("/#once-").unwrap();
    assert_eq!(page, format!("http://{}", ui.host));
    let open = |code: &str| ui.post("open", &json!({"code": code}));
    assert_eq!(open(&ui.token).0, 401);
    let (status, token) = open(code);
    assert!(status == 200 && token.contains(&ui.token), "{token}");
    // It works once.
    assert_eq!(open(code).0, 401);
}

#[test]
fn page_has_a_strict_policy_and_no_secret() {
    let ui = Ui::start();
    let (_, page) = ui.get("/");
    let lower = page.to_ascii_lowercase();
    for expected in [
        "content-security-policy: default-src 'none'; script-src 'self'",
        "require-trusted-types-for 'script'; trusted-types 'none'",
        "frame-ancestors 'none'",
        "referrer-policy: no-referrer",
    ] {
        assert!(lower.contains(expected), "{expected}: {page}");
    }
    assert!(!lower.contains("unsafe-inline") && !page.contains(&ui.token));
    for file in ["main.js", "style.css", "icon.svg", "api.js"] {
        let (status, text) = ui.get(&format!("/{file}"));
        assert!(status == 200 && !text.contains(&ui.token), "{file}");
    }
    assert_eq!(ui.get("/none.js").0, 404);
    assert_eq!(ui.get("/..%2fCargo.toml").0, 404);
    // Another origin shows apps, and has none now.
    let sandbox = lower.split("frame-src http://").nth(1).unwrap();
    let sandbox = sandbox.split(';').next().unwrap().to_owned();
    assert_ne!(sandbox, ui.host);
    let mut stream = TcpStream::connect(&sandbox).unwrap();
    let request = format!("GET /key HTTP/1.1\r\nhost: {sandbox}\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    let mut response = String::new();
    stream.read_to_string(&mut response).unwrap();
    assert!(response.starts_with("HTTP/1.1 404"), "{response}");
}

#[test]
fn operations_answer_by_events() {
    let ui = Ui::start();
    let (_, state) = ui.post("state", &json!({}));
    assert!(state.contains(r#""isNamed":true"#) && state.contains(r#""state":"idle""#));
    let call = json!({"server": 0, "job": "a", "operation": {"kind": "call", "tool": "search", "arguments": {"query": "tea"}}});
    let (status, reason) = ui.post("run", &call);
    assert!(status == 409 && reason.ends_with("the server is not connected"));
    assert_eq!(ui.post("connect", &json!({"server": 0})).0, 200);
    let facts = ui.event(|it| (it["state"] == "connected").then(|| it["facts"].clone()));
    assert_eq!(facts["server"]["name"], "notes");
    let (_, again) = ui.post("connect", &json!({"server": 0}));
    assert!(again.ends_with(r#"{"ok":true}"#), "{again}");
    assert_eq!(ui.post("run", &call).0, 204);
    let result = ui.event(|it| (it["phase"] == "done").then(|| it["result"].clone()));
    assert_eq!(result["structuredContent"]["hits"][0], "tea 1");
    let sent = ui.event(|it| {
        let text = it["text"].as_str()?;
        (it["kind"] == "wire" && it["isSent"] == true && text.contains("tools/call"))
            .then(|| text.to_owned())
    });
    assert!(serde_json::from_str::<Value>(&sent).is_ok(), "{sent}");

    // The server asks, and the answer of the page counts.
    let call = json!({"server": 0, "job": "b", "operation": {"kind": "call", "tool": "delete"}});
    assert_eq!(ui.post("run", &call).0, 204);
    let question = ui.event(|it| (it["kind"] == "question").then(|| it["question"].clone()));
    let reply = json!({"question": question, "reply": {"action": "accept", "content": {"confirmed": true}}});
    assert_eq!(ui.post("answer", &reply).0, 204);
    assert_eq!(ui.post("answer", &reply).0, 404);
    let result =
        ui.event(|it| (it["job"] == "b" && it["phase"] == "done").then(|| it["result"].clone()));
    assert_eq!(result["content"][0]["text"], "deleted");
}

#[test]
fn configured_program_starts_only_with_consent() {
    let home = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("ui-consent");
    let _ = fs::remove_dir_all(&home);
    fs::create_dir_all(home.join(".vscode")).unwrap();
    let server = json!({
        "type": "stdio",
        "command": notes(),
        "args": ["${input:mode}"],
        "cwd": ".",
        "env": {"NODE_OPTIONS": "--require x"},
    });
    let remote = json!({
        "type": "http",
        "url": "http://127.0.0.1:9/mcp",
        "headers": {"x-key": "${env:HOME}"},
    });
    let config = json!({
        "inputs": [{"id": "mode", "type": "promptString", "description": "The mode"}],
        "servers": {"notes": server, "remote": remote},
    });
    fs::write(home.join(".vscode/mcp.json"), config.to_string()).unwrap();
    let mut command = Command::new(OXMCP);
    command.args(["ui", "--json"]).current_dir(&home);
    for name in ["HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "APPDATA"] {
        command.env(name, &home);
    }
    let ui = Ui::run(&mut command);
    let connect = |more: Value| {
        let mut asked = json!({"server": 0});
        asked
            .as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        let (_, response) = ui.post("connect", &asked);
        serde_json::from_str::<Value>(response.split("\r\n\r\n").nth(1).unwrap()).unwrap()
    };
    let inputs = json!({"inputs": {"mode": "quiet"}});
    assert_eq!(connect(json!({}))["inputs"][0]["id"], "mode");
    let line = format!(
        "{} ${{input:mode}}\nworking directory: .\nenvironment: NODE_OPTIONS=\"--require x\"",
        notes()
    );
    assert_eq!(connect(inputs), json!({"consent": line}));
    let other = json!({"inputs": {"mode": "quiet"}, "command": "another"});
    assert_eq!(connect(other), json!({"consent": line}));
    let only_program = line.lines().next().unwrap();
    let partly = json!({"inputs": {"mode": "quiet"}, "command": only_program});
    assert_eq!(connect(partly), json!({"consent": line}));
    // A secret of the environment goes to no URL that the user has not seen.
    let contacted = connect(json!({"server": 1}));
    let shown = "http://127.0.0.1:9/mcp\nheader: x-key=${env:HOME}";
    assert_eq!(contacted, json!({"consent": shown}));
    assert!(ui.post("state", &json!({})).1.contains(r#""state":"idle""#));
    let agreed = json!({"inputs": {"mode": "quiet"}, "command": line});
    assert_eq!(connect(agreed), json!({"ok": true}));
    ui.event(|it| (it["state"] == "connected").then_some(()));
}

#[test]
fn requests_and_pages_are_bounded() {
    let ui = Ui::start();
    let large = vec![b' '; 12 << 20];
    assert_eq!(ui.ask(&ui.head("run"), &large).0, 413);
    assert_eq!(ui.post("run", &json!({"server": 0})).0, 422);
    let (_, unknown) = ui.post("connect", &json!({"server": 9}));
    assert!(unknown.contains("unknown server"), "{unknown}");
    ui.post("connect", &json!({"server": 0}));
    ui.event(|it| (it["state"] == "connected").then_some(()));
    // Calls that wait for an answer.
    for number in 0..80 {
        let operation = json!({"kind": "call", "tool": "delete"});
        let job = format!("job {number}");
        let (status, reason) = ui.post(
            "run",
            &json!({"server": 0, "job": job, "operation": operation}),
        );
        let expected = if number < 64 { 204 } else { 409 };
        assert_eq!(status, expected, "{number}: {reason}");
    }
    let repeated = json!({"server": 0, "job": "job 1", "operation": {"kind": "check"}});
    let (status, reason) = ui.post("run", &repeated);
    assert!(status == 409 && reason.ends_with("running already"));
    let name = json!({"server": 0, "job": "x".repeat(65), "operation": {"kind": "check"}});
    assert_eq!(ui.post("run", &name).0, 409);
    // Pages that stay open.
    let mut pages = Vec::new();
    let status = loop {
        let mut page = ui.send(&ui.head("events"), br#"{"from": 0}"#);
        let mut begin = [0; 12];
        page.read_exact(&mut begin).unwrap();
        pages.push(page);
        let status = String::from_utf8(begin[9..].to_vec()).unwrap();
        if status != "200" || pages.len() > 50 {
            break status;
        }
    };
    assert_eq!((status.as_str(), pages.len()), ("429", 9));
}
