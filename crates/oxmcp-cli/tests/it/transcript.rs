//! Recorded sessions, and their replay.

use std::{
    fs,
    io::{BufRead, BufReader, Write},
    process::Stdio,
};

use serde_json::{Value, json};

use crate::support::{OXMCP, command, folder, notes, run_at};

/// Sends lines to the command, and reads as many answers as there are requests. Questions of the server are accepted.
fn talk(home: &std::path::Path, args: &[&str], requests: &[Value]) -> Vec<Value> {
    let mut command = command(home, args);
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    let mut child = command.spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    let mut output = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut answers = Vec::new();
    for request in requests {
        writeln!(input, "{request}").unwrap();
        let Some(id) = request.get("id") else {
            continue;
        };
        loop {
            let line = output.next().unwrap().unwrap();
            let message: Value = serde_json::from_str(&line).unwrap();
            if message.get("method").is_some() && message.get("id").is_some() {
                let accepted = json!({"action": "accept", "content": {"confirmed": true}});
                writeln!(
                    input,
                    "{}",
                    json!({"jsonrpc": "2.0", "id": message["id"], "result": accepted})
                )
                .unwrap();
                continue;
            }
            if message["id"] == *id {
                answers.push(message);
                break;
            }
        }
    }
    drop(input);
    assert!(child.wait().unwrap().success());
    answers
}

fn request(id: i64, method: &str, params: impl Into<Value>) -> Value {
    let params: Value = params.into();
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
}

fn session() -> Vec<Value> {
    let client = json!({"protocolVersion": "2025-06-18", "capabilities": {"elicitation": {}}, "clientInfo": {"name": "a", "version": "1"}});
    vec![
        request(1, "initialize", client),
        json!({"jsonrpc": "2.0", "method": "notifications/initialized"}),
        request(2, "tools/list", json!({})),
        request(
            3,
            "tools/call",
            json!({"name": "search", "arguments": {"query": "ghp_0123456789abcdefghij"}}),
        ),
        request(4, "tools/call", json!({"name": "delete", "arguments": {}})),
    ]
}

#[test]
fn recorded_session_is_replayed() {
    let home = folder("record");
    let notes = notes();
    let requests = session();
    let recorded = talk(&home, &["record", "s.jsonl", "--", &notes], &requests);
    assert_eq!(recorded[3]["result"]["content"][0]["text"], "deleted");
    let text = fs::read_to_string(home.join("s.jsonl")).unwrap();
    assert!(
        !text.contains("ghp_0123456789") && text.contains("[redacted]"),
        "{text}"
    );
    assert!(text.contains("elicitation/create"), "{text}");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = fs::metadata(home.join("s.jsonl"))
            .unwrap()
            .permissions()
            .mode();
        assert_eq!(mode & 0o777, 0o600);
    }

    let replayed = talk(&home, &["replay", "s.jsonl"], &requests);
    assert_eq!(replayed[0], recorded[0]);
    assert_eq!(replayed[1], recorded[1]);
    assert_eq!(replayed[3], recorded[3]);
    // Other IDs, another order, and a call that is repeated.
    let mut others = vec![requests[0].clone(), requests[1].clone()];
    for (id, index) in [(70, 4), (71, 2), (72, 4)] {
        let mut request = requests[index].clone();
        request["id"] = json!(id);
        others.push(request);
    }
    let other = talk(&home, &["replay", "--realtime", "s.jsonl"], &others);
    assert_eq!(other[1]["result"], recorded[3]["result"]);
    assert_eq!(other[3]["result"], recorded[3]["result"]);
    let unknown = [
        requests[0].clone(),
        request(2, "tools/call", json!({"name": "other"})),
        request(3, "prompts/list", json!({})),
    ];
    let refused = talk(&home, &["replay", "s.jsonl"], &unknown);
    assert_eq!(refused[1]["error"]["code"], -32602);
    assert_eq!(refused[2]["error"]["code"], -32601);
}

#[test]
fn replay_is_a_server_for_every_command() {
    let home = folder("replay");
    let notes = notes();
    // `call` lists the tools, and calls one, in the latest revision.
    let args = [
        "call",
        "search",
        "query=tea",
        "--",
        OXMCP,
        "record",
        "s.jsonl",
        "--",
        &notes,
    ];
    let (out, err, code) = run_at(&home, &args);
    assert_eq!(code, 0, "{err}");
    let args = [
        "call",
        "search",
        "query=tea",
        "--",
        OXMCP,
        "replay",
        "s.jsonl",
    ];
    let (again, err, code) = run_at(&home, &args);
    assert_eq!((&again, code), (&out, 0), "{err}");
}

#[test]
fn recording_has_a_maximum_size() {
    let home = folder("record-bounded");
    let notes = notes();
    let args = ["record", "--max-size", "0", "s.jsonl", "--", &notes];
    let (_, err, code) = run_at(&home, &args);
    assert!(err.contains("--max-size"), "{err}");
    assert_eq!(code, 1);
    // The next session has the next free name.
    let (_, err, code) = run_at(&home, &["record", "s.jsonl", "--", &notes]);
    assert!(err.contains("recorded 0 messages in s-2.jsonl"), "{err}");
    assert_eq!(code, 0, "{err}");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let path = home.join("s.jsonl");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        run_at(&home, &["record", "--force", "s.jsonl", "--", &notes]);
        let mode = fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }
    fs::write(home.join("other.jsonl"), "{}\n").unwrap();
    let (_, err, code) = run_at(&home, &["replay", "other.jsonl"]);
    assert!(err.contains("it is not a transcript"), "{err}");
    assert_eq!(code, 2);
}
