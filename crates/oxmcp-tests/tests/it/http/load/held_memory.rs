//! Memory that clients make an endpoint hold, as the kernel measures it for a process of its own.

use std::{
    fs,
    io::{BufRead, BufReader, Read, Write},
    net::TcpStream,
    process::{Child, ChildStdout, Stdio},
};

use oxmcp::{Limits, Revision, Tool, http::StreamableHttp, testing::ScriptedPeer};
use serde_json::json;

use crate::{
    child,
    http::server::peer::{LEGACY, initialize},
    support::calculator,
};

/// The environment variable that makes the process the server.
const ROLE: &str = "OXMCP_TEST_HELD";
/// The budget of the server.
const BUDGET_KIB: usize = 24 << 10;
/// The memory beyond the budget that the allocator and the runtime take: buffers of connections, parsed values, and an arena for each
/// thread that runs at the same time. Without a budget it would be some 260 MiB.
const SLACK_KIB: usize = 32 << 10;
/// The length of the tool's answer, which exceeds what the kernel buffers of an answer.
const ANSWER: usize = 4 << 20;
/// The text before the address in the output of the server.
const ADDRESS: &str = "serves ";

/// The server process.
#[tokio::test]
#[ignore = "the process that the other tests start"]
async fn child() {
    if child::role(ROLE).is_none() {
        return;
    }
    let limits = Limits::default().http(|http| http.max_bytes(BUDGET_KIB << 10));
    let long = Tool::new("long", "Says much", || async { "x".repeat(ANSWER) });
    let endpoint = StreamableHttp::from(calculator().tool(long)).limits(limits);
    let serving = endpoint.serve("127.0.0.1:0").await.unwrap();
    println!("{ADDRESS}{}", serving.local_addr());
    serving.await;
}

struct Endpoint {
    child: Child,
    address: String,
    /// Kept open, since the process's test harness prints now and then, which fails if no reader is open.
    _output: BufReader<ChildStdout>,
    /// The memory that the process held, in KiB, after a first request and before the clients of the test.
    before: usize,
}

impl Endpoint {
    fn start() -> Self {
        let mut child = child::command("http::load::held_memory::child", ROLE, "server")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        let address = output
            .by_ref()
            .lines()
            .map_while(Result::ok)
            .find_map(|line| {
                let (_, address) = line.split_once(ADDRESS)?;
                Some(address.to_owned())
            });
        let mut endpoint = Self {
            address: address.unwrap(),
            child,
            _output: output,
            before: 0,
        };
        endpoint.post(&initialize(LEGACY, json!({})).to_string());
        endpoint.before = endpoint.held();
        endpoint
    }

    /// The memory that the process holds, in KiB: without the pages of its program, whose share changes with the other
    /// processes of the tests.
    fn held(&self) -> usize {
        let path = format!("/proc/{}/smaps_rollup", self.child.id());
        let rollup = fs::read_to_string(path).unwrap();
        let mut lines = rollup.lines();
        let own = lines.find_map(|line| line.strip_prefix("Anonymous:"));
        own.unwrap().trim().trim_end_matches(" kB").parse().unwrap()
    }

    #[track_caller]
    fn has_grown_by_at_most(&self, most: usize) {
        let grown = self.held().saturating_sub(self.before);
        assert!(grown <= most, "{grown} KiB more than {} KiB", self.before);
    }

    /// Checks the memory while the server is busy with other requests.
    #[track_caller]
    fn stays_within_the_budget(&self) {
        for _ in 0..20 {
            self.post("{}");
            self.has_grown_by_at_most(BUDGET_KIB + SLACK_KIB);
        }
    }

    /// Opens sessions whose clients send 900 KB about themselves.
    fn open_sessions(&self, count: usize) {
        let long = "x".repeat(900_000);
        for opened in 0..count {
            let mut opening = initialize(LEGACY, json!({"experimental": {"short": 1}}));
            let info = &mut opening["params"]["clientInfo"];
            match opened % 3 {
                0 => info["name"] = json!(long),
                1 => info["icons"] = json!([{"src": long}]),
                _ => opening["params"]["capabilities"]["experimental"]["long"] = json!(long),
            }
            let answer = self.post(&opening.to_string());
            assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
        }
    }

    /// Sends 3.9 MB of each of this many bodies, and not the rest.
    fn begin_bodies(&self, count: usize) -> Vec<TcpStream> {
        const LENGTH: usize = 4_000_000;
        let begun = vec![b' '; LENGTH - 100_000];
        (0..count).map(|_| self.begin(LENGTH, "", &begun)).collect()
    }

    /// Makes this many calls, of whose answers nothing is read.
    fn call_without_reading(&self, count: usize) -> Vec<TcpStream> {
        let meta = ScriptedPeer::modern_meta();
        let params = json!({"name": "long", "arguments": {}, "_meta": meta});
        let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params});
        let call = call.to_string();
        let headers = format!(
            "mcp-protocol-version: {}\r\nmcp-method: tools/call\r\nmcp-name: long\r\n",
            Revision::LATEST
        );
        (0..count)
            .map(|_| self.begin(call.len(), &headers, call.as_bytes()))
            .collect()
    }

    /// Begins a request, of whose body a part is sent.
    fn begin(&self, length: usize, headers: &str, body: &[u8]) -> TcpStream {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        let head = format!(
            "POST /mcp HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-type: application/json\r\n\
             accept: application/json, text/event-stream\r\n{headers}content-length: {length}\r\n\r\n"
        );
        stream.write_all(head.as_bytes()).unwrap();
        // The request may be refused before all of this is sent.
        let _ = stream.write_all(body);
        stream
    }

    fn post(&self, body: &str) -> String {
        let mut response = String::new();
        let mut stream = self.begin(body.len(), "", body.as_bytes());
        stream.read_to_string(&mut response).unwrap();
        response
    }
}

impl Drop for Endpoint {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn sessions_hold_little_client_data() {
    const SESSIONS: usize = 60;
    let endpoint = Endpoint::start();
    endpoint.open_sessions(SESSIONS);
    endpoint.has_grown_by_at_most(SESSIONS * (16 + 15) + SLACK_KIB);
}

#[test]
fn endless_bodies_stay_within_the_memory_budget() {
    let endpoint = Endpoint::start();
    let streams = endpoint.begin_bodies(100);
    // All these bytes have been sent, so nearly all were read.
    endpoint.stays_within_the_budget();
    drop(streams);
}

#[test]
fn unread_answers_stay_within_the_memory_budget() {
    let endpoint = Endpoint::start();
    let streams = endpoint.call_without_reading(40);
    endpoint.stays_within_the_budget();
    drop(streams);
}

#[test]
fn endpoint_memory_shares_one_budget() {
    let endpoint = Endpoint::start();
    endpoint.open_sessions(30);
    let bodies = endpoint.begin_bodies(40);
    let calls = endpoint.call_without_reading(20);
    endpoint.stays_within_the_budget();
    drop((bodies, calls));
}
