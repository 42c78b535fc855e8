//! Servers that are processes: stopped, killed, or slow to start, in a group and behind a gateway.

use std::{
    env,
    io::{Read, Write},
    net::TcpStream,
    process,
    time::Duration,
};

use oxmcp::{Command, Revision, Server, Tool, stdio};
use oxmcp_group::{ClientGroup, Gateway, GroupEvent, GroupEvents, ServerState, Upstream};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
    sync::watch,
};

use crate::{
    gateway_support::{REVISIONS, connect, gateway, host, pairs},
    support::{client, ready, server},
};

/// The variable of a process that a test starts: the address of the test, and the revision of the server.
const ROLE: &str = "OXMCP_GROUP_TEST_PROCESS";

/// The deadline of a call to a process that is stopped.
const DEADLINE: Duration = Duration::from_secs(1);

/// The deadline of everything that must happen.
const LIMIT: Duration = Duration::from_secs(60);

/// Not a test by itself: the others run it as another process.
#[tokio::test]
async fn process_of_a_test() {
    let Ok(role) = env::var(ROLE) else {
        return;
    };
    let (address, revision) = role.split_once(' ').unwrap();
    // The test sees the end of the process by the end of this connection.
    let mut life = TcpStream::connect(address).unwrap();
    life.read_exact(&mut [0]).unwrap();
    let server = Server::new("process", "1.0.0")
        .revisions([revision.parse::<Revision>().unwrap()])
        .tool(Tool::new("pid", "Tells its ID", || async { process::id() }));
    server.run(stdio()).await.unwrap();
    life.flush().unwrap();
}

/// The processes of a test, which start once the gate is open.
struct Processes {
    address: String,
    gate: watch::Sender<bool>,
    counts: watch::Receiver<Counts>,
}

/// The numbers of processes that have started, and that have ended.
#[derive(Clone, Copy, Default)]
struct Counts {
    started: usize,
    ended: usize,
}

impl Processes {
    async fn new() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let (gate, open) = watch::channel(true);
        let (count, counts) = watch::channel(Counts::default());
        tokio::spawn(async move {
            while let Ok((mut life, _)) = listener.accept().await {
                let (mut open, count) = (open.clone(), count.clone());
                count.send_modify(|it| it.started += 1);
                tokio::spawn(async move {
                    let is_open = open.wait_for(|it| *it).await.is_ok();
                    if is_open && life.write_all(&[1]).await.is_ok() {
                        // It ends, or is killed.
                        let _ = life.read(&mut [0]).await;
                    }
                    count.send_modify(|it| it.ended += 1);
                });
            }
        });
        Self {
            address,
            gate,
            counts,
        }
    }

    /// A function that returns the command of a process.
    fn command(&self, revision: Revision) -> impl Fn() -> Command + Send + Sync + 'static {
        let role = format!("{} {revision}", self.address);
        move || {
            let test = "processes::process_of_a_test";
            Command::new(env::current_exe().unwrap())
                .args(["--exact", test, "--nocapture", "--test-threads=2"])
                .env(ROLE, &role)
        }
    }

    /// Waits until all have ended.
    async fn ended(mut self) {
        let none = self.counts.wait_for(|it| it.started == it.ended);
        let ended = tokio::time::timeout(LIMIT, none).await;
        assert!(ended.is_ok_and(|it| it.is_ok()), "processes are left");
    }
}

fn signal(name: &str, pid: &str) {
    let mut kill = process::Command::new("kill");
    let status = kill.args(["-s", name, pid]).status().unwrap();
    assert!(status.success(), "{name} {pid}");
}

/// Calls the tool `pid` of a server, within a time limit.
macro_rules! pid {
    ($caller:expr, $label:literal, $timeout:expr) => {{
        let call = $caller
            .call_tool(concat!($label, "_pid"), ())
            .timeout($timeout);
        let result = call.max_total($timeout).await;
        result.map(|it| it.to_text())
    }};
}

/// Stops and continues the process of server `a`.
macro_rules! stop_and_continue {
    ($caller:expr) => {{
        let pid = pid!($caller, "a", LIMIT).unwrap();
        signal("STOP", &pid);
        let stopped = async { pid!($caller, "a", DEADLINE) };
        let other = async { pid!($caller, "b", LIMIT) };
        let (stopped, other) = tokio::join!(stopped, other);
        signal("CONT", &pid);
        let error = stopped.unwrap_err();
        assert!(error.is_timeout(), "{error}");
        assert_ne!(other.unwrap(), pid);
        assert_eq!(pid!($caller, "a", LIMIT).unwrap(), pid);
    }};
}

/// Waits until a server is connected again, or its process was restarted in its session.
async fn is_back(events: &mut GroupEvents, label: &str) {
    let restarted = GroupEvent::Restarted {
        server: label.into(),
    };
    loop {
        let event = events.next().await.expect("the group is open");
        if event == restarted || event == ready(label) {
            return;
        }
    }
}

#[tokio::test]
async fn stopped_and_killed_processes_of_a_group_fail_alone() {
    for revision in REVISIONS {
        let processes = Processes::new().await;
        let command = processes.command(revision);
        let group = ClientGroup::new(client()).server("a", command());
        let group = group.server("b", command()).connect().await.unwrap();
        stop_and_continue!(group);
        let mut events = group.events();
        let before = pid!(group, "a", LIMIT).unwrap();
        signal("KILL", &before);
        is_back(&mut events, "a").await;
        assert_ne!(pid!(group, "a", LIMIT).unwrap(), before);
        group.close().await;
        processes.ended().await;
    }
}

#[tokio::test]
async fn slow_process_of_a_group_holds_up_no_other() {
    let processes = Processes::new().await;
    processes.gate.send_replace(false);
    let slow = processes.command(Revision::V2025_11_25)();
    let group = ClientGroup::new(client())
        .server("slow", slow)
        .server("good", server_in_process())
        .start()
        .unwrap();
    let mut events = group.events();
    // The process has begun, and does not answer yet.
    let mut counts = processes.counts.clone();
    counts.wait_for(|it| it.started == 1).await.unwrap();
    let is_ready = || group.servers()[1].state == ServerState::Ready;
    while !is_ready() {
        events.next().await.unwrap();
    }
    let result = group.call_tool("good_x", ()).await.unwrap();
    assert_eq!(result.as_text(), Some("x of good"));
    assert_eq!(group.servers()[0].state, ServerState::Connecting);
    processes.gate.send_replace(true);
    is_back(&mut events, "slow").await;
    pid!(group, "slow", LIMIT).unwrap();
    group.close().await;
    processes.ended().await;
}

fn server_in_process() -> crate::support::Remote {
    crate::support::Remote::new(server("good", &["x"]))
}

/// A gateway of two processes.
fn of_processes(processes: &Processes, revision: Revision) -> Gateway {
    let upstream = || Upstream::new(processes.command(revision));
    gateway().mount("a", upstream()).mount("b", upstream())
}

#[tokio::test]
async fn stopped_and_killed_processes_behind_a_gateway_fail_alone() {
    for (front, revision) in pairs(REVISIONS) {
        // Each request of a modern client has another process of a legacy server.
        if front.is_modern() && !revision.is_modern() {
            continue;
        }
        let processes = Processes::new().await;
        let gateway = of_processes(&processes, revision);
        let gateway = gateway.start(Server::new("all", "1.0.0")).await.unwrap();
        let session = connect(&gateway, host().revisions([front])).await;
        stop_and_continue!(session);
        let before = pid!(session, "a", LIMIT).unwrap();
        signal("KILL", &before);
        // The first call may reach the session before its end was noticed.
        let after = match pid!(session, "a", LIMIT) {
            Ok(after) => after,
            Err(_) => pid!(session, "a", LIMIT).unwrap(),
        };
        assert_ne!(after, before, "{front} {revision}");
        session.close().await.unwrap();
        gateway.close().await;
        drop(gateway);
        processes.ended().await;
    }
}

#[tokio::test]
async fn slow_process_behind_a_gateway_holds_up_no_other() {
    let processes = Processes::new().await;
    let command = processes.command(Revision::V2025_11_25);
    let gateway = gateway()
        .mount("slow", Upstream::new(command))
        .mount("good", server("good", &["x"]))
        .start(Server::new("all", "1.0.0"))
        .await
        .unwrap();
    processes.gate.send_replace(false);
    for front in REVISIONS {
        let session = connect(&gateway, host().revisions([front])).await;
        let before = processes.counts.borrow().started;
        let open = {
            let session = session.clone();
            tokio::spawn(async move { pid!(session, "slow", LIMIT) })
        };
        let mut counts = processes.counts.clone();
        counts.wait_for(|it| it.started > before).await.unwrap();
        let result = session.call_tool("good_x", ()).await.unwrap();
        assert_eq!(result.as_text(), Some("x of good"));
        assert!(!open.is_finished());
        processes.gate.send_replace(true);
        open.await.unwrap().unwrap();
        processes.gate.send_replace(false);
        session.close().await.unwrap();
    }
    gateway.close().await;
    drop(gateway);
    processes.ended().await;
}
