//! Peak memory of a server under hostile input, as the kernel measures it, in a separate process.

use std::{
    io::{BufRead, BufReader, Write},
    process::{Child, ChildStdout, Stdio},
    sync::mpsc,
    thread,
    time::Duration,
};

use oxmcp::{Limits, Server, Tool, stdio};
use serde_json::{Value, json};

use crate::child;

/// Marks the process that is the server.
const ROLE: &str = "OXMCP_TEST_PEAK";
/// The number of bytes that are sent.
const FLOOD: usize = 96 << 20;
/// The greatest growth of the server's memory: some messages of the greatest length, and the unsent and queued bytes.
const MOST_KIB: usize = 10 << 10;
/// The time after which a server that stops reading is measured.
const LOOK: Duration = Duration::from_secs(1);

/// The server process.
#[tokio::test]
#[ignore = "the process that the other tests start"]
async fn child() {
    if child::role(ROLE).is_none() {
        return;
    }
    let limits = Limits::default()
        .max_message_bytes(1 << 20)
        .max_unsent_bytes(1 << 20);
    let tool = Tool::new("big", "Says much", || async { "x".repeat(4 << 10) });
    let server = Server::new("peak", "1").tool(tool).limits(limits);
    server.run(stdio()).await.unwrap();
}

struct Peak {
    child: Child,
    output: BufReader<ChildStdout>,
    /// The peak memory before the flood, in KiB.
    before: usize,
}

impl Peak {
    fn start() -> Self {
        let mut child = child::command("session::driver::peak_memory::child", ROLE, "server")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        let mut ping = request(
            0,
            "initialize",
            &json!({
                "protocolVersion": "2025-03-26", "capabilities": {}, "clientInfo": {"name": "c", "version": "1"},
            }),
        );
        ping.push(b'\n');
        child.stdin.as_mut().unwrap().write_all(&ping).unwrap();
        // The test harness writes its own lines first.
        loop {
            let line = next(&mut output);
            assert!(!line.is_empty(), "the server has ended");
            if line.contains("{\"jsonrpc\"") {
                break;
            }
        }
        let before = high_water(&child);
        Self {
            child,
            output,
            before,
        }
    }

    /// Sends `piece` `lines` times, and returns the number of answers. The answers are not read before the server stops reading, or
    /// has read everything.
    fn flood(mut self, piece: Vec<u8>, lines: usize) -> usize {
        let mut input = self.child.stdin.take().unwrap();
        let (done, is_done) = mpsc::channel();
        let (looked, has_looked) = mpsc::channel::<()>();
        let writing = thread::spawn(move || {
            for _ in 0..lines {
                input.write_all(&piece).unwrap();
            }
            // The measurement may be over already. Until it is, the input stays open, so that the server still runs.
            let _ = done.send(());
            let _ = has_looked.recv();
        });
        let _ = is_done.recv_timeout(LOOK);
        let unread = high_water(&self.child);
        drop(looked);
        let answers =
            std::iter::from_fn(|| Some(next(&mut self.output)).filter(|it| !it.is_empty()));
        let answers = answers.filter(|line| line.starts_with('{')).count();
        writing.join().unwrap();
        assert!(self.child.wait().unwrap().success());
        let grown = unread - self.before;
        assert!(
            grown < MOST_KIB,
            "it took {grown} KiB more, after {} KiB",
            self.before
        );
        answers
    }
}

/// The peak memory of the process, in KiB.
fn high_water(child: &Child) -> usize {
    let status = std::fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.unwrap()
        .trim()
        .trim_end_matches(" kB")
        .parse()
        .unwrap()
}

fn next(output: &mut BufReader<ChildStdout>) -> String {
    let mut line = String::new();
    output.read_line(&mut line).unwrap();
    line
}

fn request(id: i64, method: &str, params: &Value) -> Vec<u8> {
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
        .to_string()
        .into_bytes()
}

fn line(mut message: Vec<u8>) -> Vec<u8> {
    message.push(b'\n');
    message
}

#[test]
fn endless_line_uses_at_most_the_message_limit() {
    let piece = vec![b'x'; 1 << 20];
    assert_eq!(Peak::start().flood(piece, FLOOD >> 20), 1);
}

#[test]
fn unread_answers_use_at_most_the_limit() {
    const CALLS: usize = 12_000;
    let call = request(1, "tools/call", &json!({"name": "big"}));
    assert_eq!(Peak::start().flood(line(call), CALLS), CALLS);
}

#[test]
fn hard_to_parse_messages_need_little_extra_memory() {
    let before = br#"{"jsonrpc":"2.0","id":1,"method":"x","params":"#;
    let deep = [before.as_slice(), &vec![b'['; 1_000_000]].concat();
    let wide = format!("[{}1]", "1,".repeat(500_000)).into_bytes();
    let keys = format!(
        r#"{{"jsonrpc":"2.0","id":1,{}"a":1}}"#,
        r#""a":1,"#.repeat(150_000)
    );
    for message in [deep, wide, keys.into_bytes()] {
        let lines = FLOOD / 8 / message.len();
        assert_eq!(Peak::start().flood(line(message), lines), lines);
    }
}
