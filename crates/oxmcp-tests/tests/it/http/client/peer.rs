//! A scripted server without sockets: each request of the client comes to the test, which answers
//! it.

#![expect(clippy::disallowed_methods, reason = "tests send what they receive")]

use std::{fmt, future::Future};

use ::http::{HeaderMap, Method, Request, Response, StatusCode};
use bytes::Bytes;
use futures_util::stream;
use oxmcp::{
    Client, ClientSession, Error, Result, Revision,
    http::{Endpoint, HttpBody, HttpClient},
};
use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot};

pub(crate) const URL: &str = "http://server.example/mcp";

/// The server's side, which receives the requests of the client in order.
pub(crate) struct Peer(mpsc::UnboundedReceiver<Asked>);

/// The HTTP client that passes its requests to the test.
pub(crate) struct Scripted(mpsc::UnboundedSender<Asked>);

/// One HTTP request, which waits for its answer.
pub(crate) struct Asked {
    pub(crate) request: Request<Bytes>,
    reply: oneshot::Sender<Result<Response<HttpBody>>>,
}

/// A stream that the test writes, chunk by chunk. It ends when this is dropped.
pub(crate) struct Chunks(mpsc::UnboundedSender<Result<Bytes>>);

impl HttpClient for Scripted {
    async fn send(&self, request: Request<Bytes>) -> Result<Response<HttpBody>> {
        let (reply, answer) = oneshot::channel();
        let gone = |_| Error::unreachable("the test is over");
        self.0
            .send(Asked { request, reply })
            .map_err(|_| Error::unreachable("the test is over"))?;
        answer.await.map_err(gone)?
    }
}

impl Peer {
    pub(crate) fn new() -> (Self, Scripted) {
        let (sender, receiver) = mpsc::unbounded_channel();
        (Self(receiver), Scripted(sender))
    }

    /// An endpoint that this peer serves.
    pub(crate) fn endpoint() -> (Self, Endpoint) {
        let (peer, client) = Self::new();
        (peer, Endpoint::new(URL).http_client(client))
    }

    pub(crate) async fn next(&mut self) -> Asked {
        self.0.recv().await.unwrap()
    }

    /// The next request, which must be a POST with this method of the protocol.
    #[track_caller]
    pub(crate) fn post<'a>(&'a mut self, method: &'a str) -> impl Future<Output = Asked> + 'a {
        let place = std::panic::Location::caller();
        async move {
            let asked = self.next().await;
            assert_eq!(asked.request.method(), Method::POST, "{asked:?} at {place}");
            assert_eq!(asked.body()["method"], method, "at {place}");
            asked
        }
    }

    /// The next request, which must be a GET.
    #[track_caller]
    pub(crate) fn get(&mut self) -> impl Future<Output = Asked> + '_ {
        let place = std::panic::Location::caller();
        async move {
            let asked = self.next().await;
            assert_eq!(asked.request.method(), Method::GET, "{asked:?} at {place}");
            asked
        }
    }

    /// Whether the client has sent no request that was not taken.
    pub(crate) fn is_quiet(&mut self) -> bool {
        self.0.try_recv().is_err()
    }

    /// Opens a legacy session, without a standalone stream.
    pub(crate) async fn open(&mut self, session_id: Option<&str>) {
        self.initialize(session_id).await;
        self.get().await.status(405);
    }

    /// Opens a legacy session, up to the GET.
    pub(crate) async fn initialize(&mut self, session_id: Option<&str>) {
        self.post("initialize").await.opens(session_id);
        self.post("notifications/initialized").await.status(202);
    }
}

impl Asked {
    pub(crate) fn body(&self) -> Value {
        serde_json::from_slice(self.request.body()).unwrap_or_default()
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.request.headers().get(name)?.to_str().ok()
    }

    pub(crate) fn respond(self, response: Response<HttpBody>) {
        // The client may have given the request up.
        let _ = self.reply.send(Ok(response));
    }

    /// Fails the request, as if it could not be sent, or as if its answer did not come.
    pub(crate) fn fail(self, error: Error) {
        let _ = self.reply.send(Err(error));
    }

    /// Waits until the client gives the request up.
    pub(crate) async fn given_up(mut self) {
        self.reply.closed().await;
    }

    pub(crate) fn status(self, status: u16) {
        self.text(status, "text/plain", "");
    }

    pub(crate) fn text(self, status: u16, form: &str, body: impl Into<Bytes>) {
        self.respond(answer(status, form, body.into()));
    }

    /// Answers with a JSON message.
    #[expect(clippy::needless_pass_by_value, reason = "it reads better in a call")]
    pub(crate) fn json(self, status: u16, message: Value) {
        self.text(status, "application/json", message.to_string());
    }

    /// The JSON-RPC response to the request, with this result.
    pub(crate) fn reply_to(&self, result: impl Into<Value>) -> Value {
        json!({"jsonrpc": "2.0", "id": self.body()["id"], "result": result.into()})
    }

    /// Answers with a result, as JSON.
    pub(crate) fn result(self, result: impl Into<Value>) {
        let message = self.reply_to(result);
        self.json(200, message);
    }

    /// Answers with a stream of events.
    pub(crate) fn events(self) -> Chunks {
        self.streams(200, "text/event-stream")
    }

    /// Answers with a stream of events, and opens a session.
    pub(crate) fn events_in(self, session_id: &str) -> Chunks {
        let (chunks, body) = Chunks::new();
        let mut response = answer(200, "text/event-stream", body);
        let id = session_id.parse().unwrap();
        response.headers_mut().insert("mcp-session-id", id);
        self.respond(response);
        chunks
    }

    /// Answers with a body that goes on until the test ends it.
    pub(crate) fn streams(self, status: u16, form: &str) -> Chunks {
        let (chunks, body) = Chunks::new();
        self.respond(answer(status, form, body));
        chunks
    }

    /// Agrees to `initialize`, in the revision that the client asks for.
    pub(crate) fn opens(self, session_id: Option<&str>) {
        let revision = self.body()["params"]["protocolVersion"].clone();
        self.opens_in(session_id, &revision);
    }

    pub(crate) fn opens_in(self, session_id: Option<&str>, revision: &Value) {
        let message = self.reply_to(json!({
            "protocolVersion": revision,
            "capabilities": {"tools": {}, "logging": {}, "resources": {"subscribe": true}},
            "serverInfo": {"name": "script", "version": "1"},
        }));
        let message = Bytes::from(message.to_string());
        let mut response = answer(200, "application/json; charset=utf-8", message);
        if let Some(id) = session_id {
            let headers: &mut HeaderMap = response.headers_mut();
            headers.insert("mcp-session-id", id.parse().unwrap());
        }
        self.respond(response);
    }
}

impl fmt::Debug for Asked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.request.method(), self.body())
    }
}

impl Chunks {
    fn new() -> (Self, HttpBody) {
        let (sender, receiver) = mpsc::unbounded_channel();
        let chunks = stream::unfold(receiver, |mut receiver| async move {
            Some((receiver.recv().await?, receiver))
        });
        (Self(sender), HttpBody::new(chunks))
    }

    pub(crate) fn raw(&self, chunk: impl Into<Bytes>) {
        let _ = self.0.send(Ok(chunk.into()));
    }

    /// An event with a message.
    pub(crate) fn message(&self, message: &Value) {
        self.raw(format!("data: {message}\n\n"));
    }

    /// Breaks the connection.
    pub(crate) fn breaks(self) {
        let _ = self.0.send(Err(Error::network("connection reset by peer")));
    }

    /// Waits until the client gives the stream up.
    pub(crate) async fn given_up(self) {
        self.0.closed().await;
    }
}

fn answer(status: u16, form: &str, body: impl Into<HttpBody>) -> Response<HttpBody> {
    let response = Response::builder()
        .status(StatusCode::from_u16(status).unwrap())
        .header("content-type", form);
    response.body(body.into()).unwrap()
}

pub(crate) fn client() -> Client {
    Client::new("test", "1.0.0")
}

/// A client that opens a session by `initialize`.
pub(crate) fn legacy() -> Client {
    client().revisions([Revision::V2025_11_25])
}

/// A client that prefers the modern revision, in which each request stands alone.
pub(crate) fn modern() -> Client {
    client().revisions([Revision::V2025_11_25, Revision::V2026_07_28])
}

/// Runs the client's part and the server's part at once.
pub(crate) fn both<A, B>(
    client: impl Future<Output = A>,
    server: impl Future<Output = B>,
) -> impl Future<Output = (A, B)> {
    // The futures of tests are large.
    let (client, server) = (Box::pin(client), Box::pin(server));
    async move { tokio::join!(client, server) }
}

/// A legacy session with this id.
pub(crate) async fn open(id: Option<&str>) -> (Peer, ClientSession) {
    let (peer, endpoint) = Peer::endpoint();
    open_with(&legacy(), endpoint, peer, id).await
}

pub(crate) async fn open_with(
    client: &Client,
    endpoint: Endpoint,
    mut peer: Peer,
    id: Option<&str>,
) -> (Peer, ClientSession) {
    let (session, ()) = both(client.connect(endpoint), peer.open(id)).await;
    (peer, session.unwrap())
}

/// A legacy session with this id, and the stream that its client listens to.
pub(crate) async fn open_listening(id: Option<&str>) -> (Peer, ClientSession, Chunks) {
    let (mut peer, endpoint) = Peer::endpoint();
    let client = legacy();
    let (session, listening) = both(client.connect(endpoint), async {
        peer.initialize(id).await;
        peer.get().await.events()
    })
    .await;
    (peer, session.unwrap(), listening)
}

/// A modern session.
pub(crate) async fn discover() -> (Peer, ClientSession) {
    let (mut peer, endpoint) = Peer::endpoint();
    let client = modern();
    let (session, ()) = both(client.connect(endpoint), async {
        let asked = peer.post("server/discover").await;
        asked.result(discovered());
    })
    .await;
    (peer, session.unwrap())
}

pub(crate) fn discovered() -> Value {
    json!({
        "resultType": "complete",
        "supportedVersions": ["2026-07-28"],
        "capabilities": {"tools": {"listChanged": true}},
        "ttlMs": 0,
        "cacheScope": "private",
    })
}

/// The result of a tool with this text.
pub(crate) fn text(text: &str) -> Value {
    json!({"resultType": "complete", "content": [{"type": "text", "text": text}]})
}
