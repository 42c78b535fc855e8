//! Nodes that are processes: this program, started once more.

use std::{
    env,
    io::{BufRead, BufReader},
    net::{Ipv4Addr, SocketAddr, TcpListener},
    process::{self, Child, Command, Stdio},
    sync::atomic::{AtomicU16, Ordering},
    thread,
};

use tokio::sync::oneshot;

use super::shop::{self, Ledger};
use crate::server::{Server, key};

const URL: &str = "OXMCP_REDIS_TEST_URL";
const PREFIX: &str = "OXMCP_REDIS_TEST_PREFIX";
const PORT: &str = "OXMCP_REDIS_TEST_PORT";

/// A process that serves one address, also after it is killed and started again. It ends with the test process.
pub(super) struct Node {
    url: String,
    prefix: String,
    port: u16,
    process: Option<Child>,
}

impl Node {
    /// Starts the process, and waits until it serves.
    pub(super) fn start(server: &Server, prefix: &str) -> Self {
        let mut node = Self {
            url: server.url(),
            prefix: prefix.to_owned(),
            port: own_port(),
            process: None,
        };
        node.restart();
        node
    }

    pub(super) fn address(&self) -> SocketAddr {
        (Ipv4Addr::LOCALHOST, self.port).into()
    }

    /// `kill -9`.
    pub(super) fn kill(&mut self) {
        if let Some(mut process) = self.process.take() {
            process.kill().unwrap();
            process.wait().unwrap();
        }
    }

    /// Starts the process again, and waits until it serves.
    pub(super) fn restart(&mut self) {
        self.kill();
        let mut process = Command::new(env::current_exe().unwrap())
            .args([
                "--exact",
                "nodes::process::the_node",
                "--nocapture",
                "--test-threads=1",
            ])
            .env(URL, &self.url)
            .env(PREFIX, &self.prefix)
            .env(PORT, self.port.to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(process.stdout.take().unwrap()).lines();
        self.process = Some(process);
        let mut lines = lines.map_while(Result::ok);
        assert!(
            lines.any(|line| line.contains("serving")),
            "a node does not start"
        );
    }
}

/// A port that no outgoing connection gets while the node is down: systems use ports from 32768 for these.
fn own_port() -> u16 {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    let first = 20_000 + u16::try_from(process::id() % 100).unwrap() * 100;
    loop {
        let port = first + NEXT.fetch_add(1, Ordering::Relaxed) % 2_000;
        if TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok() {
            return port;
        }
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Not a test by itself: the others run it as another process.
#[tokio::test]
async fn the_node() {
    let (Ok(url), Ok(prefix), Ok(port)) = (env::var(URL), env::var(PREFIX), env::var(PORT)) else {
        return;
    };
    // It ends when the process that started it ends, even by a crash.
    let (parent, parent_ended) = oneshot::channel::<()>();
    thread::spawn(|| {
        std::io::stdin().lines().for_each(drop);
        drop(parent);
    });
    let ledger = Ledger::open(&url, &prefix).await;
    let store = oxmcp_redis::Redis::connect(&url).await.unwrap();
    let store = store.prefix(&prefix).keys([key(1)]);
    let serving = shop::node(&ledger, store, port.parse().unwrap()).await;
    println!("serving");
    tokio::select! {
        () = serving.unwrap() => {}
        _ = parent_ended => {}
    }
}
