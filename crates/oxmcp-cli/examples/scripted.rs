//! A server that follows a script, to see `oxmcp check` find what is wrong with it. The script is an object: each member is the name of a
//! method and the line that answers it, in which `$ID` is the ID of the request. The line `exit` ends the server, and `silence` is no
//! answer. Without a line, the server answers as it should, with one tool.

use std::{
    env,
    io::{self, BufRead, Write},
    process::ExitCode,
};

use serde_json::{Value, json};

const ANSWERS: [(&str, &str); 4] = [
    (
        "initialize",
        r#"{"jsonrpc":"2.0","id":$ID,"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"scripted","version":"1.0.0"}}}"#,
    ),
    (
        "tools/list",
        r#"{"jsonrpc":"2.0","id":$ID,"result":{"tools":[{"name":"echo","description":"Echoes","inputSchema":{"type":"object","properties":{}}}]}}"#,
    ),
    (
        "tools/call",
        r#"{"jsonrpc":"2.0","id":$ID,"result":{"content":[{"type":"text","text":"done"}]}}"#,
    ),
    ("ping", r#"{"jsonrpc":"2.0","id":$ID,"result":{}}"#),
];

fn main() -> ExitCode {
    let script = env::args().nth(1).unwrap_or_default();
    let script: Value = serde_json::from_str(&script).unwrap_or_else(|_| json!({}));
    let line = |name: &str| script.get(name).and_then(Value::as_str);
    if let Some(first) = line("start") {
        print(first);
    }
    for request in io::stdin().lock().lines().map_while(Result::ok) {
        let request: Value = serde_json::from_str(&request).unwrap_or_default();
        let method = request
            .get("method")
            .and_then(Value::as_str)
            .unwrap_or_default();
        let Some(id) = request.get("id") else {
            continue;
        };
        let mut answers = ANSWERS.iter();
        let usual = answers
            .find(|(name, _)| *name == method)
            .map(|(_, line)| *line);
        let unknown =
            r#"{"jsonrpc":"2.0","id":$ID,"error":{"code":-32601,"message":"unknown method"}}"#;
        match line(method).or(usual).unwrap_or(unknown) {
            "exit" => {
                let _ = writeln!(io::stderr(), "thread 'main' panicked at src/main.rs:1:1");
                return ExitCode::FAILURE;
            }
            "silence" => {}
            answer => print(&answer.replace("$ID", &id.to_string())),
        }
    }
    ExitCode::SUCCESS
}

/// A line that cannot be written is for a client that has ended.
fn print(line: &str) {
    let mut out = io::stdout();
    let _ = out
        .write_all(format!("{line}\n").as_bytes())
        .and_then(|()| out.flush());
}
