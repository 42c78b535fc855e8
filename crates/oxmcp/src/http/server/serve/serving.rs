//! The handle of an address that is being served.

use std::{
    future::{Future, IntoFuture},
    net::SocketAddr,
    pin::Pin,
    time::Duration,
};

use tokio_util::sync::{CancellationToken, DropGuard};

use crate::debug::opaque_debug;

/// The time that closing may take beyond [`Limits::drain`](crate::Limits::drain): handlers are cancelled after the drain, and then
/// have their grace period.
pub(crate) const CLOSE_GRACE: Duration = Duration::from_secs(2);

/// A handle to an address that is being served. Serving ends when the handle is closed or dropped.
///
/// Call [`ended`](Self::ended), or await the handle itself, to serve until the process ends or another task calls
/// [`close`](Self::close).
#[must_use = "serving ends when the handle is dropped: await `.ended()`"]
pub struct ServerHandle {
    address: SocketAddr,
    closing: CancellationToken,
    ended: CancellationToken,
    _close_on_drop: DropGuard,
}

/// The other side of a [`ServerHandle`]. Dropping it reports that serving has ended.
pub(crate) struct CloseSignal {
    closing: CancellationToken,
    _ended_on_drop: DropGuard,
}

impl CloseSignal {
    /// Waits until the [`ServerHandle`] is closed or dropped. Cancel safe.
    pub(crate) async fn wait(&self) {
        self.closing.cancelled().await;
    }
}

impl ServerHandle {
    pub(crate) fn new(address: SocketAddr) -> (Self, CloseSignal) {
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

    /// Returns the address, with the actual port if you asked for port 0.
    #[must_use]
    pub fn local_addr(&self) -> SocketAddr {
        self.address
    }

    /// Shuts down gracefully, without losing a request. New connections are refused immediately. Requests on open connections are
    /// served, and each connection closes with its next response (HTTP/1: `Connection: close`; HTTP/2: GOAWAY), or when
    /// [`Limits::drain`](crate::Limits::drain) is over. Idle HTTP/1 connections stay open until then, because closing them could
    /// lose a request that is on its way. Requests that have not finished by then are cancelled. Returns when all connections have
    /// ended. May be called repeatedly and concurrently.
    ///
    /// # Cancel safety
    /// If the future is dropped, closing continues.
    pub async fn close(&self) {
        self.closing.cancel();
        self.wait().await;
    }

    /// Waits until serving has ended, for any reason. To close the handle meanwhile, use [`wait`](Self::wait).
    ///
    /// # Cancel safety
    /// If the future is dropped, serving ends, as when the handle is dropped.
    pub async fn ended(self) {
        self.wait().await;
    }

    /// Like [`ended`](Self::ended), without consuming the handle, so that another task can close it.
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
        Box::pin(self.ended())
    }
}

opaque_debug!(ServerHandle, |it| { address: it.address, ended: it.ended.is_cancelled() });
