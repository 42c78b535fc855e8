//! The transport of 2024-11-05, on the server's side: a stream of events by GET, and messages by POST.

mod requests;
mod sessions;
mod shutdown;

use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response, StatusCode, header, request::Builder};
use http_body_util::{BodyExt, Full};
use oxmcp::{
    Revision, Server,
    http::{LegacySse, ResponseBody},
};
use serde_json::{Value, json};
use tokio::time::timeout;

use crate::http::mounts::{Target, mounts};
use crate::support::{LEGACY, calculator, notification, request};

/// A time limit beyond all expected waits, so that a missing event does not hang a test.
const TIME_LIMIT: Duration = Duration::from_secs(1_000_000);

/// A service for this server, with the default settings.
fn service(server: Server) -> LegacySse {
    LegacySse::from(server)
}

/// A request of a local program.
fn local(method: &str, uri: &str) -> Builder {
    let builder = Request::builder().method(method).uri(uri);
    builder
        .header(header::HOST, "localhost:8080")
        .header(header::ACCEPT, "text/event-stream")
}

fn local_post(uri: &str) -> Builder {
    local("POST", uri).header(header::CONTENT_TYPE, "application/json")
}

fn with_token(request: Builder, token: Option<&str>) -> Builder {
    match token {
        Some(token) => request.header(header::AUTHORIZATION, format!("Bearer {token}")),
        None => request,
    }
}

async fn respond(
    service: &impl Target,
    request: Builder,
    body: impl Into<Bytes>,
) -> Response<ResponseBody> {
    let request = request.body(Full::new(body.into())).unwrap();
    service.respond(request).await
}

async fn status(service: &impl Target, request: Builder, body: impl Into<Bytes>) -> StatusCode {
    respond(service, request, body).await.status()
}

/// A client with an open stream.
pub(in crate::http) struct Client<T = LegacySse> {
    service: T,
    body: ResponseBody,
    unread: String,
    /// The URI for messages, as the stream names it.
    endpoint: String,
    /// The token of POST requests.
    token: Option<String>,
}

impl<T: Target> Client<T> {
    async fn open(service: &T) -> Self {
        Self::open_by(service, local("GET", "/sse")).await
    }

    pub(in crate::http) async fn open_by(service: &T, request: Builder) -> Self {
        let response = respond(service, request, "").await;
        assert_eq!(response.status(), StatusCode::OK);
        Self::of(service, response.into_body()).await
    }

    /// Opens the stream with a token, which later POST requests have, too.
    pub(in crate::http) async fn open_with(service: &T, token: &str) -> Self {
        let request = with_token(local("GET", "/sse"), Some(token));
        Self::open_by(service, request).await.bearing(token)
    }

    /// Sets the token of later POST requests.
    pub(in crate::http) fn bearing(mut self, token: &str) -> Self {
        self.token = Some(token.to_owned());
        self
    }

    async fn of(service: &T, body: ResponseBody) -> Self {
        let mut client = Self {
            service: service.clone(),
            body,
            unread: String::new(),
            endpoint: String::new(),
            token: None,
        };
        let (name, endpoint) = client.event().await.unwrap();
        assert_eq!(name, "endpoint");
        client.endpoint = endpoint;
        client
    }

    /// The next block as it is on the wire, up to the empty line. `None` at the end of the stream.
    async fn block(&mut self) -> Option<String> {
        loop {
            if let Some((block, rest)) = self.unread.split_once("\n\n") {
                let block = block.to_owned();
                self.unread = rest.to_owned();
                return Some(block);
            }
            let frame = timeout(TIME_LIMIT, self.body.frame()).await;
            let frame = frame.expect("nothing comes")?.unwrap();
            let data = frame.into_data().unwrap();
            self.unread.push_str(std::str::from_utf8(&data).unwrap());
        }
    }

    /// The next event: its name, and its data.
    async fn event(&mut self) -> Option<(String, String)> {
        // Comments may come for ever.
        for _ in 0..1_000 {
            let block = self.block().await?;
            if !block.starts_with(':') {
                let (name, data) = block.split_once("\ndata: ").unwrap();
                let name = name.strip_prefix("event: ").unwrap();
                return Some((name.to_owned(), data.to_owned()));
            }
        }
        panic!("no event comes");
    }

    pub(in crate::http) async fn message(&mut self) -> Value {
        let (name, data) = self.event().await.expect("the stream has ended");
        assert_eq!(name, "message");
        serde_json::from_str(&data).unwrap()
    }

    /// The URI for messages, resolved as a client does it.
    fn uri(&self) -> String {
        if self.endpoint.starts_with('?') {
            format!("/sse{}", self.endpoint)
        } else {
            self.endpoint.clone()
        }
    }

    /// The response to a POST.
    pub(in crate::http) async fn respond(&self, body: impl Into<Bytes>) -> Response<ResponseBody> {
        let request = with_token(local_post(&self.uri()), self.token.as_deref());
        respond(&self.service, request, body).await
    }

    pub(in crate::http) async fn post(&self, message: &Value) -> StatusCode {
        self.respond(message.to_string()).await.status()
    }

    pub(in crate::http) async fn ask(&mut self, message: Value) -> Value {
        assert_eq!(self.post(&message).await, StatusCode::ACCEPTED);
        self.message().await
    }

    /// Opens a session in a revision.
    pub(in crate::http) async fn initialize(&mut self, revision: Revision) -> Value {
        let params = json!({
            "protocolVersion": revision,
            "capabilities": {},
            "clientInfo": {"name": "tester", "version": "1.0.0"},
        });
        let answer = self.ask(request(0, "initialize", params)).await;
        assert_eq!(answer["result"]["protocolVersion"], json!(revision));
        let initialized = notification("notifications/initialized");
        assert_eq!(self.post(&initialized).await, StatusCode::ACCEPTED);
        answer
    }

    async fn opened(service: &T) -> Self {
        let mut client = Self::open(service).await;
        client.initialize(Revision::V2024_11_05).await;
        client
    }

    /// Like `opened`, with a token.
    pub(in crate::http) async fn opened_with(service: &T, token: &str) -> Self {
        let mut client = Self::open_with(service, token).await;
        client.initialize(Revision::V2024_11_05).await;
        client
    }

    /// The body of the stream.
    pub(in crate::http) fn into_body(self) -> ResponseBody {
        self.body
    }
}

fn call(id: i64, name: &str, arguments: &Value) -> Value {
    request(
        id,
        "tools/call",
        json!({"name": name, "arguments": arguments}),
    )
}

fn ping(id: i64) -> Value {
    request(id, "ping", json!({}))
}
