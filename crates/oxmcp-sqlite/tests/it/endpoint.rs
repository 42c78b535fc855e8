//! An endpoint whose program is replaced while a client has a session and asks.

use std::{net::SocketAddr, sync::Arc};

use oxmcp::{
    Client, JsonSchema, RequestContext, Result, Revision, Server, Tool,
    http::{Endpoint, ServerHandle, StreamableHttp},
    protocol::{ElicitFormParams, ElicitResult},
};
use oxmcp_sqlite::Sqlite;

use crate::place::Place;

#[derive(serde::Deserialize, JsonSchema)]
struct Confirm {
    yes: bool,
}

async fn delete(cx: RequestContext) -> Result<String> {
    let Confirm { yes } = cx.ask("confirm", "Delete it?").await?;
    Ok(format!("deleted: {yes}"))
}

async fn serve(place: &Place, address: SocketAddr) -> ServerHandle {
    let store = Sqlite::open(place.file()).await.unwrap();
    let server = Server::new("desktop", "1.0.0")
        .tool(Tool::new("delete", "Ask first", delete))
        .tool(Tool::new("count", "Count", || async { "1" }));
    let endpoint = StreamableHttp::from(server).cluster(store);
    endpoint.serve(address).await.unwrap()
}

#[tokio::test]
async fn sessions_and_questions_continue_after_an_update() {
    let place = Place::new();
    let any = SocketAddr::from(([127, 0, 0, 1], 0));
    let serving = serve(&place, any).await;
    let address = serving.local_addr();
    let url = format!("http://{address}/mcp");
    let running = Arc::new(tokio::sync::Mutex::new(Some(serving)));
    let place = Arc::new(place);
    let replace = {
        let (running, place) = (Arc::clone(&running), Arc::clone(&place));
        move || {
            let (running, place) = (Arc::clone(&running), Arc::clone(&place));
            async move {
                let mut running = running.lock().await;
                if let Some(before) = running.take() {
                    before.close().await;
                }
                *running = Some(serve(&place, address).await);
            }
        }
    };
    let legacy = Client::new("my-app", "1.0.0").revisions([Revision::V2025_11_25]);
    let session = legacy.connect(Endpoint::new(&url)).await.unwrap();
    replace().await;
    let counted = session.call_tool("count", ()).await.unwrap();
    assert_eq!(counted.to_text(), "1");
    session.close().await.unwrap();

    // One program asks the question, and the next one gets the answer.
    let client = Client::new("my-app", "1.0.0").on_elicit(move |_: ElicitFormParams| {
        let replaced = replace();
        async move {
            replaced.await;
            ElicitResult::accept(&serde_json::json!({"yes": true}))
                .map_err(|error| oxmcp::Error::internal(error.to_string()))
        }
    });
    let session = client.connect(Endpoint::new(&url)).await.unwrap();
    let deleted = session.call_tool("delete", ()).await.unwrap();
    assert_eq!(deleted.to_text(), "deleted: true");
    session.close().await.unwrap();
}
