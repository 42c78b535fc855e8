//! Servers that restart while their client waits for a task.

use std::sync::{Arc, Mutex};

use bytes::Bytes;
use futures_util::{StreamExt, stream};
use http::{HeaderValue, Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use oxmcp::{
    CancellationToken, RequestContext, Server, Tool,
    http::{Endpoint, HttpBody, HttpClient, StreamableHttp},
    tasks::{MemoryTaskStore, ServerTasks, TaskContext, TaskPolicy, TaskTool, Tasks},
};
use tokio::sync::mpsc;
use tower::ServiceExt;

use super::*;

/// A process that serves until it is ended with all its streams.
#[derive(Clone)]
struct Node {
    service: StreamableHttp,
    end: CancellationToken,
}

/// The connector to the process that serves at the time, if there is one.
#[derive(Clone, Default)]
struct SwitchableConnector(Arc<Mutex<Option<Node>>>);

impl SwitchableConnector {
    fn lead_to(&self, server: Option<&Server>) {
        let node = server.map(|server| Node {
            service: StreamableHttp::from(server.clone()),
            end: CancellationToken::new(),
        });
        if let Some(before) = std::mem::replace(&mut *self.0.lock().unwrap(), node) {
            before.end.cancel();
        }
    }
}

impl HttpClient for SwitchableConnector {
    async fn send(&self, request: Request<Bytes>) -> Result<Response<HttpBody>> {
        let node = self.0.lock().unwrap().clone();
        let Some(Node { service, end }) = node else {
            let mut nobody = Response::new(HttpBody::new(stream::empty()));
            *nobody.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
            return Ok(nobody);
        };
        let (mut parts, body) = request.into_parts();
        let host = HeaderValue::from_static("localhost");
        parts.headers.insert("host", host);
        let target = parts.uri.path_and_query().unwrap().as_str();
        parts.uri = target.parse().unwrap();
        let request = Request::from_parts(parts, Full::new(body));
        let Ok(response) = service.oneshot(request).await;
        Ok(response.map(|body| {
            let frames = stream::unfold(body, |mut body| async move {
                let frame = body.frame().await?.unwrap();
                Some((Ok(frame.into_data().unwrap()), body))
            });
            HttpBody::new(frames.take_until(end.cancelled_owned()))
        }))
    }
}

#[tokio::test(start_paused = true)]
async fn client_keeps_waiting_while_server_restarts() {
    let store = Arc::new(MemoryTaskStore::new());
    let (tell, mut ids) = mpsc::channel(8);
    let server = || {
        let tell = tell.clone();
        let order = Tool::new("report", "Order a report", move |cx: RequestContext| {
            tell.try_send(cx.task_id().unwrap()).unwrap();
            std::future::pending::<String>()
        });
        Server::new("office", "1.0.0")
            .extension(Tasks::new(Arc::clone(&store)).extension())
            .tool(order.task(TaskPolicy::Required))
    };
    let way = SwitchableConnector::default();
    way.lead_to(Some(&server()));
    let endpoint = Endpoint::new("http://localhost/mcp").http_client(way.clone());
    let session = client().connect(endpoint).await.unwrap();
    let call = tokio::spawn(session.call_tool("report", ()).into_future());
    let id = ids.recv().await.unwrap();
    tokio::time::sleep(Duration::from_secs(3)).await;
    way.lead_to(None);
    tokio::time::sleep(Duration::from_secs(3)).await;
    let after = server();
    way.lead_to(Some(&after));
    let result = CallToolResult::text("by somebody else");
    assert!(after.tasks().unwrap().complete(&id, result).await.unwrap());
    assert_eq!(text(&call.await.unwrap().unwrap()), "by somebody else");
}
