//! Bridges: no process is left behind, however a bridge ends.

#![cfg(target_os = "linux")]

use std::{
    fs::{self, File, OpenOptions},
    io::{BufRead, BufReader, Read, Write},
    net::TcpStream,
    os::unix::fs::OpenOptionsExt,
    path::Path,
    process::{Child, Command, Stdio},
};

use serde_json::json;

use crate::support::{command, example, folder, run_at};

/// `O_NONBLOCK`
const NONBLOCK: i32 = 0o4000;

/// A bridge that listens.
struct Bridge {
    child: Child,
    address: String,
    _reader: File,
}

impl Bridge {
    /// Starts a bridge to the scripted server, which holds a pipe of the test open for as long as it lives.
    fn start(home: &Path) -> Self {
        let pipe = home.join("alive");
        assert!(
            Command::new("mkfifo")
                .arg(&pipe)
                .status()
                .unwrap()
                .success()
        );
        // A pipe opens for writing only if there is a reader.
        let reader = OpenOptions::new()
            .read(true)
            .custom_flags(NONBLOCK)
            .open(pipe)
            .unwrap();
        let script = format!("exec 9>alive; exec {}", example("scripted"));
        let args = [
            "bridge",
            "--listen",
            "127.0.0.1:0",
            "--no-token",
            "--",
            "sh",
            "-c",
            &script,
        ];
        let mut command = command(home, &args);
        command.stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let mut lines = lines.map_while(Result::ok);
        let line = lines.find(|it| it.contains("listening on")).unwrap();
        let address = line
            .rsplit("http://")
            .next()
            .unwrap()
            .trim_end_matches('/')
            .to_owned();
        Self {
            child,
            address,
            _reader: reader,
        }
    }

    fn send(&self, method: &str, session: Option<&str>, body: &str) -> String {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        let session = session
            .map(|it| format!("mcp-session-id: {it}\r\n"))
            .unwrap_or_default();
        let length = body.len();
        let head = format!(
            "{method} / HTTP/1.1\r\nhost: {}\r\naccept: application/json, text/event-stream\r\ncontent-type: application/json\r\n{session}content-length: {length}\r\nconnection: close\r\n\r\n",
            self.address
        );
        stream
            .write_all(format!("{head}{body}").as_bytes())
            .unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }

    /// Opens a session, which starts a process. Returns its ID.
    fn open(&self) -> String {
        let client = json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}});
        let request = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": client});
        let answer = self.send("POST", None, &request.to_string());
        let session = answer
            .lines()
            .find_map(|it| it.strip_prefix("mcp-session-id: "));
        let session = session.unwrap_or_else(|| panic!("{answer}")).to_owned();
        let request =
            json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "echo"}});
        let answer = self.send("POST", Some(&session), &request.to_string());
        assert!(answer.contains("done"), "{answer}");
        session
    }

    /// The number of processes that the bridge has started and that live.
    fn children(&self) -> usize {
        let path = format!("/proc/{0}/task/{0}/children", self.child.id());
        fs::read_to_string(path).unwrap().split_whitespace().count()
    }
}

impl Drop for Bridge {
    fn drop(&mut self) {
        // It has ended already, unless the test fails.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Waits until no process holds the pipe open. Returns whether that came true.
fn all_ended(pipe: File) -> bool {
    let mut wait = Command::new("timeout");
    wait.args(["30", "cat"]).stdin(pipe);
    wait.status().unwrap().success()
}

#[test]
fn killed_bridge_leaves_no_process() {
    for signal in ["KILL", "TERM", "INT", "HUP"] {
        let home = folder(&format!("bridge-{signal}"));
        let mut bridge = Bridge::start(&home);
        bridge.open();
        bridge.open();
        assert!(bridge.children() >= 2);
        // It opens at once, because the processes of the sessions write to it.
        let pipe = File::open(home.join("alive")).unwrap();
        let id = bridge.child.id().to_string();
        assert!(
            Command::new("kill")
                .args(["-s", signal, &id])
                .status()
                .unwrap()
                .success()
        );
        bridge.child.wait().unwrap();
        assert!(all_ended(pipe), "{signal}");
    }
}

#[test]
fn bridge_of_a_host_ends_with_its_input() {
    let home = folder("bridge-stdio");
    let (_, err, code) = run_at(&home, &["bridge", "--", &example("scripted")]);
    assert_eq!((err.as_str(), code), ("", 0));
}

/// It starts 1,000 processes.
#[test]
fn ended_sessions_leave_no_process() {
    let home = folder("bridge-many");
    let bridge = Bridge::start(&home);
    for _ in 0..1000 {
        let session = bridge.open();
        bridge.send("DELETE", Some(&session), "");
    }
    // The last ones may still be ending.
    assert!(bridge.children() < 8, "{}", bridge.children());
}
