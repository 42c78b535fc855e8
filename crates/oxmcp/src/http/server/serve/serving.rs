//! Handle of an address that is being served.

use std::{
    future::{Future, IntoFuture},
    net::SocketAddr,
    pin::Pin,
    time::Duration,
};

use tokio_util::sync::{CancellationToken, DropGuard};

use crate::debug::opaque_debug;

/// The time that closing may take in addition to [`Limits::drain`](crate::Limits::drain): handlers are cancelled after the drain
/// time, and then have their grace period.
pub(in crate::http::server) const CLOSE_GRACE: Duration = Duration::from_secs(2);

/// An address that is being served, until this handle is closed or dropped.
///
/// Await it to serve for as long as the process lives, or until another task calls [`close`](Self::close).
#[must_use = "what is served ends when this is dropped: await it"]
pub struct ServerHandle {
    address: SocketAddr,
    closing: CancellationToken,
    ended: CancellationToken,
    _close_on_drop: DropGuard,
}

/// The other side of a [`ServerHandle`]. When it is dropped, serving has ended.
pub(super) struct CloseSignal {
    closing: CancellationToken,
    _ended_on_drop: DropGuard,
}

impl CloseSignal {
    /// Waits until the [`ServerHandle`] is closed or dropped. Cancel safe.
    pub(super) async fn wait(&self) {
        self.closing.cancelled().await;
    }
}

impl ServerHandle {
    pub(super) fn new(address: SocketAddr) -> (Self, CloseSignal) {
        let (closing, ended) = (CancellationToken::new(), CancellationToken::new());
        let signal = CloseSignal {
            closing: closing.clone(),
            _ended_on_drop: ended.clone().drop_guard(),
        };
        let serving = Self {
            address,
            closing: closing.clone(),
            ended,
            _close_on_drop: closing.drop_guard(),
        };
        (serving, signal)
    }

    /// The address, with the actual port if it was 0.
    #[must_use]
    pub fn local_addr(&self) -> SocketAddr {
        self.address
    }

    /// Stops serving without losing a request. The address refuses new connections at once. What comes over the open ones is
    /// served, and each ends with its next response (HTTP/1: `Connection: close`; HTTP/2: GOAWAY), or when
    /// [`Limits::drain`](crate::Limits::drain) is over: an idle connection stays until then, because a request that meets its end
    /// would be lost. Requests that have not finished by then are cancelled. Returns when all connections have ended. It may be
    /// called repeatedly and concurrently.
    ///
    /// # Cancel safety
    /// If the future is dropped, closing goes on.
    pub async fn close(&self) {
        self.closing.cancel();
        self.wait().await;
    }

    /// Waits until serving has ended, for any reason.
    ///
    /// # Cancel safety
    /// Cancel safe.
    pub async fn wait(&self) {
        self.ended.cancelled().await;
    }
}

impl IntoFuture for ServerHandle {
    type Output = ();
    type IntoFuture = Pin<Box<dyn Future<Output = ()> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move { self.wait().await })
    }
}

opaque_debug!(ServerHandle, |it| { address: it.address, ended: it.ended.is_cancelled() });
