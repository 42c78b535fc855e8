//! A server that restarts while clients call it.

use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use oxmcp::{
    Client, ClientSession, Limits, Revision, Server, Tool,
    http::{Endpoint, Reconnect, ServerHandle, StreamableHttp},
};
use serde_json::json;
use tokio::task::JoinSet;

use crate::http::load::{ends, until};
use crate::support::calculator;

/// The numbers of calls that were served and answered.
#[derive(Default)]
struct Seen {
    served: AtomicUsize,
    answered: AtomicUsize,
}

fn server(seen: &Arc<Seen>) -> Server {
    let seen = Arc::clone(seen);
    let count = Tool::new("count", "Count", move || {
        let seen = Arc::clone(&seen);
        async move {
            seen.served.fetch_add(1, Ordering::SeqCst);
            "counted"
        }
    });
    calculator().tool(count)
}

/// Serves at this address, and retries while it is not free.
async fn serve(server: &Server, address: SocketAddr) -> ServerHandle {
    let limits = Limits::default().drain(Duration::from_millis(50));
    let endpoint = StreamableHttp::from(server.clone()).limits(limits);
    loop {
        match endpoint.serve(address).await {
            Ok(serving) => return serving,
            Err(_) => tokio::time::sleep(Duration::from_millis(5)).await,
        }
    }
}

/// Calls until `stop` is set. Each call must end, with an answer or with an error.
async fn calling(session: ClientSession, seen: Arc<Seen>, stop: Arc<AtomicBool>) {
    while !stop.load(Ordering::SeqCst) {
        match session.call_tool("count", json!({})).await {
            Ok(result) => {
                assert_eq!(result.to_text(), "counted");
                seen.answered.fetch_add(1, Ordering::SeqCst);
            }
            Err(error) => {
                assert!(!error.is_timeout(), "{error}");
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        }
    }
}

async fn restarts_under(revision: Revision) {
    let seen = Arc::<Seen>::default();
    let first = server(&seen);
    let mut serving = serve(&first, "127.0.0.1:0".parse().unwrap()).await;
    let address = serving.local_addr();
    let url = format!("http://{address}/mcp");
    let client = Client::new("caller", "1").revisions([revision]);
    let stop = Arc::new(AtomicBool::new(false));
    let mut callers = JoinSet::new();
    let mut sessions = Vec::new();
    for _ in 0..5 {
        let reconnect = Reconnect::default().initial_delay(Duration::from_millis(1));
        let endpoint = Endpoint::new(&url).reconnect(reconnect);
        let session = client.connect(endpoint).await.unwrap();
        sessions.push(session.clone());
        callers.spawn(calling(session, Arc::clone(&seen), Arc::clone(&stop)));
    }
    for _ in 0..3 {
        let before = seen.answered.load(Ordering::SeqCst);
        until(|| match seen.answered.load(Ordering::SeqCst) {
            now if now >= before + 50 => Ok(()),
            now => Err(format!("{now} are answered, and {before} before")),
        })
        .await;
        ends(serving.close()).await;
        // The restarted server knows none of the sessions.
        serving = serve(&server(&seen), address).await;
    }
    for session in &sessions {
        // Each session recovers, even if it was in the middle of a call.
        let again = async {
            while session
                .call_tool("add", json!({"a": 1, "b": 2}))
                .await
                .is_err()
            {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        ends(again).await;
    }
    stop.store(true, Ordering::SeqCst);
    ends(callers.join_all()).await;
    let (served, answered) = (
        seen.served.load(Ordering::SeqCst),
        seen.answered.load(Ordering::SeqCst),
    );
    assert!(answered <= served, "{answered} answers to {served} calls");
    for session in sessions {
        ends(session.close()).await.unwrap();
    }
    ends(serving.close()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sessions_are_reopened_when_server_restarts_under_calls() {
    restarts_under(Revision::LATEST_LEGACY).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn modern_calls_survive_a_server_restart() {
    restarts_under(Revision::LATEST).await;
}

#[tokio::test]
async fn idle_session_does_not_notice_a_server_restart() {
    let seen = Arc::default();
    let serving = serve(&server(&seen), "127.0.0.1:0".parse().unwrap()).await;
    let address = serving.local_addr();
    let client = Client::new("caller", "1").revisions([Revision::LATEST_LEGACY]);
    let url = format!("http://{address}/mcp");
    let session = client.connect(Endpoint::new(url)).await.unwrap();
    session.ping().await.unwrap();
    ends(serving.close()).await;
    let serving = serve(&server(&seen), address).await;
    for _ in 0..3 {
        let sum: f64 = ends(
            session
                .call_tool("add", json!({"a": 1, "b": 2}))
                .structured(),
        )
        .await
        .unwrap();
        assert_eq!(sum, 3.0);
    }
    ends(session.close()).await.unwrap();
    ends(serving.close()).await;
}
