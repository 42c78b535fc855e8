//! The pool of idle connections.
//!
//! It replaces the pool of `hyper_util::client::legacy`, so that a request never queues behind a waiting one: a call may be
//! answered only after the client has answered a question of the server, and that answer is a request, too. The client of
//! hyper-util shares one connection of HTTP/2 whatever its limit of streams is.

use std::{
    sync::{Arc, Weak},
    time::Duration,
};

use http::Uri;
use tokio::{
    task::AbortHandle,
    time::{Instant, sleep_until},
};

use crate::{http::client::transport::connection::Connection, session::task::spawn, sync::Mutex};

/// The maximum number of idle connections: more than most clients have calls in flight.
pub(crate) const MAX_IDLE_CONNECTIONS: usize = 64;

/// The connections of one client: those of HTTP/1.1 while they are idle, those of HTTP/2 until they have been idle for too long.
#[derive(Default)]
pub(crate) struct Pool(Mutex<State>);

#[derive(Default)]
struct State {
    /// The connections, of which the last was used last.
    connections: Vec<PooledConnection>,
    sweeper: Option<Sweeper>,
}

struct PooledConnection {
    connection: Connection,
    until: Instant,
}

/// The task that closes idle connections.
struct Sweeper {
    task: AbortHandle,
    next: Instant,
}

impl Pool {
    /// Takes the connection to the server of a URL that has a free stream and was used last.
    pub(crate) fn take(self: &Arc<Self>, uri: &Uri) -> Option<Connection> {
        self.take_if(uri, Connection::has_free_stream)
    }

    /// The same, with or without a free stream.
    pub(crate) fn take_any(self: &Arc<Self>, uri: &Uri) -> Option<Connection> {
        self.take_if(uri, |_| true)
    }

    fn take_if(
        self: &Arc<Self>,
        uri: &Uri,
        suits: impl Fn(&Connection) -> bool,
    ) -> Option<Connection> {
        let mut state = self.0.lock();
        let mut connections = state.connections.iter().map(|it| &it.connection);
        let last = connections.rposition(|it| it.destination().is_of(uri) && suits(it))?;
        let mut connection = state.connections.remove(last).connection;
        connection.reserve_stream();
        if let Some(shared) = connection.share() {
            self.keep(&mut state, shared);
        }
        Some(connection)
    }

    /// Keeps a connection for other requests.
    pub(crate) fn put(self: &Arc<Self>, connection: Connection) {
        self.keep(&mut self.0.lock(), connection);
    }

    /// Takes back a connection after the end of a response.
    pub(crate) fn release(self: &Arc<Self>, mut connection: Connection) {
        if connection.is_http2() {
            // The pool has its own handle.
            drop(connection);
        } else if connection.is_ready() {
            self.put(connection);
        } else {
            // The connection's task is about to read the end, or to send the rest of the request.
            let pool = Arc::downgrade(self);
            spawn(async move {
                if connection.ready().await
                    && let Some(pool) = pool.upgrade()
                {
                    pool.put(connection);
                }
            });
        }
    }

    fn keep(self: &Arc<Self>, state: &mut State, connection: Connection) {
        let idle = connection.idle_timeout();
        if idle == Duration::ZERO {
            return;
        }
        let until = Instant::now() + idle;
        if state.connections.len() >= MAX_IDLE_CONNECTIONS {
            state.connections.remove(0);
        }
        state
            .connections
            .push(PooledConnection { connection, until });
        let sweeper = state.sweeper.as_ref();
        if sweeper.is_none_or(|it| it.next > until || it.task.is_finished()) {
            let task = spawn(sweep(Arc::downgrade(self), until)).abort_handle();
            let late = state.sweeper.replace(Sweeper { task, next: until });
            if let Some(late) = late {
                late.task.abort();
            }
        }
    }

    /// Closes the connections that were idle for too long. Returns when the next one is to be closed.
    fn sweep(&self) -> Option<Instant> {
        let now = Instant::now();
        let mut state = self.0.lock();
        state.connections.retain(|it| it.until > now);
        let next = state.connections.iter().map(|it| it.until).min();
        match (next, &mut state.sweeper) {
            (Some(next), Some(sweeper)) => sweeper.next = next,
            _ => state.sweeper = None,
        }
        next
    }

    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.0.lock().connections.len()
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        if let Some(sweeper) = self.0.lock().sweeper.take() {
            sweeper.task.abort();
        }
    }
}

async fn sweep(pool: Weak<Pool>, first: Instant) {
    let mut next = Some(first);
    while let Some(at) = next {
        sleep_until(at).await;
        next = pool.upgrade().and_then(|pool| pool.sweep());
    }
}

#[cfg(feature = "http-server")]
#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use bytes::Bytes;
    use http::{Request, Response};
    use http_body_util::Full;
    use hyper::{body::Incoming, server, service::service_fn};
    use hyper_util::rt::{TokioExecutor, TokioIo};
    use tokio::{io::duplex, time::timeout};

    use super::*;
    use crate::http::client::transport::{
        connection::{DEFAULT_IDLE, MAX_IDLE},
        connector::Socket,
        http_client::HttpBody,
        response_body::ResponseBody,
    };

    const URL: &str = "https://example.test/mcp";

    fn uri(url: &str) -> Uri {
        url.parse().unwrap()
    }

    /// A connection to a server that answers with the path of the request, and accepts `most` requests at once.
    async fn http2(most: u32) -> Connection {
        let (near, far) = duplex(1 << 16);
        let service = service_fn(|request: Request<Incoming>| async move {
            let path = Bytes::from(request.uri().path().to_owned());
            Ok::<_, Infallible>(Response::new(Full::new(path)))
        });
        let mut server = server::conn::http2::Builder::new(TokioExecutor::new());
        server.max_concurrent_streams(most);
        tokio::spawn(server.serve_connection(TokioIo::new(far), service));
        let socket = Socket::http2(TokioIo::new(near));
        let mut connection = Connection::open(socket, &uri(URL)).await.unwrap();
        // The server's limit arrives with the first answer.
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
            let mut body = HttpBody::new(ResponseBody::new(answer.into_body(), connection, &pool));
            assert_eq!(body.chunk().await.unwrap().unwrap(), path);
            assert_eq!(body.chunk().await.unwrap(), None);
        }
        assert!(pool.take(&uri).is_some());
        assert!(pool.take(&self::uri("http://example.test/")).is_none());
        assert!(pool.take(&self::uri("https://example.com/")).is_none());
    }

    #[tokio::test]
    async fn requests_per_connection_respect_the_servers_limit() {
        let pool = Arc::<Pool>::default();
        let uri = uri(URL);
        pool.put(http2(2).await);
        let mut first = pool.take(&uri).unwrap();
        let answer = ask(&mut first, "/one").await;
        let body = ResponseBody::new(answer.into_body(), first, &pool);
        let second = pool.take(&uri).unwrap();
        assert!(pool.take(&uri).is_none());
        assert!(pool.take_any(&uri).is_some(), "it is kept all the same");
        drop(second);
        let mut second = pool.take(&uri).expect("its stream is free");
        assert!(pool.take(&uri).is_none());
        let mut body = HttpBody::new(body);
        assert!(body.chunk().await.unwrap().is_some());
        assert_eq!(body.chunk().await.unwrap(), None);
        let third = pool.take(&uri).expect("the first was answered to the end");
        assert_eq!(ask(&mut second, "/two").await.status(), 200);
        drop((second, third));
    }

    #[test]
    fn requests_fail_on_connection_of_ended_runtime() {
        let pool = Arc::<Pool>::default();
        let run = || {
            let mut builder = tokio::runtime::Builder::new_current_thread();
            builder.enable_time().start_paused(true).build().unwrap()
        };
        run().block_on(async { pool.put(http2(100).await) });
        run().block_on(async {
            let mut connections = pool.take(&uri(URL)).unwrap();
            let request = Request::get(URL).body(Full::default()).unwrap();
            let sent = timeout(DEFAULT_IDLE, connections.send(request)).await;
            let mut failed = sent.expect("it does not hang").unwrap_err();
            assert!(failed.take_message().is_some());
        });
    }

    // Attack: endless or rapid retries.
    #[tokio::test(start_paused = true)]
    async fn idle_connections_are_closed() {
        let pool = Arc::<Pool>::default();
        let uri = uri(URL);
        for _ in 0..2 {
            pool.put(http2(100).await);
            tokio::time::sleep(MAX_IDLE / 2).await;
            assert!(pool.take(&uri).is_some());
            tokio::time::sleep(MAX_IDLE * 3 / 4).await;
            assert!(pool.take(&uri).is_some(), "it was used in between");
            tokio::time::sleep(MAX_IDLE * 5 / 4).await;
            assert!(pool.take(&uri).is_none());
        }
    }

    // Attack: endless or rapid retries.
    #[tokio::test]
    async fn pool_is_bounded() {
        let pool = Arc::<Pool>::default();
        let connection = http2(100).await;
        for _ in 0..MAX_IDLE_CONNECTIONS * 2 {
            pool.put(connection.share().unwrap());
        }
        assert_eq!(pool.len(), MAX_IDLE_CONNECTIONS);
    }
}
