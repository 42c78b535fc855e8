//! Connections that are cut, in the middle of events and at other places.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use oxmcp::{
    Client, ClientSession, RequestContext, Result, Revision, Tool,
    http::{Endpoint, Reconnect},
};
use serde_json::json;
use tokio::{sync::mpsc, task::JoinSet};

use crate::http::load::{Start, cutting_proxy::Proxy, ends, until};
use crate::support::calculator;

const STEPS: u32 = 8;

fn steps(calls: &Arc<AtomicUsize>) -> Tool {
    let calls = Arc::clone(calls);
    Tool::new("steps", "Report", move |cx: RequestContext| {
        calls.fetch_add(1, Ordering::SeqCst);
        async move {
            for step in 1..=STEPS {
                cx.progress(step).await;
                // Each report gets an event of its own.
                tokio::task::yield_now().await;
            }
            "done"
        }
    })
}

async fn connect(revision: Revision, proxy: &Proxy) -> ClientSession {
    let client = Client::new("cut", "1").revisions([revision]);
    let reconnect = Reconnect::default().initial_delay(Duration::from_millis(1));
    let endpoint = Endpoint::new(&proxy.url).reconnect(reconnect);
    let session = client.connect(endpoint).await.unwrap();
    // The standalone stream of a session is opened a little later, and is not to be cut.
    let wanted = usize::from(!revision.is_modern());
    until(|| match proxy.streams() {
        begun if begun >= wanted => Ok(()),
        _ => Err("there is no stream".to_owned()),
    })
    .await;
    session
}

/// Calls the tool. Returns its answer, and the progress that it had reported.
async fn call(session: &ClientSession) -> (Result<String>, Vec<f64>) {
    let (sender, mut receiver) = mpsc::channel(100);
    let call = session
        .call_tool("steps", json!({}))
        .on_progress(move |it| sender.try_send(it.progress).unwrap());
    let answer = ends(async { Ok(call.await?.to_text()) }).await;
    let mut seen = Vec::new();
    while let Ok(step) = receiver.try_recv() {
        seen.push(step);
    }
    (answer, seen)
}

/// Cuts one call after this many bytes. Returns whether it was answered.
async fn cut_once(revision: Revision, proxy: &Proxy, bytes: usize) -> bool {
    let session = connect(revision, proxy).await;
    proxy.cut_after(bytes);
    let (answer, seen) = call(&session).await;
    let expected: Vec<_> = (1..=STEPS).map(f64::from).collect();
    assert!(expected.starts_with(&seen), "{bytes}: {seen:?}");
    let answered = match answer {
        Ok(text) => {
            assert_eq!(text, "done");
            assert_eq!(seen, expected, "{bytes}");
            true
        }
        Err(error) => {
            assert!(error.is_network(), "{bytes}: {error}");
            false
        }
    };
    proxy.cut_after(usize::MAX);
    // The session continues in any case.
    let (answer, _) = call(&session).await;
    assert_eq!(answer.unwrap(), "done");
    ends(session.close()).await.unwrap();
    answered
}

/// Cuts calls at places all over the response. Returns how many of them were answered, and how many there were.
async fn cut_everywhere(revision: Revision) -> (usize, usize) {
    let calls = Arc::new(AtomicUsize::new(0));
    let server = calculator().tool(steps(&calls));
    let start = Start::of(&server);
    let serving = start.endpoint.serve("127.0.0.1:0").await.unwrap();
    let address = serving.local_addr();
    let mut cuts = JoinSet::new();
    let places: Vec<_> = (1..2_200).step_by(53).collect();
    let count = places.len();
    for bytes in places {
        cuts.spawn(async move {
            let proxy = Proxy::new(address).await;
            cut_once(revision, &proxy, bytes).await
        });
    }
    let answered = ends(cuts.join_all()).await;
    let answered = answered.into_iter().filter(|answered| *answered).count();
    // Each cut call ran once, or not at all if the cut came first, and each call after a cut ran once.
    let calls = calls.load(Ordering::SeqCst);
    assert!((count + answered..=2 * count).contains(&calls), "{calls}");
    until(|| match server.sessions().count() {
        0 => Ok(()),
        other => Err(format!("{other} sessions are left")),
    })
    .await;
    until(|| start.is_now(1)).await;
    ends(serving.close()).await;
    (answered, count)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn session_stream_cut_anywhere_is_resumed_there() {
    let (answered, count) = cut_everywhere(Revision::LATEST_LEGACY).await;
    // Only a cut before the first event leaves nothing to resume from.
    assert!(answered > count * 3 / 4, "{answered} of {count}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn cut_modern_calls_fail_without_blocking_others() {
    let (answered, count) = cut_everywhere(Revision::LATEST).await;
    assert!(answered < count, "some are cut");
}

#[tokio::test]
async fn repeatedly_cut_stream_delivers_everything_once() {
    let calls = Arc::new(AtomicUsize::new(0));
    let server = calculator().tool(steps(&calls));
    let start = Start::of(&server);
    let serving = start.endpoint.serve("127.0.0.1:0").await.unwrap();
    let proxy = Proxy::new(serving.local_addr()).await;
    let session = connect(Revision::LATEST_LEGACY, &proxy).await;
    // Enough bytes for the head of the response, and for an event or two.
    proxy.cut_after(450);
    let cutting = async {
        loop {
            if proxy.has_cut() {
                proxy.cut_after(450);
            }
            tokio::task::yield_now().await;
        }
    };
    let (answer, seen) = tokio::select! {
        answer = call(&session) => answer,
        () = cutting => unreachable!(),
    };
    assert_eq!(answer.unwrap(), "done");
    assert_eq!(seen, (1..=STEPS).map(f64::from).collect::<Vec<_>>());
    assert_eq!(calls.load(Ordering::SeqCst), 1);
    proxy.cut_after(usize::MAX);
    ends(session.close()).await.unwrap();
    ends(serving.close()).await;
}
