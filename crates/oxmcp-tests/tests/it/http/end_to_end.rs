//! The crate's client against the crate's endpoint, over TCP.

use futures_util::FutureExt;
use oxmcp::{
    Accept, Client, RequestContext, Revision, Server, Tool, ToolError,
    http::{Endpoint, ServerHandle, StreamableHttp},
    protocol::{ElicitFormParams, SubscriptionFilter},
};
use serde_json::json;

use crate::support::{calculator, idle};

async fn serve(server: &Server) -> (ServerHandle, String) {
    let endpoint = StreamableHttp::from(server.clone());
    let serving = endpoint.serve("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", serving.local_addr());
    (serving, url)
}

fn steps() -> Tool {
    Tool::new("steps", "Report", |cx: RequestContext| async move {
        for step in 1..=100 {
            cx.progress(step).await;
        }
        "done"
    })
}

#[tokio::test]
async fn every_revision_is_served_at_one_url() {
    let (serving, url) = serve(&calculator().tool(steps())).await;
    for revision in [
        Revision::V2025_03_26,
        Revision::V2025_06_18,
        Revision::V2025_11_25,
        Revision::V2026_07_28,
    ] {
        let client = Client::new("both", "1").revisions([revision]);
        let session = client.connect(Endpoint::new(&url)).await.unwrap();
        assert_eq!(session.revision(), revision);
        let sum: f64 = session
            .call_tool("add", json!({"a": 1, "b": 2}))
            .structured()
            .await
            .unwrap();
        assert_eq!(sum, 3.0);
        let mut seen = Vec::new();
        let (sender, mut steps) = tokio::sync::mpsc::channel(1000);
        let done = session
            .call_tool("steps", json!({}))
            .on_progress(move |progress| sender.try_send(progress.progress).unwrap())
            .await
            .unwrap();
        assert!(!done.is_error);
        while let Ok(step) = steps.try_recv() {
            seen.push(step);
        }
        assert_eq!(seen, (1..=100).map(f64::from).collect::<Vec<_>>());
        session.close().await.unwrap();
    }
    serving.close().await;
}

#[tokio::test]
async fn newest_revision_is_negotiated_automatically() {
    let (_serving, url) = serve(&calculator()).await;
    let session = Client::new("both", "1")
        .connect(Endpoint::new(&url))
        .await
        .unwrap();
    assert_eq!(session.revision(), Revision::LATEST);
}

#[tokio::test]
async fn tool_asks_the_user_in_every_capable_revision() {
    #[derive(Debug, serde::Deserialize, serde::Serialize, oxmcp::JsonSchema)]
    struct Name {
        name: String,
    }

    let greet = Tool::new("greet", "Greet", |cx: RequestContext| async move {
        let Name { name } = cx.ask("name", "Who are you?").await?;
        Ok::<_, ToolError>(format!("Hello, {name}!"))
    });
    let (_serving, url) = serve(&calculator().tool(greet)).await;
    for revision in [
        Revision::V2025_06_18,
        Revision::V2025_11_25,
        Revision::LATEST,
    ] {
        let session = Client::new("both", "1")
            .revisions([revision])
            .on_elicit(|_: ElicitFormParams| async { Accept(json!({"name": "Ann"})) })
            .connect(Endpoint::new(&url))
            .await
            .unwrap();
        let result = session.call_tool("greet", json!({})).await.unwrap();
        let result = serde_json::to_value(&result).unwrap();
        assert_eq!(result["content"][0]["text"], "Hello, Ann!", "{revision}");
    }
}

#[tokio::test]
async fn changes_are_notified_in_both_eras() {
    let server = calculator();
    let (_serving, url) = serve(&server).await;
    let (sender, mut told) = tokio::sync::mpsc::channel(1000);
    let legacy = Client::new("both", "1")
        .revisions([Revision::LATEST_LEGACY])
        .on_tools_changed(move |_session| {
            sender.try_send(()).unwrap();
            async {}
        })
        .connect(Endpoint::new(&url))
        .await
        .unwrap();
    let modern = Client::new("both", "1")
        .connect(Endpoint::new(&url))
        .await
        .unwrap();
    let filter = SubscriptionFilter::default().with_tools_list_changed(true);
    let mut subscription = modern.listen(filter).await.unwrap();
    let _ = server.clone().tool(idle("another"));
    told.recv().await.unwrap();
    assert!(subscription.next().await.is_some());
    legacy.close().await.unwrap();
    modern.close().await.unwrap();
}

#[tokio::test]
async fn transport_of_2024_shares_the_endpoint_url() {
    let (_serving, url) = serve(&calculator().tool(steps())).await;
    let session = Client::new("both", "1")
        .revisions([Revision::V2024_11_05])
        .connect(Endpoint::sse_2024(&url))
        .await
        .unwrap();
    assert_eq!(session.revision(), Revision::V2024_11_05);
    let sum = session.call_tool("add", json!({"a": 1, "b": 2})).await;
    assert!(!sum.unwrap().is_error);
    session.close().await.unwrap();
}

#[tokio::test]
async fn call_works_in_a_new_session_after_close() {
    #[derive(Debug, serde::Deserialize, serde::Serialize, oxmcp::JsonSchema)]
    struct Name {
        name: String,
    }

    let greet = Tool::new("greet", "Greet", |cx: RequestContext| async move {
        let Name { name } = cx.ask("name", "Who are you?").await?;
        Ok::<_, ToolError>(format!("Hello {name}"))
    });
    let (_serving, url) = serve(&calculator().tool(greet)).await;
    for revision in [Revision::V2025_11_25, Revision::V2026_07_28] {
        let client = Client::new("both", "1").revisions([revision]).on_elicit(
            |_: ElicitFormParams, cx: RequestContext| async move {
                let session = cx.client_session().unwrap();
                let _ = session.close().now_or_never();
                Accept(json!({"name": "Ann"}))
            },
        );
        let session = client.connect(Endpoint::new(&url)).await.unwrap();
        let greeted = session.call_tool("greet", json!({})).await.unwrap();
        let greeted = serde_json::to_value(&greeted).unwrap();
        assert_eq!(greeted["content"][0]["text"], "Hello Ann", "{revision}");
        session.close().await.unwrap();
    }
}
