//! What goes on on a connection of HTTP/2.

use std::{
    future::poll_fn,
    pin::Pin,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Poll, ready},
};

use bytes::Bytes;
use http_body_util::Full;
use hyper::client::conn::http2;
use hyper_util::rt::TokioExecutor;

use super::connector::Socket;
use crate::json::Logged;

pub(super) type Driver = http2::Connection<Socket, Full<Bytes>, TokioExecutor>;

/// What all handles of a connection share.
pub(super) struct Traffic {
    /// `None` once it is closed.
    driver: Mutex<Option<Driver>>,
    /// How many requests are on their way, or being answered.
    requests: AtomicUsize,
}

/// Drives a connection. Once that ends, be it with the runtime, no request waits for it.
struct Driving(Arc<Traffic>);

/// The place of a request among those that the server takes at once.
pub(super) struct Place(Arc<Traffic>);

impl Traffic {
    /// Drives a connection, in a task, until nobody needs it any more.
    pub(super) fn begin(driver: Driver) -> Arc<Self> {
        let traffic = Arc::new(Self {
            driver: Mutex::new(Some(driver)),
            requests: AtomicUsize::new(0),
        });
        let driving = Driving(Arc::clone(&traffic));
        tokio::spawn(poll_fn(move |cx| driving.0.poll(cx)));
        traffic
    }

    /// Whether the server takes another request now, as far as is known.
    pub(super) fn has_room(&self) -> bool {
        self.requests.load(Ordering::Relaxed) < self.most()
    }

    fn poll(&self, cx: &mut Context<'_>) -> Poll<()> {
        let mut driver = self.driver();
        if let Some(running) = &mut *driver {
            let ended = ready!(Pin::new(running).poll(cx));
            *driver = None;
            if let Err(error) = ended {
                tracing::debug!(error = %Logged(&error), "a connection broke off");
            }
        }
        Poll::Ready(())
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
    pub(super) fn of(traffic: &Arc<Traffic>) -> Self {
        traffic.requests.fetch_add(1, Ordering::Relaxed);
        Self(Arc::clone(traffic))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.0.requests.fetch_sub(1, Ordering::Relaxed);
    }
}
