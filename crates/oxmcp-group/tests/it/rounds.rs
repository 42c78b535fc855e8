//! Many servers, and many rounds of failures: what ends leaves nothing behind.

use std::time::Duration;

use oxmcp::{
    Command, Limits, RequestContext, Result, Revision, Server, Tool,
    transport::{BoxReadHalf, BoxWriteHalf, Transport},
};
use oxmcp_group::{ClientGroup, Upstream};
use tokio::time::{Instant, sleep};

use crate::{
    gateway_support::{connect, gateway, host},
    support::{Mode, Remote, client, server},
};

/// A server that takes a while to connect.
struct Slow(Remote, Duration);

impl Transport for Slow {
    type Read = BoxReadHalf;
    type Write = BoxWriteHalf;

    async fn connect(&mut self, limits: &Limits) -> Result<(BoxReadHalf, BoxWriteHalf)> {
        sleep(self.1).await;
        self.0.connect(limits).await
    }
}

#[tokio::test(start_paused = true)]
async fn fifty_servers_connect_in_the_time_of_the_slowest() {
    let servers = (1..=50_u64).map(|index| {
        let label = format!("s{index}");
        let remote = Remote::new(server(&label, &["x"]));
        (label, Slow(remote, Duration::from_millis(100 * index)))
    });
    let group = servers.fold(ClientGroup::new(client()), |group, (label, slow)| {
        group.server(label, slow)
    });
    let begun = Instant::now();
    let group = group.connect().await.unwrap();
    assert_eq!(begun.elapsed(), Duration::from_secs(5));
    assert_eq!(group.tools().len(), 50);
}

/// A server that is killed, refuses and hangs, with calls that are open then.
fn mortal(revision: Revision) -> Remote {
    let wait = |cx: RequestContext| async move {
        cx.cancelled().await;
        "late"
    };
    let server = server("mortal", &["x"]).tool(Tool::new("wait", "Waits", wait));
    Remote::new(server.revisions([revision]))
}

#[tokio::test(start_paused = true)]
async fn thousand_failures_leave_nothing_behind() {
    let metrics = tokio::runtime::Handle::current().metrics();
    for (front, revision) in [
        (Revision::V2025_11_25, Revision::V2025_11_25),
        (Revision::V2026_07_28, Revision::V2025_11_25),
        (Revision::V2026_07_28, Revision::V2026_07_28),
    ] {
        let mortal = mortal(revision);
        let transport = mortal.clone();
        let good = server("good", &["x"]);
        let gateway = gateway()
            .mount("a", Upstream::new(move || transport.clone()))
            .mount("b", good.clone())
            .start(Server::new("all", "1.0.0"))
            .await
            .unwrap();
        let mut settled = 0;
        for round in 0..334 {
            let session = connect(&gateway, host().revisions([front])).await;
            let waiting = tokio::spawn(session.call_tool("a_wait", ()).into_future());
            sleep(Duration::from_millis(1)).await;
            mortal.set([Mode::Refuse, Mode::Hang, Mode::Up][round % 3]);
            mortal.kill().await;
            let result = session.call_tool("b_x", ()).await.unwrap();
            assert_eq!(result.as_text(), Some("x of good"));
            waiting.abort();
            session.close().await.unwrap();
            mortal.set(Mode::Up);
            // Attempts that hang have ended, and the server is connected again.
            sleep(Duration::from_secs(180)).await;
            if round == 20 {
                settled = metrics.num_alive_tasks();
            }
        }
        let left = metrics.num_alive_tasks();
        assert!(
            left <= settled + 8,
            "{front} {revision}: {settled} tasks, then {left}"
        );
        assert_eq!(gateway.server().sessions().count(), 0);
        assert!(good.sessions().count() <= 2, "{}", good.sessions().count());
        gateway.close().await;
    }
}

/// The processes that this one has started.
#[cfg(target_os = "linux")]
fn children() -> usize {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap();
    let files = tasks.filter_map(|it| Some(it.ok()?.path().join("children")));
    let lists = files.filter_map(|it| std::fs::read_to_string(it).ok());
    lists.map(|it| it.split_whitespace().count()).sum()
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn silent_process_ends_with_its_gateway() {
    let before = children();
    for _ in 0..5 {
        let gateway = gateway()
            .mount(
                "silent",
                Upstream::new(|| Command::new("cat").arg("/dev/zero")),
            )
            .mount("good", server("good", &["x"]))
            .connect_timeout(Duration::from_millis(50))
            .start(Server::new("all", "1.0.0"))
            .await
            .unwrap();
        let session = connect(&gateway, client()).await;
        let result = session.call_tool("good_x", ()).await.unwrap();
        assert_eq!(result.as_text(), Some("x of good"));
        gateway.close().await;
    }
    // A process that does not end by itself is killed after a while.
    let ended = async {
        while children() > before {
            sleep(Duration::from_millis(20)).await;
        }
    };
    let ended = tokio::time::timeout(Duration::from_secs(60), ended).await;
    assert!(ended.is_ok(), "{} processes are left", children());
}
