//! Handle of an address that is served.

use std::{
    future::{Future, IntoFuture},
    net::SocketAddr,
    pin::Pin,
    time::Duration,
};

use tokio_util::sync::{CancellationToken, DropGuard};

use crate::debug::opaque_debug;

/// How much longer than [`Limits::drain`](crate::Limits::drain) closing may take: handlers are cancelled then, and have their
/// grace.
pub(in crate::http::server) const CLOSE_GRACE: Duration = Duration::from_secs(2);

/// An address that is served, until this is closed or dropped.
///
/// Await it to serve for as long as the process lives, or until another task calls [`close`](Self::close).
#[must_use = "what is served ends when this is dropped: await it"]
pub struct Serving {
    address: SocketAddr,
    closing: CancellationToken,
    ended: CancellationToken,
    _close_on_drop: DropGuard,
}

/// The other side of a [`Serving`]. Once it is dropped, serving has ended.
pub(super) struct CloseSignal {
    closing: CancellationToken,
    _ended_on_drop: DropGuard,
}

impl CloseSignal {
    /// Waits until the [`Serving`] is closed or dropped. Cancel safe.
    pub(super) async fn wait(&self) {
        self.closing.cancelled().await;
    }
}

impl Serving {
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

    /// The address, with the port that was found where any would do.
    #[must_use]
    pub fn local_addr(&self) -> SocketAddr {
        self.address
    }

    /// Ends it: what runs may finish within [`Limits::drain`](crate::Limits::drain), then its connections are dropped.
    /// Returns when nothing is left. It may be called again, and by several at once.
    ///
    /// # Cancel safety
    /// Closing goes on when the future is dropped.
    pub async fn close(&self) {
        self.closing.cancel();
        self.wait().await;
    }

    /// Waits until it has ended, however it ends.
    ///
    /// # Cancel safety
    /// Cancel safe.
    pub async fn wait(&self) {
        self.ended.cancelled().await;
    }
}

impl IntoFuture for Serving {
    type Output = ();
    type IntoFuture = Pin<Box<dyn Future<Output = ()> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move { self.wait().await })
    }
}

opaque_debug!(Serving, |it| { address: it.address, ended: it.ended.is_cancelled() });
