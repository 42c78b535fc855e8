//! What goes on on a connection of HTTP/2.

use std::{
    error::Error as _,
    future::poll_fn,
    pin::Pin,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    task::{Context, Poll, ready},
    time::Duration,
};

use bytes::Bytes;
use h2::Reason;
use http_body_util::Full;
use hyper::client::conn::http2;
use hyper_util::rt::TokioExecutor;
use tokio::{sync::watch, time::timeout};

use crate::http::client::transport::connector::Socket;
use crate::json::Logged;

/// How long is waited for the end of a connection that has broken off.
const ENDING: Duration = Duration::from_secs(1);

pub(crate) type Driver = http2::Connection<Socket, Full<Bytes>, TokioExecutor>;

/// What all handles of a connection share.
pub(crate) struct Traffic {
    /// `None` once it is closed.
    driver: Mutex<Option<Driver>>,
    /// How many requests are on their way, or being answered.
    requests: AtomicUsize,
    /// Whether the server has refused a request, and none of the others has ended since.
    is_full: AtomicBool,
    /// How it was closed, once it is.
    closed: watch::Sender<Option<Closed>>,
}

/// Drives a connection. Once that ends, be it with the runtime, no request waits for it.
struct Driving(Arc<Traffic>);

/// How a connection was closed: the error that the server named, if it did.
pub(crate) type Closed = Option<Reason>;

/// The place of a request among those that the server takes at once.
pub(crate) struct Place(Arc<Traffic>);

impl Traffic {
    /// Drives a connection, in a task, until nobody needs it any more.
    pub(crate) fn begin(driver: Driver) -> Arc<Self> {
        let traffic = Arc::new(Self {
            driver: Mutex::new(Some(driver)),
            requests: AtomicUsize::new(0),
            is_full: AtomicBool::new(false),
            closed: watch::Sender::new(None),
        });
        let driving = Driving(Arc::clone(&traffic));
        tokio::spawn(poll_fn(move |cx| driving.0.poll(cx)));
        traffic
    }

    /// Whether the server takes another request now, as far as is known.
    pub(crate) fn has_room(&self) -> bool {
        let is_full = self.is_full.load(Ordering::Relaxed);
        !is_full && self.requests.load(Ordering::Relaxed) < self.most()
    }

    /// The server has refused a request.
    pub(crate) fn refuses(&self) {
        self.is_full.store(true, Ordering::Relaxed);
    }

    fn poll(&self, cx: &mut Context<'_>) -> Poll<()> {
        let mut driver = self.driver();
        if let Some(running) = &mut *driver {
            let ended = ready!(Pin::new(running).poll(cx));
            *driver = None;
            drop(driver);
            if let Err(error) = &ended {
                tracing::debug!(error = %Logged(error), "a connection broke off");
            }
            let said = ended.as_ref().err().and_then(by_server);
            self.closed
                .send_replace(Some(said.and_then(h2::Error::reason)));
        }
        Poll::Ready(())
    }

    /// Waits until it is closed, and returns how.
    pub(crate) async fn closed(&self) -> Closed {
        let mut closed = self.closed.subscribe();
        let closed = timeout(ENDING, closed.wait_for(Option::is_some)).await;
        closed.ok()?.ok()?.flatten()
    }

    /// How many requests the server takes at once.
    fn most(&self) -> usize {
        let driver = self.driver();
        // Whoever sends on one that is closed is told.
        driver
            .as_ref()
            .map_or(usize::MAX, Driver::current_max_send_streams)
    }

    fn driver(&self) -> MutexGuard<'_, Option<Driver>> {
        self.driver.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Driving {
    fn drop(&mut self) {
        let driver = self.0.driver().take();
        drop(driver);
    }
}

impl Place {
    pub(crate) fn of(traffic: &Arc<Traffic>) -> Self {
        traffic.requests.fetch_add(1, Ordering::Relaxed);
        Self(Arc::clone(traffic))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.0.requests.fetch_sub(1, Ordering::Relaxed);
        if self.0.is_full.load(Ordering::Relaxed) {
            self.0.is_full.store(false, Ordering::Relaxed);
        }
    }
}

/// What h2 says of an error.
pub(crate) fn of_h2(error: &hyper::Error) -> Option<&h2::Error> {
    error.source()?.downcast_ref()
}

/// The same of an error that the server told of.
pub(crate) fn by_server(error: &hyper::Error) -> Option<&h2::Error> {
    of_h2(error).filter(|error| error.is_remote())
}
