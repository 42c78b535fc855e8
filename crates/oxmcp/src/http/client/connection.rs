//! One connection to a server, and the requests that it carries.

use std::{
    future::{Future, poll_fn},
    pin::{Pin, pin},
    task::{Context, Poll, Waker},
    time::Duration,
};

use bytes::Bytes;
use http::{
    HeaderMap, HeaderValue, Request, Response, Uri,
    header::{HOST, PROXY_AUTHORIZATION},
    uri::{Authority, Scheme},
};
use http_body_util::Full;
use hyper::{
    body::Incoming,
    client::conn::{TrySendError, http1, http2},
};
use hyper_util::rt::TokioExecutor;
use tokio::task::coop::unconstrained;

use super::{
    connector::{Relay, Socket},
    pool::Pool,
};
use crate::{Error, Result, json::Logged, session::with_causes};

type Sent = Result<Response<Incoming>, TrySendError<Request<Full<Bytes>>>>;

/// Where a connection leads to.
#[derive(Clone, Debug)]
pub(super) struct Origin {
    scheme: Scheme,
    authority: Authority,
}

impl Origin {
    pub(super) fn is_of(&self, uri: &Uri) -> bool {
        uri.scheme() == Some(&self.scheme) && uri.authority() == Some(&self.authority)
    }

    /// What requests name it by.
    fn host(&self) -> Result<HeaderValue> {
        let usual = if self.scheme == Scheme::HTTPS {
            443
        } else {
            80
        };
        let port = self.authority.port_u16().filter(|port| *port != usual);
        let host = self.authority.host();
        let host = port.map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"));
        HeaderValue::try_from(host).map_err(|_| Error::misuse("the host of the URL cannot be sent"))
    }
}

/// A connection.
pub(super) enum Connection {
    Http1(Box<Http1>),
    Http2(Http2),
}

/// One that carries a request at a time. Whoever waits for the answer drives it, so that it needs no task of its own.
pub(super) struct Http1 {
    origin: Origin,
    host: HeaderValue,
    relay: Option<Relay>,
    /// How long it may lie unused, once the server has said something.
    idle: Option<Duration>,
    sender: http1::SendRequest<Full<Bytes>>,
    /// `None` once it is closed.
    driver: Option<http1::Connection<Socket, Full<Bytes>>>,
}

/// One that all requests share. It has a task, which ends when nobody needs it any more.
#[derive(Clone)]
pub(super) struct Http2 {
    origin: Origin,
    sender: http2::SendRequest<Full<Bytes>>,
}

impl Connection {
    /// Speaks HTTP to where a URI leads.
    pub(super) async fn open(mut socket: Socket, uri: &Uri) -> Result<Self> {
        let (Some(scheme), Some(authority)) = (uri.scheme().cloned(), uri.authority().cloned())
        else {
            return Err(Error::misuse("a request needs a whole URL"));
        };
        let origin = Origin { scheme, authority };
        if socket.is_http2() {
            let opened = http2::handshake(TokioExecutor::new(), socket).await;
            let (sender, driver) = opened.map_err(|error| failed(&error))?;
            tokio::spawn(async move {
                if let Err(error) = driver.await {
                    tracing::debug!(error = %Logged(&error), "a connection broke off");
                }
            });
            return Ok(Self::Http2(Http2 { origin, sender }));
        }
        let relay = socket.relay.take();
        let opened = http1::handshake(socket).await;
        let (sender, driver) = opened.map_err(|error| failed(&error))?;
        Ok(Self::Http1(Box::new(Http1 {
            host: origin.host()?,
            origin,
            relay,
            idle: None,
            sender,
            driver: Some(driver),
        })))
    }

    pub(super) fn origin(&self) -> &Origin {
        match self {
            Self::Http1(connection) => &connection.origin,
            Self::Http2(connection) => &connection.origin,
        }
    }

    /// How long it may lie unused.
    pub(super) fn idle(&self) -> Duration {
        match self {
            Self::Http1(connection) => connection.idle.unwrap_or(Pool::USUAL),
            Self::Http2(_) => Pool::LONGEST,
        }
    }

    /// The same connection for others, where it can be shared.
    pub(super) fn share(&self) -> Option<Self> {
        match self {
            Self::Http2(shared) if !shared.sender.is_closed() => Some(Self::Http2(shared.clone())),
            _ => None,
        }
    }

    /// Sends a request, and waits for the head of its answer.
    ///
    /// # Errors
    /// With the request in it, where nothing of it was sent.
    pub(super) async fn send(&mut self, request: Request<Full<Bytes>>) -> Sent {
        match self {
            Self::Http1(connection) => connection.send(request).await,
            Self::Http2(connection) => connection.sender.try_send_request(request).await,
        }
    }
}

#[cfg(test)]
impl Connection {
    /// Waits until the server closes it.
    pub(super) async fn ended(&mut self) {
        let Self::Http1(connection) = self else {
            return;
        };
        poll_fn(|cx| {
            connection.drive(cx);
            match connection.driver {
                Some(_) => Poll::Pending,
                None => Poll::Ready(()),
            }
        })
        .await;
    }
}

impl Http1 {
    async fn send(&mut self, mut request: Request<Full<Bytes>>) -> Sent {
        self.address(&mut request);
        // The answer comes from the driver below and from nowhere else, so that nobody needs to be woken for it.
        let mut answer = pin!(unconstrained(self.sender.try_send_request(request)));
        let sent = poll_fn(|cx| {
            self.drive(cx);
            answer
                .as_mut()
                .poll(&mut Context::from_waker(Waker::noop()))
        })
        .await;
        // Servers say the same each time.
        if self.idle.is_none()
            && let Ok(response) = &sent
        {
            self.idle = Some(idle(response.headers()));
        }
        sent
    }

    /// Whether it can carry another request.
    pub(super) fn is_ready(&self) -> bool {
        self.sender.is_ready()
    }

    /// Goes on with what there is to send and to receive.
    pub(super) fn drive(&mut self, cx: &mut Context<'_>) {
        if let Some(driver) = &mut self.driver
            && let Poll::Ready(ended) = Pin::new(driver).poll(cx)
        {
            self.driver = None;
            if let Err(error) = ended {
                tracing::debug!(error = %Logged(&error), "a connection broke off");
            }
        }
    }

    /// Says in a request where it goes.
    fn address(&self, request: &mut Request<Full<Bytes>>) {
        let headers = request.headers_mut();
        headers.entry(HOST).or_insert_with(|| self.host.clone());
        match &self.relay {
            Some(relay) => {
                if let Some(credentials) = &relay.credentials {
                    headers.insert(PROXY_AUTHORIZATION, credentials.clone());
                }
            }
            None => {
                let path = request.uri().path_and_query().cloned();
                *request.uri_mut() = path.map(Uri::from).unwrap_or_default();
            }
        }
    }
}

/// How long a connection may lie unused by what the server says of it: a second less than it waits itself, since what is
/// sent then is on its way for a while.
fn idle(headers: &HeaderMap) -> Duration {
    let said = headers.get("keep-alive").and_then(|it| it.to_str().ok());
    let mut params = said.unwrap_or_default().split(',');
    let waits = params.find_map(|param| {
        let (name, seconds) = param.split_once('=')?;
        let is_timeout = name.trim().eq_ignore_ascii_case("timeout");
        seconds.trim().parse().ok().filter(|_| is_timeout)
    });
    waits.map_or(Pool::USUAL, |seconds: u64| {
        Duration::from_secs(seconds.saturating_sub(1)).min(Pool::LONGEST)
    })
}

fn failed(error: &hyper::Error) -> Error {
    Error::unreachable(with_causes(error))
}

#[cfg(feature = "http-server")]
#[cfg(test)]
mod tests {
    use std::{convert::Infallible, sync::Arc};

    use hyper::{server, service::service_fn};
    use hyper_util::rt::TokioIo;
    use tokio::io::duplex;

    use super::*;
    use crate::http::client::{HttpBody, answer_body::AnswerBody};

    const URL: &str = "https://example.test/mcp";

    fn origin(url: &str) -> Origin {
        let parts = url.parse::<Uri>().unwrap().into_parts();
        Origin {
            scheme: parts.scheme.unwrap(),
            authority: parts.authority.unwrap(),
        }
    }

    /// A connection to a server that says where it was asked.
    async fn http2() -> Connection {
        let (near, far) = duplex(1 << 16);
        let service = service_fn(|request: Request<Incoming>| async move {
            let path = Bytes::from(request.uri().path().to_owned());
            Ok::<_, Infallible>(Response::new(Full::new(path)))
        });
        let server = server::conn::http2::Builder::new(TokioExecutor::new());
        tokio::spawn(server.serve_connection(TokioIo::new(far), service));
        let opened = http2::handshake(TokioExecutor::new(), TokioIo::new(near)).await;
        let (sender, driver) = opened.unwrap();
        tokio::spawn(driver);
        let origin = origin(URL);
        Connection::Http2(Http2 { origin, sender })
    }

    async fn ask(connection: &mut Connection, path: &str) -> Response<Incoming> {
        let request = Request::get(URL.replace("/mcp", path));
        let request = request.body(Full::default()).unwrap();
        connection.send(request).await.unwrap()
    }

    #[tokio::test]
    async fn requests_share_a_connection_of_http2() {
        let pool = Arc::<Pool>::default();
        let uri = URL.parse().unwrap();
        pool.put(http2().await);
        let (mut one, mut two) = (pool.take(&uri).unwrap(), pool.take(&uri).unwrap());
        let answers = tokio::join!(ask(&mut one, "/one"), ask(&mut two, "/two"));
        for (answer, connection, path) in [(answers.1, two, "/two"), (answers.0, one, "/one")] {
            let mut body = HttpBody::new(AnswerBody::new(answer.into_body(), connection, &pool));
            assert_eq!(body.chunk().await.unwrap().unwrap(), path);
            assert_eq!(body.chunk().await.unwrap(), None);
        }
        assert!(pool.take(&uri).is_some());
        assert!(
            pool.take(&"http://example.test/".parse().unwrap())
                .is_none()
        );
        assert!(
            pool.take(&"https://example.com/".parse().unwrap())
                .is_none()
        );
    }

    #[tokio::test(start_paused = true)]
    async fn attack_8_what_nobody_uses_is_closed() {
        let pool = Arc::<Pool>::default();
        let uri = URL.parse().unwrap();
        for _ in 0..2 {
            pool.put(http2().await);
            tokio::time::sleep(Pool::LONGEST / 2).await;
            assert!(pool.take(&uri).is_some());
            tokio::time::sleep(Pool::LONGEST * 3 / 4).await;
            assert!(pool.take(&uri).is_some(), "it was used in between");
            tokio::time::sleep(Pool::LONGEST * 5 / 4).await;
            assert!(pool.take(&uri).is_none());
        }
    }

    #[tokio::test]
    async fn attack_8_no_more_is_kept_than_is_of_use() {
        let pool = Arc::<Pool>::default();
        let connection = http2().await;
        for _ in 0..Pool::MOST * 2 {
            pool.put(connection.share().unwrap());
        }
        assert_eq!(pool.len(), Pool::MOST);
    }

    #[test]
    fn a_host_is_named_as_the_url_names_it() {
        for (url, host) in [
            ("http://a/x", "a"),
            ("http://a:80/", "a"),
            ("http://a:443/", "a:443"),
            ("https://a:443/", "a"),
            ("https://me@[::1]:8080/", "[::1]:8080"),
        ] {
            assert_eq!(origin(url).host().unwrap(), host, "{url}");
        }
    }
}
