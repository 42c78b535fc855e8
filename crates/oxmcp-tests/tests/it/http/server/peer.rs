//! Hand-written client that sends requests to an endpoint, over a network or without one.

use bytes::Bytes;
use http::{HeaderMap, Request, Response, StatusCode, request::Builder};
use http_body_util::{BodyExt, Full};
use oxmcp::http::{ResponseBody, StreamableHttp};
use serde_json::{Value, json};

use crate::{
    http::mounts::Target,
    support::{modern, request},
};

pub(crate) const LEGACY: &str = "2025-11-25";

/// A request without session and credentials, up to its body.
pub(crate) fn builder(method: &str) -> Builder {
    Request::builder()
        .method(method)
        .uri("/mcp")
        .header("host", "localhost:8080")
        .header("accept", "application/json, text/event-stream")
        .header("content-type", "application/json")
}

pub(crate) async fn send(
    endpoint: &impl Target,
    request: Builder,
    body: impl Into<Bytes>,
) -> Response<ResponseBody> {
    let request = request.body(Full::new(body.into())).unwrap();
    endpoint.respond(request).await
}

/// A modern request with the headers that it needs.
pub(crate) fn modern_builder(message: &Value) -> Builder {
    let text = |key: &str| message["params"][key].as_str().map(str::to_owned);
    let builder = builder("POST")
        .header("mcp-protocol-version", "2026-07-28")
        .header("mcp-method", message["method"].as_str().unwrap());
    match text("name").or_else(|| text("uri")) {
        Some(name) => builder.header("mcp-name", name),
        None => builder,
    }
}

pub(crate) async fn call_modern(
    endpoint: &impl Target,
    method: &str,
    params: Value,
) -> Response<ResponseBody> {
    let message = modern(1, method, params);
    send(endpoint, modern_builder(&message), message.to_string()).await
}

/// A client that has opened a session.
pub(crate) struct Session<T = StreamableHttp> {
    pub(crate) endpoint: T,
    pub(crate) id: String,
}

impl<T: Target> Session<T> {
    pub(crate) async fn open(endpoint: &T) -> Self {
        Self::open_in(endpoint, LEGACY, json!({})).await
    }

    pub(crate) async fn open_in(endpoint: &T, version: &str, capabilities: Value) -> Self {
        let initialize = initialize(version, capabilities);
        let response = send(endpoint, builder("POST"), initialize.to_string()).await;
        assert_eq!(response.status(), StatusCode::OK);
        let id = response.headers()["mcp-session-id"].to_str().unwrap();
        let session = Self {
            endpoint: endpoint.clone(),
            id: id.to_owned(),
        };
        let accepted = session
            .post(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}))
            .await;
        assert_eq!(accepted.status(), StatusCode::ACCEPTED);
        session
    }

    /// The same session at another endpoint.
    pub(crate) fn at(&self, endpoint: &T) -> Self {
        Self {
            endpoint: endpoint.clone(),
            id: self.id.clone(),
        }
    }

    pub(crate) fn builder(&self, method: &str) -> Builder {
        builder(method)
            .header("mcp-session-id", &self.id)
            .header("mcp-protocol-version", LEGACY)
    }

    pub(crate) async fn post(&self, message: &Value) -> Response<ResponseBody> {
        send(&self.endpoint, self.builder("POST"), message.to_string()).await
    }

    pub(crate) async fn call(
        &self,
        id: i64,
        method: &str,
        params: Value,
    ) -> Response<ResponseBody> {
        self.post(&request(id, method, params)).await
    }

    pub(crate) async fn get(&self) -> Response<ResponseBody> {
        send(&self.endpoint, self.builder("GET"), "").await
    }

    /// The session's stream, after the event that it begins with.
    pub(crate) async fn listen(&self) -> Events {
        let mut events = Events::of(self.get().await);
        let first = events.next().await.unwrap();
        assert!(first.id.is_some() && first.data.is_null(), "{first:?}");
        events
    }

    pub(crate) async fn resume(&self, last: &str) -> Response<ResponseBody> {
        let builder = self.builder("GET").header("last-event-id", last);
        send(&self.endpoint, builder, "").await
    }

    pub(crate) async fn delete(&self) -> Response<ResponseBody> {
        send(&self.endpoint, self.builder("DELETE"), "").await
    }
}

#[expect(clippy::needless_pass_by_value, reason = "it reads better in a call")]
pub(crate) fn initialize(version: &str, capabilities: Value) -> Value {
    request(
        0,
        "initialize",
        json!({
            "protocolVersion": version,
            "capabilities": capabilities,
            "clientInfo": {"name": "by hand", "version": "1"},
        }),
    )
}

/// The only message of a response.
pub(crate) async fn json(response: Response<ResponseBody>) -> Value {
    assert_eq!(
        header(response.headers(), "content-type"),
        "application/json"
    );
    let body = response.into_body().collect().await.unwrap().to_bytes();
    serde_json::from_slice(&body).unwrap()
}

pub(crate) fn header<'a>(headers: &'a HeaderMap, name: &str) -> &'a str {
    headers
        .get(name)
        .map_or("", |value| value.to_str().unwrap())
}

/// One event of a stream.
#[derive(Debug)]
pub(crate) struct Event {
    pub(crate) id: Option<String>,
    pub(crate) retry: Option<u64>,
    /// `Null` if the event has no data.
    pub(crate) data: Value,
}

/// A stream of events that is being read.
pub(crate) struct Events {
    body: ResponseBody,
    text: String,
}

impl Events {
    pub(crate) fn of(response: Response<ResponseBody>) -> Self {
        assert_eq!(response.status(), StatusCode::OK);
        assert_eq!(
            header(response.headers(), "content-type"),
            "text/event-stream"
        );
        assert_eq!(header(response.headers(), "x-accel-buffering"), "no");
        Self {
            body: response.into_body(),
            text: String::new(),
        }
    }

    /// The next event; comments are skipped. `None` at the end.
    pub(crate) async fn next(&mut self) -> Option<Event> {
        loop {
            while let Some((block, rest)) = self.text.split_once("\n\n") {
                let event = parse(block);
                self.text = rest.to_owned();
                if event.is_some() {
                    return event;
                }
            }
            let frame = self.body.frame().await?.unwrap();
            let data = frame.into_data().unwrap();
            self.text.push_str(std::str::from_utf8(&data).unwrap());
        }
    }

    /// All remaining events.
    pub(crate) async fn rest(mut self) -> Vec<Event> {
        let mut events = Vec::new();
        while let Some(event) = self.next().await {
            events.push(event);
        }
        events
    }
}

fn parse(block: &str) -> Option<Event> {
    let field = |name: &str| {
        let line = block.lines().find(|line| line.starts_with(name))?;
        Some(line.split_once(": ").map_or("", |(_, value)| value))
    };
    let data = field("data")?;
    Some(Event {
        id: field("id").map(str::to_owned),
        retry: field("retry").map(|retry| retry.parse().unwrap()),
        data: if data.is_empty() {
            Value::Null
        } else {
            serde_json::from_str(data).unwrap()
        },
    })
}
