//! The limit of concurrent streams that the server of an HTTP/2 connection sets, and its refusals.

use std::{
    error::Error as _,
    future::{Future, poll_fn},
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    task::{Context, Poll, ready},
};

use bytes::Bytes;
use h2::Reason;
use http_body_util::Full;
use hyper::client::conn::http2;
use hyper_util::rt::TokioExecutor;

use crate::{http::client::transport::connector::BoxIo, logged::Logged, sync::Mutex};

type Connection = http2::Connection<BoxIo, Full<Bytes>, TokioExecutor>;

/// The streams of a connection, counted by all handles to it.
pub(crate) struct StreamLimits {
    /// Polled by the task of the connection. Only the connection knows the server's limit. `None` once it is closed.
    connection: Mutex<Option<Connection>>,
    /// The number of open streams.
    open: AtomicUsize,
    /// Whether the server has refused a request, and no other request has ended since.
    is_refusing: AtomicBool,
}

/// A stream that counts as open until it is dropped.
pub(crate) struct StreamPermit(Arc<StreamLimits>);

/// Closes the connection when its task ends, even if it ends with the runtime, so that no request waits for it.
struct CloseOnDrop(Arc<StreamLimits>);

impl StreamLimits {
    /// The limits of a connection, and the future that drives it. The future ends with the connection, and returns the error that
    /// the server named.
    pub(crate) fn drive(
        connection: Connection,
    ) -> (Arc<Self>, impl Future<Output = Option<Reason>>) {
        let limits = Arc::new(Self {
            connection: Mutex::new(Some(connection)),
            open: AtomicUsize::new(0),
            is_refusing: AtomicBool::new(false),
        });
        let driven = CloseOnDrop(Arc::clone(&limits));
        let driving = async move { poll_fn(|cx| driven.0.poll(cx)).await };
        (limits, driving)
    }

    /// Whether the server accepts another request now, as far as is known.
    pub(crate) fn has_free_stream(&self) -> bool {
        let is_refusing = self.is_refusing.load(Ordering::Relaxed);
        !is_refusing && self.open.load(Ordering::Relaxed) < self.max()
    }

    /// Records that the server has refused a request.
    pub(crate) fn refuse(&self) {
        self.is_refusing.store(true, Ordering::Relaxed);
    }

    /// The number of streams that the server accepts at once.
    fn max(&self) -> usize {
        let connection = self.connection.lock();
        // Sending on a closed connection returns an error that says so.
        connection
            .as_ref()
            .map_or(usize::MAX, Connection::current_max_send_streams)
    }

    fn poll(&self, cx: &mut Context<'_>) -> Poll<Option<Reason>> {
        let mut connection = self.connection.lock();
        let Some(running) = &mut *connection else {
            return Poll::Ready(None);
        };
        let Err(error) = ready!(Pin::new(running).poll(cx)) else {
            return Poll::Ready(None);
        };
        tracing::debug!(error = %Logged(&error), "HTTP connection failed");
        Poll::Ready(Reset::of(&error).and_then(|reset| reset.reason()))
    }
}

impl Drop for CloseOnDrop {
    fn drop(&mut self) {
        let connection = self.0.connection.lock().take();
        drop(connection);
    }
}

impl StreamPermit {
    pub(crate) fn new(limits: &Arc<StreamLimits>) -> Self {
        limits.open.fetch_add(1, Ordering::Relaxed);
        Self(Arc::clone(limits))
    }
}

impl Drop for StreamPermit {
    fn drop(&mut self) {
        self.0.open.fetch_sub(1, Ordering::Relaxed);
        self.0.is_refusing.store(false, Ordering::Relaxed);
    }
}

/// An error of HTTP/2 that the server has sent: of a stream or of the connection.
pub(crate) struct Reset<'a>(&'a h2::Error);

impl<'a> Reset<'a> {
    pub(crate) fn of(error: &'a hyper::Error) -> Option<Self> {
        let error: &h2::Error = error.source()?.downcast_ref()?;
        error.is_remote().then_some(Self(error))
    }

    pub(crate) fn reason(&self) -> Option<Reason> {
        self.0.reason()
    }

    /// Whether the request was not served, and may be sent again: the server has refused it because there were too many at once, or
    /// has ended the connection and named an earlier request as the last.
    /// See [request reliability](https://www.rfc-editor.org/rfc/rfc9113#section-8.7).
    pub(crate) fn is_unserved(&self) -> bool {
        // The streams up to the last one fail with an I/O error when the connection is closed.
        self.0.is_go_away() || self.reason() == Some(Reason::REFUSED_STREAM)
    }

    /// Whether the server reports that there were too many requests.
    pub(crate) fn is_over_limit(&self) -> bool {
        matches!(
            self.reason(),
            Some(Reason::REFUSED_STREAM | Reason::ENHANCE_YOUR_CALM)
        )
    }
}
