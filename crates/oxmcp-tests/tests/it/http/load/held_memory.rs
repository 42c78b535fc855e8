//! Memory that clients make an endpoint hold, as the kernel measures it, of a process of its own.

use std::{
    env, fs,
    io::{BufRead, BufReader, Read, Write},
    net::TcpStream,
    process::{Child, ChildStdout, Command, Stdio},
};

use oxmcp::{Limits, http::StreamableHttp};
use serde_json::json;

use crate::{
    http::server::peer::{LEGACY, initialize},
    support::calculator,
};

/// Says to the process that it is the server.
const ROLE: &str = "OXMCP_TEST_HELD";
/// The budget of the server.
const BUDGET_KIB: usize = 24 << 10;
/// What the allocator and the runtime take beside: buffers of connections, and what is parsed.
const SLACK_KIB: usize = 24 << 10;
/// Stands before the address in the output of the server.
const ADDRESS: &str = "serves ";

/// The server.
#[tokio::test]
#[ignore = "the process that the other tests start"]
async fn child() {
    if env::var_os(ROLE).is_none() {
        return;
    }
    let limits = Limits::default().http(|http| http.max_bytes(BUDGET_KIB << 10));
    let endpoint = StreamableHttp::from(calculator()).limits(limits);
    let serving = endpoint.serve("127.0.0.1:0").await.unwrap();
    println!("{ADDRESS}{}", serving.local_addr());
    serving.await;
}

struct Endpoint {
    child: Child,
    address: String,
    /// Its harness prints now and then, which fails where nothing is open to read it.
    _output: BufReader<ChildStdout>,
    /// What it held before anything was sent.
    before: usize,
}

impl Endpoint {
    fn start() -> Self {
        let mut child = Command::new(env::current_exe().unwrap())
            .args([
                "--exact",
                "http::load::held_memory::child",
                "--ignored",
                "--nocapture",
            ])
            .env(ROLE, "server")
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

    /// What it holds, in KiB.
    fn held(&self) -> usize {
        let path = format!("/proc/{}/smaps_rollup", self.child.id());
        let rollup = fs::read_to_string(path).unwrap();
        let pss = rollup.lines().find_map(|line| line.strip_prefix("Pss:"));
        pss.unwrap().trim().trim_end_matches(" kB").parse().unwrap()
    }

    #[track_caller]
    fn has_grown_by_at_most(&self, most: usize) {
        let grown = self.held().saturating_sub(self.before);
        assert!(grown <= most, "{grown} KiB more than {} KiB", self.before);
    }

    /// Begins a request, of whose body some is sent.
    fn begin(&self, length: usize, body: &[u8]) -> TcpStream {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        let head = format!(
            "POST /mcp HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-type: application/json\r\n\
             accept: application/json, text/event-stream\r\ncontent-length: {length}\r\n\r\n"
        );
        stream.write_all(head.as_bytes()).unwrap();
        // It may be refused before all of it is sent.
        let _ = stream.write_all(body);
        stream
    }

    fn post(&self, body: &str) -> String {
        let mut response = String::new();
        let mut stream = self.begin(body.len(), body.as_bytes());
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

/// 60 of them say 900 KB of themselves.
#[test]
fn sessions_hold_little_of_what_their_clients_say() {
    const SESSIONS: usize = 60;
    let endpoint = Endpoint::start();
    let long = "x".repeat(900_000);
    for opened in 0..SESSIONS {
        let mut opening = initialize(LEGACY, json!({"experimental": {"short": 1}}));
        let info = &mut opening["params"]["clientInfo"];
        match opened % 3 {
            0 => info["name"] = json!(long),
            1 => info["icons"] = json!([{"src": long}]),
            _ => opening["params"]["capabilities"]["experimental"]["long"] = json!(long),
        }
        let answer = endpoint.post(&opening.to_string());
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    }
    endpoint.has_grown_by_at_most(SESSIONS * (16 + 15) + SLACK_KIB);
}

/// 100 send 3.9 MB of a body, and not the rest.
#[test]
fn bodies_that_never_end_hold_no_more_than_the_budget() {
    const LENGTH: usize = 4_000_000;
    let endpoint = Endpoint::start();
    let begun = vec![b' '; LENGTH - 100_000];
    let streams: Vec<_> = (0..100).map(|_| endpoint.begin(LENGTH, &begun)).collect();
    // All of it has been sent, and so nearly all was read.
    for _ in 0..20 {
        endpoint.has_grown_by_at_most(BUDGET_KIB + SLACK_KIB);
    }
    drop(streams);
}
