//! `oxmcp check` against good servers, and against servers that are broken in one way each.

use std::{
    fs,
    io::{BufRead, BufReader, Read, Write},
    net::TcpListener,
    sync::mpsc,
    thread,
};

use serde_json::{Value, json};

use crate::support::{example, folder, notes, parts, run_at, run_in};

#[test]
fn check_names_the_cause() {
    let notes = notes();
    let (out, err, code) = parts(run_in("check", None, &["check", "--", &notes]));
    assert!(
        out.contains("speaks 2024-11-05, 2025-03-26, 2025-06-18, 2025-11-25, 2026-07-28"),
        "{out}{err}"
    );
    assert_eq!(code, 0, "{out}");
    let (out, _, code) = parts(run_in(
        "check-noisy",
        None,
        &["check", "--json", "--", &notes, "noisy"],
    ));
    let report: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(
        (&report["findings"][0]["id"], code),
        (&json!("stdout"), 1),
        "{out}"
    );
    assert_eq!(
        report["findings"][0]["message"],
        "printed a line that is not a message: \"starting notes\""
    );
    let (out, _, code) = parts(run_in(
        "check-broken",
        None,
        &["check", "--format", "sarif", "--", &notes, "broken"],
    ));
    let report: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(
        (&report["runs"][0]["results"][0]["ruleId"], code),
        (&json!("environment"), 4),
        "{out}"
    );
    assert!(out.contains("NOTES_FOLDER"), "{out}");
}

/// Checks a server that follows a script. Returns the findings and the exit code.
fn scripted(test: &str, script: &Value, args: &[&str]) -> (Vec<Value>, i32) {
    let mut all = vec!["check", "--json", "--timeout", "20s"];
    all.extend(args);
    let (server, script) = (example("scripted"), script.to_string());
    all.extend(["--", &server, &script]);
    let (out, err, code) = run_at(&folder(test), &all);
    let report: Value = serde_json::from_str(&out).unwrap_or_else(|_| panic!("{out}{err}"));
    (report["findings"].as_array().unwrap().clone(), code)
}

fn ids(findings: &[Value]) -> Vec<&str> {
    findings
        .iter()
        .map(|it| it["id"].as_str().unwrap())
        .collect()
}

fn result(result: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":$ID,"result":{result}}}"#)
}

fn tools(tools: &str) -> String {
    result(&format!(r#"{{"tools":[{tools}]}}"#))
}

const ECHO: &str =
    r#"{"name":"echo","description":"Echoes","inputSchema":{"type":"object","properties":{}}}"#;

#[test]
fn legacy_server_does_not_speak_modern_revisions() {
    let server = example("scripted");
    let (out, err, code) = run_at(&folder("check-legacy"), &["check", "--", &server]);
    assert!(out.contains("speaks 2025-06-18\n"), "{out}{err}");
    assert!(out.contains("does not speak the latest revision"), "{out}");
    assert_eq!(code, 0, "{out}");
    let args = ["check", "--revision", "2026-07-28", "--json", "--", &server];
    let (out, _, code) = run_at(&folder("check-legacy-pinned"), &args);
    let report: Value = serde_json::from_str(&out).unwrap();
    assert_eq!((&report["revisions"], code), (&json!([]), 1), "{out}");
}

#[test]
fn deviations_are_named() {
    let initialize = |members: &str| {
        let version = r#""protocolVersion":"2025-06-18""#;
        result(&format!("{{{version},{members}}}"))
    };
    let info = r#""serverInfo":{"name":"s","version":"1"}"#;
    let tool = |members: &str| {
        tools(&format!(
            r#"{{"name":"echo","description":"Echoes","inputSchema":{{"type":"object","properties":{{}}}},{members}}}"#
        ))
    };
    for (expected, method, line) in [
        ("null-member", "tools/list", tool(r#""icons":null"#)),
        (
            "empty-array",
            "initialize",
            initialize(&format!(r#""capabilities":[],{info}"#)),
        ),
        (
            "missing-member",
            "initialize",
            initialize(r#""capabilities":{"tools":{}},"serverInfo":{"name":"s"}"#),
        ),
        (
            "other-type",
            "tools/list",
            tool(r#""annotations":{"readOnlyHint":"true"}"#),
        ),
        ("lone-surrogate", "tools/list", tool(r#""title":"\ud83d""#)),
        ("member-left-out", "tools/list", tool(r#""annotations":7"#)),
        (
            "entry-left-out",
            "tools/list",
            tools(&format!(r#"{ECHO},{{"description":"nameless"}}"#)),
        ),
        (
            "envelope-member",
            "tools/list",
            format!(r#"{{"jsonrpc":"2.0","id":$ID,"error":null,"result":{{"tools":[{ECHO}]}}}}"#),
        ),
        (
            "jsonrpc-version",
            "tools/list",
            format!(r#"{{"id":$ID,"result":{{"tools":[{ECHO}]}}}}"#),
        ),
        ("empty-result", "ping", result("null")),
        (
            "byte-order-mark",
            "tools/list",
            format!("\u{feff}{}", tools(ECHO)),
        ),
        (
            "text-id",
            "tools/list",
            tools(ECHO).replace("$ID", "\"$ID\""),
        ),
        (
            "error-object",
            "ping",
            r#"{"jsonrpc":"2.0","id":$ID,"error":"no"}"#.to_owned(),
        ),
        (
            "repeated-cursor",
            "tools/list",
            result(&format!(r#"{{"tools":[{ECHO}],"nextCursor":""}}"#)),
        ),
    ] {
        let (findings, code) = scripted("check-odd", &json!({ method: line }), &[]);
        assert!(
            ids(&findings).contains(&expected),
            "{expected}: {findings:#?}"
        );
        assert_eq!(code, 1, "{expected}");
    }
}

#[test]
fn odd_results_are_found_only_with_a_call() {
    for (expected, line) in [
        ("untyped-content", result(r#"{"content":["text"]}"#)),
        (
            "single-item",
            result(r#"{"content":{"type":"text","text":"a"}}"#),
        ),
        (
            "base64",
            result(
                r#"{"content":[{"type":"image","mimeType":"image/png","data":"data:image/png;base64,AAA"}]}"#,
            ),
        ),
        (
            "unknown-block",
            result(r#"{"content":[{"type":"image","data":7}]}"#),
        ),
        (
            "tool-error",
            result(r#"{"content":[{"type":"text","text":"broken"}],"isError":true}"#),
        ),
        ("empty-content", result(r#"{"content":[]}"#)),
        (
            "call-error",
            r#"{"jsonrpc":"2.0","id":$ID,"error":{"code":-32603,"message":"broken"}}"#.to_owned(),
        ),
    ] {
        let script = json!({"tools/call": line});
        let (findings, code) = scripted("check-call", &script, &["--call", "echo"]);
        assert!(
            ids(&findings).contains(&expected),
            "{expected}: {findings:#?}"
        );
        assert_eq!(code, 1, "{expected}");
        let (findings, code) = scripted("check-no-call", &script, &[]);
        assert_eq!(
            (ids(&findings), code),
            (vec!["old-revision"], 0),
            "{expected}"
        );
    }
    let with_schema = r#"{"name":"echo","description":"Echoes","inputSchema":{"type":"object","properties":{}},"outputSchema":{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}}"#;
    for (expected, line) in [
        (
            "no-structured-content",
            r#"{"content":[{"type":"text","text":"1"}]}"#,
        ),
        (
            "output-schema",
            r#"{"content":[{"type":"text","text":"1"}],"structuredContent":{"n":"one"}}"#,
        ),
    ] {
        let script = json!({"tools/list": tools(with_schema), "tools/call": result(line)});
        let (findings, code) = scripted("check-output", &script, &["--call", "echo"]);
        assert!(
            ids(&findings).contains(&expected),
            "{expected}: {findings:#?}"
        );
        assert_eq!(code, 1, "{expected}");
    }
}

#[test]
fn lists_that_hosts_refuse_are_found() {
    let tool = |name: &str, schema: &str| {
        format!(r#"{{"name":"{name}","description":"d","inputSchema":{schema}}}"#)
    };
    let object = r#"{"type":"object","properties":{}}"#;
    for (expected, severity, list) in [
        ("duplicate-name", "error", format!("{ECHO},{ECHO}")),
        (
            "similar-name",
            "warning",
            format!("{},{}", tool("a-b", object), tool("a_b", object)),
        ),
        ("tool-name", "warning", tool("a.b", object)),
        ("long-name", "warning", tool(&"a".repeat(65), object)),
        (
            "no-description",
            "warning",
            tool("a", object).replace(r#""description":"d","#, ""),
        ),
        (
            "no-description",
            "warning",
            tool("a", object).replace(r#""d""#, r#"" \u200b\u3164""#),
        ),
        (
            "invalid-schema",
            "error",
            tool(
                "a",
                r#"{"type":"object","properties":{"x":{"type":"nope"}}}"#,
            ),
        ),
        (
            "no-items",
            "warning",
            tool(
                "a",
                r#"{"type":"object","properties":{"x":{"type":"array"}}}"#,
            ),
        ),
    ] {
        let (findings, code) = scripted("check-lists", &json!({"tools/list": tools(&list)}), &[]);
        let found = findings.iter().find(|it| it["id"] == expected);
        let found = found.unwrap_or_else(|| panic!("{expected}: {findings:#?}"));
        assert_eq!(
            (&found["severity"], code),
            (&json!(severity), 1),
            "{expected}"
        );
        assert!(
            found["place"].as_str().unwrap().starts_with("tool "),
            "{found}"
        );
    }
    let with_output = tool("a", object).replace(
        r#","inputSchema""#,
        r#","outputSchema":{"type":"array","items":{"type":"string"}},"inputSchema""#,
    );
    let discovered = r#"{"resultType":"complete","ttlMs":0,"cacheScope":"private","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}}}"#;
    let modern_tools = result(&format!(
        r#"{{"resultType":"complete","ttlMs":0,"cacheScope":"private","tools":[{with_output}]}}"#
    ));
    let modern = json!({"server/discover": result(discovered), "tools/list": modern_tools});
    let legacy = json!({"tools/list": tools(&with_output)});
    for (script, revision, is_found) in
        [(legacy, "2025-06-18", true), (modern, "2026-07-28", false)]
    {
        let (findings, _) = scripted("check-output", &script, &["--revision", revision]);
        let found = ids(&findings).contains(&"invalid-schema");
        assert_eq!(found, is_found, "{revision}: {findings:#?}");
        assert!(!ids(&findings).contains(&"list-error"), "{findings:#?}");
    }
    let nothing = r#"{"protocolVersion":"2025-06-18","capabilities":{},"serverInfo":{"name":"s","version":"1"}}"#;
    let (findings, _) = scripted(
        "check-nothing",
        &json!({"initialize": result(nothing)}),
        &[],
    );
    assert_eq!(ids(&findings), ["offers-nothing", "old-revision"]);
}

#[test]
fn servers_that_fail_have_a_cause() {
    for (expected, exit, script) in [
        ("stdout", 1, json!({"start": "starting scripted"})),
        (
            "list-error",
            1,
            json!({"tools/list": r#"{"jsonrpc":"2.0","id":$ID,"error":{"code":-32603,"message":"broken"}}"#}),
        ),
        (
            "invalid-message",
            1,
            json!({"ping": format!("{{\"jsonrpc\":\"2.0\",\"id\":[]}}\n{}", result("{}"))}),
        ),
        (
            "crash",
            4,
            json!({"initialize": "exit", "server/discover": "exit"}),
        ),
        (
            "no-answer",
            124,
            json!({"initialize": "silence", "server/discover": "silence"}),
        ),
    ] {
        let mut args = vec![];
        if exit == 124 {
            args.extend(["--timeout", "1s"]);
        }
        let (findings, code) = scripted("check-fails", &script, &args[..0]);
        assert_eq!((ids(&findings)[0], code), (expected, exit), "{findings:#?}");
    }
    for (expected, exit, program) in [
        ("not-started", 4, &["/no/such/server"][..]),
        ("environment", 4, &[&*notes(), "broken"]),
        ("not-a-server", 5, &["cat"]),
        ("permission", 4, &["sh", "-c", "/dev/null"]),
        ("wrong-path", 4, &["cat", "/no/such/file"]),
        ("exited", 4, &["true"]),
    ] {
        let mut args = vec!["check", "--json", "--timeout", "20s", "--"];
        args.extend(program);
        let (out, err, code) = run_at(&folder("check-programs"), &args);
        let report: Value = serde_json::from_str(&out).unwrap_or_else(|_| panic!("{out}{err}"));
        assert_eq!(
            (&report["findings"][0]["id"], code),
            (&json!(expected), exit),
            "{out}"
        );
    }
}

#[test]
fn configuration_is_checked_before_its_servers() {
    let config = json!({"mcpServers": {
        "my notes": {"command": notes(), "args": ["--token=0123456789abcdef"]},
        "broken": {"command": notes(), "env": {"KEY": "${OXMCP_TEST_UNSET}"}},
        "good": {"command": notes()},
    }});
    let home = folder("check-all");
    fs::write(home.join("mcp.json"), config.to_string()).unwrap();
    fs::create_dir(home.join(".gemini")).unwrap();
    fs::write(home.join(".gemini/settings.json"), r#"{"theme": "dark"}"#).unwrap();
    // The files of a folder can be those of others.
    let (out, err, code) = run_at(&home, &["check", "--all", "--json"]);
    assert!(
        err.contains("mcp.json:good starts `") && err.contains("pass `--yes`"),
        "{err}"
    );
    assert_eq!((out.as_str(), code), ("", 6));
    assert!(!err.contains("starting"), "{err}");
    let (out, err, code) = run_at(&home, &["check", "--all", "--yes", "--json"]);
    let report: Value = serde_json::from_str(&out).unwrap_or_else(|_| panic!("{out}{err}"));
    let servers = report["servers"].as_array().unwrap();
    let found = servers.iter().map(|it| {
        let ids = ids(it["findings"].as_array().unwrap()).join(" ");
        format!("{}: {ids}", it["target"].as_str().unwrap())
    });
    assert_eq!(
        found.collect::<Vec<_>>(),
        [
            "mcp.json:broken: configuration",
            "mcp.json:good: ",
            "mcp.json:my notes: server-name secret-argument",
        ]
    );
    assert_eq!(code, 1, "{err}");
    assert_eq!(err.matches("starting `").count(), 2, "{err}");
    assert!(!out.contains("0123456789abcdef"), "{out}");
    let (out, _, code) = run_at(&home, &["check", "--json", "broken"]);
    assert!(out.contains("OXMCP_TEST_UNSET"), "{out}");
    assert_eq!(code, 2);
}

#[test]
fn urls_get_variables_only_with_consent() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    let home = folder("check-variables");
    let remote = json!({"url": url, "headers": {"x-key": "${HOME}"}});
    let config = json!({"mcpServers": {"remote": remote}});
    fs::write(home.join("mcp.json"), config.to_string()).unwrap();
    let (out, err, code) = run_at(&home, &["check", "--all", "--json"]);
    assert_eq!((out.as_str(), code), ("", 6), "{err}");
    let expected = format!("mcp.json:remote sends values of the environment to `{url}`");
    for expected in [&*expected, "header: x-key=${HOME}", "pass `--yes`"] {
        assert!(err.contains(expected), "{expected}: {err}");
    }
    assert!(listener.accept().is_err(), "nothing is contacted");
    drop(listener);
    // The user has named the server: it is announced.
    let note = format!("sending values of the environment to `{url}`");
    let file = home.join("session.jsonl").display().to_string();
    for args in [
        &["inspect", "remote"][..],
        &["bridge", "remote"],
        &["record", "remote", &file],
    ] {
        let (_, err, _) = run_at(&home, args);
        assert!(err.contains(&note), "{args:?}: {err}");
    }
}

#[test]
fn sarif_has_the_place_of_each_finding() {
    let server = example("scripted");
    let script = json!({"tools/list": tools(&format!("{ECHO},{ECHO}"))}).to_string();
    let config = json!({"mcpServers": {"odd": {"command": server, "args": [script]}}});
    let text = serde_json::to_string_pretty(&config).unwrap();
    let (out, err, code) = parts(run_in(
        "check-sarif",
        Some(&text),
        &["check", "--format", "sarif", "odd"],
    ));
    let report: Value = serde_json::from_str(&out).unwrap_or_else(|_| panic!("{out}{err}"));
    let run = &report["runs"][0];
    assert_eq!((&report["version"], code), (&json!("2.1.0"), 1));
    let rules = run["tool"]["driver"]["rules"].as_array().unwrap();
    for result in run["results"].as_array().unwrap() {
        let index = usize::try_from(result["ruleIndex"].as_u64().unwrap()).unwrap();
        assert_eq!(rules[index]["id"], result["ruleId"]);
        let place = &result["locations"][0]["physicalLocation"];
        assert_eq!(place["artifactLocation"]["uri"], "mcp.json");
        assert_eq!(place["region"]["startLine"], 3);
        assert!(["note", "warning", "error"].contains(&result["level"].as_str().unwrap()));
        assert_eq!(
            result["partialFingerprints"]["oxmcp/v1"]
                .as_str()
                .unwrap()
                .len(),
            64
        );
    }
}

/// A legacy server with sessions over HTTP, which answers requests of unknown sessions with a status, and requests for other hosts with
/// 403. Returns its address, and the heads and bodies of the requests.
fn http_server(unknown: &'static str) -> (String, mpsc::Receiver<String>) {
    let (seen, requests) = mpsc::channel();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { continue };
            let mut reader = BufReader::new(stream.try_clone().unwrap());
            let (mut head, mut length) = (String::new(), 0);
            while reader.read_line(&mut head).is_ok_and(|it| it > 2) {
                let line = head.lines().last().unwrap_or_default().to_lowercase();
                if let Some(value) = line.strip_prefix("content-length:") {
                    length = value.trim().parse().unwrap();
                }
            }
            let mut body = vec![0; length];
            reader.read_exact(&mut body).unwrap();
            let head = head.to_lowercase();
            let _ = seen.send(format!("{head}{}", String::from_utf8_lossy(&body)));
            let request: Value = serde_json::from_slice(&body).unwrap_or_default();
            let answer = |result: Value| {
                format!(
                    "event: message\ndata: {}\n\n",
                    json!({"jsonrpc": "2.0", "id": request["id"], "result": result})
                )
            };
            let (status, body) = match request["method"].as_str() {
                _ if !head.contains(&format!("host: {address}")) => {
                    ("403 Forbidden", String::new())
                }
                Some("initialize") => (
                    "200 OK",
                    answer(
                        json!({"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "h", "version": "1"}}),
                    ),
                ),
                _ if !head.contains("mcp-session-id: one") => (unknown, String::new()),
                Some("tools/list") => (
                    "200 OK",
                    answer(json!({"tools": [serde_json::from_str::<Value>(ECHO).unwrap()]})),
                ),
                Some("ping") => ("200 OK", answer(json!({}))),
                Some(_) => ("202 Accepted", String::new()),
                None => ("405 Method Not Allowed", String::new()),
            };
            let kind = if body.is_empty() {
                ""
            } else {
                "content-type: text/event-stream\r\nmcp-session-id: one\r\n"
            };
            let length = body.len();
            let _ = stream.write_all(format!("HTTP/1.1 {status}\r\n{kind}content-length: {length}\r\nconnection: close\r\n\r\n{body}").as_bytes());
        }
    });
    (format!("http://{address}/mcp"), requests)
}

#[test]
fn behavior_behind_a_balancer_is_found() {
    let check = |unknown, options: &[&str]| {
        let (url, requests) = http_server(unknown);
        let mut args = vec!["check", "--json", "--revision", "2025-11-25", &url];
        args.extend(options);
        let (out, err, code) = run_at(&folder("check-http"), &args);
        let report: Value = serde_json::from_str(&out).unwrap_or_else(|_| panic!("{out}{err}"));
        let mut found: Vec<String> = ids(report["findings"].as_array().unwrap())
            .into_iter()
            .map(str::to_owned)
            .collect();
        found.sort_unstable();
        (
            found.join(" "),
            code,
            requests.try_iter().collect::<Vec<_>>(),
        )
    };
    let (found, code, requests) = check("400 Bad Request", &[]);
    assert_eq!(
        found,
        "buffered-stream cached-stream host-check lost-session sessions"
    );
    assert_eq!(code, 1);
    let probes = requests.iter().filter(|it| it.contains("oxmcp-check"));
    let id = |it: &String| {
        serde_json::from_str::<Value>(it.lines().last().unwrap()).unwrap()["id"].clone()
    };
    let probes: Vec<Value> = probes.map(id).collect();
    assert_eq!(probes, [json!(1_000_000_001), json!(1_000_000_002)]);
    // A refusal for want of credentials says nothing about hosts, and one of a limit nothing about sessions.
    for unknown in [
        "401 Unauthorized",
        "403 Forbidden",
        "429 Too Many Requests",
        "503 Service Unavailable",
    ] {
        let options = ["--header", "Authorization: Bearer hunter2"];
        let (found, code, requests) = check(unknown, &options);
        assert_eq!(found, "buffered-stream cached-stream sessions", "{unknown}");
        assert_eq!(code, 0, "{unknown}");
        for request in requests {
            let is_other = request.contains("host: mcp.oxmcp-check.example");
            assert_eq!(request.contains("hunter2"), !is_other, "{request}");
        }
    }
}
