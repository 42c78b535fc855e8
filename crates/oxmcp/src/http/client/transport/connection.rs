//! A connection to a server, over HTTP/1.1 or HTTP/2, driven by its own task.

use std::{error::Error as _, io, sync::Arc, time::Duration};

use bytes::Bytes;
use http::{
    HeaderMap, HeaderValue, Request, Response, Uri,
    header::{HOST, PROXY_AUTHORIZATION},
};
use http_body_util::Full;
use hyper::{
    body::Incoming,
    client::conn::{TrySendError, http1, http2},
};
use hyper_util::rt::TokioExecutor;
use tokio::{sync::watch, time::timeout};

use crate::{
    error::{Error, Result},
    http::client::transport::{
        connector::{ForwardProxy, Socket},
        destination::Destination,
        early_answers::EarlyAnswers,
        stream_limits::{Reset, StreamLimits, StreamPermit},
    },
    logged::Logged,
    session::{handler::traits::with_causes, task::spawn},
};

/// The idle time-out of a connection whose server announces none. Many servers close a connection after five seconds; a request
/// that is sent at that moment is lost, and may or may not have been served. A connection that is closed already is noticed, so
/// servers with a shorter time-out do no other harm.
pub(crate) const DEFAULT_IDLE: Duration = Duration::from_secs(4);
/// The longest idle time-out: if the server announces a longer one, and over HTTP/2, where a server announces that it closes.
pub(crate) const MAX_IDLE: Duration = Duration::from_secs(50);
/// The time for which an error waits for the reason that the connection ended.
const CLOSING: Duration = Duration::from_secs(1);
/// The first bytes of a TLS alert, with which TLS servers answer plain HTTP: its type, and the number of the version's family.
/// See [the record layer](https://www.rfc-editor.org/rfc/rfc8446#section-5.1).
const TLS_ALERT: [u8; 2] = [21, 3];
/// The end of the message of an error after which a request may or may not have been served.
const UNKNOWN: &str =
    "; the request may have been processed, so retry only if the call is idempotent";

pub(crate) type Sent = Result<Response<Incoming>, TrySendError<Request<Full<Bytes>>>>;

/// A handle that sends one request at a time.
pub(crate) struct Connection {
    destination: Destination,
    host: HeaderValue,
    sender: Sender,
    closed: watch::Receiver<Option<Closed>>,
}

enum Sender {
    Http1(Http1),
    Http2(Http2),
}

struct Http1 {
    sender: http1::SendRequest<Full<Bytes>>,
    proxy: Option<ForwardProxy>,
    /// The idle time-out, once a response has been received.
    idle: Option<Duration>,
}

struct Http2 {
    sender: http2::SendRequest<Full<Bytes>>,
    limits: Arc<StreamLimits>,
    /// The stream of the handle's request.
    permit: Option<StreamPermit>,
}

/// The end of a connection.
#[derive(Clone, Copy, Debug, Default)]
struct Closed {
    /// The HTTP/2 error that the server named.
    reason: Option<h2::Reason>,
    /// Whether a TLS alert was received.
    has_tls: bool,
}

impl Connection {
    /// Opens a connection to the server of a URL, and spawns its task.
    pub(crate) async fn open(socket: Socket, uri: &Uri) -> Result<Self> {
        let destination = Destination::of(uri)?;
        let (ended, closed) = watch::channel(None);
        let sender = if socket.is_http2 {
            Sender::Http2(Http2::open(socket, ended).await?)
        } else {
            Sender::Http1(Http1::open(socket, ended).await?)
        };
        Ok(Self {
            host: destination.host_header()?,
            destination,
            sender,
            closed,
        })
    }

    pub(crate) fn destination(&self) -> &Destination {
        &self.destination
    }

    /// The time for which the connection may stay idle in the pool.
    pub(crate) fn idle_timeout(&self) -> Duration {
        match &self.sender {
            Sender::Http1(http1) => http1.idle.unwrap_or(DEFAULT_IDLE),
            Sender::Http2(_) => MAX_IDLE,
        }
    }

    pub(crate) fn is_http2(&self) -> bool {
        matches!(self.sender, Sender::Http2(_))
    }

    /// Another handle to a connection of HTTP/2. `None` if the connection is closed, and over HTTP/1.1.
    pub(crate) fn share(&self) -> Option<Self> {
        match &self.sender {
            Sender::Http2(http2) if !http2.sender.is_closed() => Some(Self {
                destination: self.destination.clone(),
                host: self.host.clone(),
                sender: Sender::Http2(Http2 {
                    sender: http2.sender.clone(),
                    limits: Arc::clone(&http2.limits),
                    permit: None,
                }),
                closed: self.closed.clone(),
            }),
            _ => None,
        }
    }

    /// Whether a request would be sent at once. A stream beyond the server's limit would queue behind the others, which may wait
    /// for it: for example for the answer to a question of the server.
    pub(crate) fn has_free_stream(&self) -> bool {
        match &self.sender {
            Sender::Http1(_) => true,
            Sender::Http2(http2) => http2.limits.has_free_stream(),
        }
    }

    /// Counts a stream as open, until the handle is dropped.
    pub(crate) fn reserve_stream(&mut self) {
        if let Sender::Http2(http2) = &mut self.sender {
            http2.permit = Some(StreamPermit::new(&http2.limits));
        }
    }

    /// Whether another request can be sent over HTTP/1.1.
    pub(crate) fn is_ready(&self) -> bool {
        matches!(&self.sender, Sender::Http1(http1) if http1.sender.is_ready())
    }

    /// Waits until another request can be sent over HTTP/1.1. Returns whether one can.
    pub(crate) async fn ready(&mut self) -> bool {
        match &mut self.sender {
            Sender::Http1(http1) => http1.sender.ready().await.is_ok(),
            Sender::Http2(_) => false,
        }
    }

    /// Sends a request, and waits for the head of the response.
    ///
    /// # Errors
    /// With the request in it, if nothing of the request was sent.
    pub(crate) async fn send(&mut self, request: Request<Full<Bytes>>) -> Sent {
        match &mut self.sender {
            Sender::Http1(http1) => http1.send(request, &self.host).await,
            Sender::Http2(http2) => http2.send(request, &self.host).await,
        }
    }

    /// The reason for which a request got no response, as text.
    pub(crate) async fn explain(&mut self, error: &hyper::Error) -> String {
        match &self.sender {
            Sender::Http1(http1) => {
                // Many servers with TLS close the connection without an alert.
                let is_mute = http1.idle.is_none() && error.is_incomplete_message();
                let is_mute = is_mute && !self.destination.has_tls();
                let has_tls = error.is_parse() && self.closed().await.has_tls;
                let text = with_causes(error);
                if has_tls {
                    format!("{text}: the server speaks TLS; use https:// in its URL")
                } else if is_mute {
                    format!(
                        "{text}: the server closed the connection without a response; if it speaks TLS, use https:// in its URL"
                    )
                } else {
                    text
                }
            }
            Sender::Http2(_) => self.explain_http2(error).await,
        }
    }

    async fn explain_http2(&mut self, error: &hyper::Error) -> String {
        let broke_off = error.source().is_some_and(|it| it.is::<io::Error>());
        let (what, reason) = match Reset::of(error) {
            Some(reset) => ("reset the request", reset.reason()),
            None if broke_off => ("closed the connection", self.closed().await.reason),
            // The request waited in hyper's queue, and hyper does not tell whether it left the queue.
            None if error.is_user() => return format!("the connection ended{UNKNOWN}"),
            None => ("", None),
        };
        let Some(reason) = reason else {
            return with_causes(error);
        };
        if Reset::of(error).is_some_and(|reset| reset.is_unserved()) {
            format!("the server accepts no more requests ({reason:?}: {reason})")
        } else {
            format!("the server {what} ({reason:?}: {reason}){UNKNOWN}")
        }
    }

    /// Waits until the connection is closed, for a short time at most.
    async fn closed(&mut self) -> Closed {
        let closed = timeout(CLOSING, self.closed.wait_for(Option::is_some)).await;
        let closed = closed.ok().and_then(|it| it.ok().and_then(|it| *it));
        closed.unwrap_or_default()
    }

    #[cfg(test)]
    pub(crate) async fn ended(&mut self) {
        self.closed().await;
    }
}

impl Http1 {
    async fn open(mut socket: Socket, closed: watch::Sender<Option<Closed>>) -> Result<Self> {
        let proxy = socket.forward_proxy.take();
        let opened = http1::handshake(EarlyAnswers::new(socket.io)).await;
        let (sender, connection) = opened.map_err(|error| unreachable(&error))?;
        spawn(drive_http1(connection, closed));
        Ok(Self {
            sender,
            proxy,
            idle: None,
        })
    }

    async fn send(&mut self, mut request: Request<Full<Bytes>>, host: &HeaderValue) -> Sent {
        let headers = request.headers_mut();
        // The entry API would make room for one more header.
        if !headers.contains_key(HOST) {
            headers.insert(HOST, host.clone());
        }
        match &self.proxy {
            Some(proxy) => {
                if let Some(credentials) = &proxy.credentials {
                    headers.insert(PROXY_AUTHORIZATION, credentials.clone());
                }
            }
            None => {
                let path = request.uri().path_and_query().cloned();
                *request.uri_mut() = path.map(Uri::from).unwrap_or_default();
            }
        }
        let sent = self.sender.try_send_request(request).await;
        // Servers announce the same time-out each time.
        if self.idle.is_none()
            && let Ok(response) = &sent
        {
            self.idle = Some(announced_idle(response.headers()));
        }
        sent
    }
}

impl Http2 {
    async fn open(socket: Socket, closed: watch::Sender<Option<Closed>>) -> Result<Self> {
        // One stream, until the server announces its limit: further requests could be refused, or queue behind each other.
        let mut http2 = http2::Builder::new(TokioExecutor::new());
        let opened = http2.initial_max_send_streams(1).handshake(socket.io).await;
        let (sender, connection) = opened.map_err(|error| unreachable(&error))?;
        let (limits, driving) = StreamLimits::drive(connection);
        spawn(async move {
            let reason = driving.await;
            closed.send_replace(Some(Closed {
                reason,
                has_tls: false,
            }));
        });
        Ok(Self {
            sender,
            limits,
            permit: None,
        })
    }

    async fn send(&mut self, mut request: Request<Full<Bytes>>, host: &HeaderValue) -> Sent {
        // The URL contains the host, and some servers refuse requests that name it twice.
        let headers = request.headers_mut();
        if headers.get(HOST) == Some(host) {
            headers.remove(HOST);
        }
        let sent = self.sender.try_send_request(request).await;
        if let Err(failed) = &sent
            && Reset::of(failed.error()).is_some_and(|reset| reset.is_over_limit())
        {
            self.permit = None;
            self.limits.refuse();
        }
        sent
    }
}

async fn drive_http1(
    mut connection: http1::Connection<EarlyAnswers, Full<Bytes>>,
    closed: watch::Sender<Option<Closed>>,
) {
    if let Err(error) = (&mut connection).await {
        tracing::debug!(error = %Logged(&error), "HTTP connection failed");
    }
    let unread = connection.into_parts().read_buf;
    closed.send_replace(Some(Closed {
        reason: None,
        has_tls: unread.starts_with(&TLS_ALERT),
    }));
}

/// The idle time-out by the header `Keep-Alive`: a second less than the server's, because a request takes a while to arrive.
fn announced_idle(headers: &HeaderMap) -> Duration {
    let header = headers.get("keep-alive").and_then(|it| it.to_str().ok());
    let mut params = header.unwrap_or_default().split(',');
    let timeout = params.find_map(|param| {
        let (name, seconds) = param.split_once('=')?;
        let is_timeout = name.trim().eq_ignore_ascii_case("timeout");
        seconds.trim().parse().ok().filter(|_| is_timeout)
    });
    timeout.map_or(DEFAULT_IDLE, |seconds: u64| {
        Duration::from_secs(seconds.saturating_sub(1)).min(MAX_IDLE)
    })
}

fn unreachable(error: &hyper::Error) -> Error {
    Error::unreachable(with_causes(error))
}
