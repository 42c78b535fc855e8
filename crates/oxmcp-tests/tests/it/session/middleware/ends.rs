//! Middleware hears the end of every request, whether or not it gets a response.

use std::{
    future::IntoFuture,
    sync::{Arc, Mutex},
    time::Duration,
};

use futures_util::future::BoxFuture;
use oxmcp::{
    Client, Limits, RequestContext, Revision, Server, Tool,
    middleware::{self, Next, Request, Response},
    protocol::ElicitFormParams,
    testing::{ScriptedPeer, connect},
};
use serde_json::json;
use tokio::time::Instant;

use crate::session::*;

/// The requests that a middleware has begun, and the ends that it has heard.
#[derive(Clone, Default)]
struct Audit(Arc<Mutex<(Vec<String>, Vec<String>)>>);

impl Audit {
    fn layer(
        &self,
    ) -> middleware::FromFnLayer<
        impl Fn(Request, Next) -> BoxFuture<'static, oxmcp::Result<Response>> + Clone + use<>,
    > {
        let audit = self.clone();
        middleware::from_fn(move |request: Request, next: Next| {
            let audit = audit.clone();
            Box::pin(async move {
                if request.is_notification() {
                    return next.run(request).await;
                }
                let method = request.method().to_owned();
                audit.0.lock().unwrap().0.push(method.clone());
                let response = next.run(request).await;
                let end = match &response {
                    Ok(_) => "ok",
                    Err(error) if error.is_cancelled() => "cancelled",
                    Err(error) if error.is_timeout() => "timeout",
                    Err(error) if error.is_closed() => "closed",
                    Err(_) => "failed",
                };
                let heard = format!("{method} {end}");
                audit.0.lock().unwrap().1.push(heard);
                response
            }) as BoxFuture<'static, _>
        })
    }

    /// The ends of all requests but those that open the session.
    fn ends(&self) -> Vec<String> {
        let (begun, ended) = self.0.lock().unwrap().clone();
        assert_eq!(begun.len(), ended.len(), "{begun:?} {ended:?}");
        let opens = |end: &String| end.starts_with("initialize") || end.contains("discover");
        ended.into_iter().filter(|end| !opens(end)).collect()
    }
}

/// Tools that end in different ways when they are cancelled.
fn tools() -> Server {
    server()
        .tool(Tool::new(
            "polite",
            "Stops",
            |cx: RequestContext| async move {
                cx.cancelled().await;
                "stopped"
            },
        ))
        .tool(Tool::new("fickle", "Is quick at first", {
            let calls = Arc::new(Mutex::new(0));
            move || {
                let calls = Arc::clone(&calls);
                async move {
                    *calls.lock().unwrap() += 1;
                    let is_quick = *calls.lock().unwrap() <= 9;
                    if !is_quick {
                        std::future::pending::<()>().await;
                    }
                }
            }
        }))
        .tool(Tool::new("panics", "Panics", || async {
            tokio::task::yield_now().await;
            if true {
                panic!("on purpose");
            }
        }))
}

#[tokio::test(start_paused = true)]
async fn cancelled_and_timed_out_calls_are_reported() {
    for revision in Revision::ALL {
        for tool in ["stuck", "polite", "fickle"] {
            let audit = Audit::default();
            let server = tools().layer(audit.layer());
            let connecting = connect(&server).revision(revision);
            let session = connecting.await.unwrap();
            if tool == "fickle" {
                // The handler runs inline by now.
                for _ in 0..9 {
                    session.call_tool(tool, ()).await.unwrap();
                }
            }
            let call = session.call_tool(tool, ()).timeout(Duration::from_secs(5));
            assert!(call.await.unwrap_err().is_timeout());
            let dropped = session.call_tool("stuck", ()).into_future();
            assert!(timeout(Duration::from_secs(5), dropped).await.is_err());
            sleep(Duration::from_secs(2)).await;
            let mut ends = audit.ends();
            ends.retain(|end| end != "tools/call ok");
            assert_eq!(ends, ["tools/call cancelled"; 2], "{revision} {tool}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn nothing_is_sent_for_a_cancelled_request() {
    // The middleware answers in place of the handler, in vain.
    let server = tools().layer(middleware::from_fn(
        |request: Request, next: Next| async move {
            match next.run(request).await {
                Err(error) if error.is_cancelled() => Response::new(&json!({"content": []})),
                response => response,
            }
        },
    ));
    let mut peer = client_of(&server, Revision::V2025_11_25).await;
    for (id, tool) in [(1, "stuck"), (2, "polite")] {
        peer.send(call(id, tool, json!({}))).await.unwrap();
        peer.send(cancel(id)).await.unwrap();
    }
    assert_alive(&mut peer).await;
    assert_silent(&mut peer).await;
}

#[tokio::test(start_paused = true)]
async fn middleware_gets_one_second_to_finish() {
    let (tell, mut told) = tokio::sync::mpsc::channel(8);
    struct Dropped(tokio::sync::mpsc::Sender<(&'static str, Instant)>);
    impl Drop for Dropped {
        fn drop(&mut self) {
            let _ = self.0.try_send(("dropped", Instant::now()));
        }
    }
    let server = tools().layer(middleware::from_fn(move |request: Request, next: Next| {
        let tell = tell.clone();
        async move {
            if request.method() != "tools/call" {
                return next.run(request).await;
            }
            let _dropped = Dropped(tell.clone());
            let ended = next.run(request).await;
            tell.send(("heard", Instant::now())).await.unwrap();
            std::future::pending::<()>().await;
            ended
        }
    }));
    let mut peer = client_of(&server, Revision::V2025_11_25).await;
    let start = Instant::now();
    peer.send(call(1, "stuck", json!({}))).await.unwrap();
    sleep(Duration::from_millis(100)).await;
    peer.send(cancel(1)).await.unwrap();
    for (expected, seconds) in [("heard", 1), ("dropped", 2)] {
        let (what, when) = told.recv().await.unwrap();
        assert_eq!((what, (when - start).as_secs()), (expected, seconds));
    }
}

#[tokio::test(start_paused = true)]
async fn handler_of_cancelled_request_is_not_started() {
    let begun = Arc::new(Mutex::new(0));
    let counted = Arc::clone(&begun);
    let tool = Tool::new("counted", "Count", move || {
        *counted.lock().unwrap() += 1;
        async {}
    });
    let audit = Audit::default();
    let slow = middleware::from_fn(|request: Request, next: Next| async move {
        sleep(Duration::from_millis(100)).await;
        next.run(request).await
    });
    let server = server().tool(tool).layer(slow).layer(audit.layer());
    let mut peer = client_of(&server, Revision::V2025_11_25).await;
    peer.send(call(1, "counted", json!({}))).await.unwrap();
    peer.send(cancel(1)).await.unwrap();
    sleep(Duration::from_secs(5)).await;
    assert_eq!(audit.ends(), ["tools/call cancelled"]);
    assert_eq!(*begun.lock().unwrap(), 0);
}

#[tokio::test(start_paused = true)]
async fn handler_panic_is_reported() {
    let audit = Audit::default();
    let session = connect(&tools().layer(audit.layer())).await.unwrap();
    session.call_tool("panics", ()).await.unwrap_err();
    assert_eq!(audit.ends(), ["tools/call failed"]);
}

#[tokio::test(start_paused = true)]
async fn run_returns_after_all_ends_are_reported() {
    for revision in [
        Revision::V2025_03_26,
        Revision::V2025_11_25,
        Revision::LATEST,
    ] {
        for closes in [false, true] {
            let audit = Audit::default();
            let limits = Limits::default().drain(Duration::from_secs(3));
            let server = tools().layer(audit.layer()).limits(limits);
            let (mut peer, transport) = ScriptedPeer::new().await;
            let running = tokio::spawn({
                let server = server.clone();
                async move { server.run(transport).await }
            });
            if !revision.is_modern() {
                peer.initialize(revision).await.unwrap();
            }
            for (id, tool) in [(11, "stuck"), (12, "polite")] {
                let mut call = call(id, tool, json!({}));
                if revision.is_modern() {
                    call = crate::support::modern(id, "tools/call", json!({"name": tool}));
                }
                peer.send(call).await.unwrap();
            }
            sleep(Duration::from_millis(10)).await;
            match closes {
                true => server.sessions().next().unwrap().close().await.unwrap(),
                false => peer.close().await.unwrap(),
            }
            let _ = running.await.unwrap();
            assert_eq!(
                audit.ends(),
                ["tools/call cancelled"; 2],
                "{revision} {closes}"
            );
        }
    }
}

#[tokio::test(start_paused = true)]
async fn client_reports_the_end_of_a_question() {
    // The server gives up its question: as a request of its own, or with the call that has asked it.
    for revision in [Revision::V2025_11_25, Revision::LATEST] {
        let audit = Audit::default();
        let client = Client::new("c", "1")
            .layer(audit.layer())
            .on_elicit(|_: ElicitFormParams| {
                std::future::pending::<oxmcp::Result<oxmcp::protocol::ElicitResult>>()
            });
        let ask = Tool::new("ask", "Ask", |cx: RequestContext| async move {
            let said = cx.ask::<serde_json::Map<String, Value>>("sure", "Sure?");
            said.await.map(|said| format!("{said:?}"))
        });
        let server = Server::new("s", "1").tool(ask);
        let session = connect(&server)
            .client(&client)
            .revision(revision)
            .await
            .unwrap();
        let call = session.call_tool("ask", ()).into_future();
        assert!(timeout(Duration::from_secs(5), call).await.is_err());
        sleep(Duration::from_secs(4)).await;
        assert_eq!(audit.ends(), ["elicitation/create cancelled"], "{revision}");
    }
}

#[tokio::test(start_paused = true)]
async fn outgoing_middleware_sees_dropped_call_end() {
    for revision in Revision::ALL {
        let audit = Audit::default();
        let client = Client::new("c", "1").outgoing_layer(audit.layer());
        let cancelled = Arc::new(Mutex::new(0));
        let counted = Arc::clone(&cancelled);
        let tool = Tool::new("noted", "Note", move |cx: RequestContext| {
            let counted = Arc::clone(&counted);
            async move {
                cx.cancelled().await;
                *counted.lock().unwrap() += 1;
            }
        });
        let server = server().tool(tool);
        let session = connect(&server)
            .client(&client)
            .revision(revision)
            .await
            .unwrap();
        let call = session.call_tool("noted", ()).into_future();
        assert!(timeout(Duration::from_secs(5), call).await.is_err());
        let call = session
            .call_tool("noted", ())
            .timeout(Duration::from_secs(1));
        assert!(call.await.unwrap_err().is_timeout());
        // A call that is dropped before it was polled has not begun.
        drop(session.call_tool("noted", ()).into_future());
        sleep(Duration::from_millis(10)).await;
        assert_eq!(
            audit.ends(),
            ["tools/call cancelled", "tools/call timeout"],
            "{revision}"
        );
        assert_eq!(*cancelled.lock().unwrap(), 2, "{revision}");
    }
}

#[tokio::test(start_paused = true)]
async fn outgoing_middleware_ends_a_second_later() {
    let alive = Arc::new(());
    let counted = Arc::clone(&alive);
    let hanging = middleware::from_fn(move |request: Request, next: Next| {
        let running = (request.method() == "tools/call").then(|| Arc::clone(&counted));
        async move {
            let response = next.run(request).await;
            if running.is_some() {
                std::future::pending::<()>().await;
            }
            response
        }
    });
    let client = Client::new("c", "1").outgoing_layer(hanging);
    let session = connect(&server()).client(&client).await.unwrap();
    let before = Arc::strong_count(&alive);
    let call = session.call_tool("stuck", ()).into_future();
    assert!(timeout(Duration::from_secs(1), call).await.is_err());
    for (waited, is_running) in [(900, true), (200, false)] {
        sleep(Duration::from_millis(waited)).await;
        assert_eq!(Arc::strong_count(&alive) > before, is_running);
    }
}

#[tokio::test(start_paused = true)]
async fn outgoing_middleware_sees_its_session_end() {
    let audit = Audit::default();
    let (session, peer) = server_of(Client::new("c", "1").outgoing_layer(audit.layer())).await;
    let call = tokio::spawn(session.call_tool("slow", ()).into_future());
    sleep(Duration::from_millis(10)).await;
    drop(peer);
    assert!(call.await.unwrap().unwrap_err().is_closed());
    assert_eq!(audit.ends(), ["tools/call closed"]);
}

#[cfg(feature = "http-server")]
mod http {
    use oxmcp::http::StreamableHttp;

    use super::*;
    use crate::http::server::peer::{Session, call_modern};

    fn stuck() -> Value {
        json!({"name": "stuck", "arguments": {}})
    }

    #[tokio::test(start_paused = true)]
    async fn closed_responses_are_reported() {
        let audit = Audit::default();
        let endpoint = StreamableHttp::from(tools().layer(audit.layer()));
        let response = call_modern(&endpoint, "tools/call", stuck());
        assert!(timeout(Duration::from_secs(5), response).await.is_err());
        // The response is a stream by now.
        let response = call_modern(&endpoint, "tools/call", stuck()).await;
        drop(response);
        sleep(Duration::from_secs(2)).await;
        assert_eq!(audit.ends(), ["tools/call cancelled"; 2]);
    }

    #[tokio::test(start_paused = true)]
    async fn cancelled_session_requests_are_reported() {
        let audit = Audit::default();
        let endpoint = StreamableHttp::from(tools().layer(audit.layer()));
        let session = Session::open(&endpoint).await;
        let response = session.call(7, "tools/call", stuck());
        let cancelling = async {
            sleep(Duration::from_secs(1)).await;
            session.post(&cancel(7)).await
        };
        let both = async { tokio::join!(response, cancelling) };
        let _ = timeout(Duration::from_secs(10), both).await;
        assert_eq!(audit.ends(), ["tools/call cancelled"]);
    }

    #[tokio::test(start_paused = true)]
    async fn closing_an_endpoint_waits_for_middleware() {
        for is_modern in [false, true] {
            let audit = Audit::default();
            let limits = Limits::default().drain(Duration::from_secs(3));
            let endpoint =
                StreamableHttp::from(tools().layer(audit.layer()).limits(limits.clone()))
                    .limits(limits);
            let session = Session::open(&endpoint).await;
            let call = async {
                match is_modern {
                    true => drop(call_modern(&endpoint, "tools/call", stuck()).await),
                    false => drop(session.call(7, "tools/call", stuck()).await),
                }
            };
            let closing = async {
                sleep(Duration::from_secs(1)).await;
                endpoint.close().await;
                audit.ends()
            };
            let ((), ends) = tokio::join!(call, closing);
            assert_eq!(ends, ["tools/call cancelled"], "{is_modern}");
        }
    }
}
