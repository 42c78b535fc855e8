//! The server over HTTP, on hyper: one JSON answer to a request, or a stream of events if there are several messages.

use std::{
    collections::HashMap,
    convert::Infallible,
    hash::{BuildHasher, RandomState},
    io,
    pin::Pin,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    task::{Context, Poll},
};

use bench_support::Adder;
use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::{
    Method, Request, Response, StatusCode,
    body::{Body, Frame, Incoming},
    header::{CONTENT_TYPE, HeaderName, HeaderValue},
    server::conn::http1,
    service::service_fn,
};
use hyper_util::rt::TokioIo;
use tokio::{net::TcpListener, sync::mpsc};

use crate::{
    listeners::Listeners,
    tools::{Answer, Stream, Tools, WATCHED},
};

const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");
const JSON: HeaderValue = HeaderValue::from_static("application/json");
const EVENTS: HeaderValue = HeaderValue::from_static("text/event-stream");

/// The size at which the buffered part of a stream is written.
const FULL: usize = 64 * 1024;

/// Serves on this address forever.
///
/// # Errors
/// If the address cannot be listened on.
pub async fn serve(address: &str) -> io::Result<()> {
    let listener = TcpListener::bind(address).await?;
    let server = Arc::new(Server::new());
    loop {
        let (socket, _) = listener.accept().await?;
        socket.set_nodelay(true)?;
        let server = Arc::clone(&server);
        tokio::spawn(async move {
            let service = service_fn(|request| server.serve(request));
            // The outcome of a connection is the client's concern.
            let _ = http1::Builder::new()
                .serve_connection(TokioIo::new(socket), service)
                .await;
        });
    }
}

struct Server {
    tools: Tools,
    /// The sessions, and whether each watches the resource.
    sessions: Mutex<HashMap<HeaderValue, bool>>,
    listeners: Listeners,
    adder: Adder,
    random: RandomState,
    opened: AtomicU64,
}

enum Content {
    Whole(Bytes),
    /// Events that are there already, and then nothing until the client disconnects.
    Open(Bytes),
    /// The same, followed by updates.
    Updates(Bytes, mpsc::Receiver<Bytes>),
    Progress(Box<Stream>),
    End,
}

impl Server {
    fn new() -> Self {
        Self {
            tools: Tools::new(100),
            sessions: Mutex::default(),
            listeners: Listeners::default(),
            adder: Adder::start(),
            random: RandomState::new(),
            opened: AtomicU64::new(0),
        }
    }

    async fn serve(&self, request: Request<Incoming>) -> Result<Response<Content>, Infallible> {
        let session = request.headers().get(SESSION);
        if session.is_some_and(|session| !self.with(|sessions| sessions.contains_key(session))) {
            return Ok(status(StatusCode::NOT_FOUND));
        }
        match *request.method() {
            Method::POST => Ok(self.post(request).await),
            Method::GET if session.is_some() => {
                let watches = self.with(|sessions| Some(*sessions.get(session?)?));
                let events = Bytes::from_static(b":\n\n");
                Ok(answer(
                    EVENTS,
                    if watches == Some(true) {
                        Content::Updates(events, self.listeners.listen(None))
                    } else {
                        Content::Open(events)
                    },
                ))
            }
            Method::DELETE => {
                self.with(|sessions| session.map(|session| sessions.remove(session)));
                Ok(status(StatusCode::OK))
            }
            _ => Ok(status(StatusCode::METHOD_NOT_ALLOWED)),
        }
    }

    async fn post(&self, request: Request<Incoming>) -> Response<Content> {
        let (mut head, body) = request.into_parts();
        let Ok(body) = body.collect().await else {
            return status(StatusCode::BAD_REQUEST);
        };
        let mut out = Vec::with_capacity(1024);
        match self.tools.answer(&body.to_bytes(), &mut out) {
            Answer::Done => answer(JSON, Content::Whole(out.into())),
            Answer::Nothing => status(StatusCode::ACCEPTED),
            Answer::Listen(watcher) => {
                let mut event = b"data: ".to_vec();
                event.append(&mut out);
                event.push(b'\n');
                let event = event.into();
                answer(
                    EVENTS,
                    match watcher {
                        None => Content::Open(event),
                        id => Content::Updates(event, self.listeners.listen(id)),
                    },
                )
            }
            Answer::Watched => {
                // Updates of the watched resource go to the stream that the client opens next.
                if let Some(session) = head.headers.remove(SESSION) {
                    self.with(|sessions| sessions.insert(session, true));
                }
                answer(JSON, Content::Whole(out.into()))
            }
            Answer::Updated => {
                self.listeners.update(WATCHED);
                answer(JSON, Content::Whole(out.into()))
            }
            Answer::Wait(wait) => {
                wait.answer(&self.adder, &mut out).await;
                answer(JSON, Content::Whole(out.into()))
            }
            Answer::Stream(stream) => answer(EVENTS, Content::Progress(Box::new(stream))),
            Answer::Opened => {
                let mut response = answer(JSON, Content::Whole(out.into()));
                let session = self.open();
                response.headers_mut().insert(SESSION, session);
                response
            }
        }
    }

    fn open(&self) -> HeaderValue {
        let count = self.opened.fetch_add(1, Ordering::Relaxed);
        let first = self.random.hash_one(count);
        let second = self.random.hash_one((first, count));
        let session = HeaderValue::from_str(&format!("{first:016x}{second:016x}"))
            .expect("hexadecimal digits are a valid header");
        self.with(|sessions| sessions.insert(session.clone(), false));
        session
    }

    fn with<T>(&self, what: impl FnOnce(&mut HashMap<HeaderValue, bool>) -> T) -> T {
        what(&mut self.sessions.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

fn answer(kind: HeaderValue, content: Content) -> Response<Content> {
    let mut response = Response::new(content);
    response.headers_mut().insert(CONTENT_TYPE, kind);
    response
}

fn status(status: StatusCode) -> Response<Content> {
    let mut response = Response::new(Content::End);
    *response.status_mut() = status;
    response
}

impl Body for Content {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let data = match &mut *self {
            Self::Whole(data) => {
                let data = std::mem::take(data);
                *self = Self::End;
                data
            }
            Self::Open(data) if data.is_empty() => return Poll::Pending,
            Self::Open(data) => std::mem::take(data),
            Self::Updates(data, updates) if data.is_empty() => {
                let event = updates.poll_recv(cx);
                return event.map(|event| event.map(|event| Ok(Frame::data(event))));
            }
            Self::Updates(data, _) => std::mem::take(data),
            Self::Progress(stream) => {
                let (events, more) = events(stream);
                if !more {
                    *self = Self::End;
                }
                events
            }
            Self::End => return Poll::Ready(None),
        };
        Poll::Ready(Some(Ok(Frame::data(data))))
    }

    fn is_end_stream(&self) -> bool {
        matches!(self, Self::End)
    }

    fn size_hint(&self) -> hyper::body::SizeHint {
        match self {
            Self::Whole(data) => hyper::body::SizeHint::with_exact(data.len() as u64),
            Self::End => hyper::body::SizeHint::with_exact(0),
            Self::Open(_) | Self::Updates(..) | Self::Progress(_) => {
                hyper::body::SizeHint::default()
            }
        }
    }
}

/// The events that fit into one write, and whether there are more.
fn events(stream: &mut Stream) -> (Bytes, bool) {
    let mut out = Vec::with_capacity(FULL + 1024);
    let mut more = true;
    while more && out.len() < FULL {
        out.extend_from_slice(b"data: ");
        more = stream.next(&mut out);
        out.push(b'\n');
    }
    (out.into(), more)
}
