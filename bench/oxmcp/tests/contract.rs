//! The contract with outside tools: the tools of the server, the options of the client, and the
//! line that it prints.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "clippy knows tests by their attribute, and these are their helpers"
)]

use std::{
    io::Write,
    process::{Command, Stdio},
};

use serde_json::{Value, json};

const SERVER: &str = env!("CARGO_BIN_EXE_bench-server");
const CLIENT: &str = env!("CARGO_BIN_EXE_bench-client");

fn request(id: i64, method: &str, mut params: Value) -> Value {
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
        "progressToken": id,
    });
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
}

/// All messages of the server in answer to one request.
fn said(method: &str, params: Value) -> Vec<Value> {
    said_with("tools=plain", method, params)
}

/// The same, from a server with other tools.
fn said_with(tools: &str, method: &str, params: Value) -> Vec<Value> {
    let mut server = Command::new(SERVER)
        .args(["stdio", tools])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let line = format!("{}\n", request(1, method, params));
    let mut input = server.stdin.take().unwrap();
    input.write_all(line.as_bytes()).unwrap();
    drop(input);
    let output = server.wait_with_output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

#[test]
fn benchmark_server_has_the_tools() {
    let listed = said("tools/list", json!({}));
    let tools = listed[0]["result"]["tools"].as_array().unwrap();
    let names: Vec<_> = tools.iter().filter_map(|it| it["name"].as_str()).collect();
    let mut expected: Vec<_> = (0..100).map(|i| format!("dummy_{i:03}")).collect();
    expected.extend(["add", "echo", "stream"].map(Into::into));
    expected.sort();
    assert_eq!(names, expected);
    let add = &tools[0]["inputSchema"];
    assert_eq!(add["properties"]["a"]["type"], "integer", "{add}");
    for tool in tools {
        assert!(tool.get("outputSchema").is_none(), "{tool}");
        let is_dummy = tool["name"]
            .as_str()
            .is_some_and(|it| it.starts_with("dummy"));
        assert!(!is_dummy || tool["inputSchema"] == *add, "{tool}");
    }
}

#[test]
fn tools_return_their_expected_results() {
    for (name, arguments, text, updates) in [
        ("add", json!({"a": 20, "b": 22}), "42", 0),
        ("dummy_099", json!({"a": 1, "b": -2}), "-1", 0),
        ("echo", json!({"text": "é\n"}), "é\n", 0),
        ("stream", json!({"n": 3}), "done", 3),
    ] {
        let said = said("tools/call", json!({"name": name, "arguments": arguments}));
        let (answer, progress) = said.split_last().unwrap();
        let content = json!([{"type": "text", "text": text}]);
        assert_eq!(answer["result"]["content"], content, "{name}");
        assert!(
            answer["result"].get("structuredContent").is_none(),
            "{name}"
        );
        assert_eq!(progress.len(), updates, "{name}");
        let is_progress = |it: &Value| it["method"] == "notifications/progress";
        assert!(progress.iter().all(is_progress), "{progress:?}");
    }
}

#[test]
fn tool_sets_match_the_benchmark_cells() {
    for (tools, count) in [("tools=hidden", 102), ("tools=more", 106), ("tools=5", 8)] {
        let listed = said_with(tools, "tools/list", json!({}));
        let listed = listed[0]["result"]["tools"].as_array().unwrap();
        assert_eq!(listed.len(), count, "{tools}");
    }
    let call = |name: &str, arguments: Value| {
        let params = json!({"name": name, "arguments": arguments});
        said_with("tools=more", "tools/call", params).pop().unwrap()
    };
    let waited = call("wait", json!({"a": 20, "b": 22}));
    assert_eq!(waited["result"]["content"][0]["text"], "42", "{waited}");
    let order = |quantity: i64| {
        json!({"reference": "order-1", "priority": "express", "gift": false, "discount": 5,
            "customer": {"name": "Ada", "email": null, "address": {"street": ["12 St James's Square"],
                "city": "London", "postcode": "SW1Y 4JH", "country": "GB"}},
            "lines": [{"sku": "part", "quantity": quantity, "price": 1000, "note": null, "tags": []}]})
    };
    let quoted = call("quote", order(2));
    let quote = &quoted["result"]["structuredContent"];
    assert_eq!(quote["total"], 1900 + 361, "{quoted}");
    assert_eq!(quote["lines"][0]["warehouse"], "rotterdam");
    let text = quoted["result"]["content"][0]["text"].as_str().unwrap();
    assert_eq!(serde_json::from_str::<Value>(text).unwrap(), *quote);
    let refused = call("quote", order(1001));
    assert_eq!(refused["result"]["isError"], true, "{refused}");
}

/// The line that the client prints, parsed.
fn measured(options: &[&str]) -> Value {
    let mut command = Command::new(CLIENT);
    command
        .arg("stdio")
        .args(options)
        .args(["--", SERVER, "stdio"]);
    let output = command.output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(text.lines().count(), 1, "{text}");
    serde_json::from_str(&text).unwrap()
}

#[test]
fn client_parses_its_options_and_prints_one_line() {
    for options in [
        &["calls=20", "warm=0"][..],
        &["calls=20", "warm=0", "conc=4", "era=2025"],
        &["secs=0.1", "warm=0.01", "conc=16", "era=2026"],
    ] {
        let line = measured(options);
        for key in [
            "calls",
            "seconds",
            "calls_per_second",
            "p50_us",
            "p99_us",
            "cpu_seconds",
        ] {
            assert!(
                line[key].as_f64().is_some_and(|it| it > 0.0),
                "{key}: {line}"
            );
        }
        if options.contains(&"calls=20") {
            assert_eq!(line["calls"], 20, "{options:?}");
        }
    }
    let mut wrong = Command::new(CLIENT);
    let wrong = wrong.args(["stdio", "cons=1", "--", SERVER, "stdio"]);
    let wrong = wrong.output().unwrap();
    assert!(
        !wrong.status.success() && wrong.stdout.is_empty(),
        "{wrong:?}"
    );
}
