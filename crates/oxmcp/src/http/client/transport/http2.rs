//! A connection of HTTP/2, which all requests share, as many at once as the server wants.

use std::{error::Error as _, io, sync::Arc};

use bytes::Bytes;
use h2::Reason;
use http::{HeaderValue, Request, header::HOST};
use http_body_util::Full;
use hyper::client::conn::http2;
use hyper_util::rt::TokioExecutor;

use crate::http::client::transport::connection::{Origin, Sent, failed};
use crate::http::client::transport::connector::Socket;
use crate::http::client::transport::stream_limits::{Place, Traffic, by_server, of_h2};
use crate::{Result, session::with_causes};

/// What is said where a server has ended a request, and not that it did not serve it.
const UNKNOWN: &str =
    ", and nobody knows what of the request was done: call again where that can do no harm";
/// A handle to a connection. That has a task, which ends when nobody needs it any more.
pub(crate) struct Http2 {
    pub(crate) origin: Origin,
    host: HeaderValue,
    sender: http2::SendRequest<Full<Bytes>>,
    traffic: Arc<Traffic>,
    /// The place of the request for which the handle is.
    place: Option<Place>,
}

impl Http2 {
    pub(crate) async fn open(socket: Socket, origin: Origin) -> Result<Self> {
        // Until the server says how many requests it takes: more could be refused, or wait in a queue for each other.
        let mut http2 = http2::Builder::new(TokioExecutor::new());
        let opened = http2.initial_max_send_streams(1).handshake(socket).await;
        let (sender, driver) = opened.map_err(|error| failed(&error))?;
        Ok(Self {
            host: origin.host()?,
            origin,
            sender,
            traffic: Traffic::begin(driver),
            place: None,
        })
    }

    /// Another handle. `None` where the connection is closed.
    pub(crate) fn share(&self) -> Option<Self> {
        let shared = || Self {
            origin: self.origin.clone(),
            host: self.host.clone(),
            sender: self.sender.clone(),
            traffic: Arc::clone(&self.traffic),
            place: None,
        };
        (!self.sender.is_closed()).then(shared)
    }

    /// Whether the server takes another request now. One more would wait until another one is answered, and that may wait for
    /// it: for the answer to a question.
    pub(crate) fn has_room(&self) -> bool {
        self.traffic.has_room()
    }

    /// Takes the place of a request, which is there until the handle and its [`Place`] are dropped.
    pub(crate) fn occupy(&mut self) {
        self.place = Some(Place::of(&self.traffic));
    }

    pub(crate) fn into_place(self) -> Option<Place> {
        self.place
    }

    /// Why a request got no answer, in words.
    pub(crate) async fn why(&self, error: &hyper::Error) -> String {
        let broke_off = error.source().is_some_and(|it| it.is::<io::Error>());
        let (what, reason) = match of_h2(error) {
            Some(error) if error.is_remote() => ("gave the request up", error.reason()),
            None if broke_off => ("closed the connection", self.traffic.closed().await),
            // It waited in hyper's queue, and hyper does not say whether it left that.
            None if error.is_user() => return format!("the connection ended{UNKNOWN}"),
            _ => ("", None),
        };
        let Some(reason) = reason else {
            return with_causes(error);
        };
        if is_unserved(error) {
            format!("the server took no further request ({reason:?}: {reason})")
        } else {
            format!("the server {what} ({reason:?}: {reason}){UNKNOWN}")
        }
    }

    pub(crate) async fn send(&mut self, mut request: Request<Full<Bytes>>) -> Sent {
        // The URL says it, and some servers want to hear it once.
        let headers = request.headers_mut();
        if headers.get(HOST) == Some(&self.host) {
            headers.remove(HOST);
        }
        let sent = self.sender.try_send_request(request).await;
        if sent.as_ref().is_err_and(|it| is_one_too_many(it.error())) {
            self.place = None;
            self.traffic.refuses();
        }
        sent
    }
}

/// Whether a server says of a request that it was not served, and may be made again: it has refused it, since there were too
/// many at once, or has ended the connection and named another one as the last.
/// See [request reliability](https://www.rfc-editor.org/rfc/rfc9113#section-8.7).
pub(crate) fn is_unserved(error: &hyper::Error) -> bool {
    let error = by_server(error);
    // Those that were not above the last one hear only that the connection is closed.
    error.is_some_and(|error| error.is_go_away() || error.reason() == Some(Reason::REFUSED_STREAM))
}

/// Whether a server gives a request up since it has too many, as far as it says so.
fn is_one_too_many(error: &hyper::Error) -> bool {
    let reason = by_server(error).and_then(h2::Error::reason);
    matches!(
        reason,
        Some(Reason::REFUSED_STREAM | Reason::ENHANCE_YOUR_CALM)
    )
}

#[cfg(feature = "http-server")]
#[cfg(test)]
mod tests {
    use std::{convert::Infallible, sync::Arc};

    use http::{Response, Uri};
    use hyper::{body::Incoming, server, service::service_fn};
    use hyper_util::rt::TokioIo;
    use tokio::{io::duplex, time::timeout};

    use super::*;
    use crate::http::client::{
        HttpBody, answer_body::AnswerBody, connection::Connection, pool::Pool,
    };

    const URL: &str = "https://example.test/mcp";

    fn uri(url: &str) -> Uri {
        url.parse().unwrap()
    }

    /// A connection to a server that says where it was asked, and takes so many requests at once.
    async fn http2(most: u32) -> Connection {
        let (near, far) = duplex(1 << 16);
        let service = service_fn(|request: Request<Incoming>| async move {
            let path = Bytes::from(request.uri().path().to_owned());
            Ok::<_, Infallible>(Response::new(Full::new(path)))
        });
        let mut server = server::conn::http2::Builder::new(TokioExecutor::new());
        server.max_concurrent_streams(most);
        tokio::spawn(server.serve_connection(TokioIo::new(far), service));
        let socket = Socket::of_http2(TokioIo::new(near));
        let mut connection = Connection::open(socket, &uri(URL)).await.unwrap();
        // With the first answer comes how many it takes.
        ask(&mut connection, "/").await;
        connection
    }

    async fn ask(connection: &mut Connection, path: &str) -> Response<Incoming> {
        let request = Request::get(URL.replace("/mcp", path));
        let request = request.body(Full::default()).unwrap();
        connection.send(request).await.unwrap()
    }

    #[tokio::test]
    async fn requests_share_a_connection_of_http2() {
        let pool = Arc::<Pool>::default();
        let uri = uri(URL);
        pool.put(http2(100).await);
        let (mut one, mut two) = (pool.take(&uri).unwrap(), pool.take(&uri).unwrap());
        let answers = tokio::join!(ask(&mut one, "/one"), ask(&mut two, "/two"));
        for (answer, connection, path) in [(answers.1, two, "/two"), (answers.0, one, "/one")] {
            let mut body = HttpBody::new(AnswerBody::new(answer.into_body(), connection, &pool));
            assert_eq!(body.chunk().await.unwrap().unwrap(), path);
            assert_eq!(body.chunk().await.unwrap(), None);
        }
        assert!(pool.take(&uri).is_some());
        assert!(pool.take(&self::uri("http://example.test/")).is_none());
        assert!(pool.take(&self::uri("https://example.com/")).is_none());
    }

    #[tokio::test]
    async fn no_more_requests_share_one_than_the_server_takes() {
        let pool = Arc::<Pool>::default();
        let uri = uri(URL);
        pool.put(http2(2).await);
        let mut first = pool.take(&uri).unwrap();
        let answer = ask(&mut first, "/one").await;
        let body = AnswerBody::new(answer.into_body(), first, &pool);
        let second = pool.take(&uri).unwrap();
        assert!(pool.take(&uri).is_none());
        assert!(pool.take_any(&uri).is_some(), "it is kept all the same");
        drop(second);
        let mut second = pool.take(&uri).expect("nobody uses it");
        assert!(pool.take(&uri).is_none());
        let mut body = HttpBody::new(body);
        assert!(body.chunk().await.unwrap().is_some());
        assert_eq!(body.chunk().await.unwrap(), None);
        let third = pool.take(&uri).expect("the first was answered to the end");
        assert_eq!(ask(&mut second, "/two").await.status(), 200);
        drop((second, third));
    }

    #[test]
    fn nobody_waits_for_a_connection_whose_runtime_has_ended() {
        let pool = Arc::<Pool>::default();
        let run = || {
            let mut builder = tokio::runtime::Builder::new_current_thread();
            builder.enable_time().start_paused(true).build().unwrap()
        };
        run().block_on(async { pool.put(http2(100).await) });
        run().block_on(async {
            let mut kept = pool.take(&uri(URL)).unwrap();
            let request = Request::get(URL).body(Full::default()).unwrap();
            let sent = timeout(Pool::USUAL, kept.send(request)).await;
            let mut failed = sent.expect("nobody waits").unwrap_err();
            assert!(failed.take_message().is_some());
        });
    }

    #[tokio::test(start_paused = true)]
    async fn attack_8_what_nobody_uses_is_closed() {
        let pool = Arc::<Pool>::default();
        let uri = uri(URL);
        for _ in 0..2 {
            pool.put(http2(100).await);
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
        let connection = http2(100).await;
        for _ in 0..Pool::MOST * 2 {
            pool.put(connection.share().unwrap());
        }
        assert_eq!(pool.len(), Pool::MOST);
    }
}
