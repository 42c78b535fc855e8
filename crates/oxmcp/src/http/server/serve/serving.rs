//! The handle of an address that is served.

use std::{
    fmt,
    future::{Future, IntoFuture},
    net::SocketAddr,
    pin::Pin,
};

use tokio_util::sync::{CancellationToken, DropGuard};

/// An address that is served, until this is closed or dropped.
///
/// Await it to serve for as long as the process lives, or until somebody else calls [`close`](Self::close).
#[must_use = "what is served ends when this is dropped: await it"]
pub struct Serving {
    address: SocketAddr,
    wanted: CancellationToken,
    ended: CancellationToken,
    _close: DropGuard,
}

/// The other side of a [`Serving`]. When it is dropped, all has ended.
pub(super) struct Ending {
    wanted: CancellationToken,
    _ended: DropGuard,
}

impl Ending {
    /// Waits until the end is wanted. Cancel safe.
    pub(super) async fn wanted(&self) {
        self.wanted.cancelled().await;
    }
}

impl Serving {
    pub(super) fn new(address: SocketAddr) -> (Self, Ending) {
        let (wanted, ended) = (CancellationToken::new(), CancellationToken::new());
        let ending = Ending {
            wanted: wanted.clone(),
            _ended: ended.clone().drop_guard(),
        };
        let serving = Self {
            address,
            wanted: wanted.clone(),
            ended,
            _close: wanted.drop_guard(),
        };
        (serving, ending)
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
        self.wanted.cancel();
        self.wait().await;
    }

    /// Waits until it has ended, whoever ends it.
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

impl fmt::Debug for Serving {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Serving")
            .field("address", &self.address)
            .field("ended", &self.ended.is_cancelled())
            .finish_non_exhaustive()
    }
}
