//! The state of a connection's shutdown, up to the closed transport.

use std::sync::OnceLock;

use crate::session::task::Latch;
#[cfg(feature = "http-server")]
use crate::sync::Mutex;

/// The state of a connection's shutdown.
#[derive(Default)]
pub(crate) struct Shutdown {
    /// Set when this side wants to close.
    closing: Latch,
    /// A callback for that moment, if no driver waits for it.
    #[cfg(feature = "http-server")]
    on_closing: Mutex<Option<OnClosing>>,
    /// Set when the transport is closed, too. `outcome` then has the reason.
    ended: Latch,
    outcome: OnceLock<Outcome>,
}

/// A callback for when a connection must close.
#[cfg(feature = "http-server")]
pub(crate) type OnClosing = Box<dyn FnOnce() + Send>;

/// The reason why a connection ended.
#[derive(Clone, Debug)]
pub(crate) enum Outcome {
    /// One of the two sides closed it.
    Closed,
    /// The connection failed, with this message.
    Failed(String),
}

impl Shutdown {
    /// Records that this side wants to close.
    pub(crate) fn begin(&self) {
        self.closing.set();
        #[cfg(feature = "http-server")]
        if let Some(then) = self.take_on_closing() {
            then();
        }
    }

    pub(crate) fn is_closing(&self) -> bool {
        self.closing.is_set()
    }

    /// Waits until this side wants to close. Cancel safe.
    pub(crate) async fn closing(&self) {
        self.closing.wait().await;
    }

    /// Calls `then` once this side closes, or immediately if it is already closing.
    #[cfg(feature = "http-server")]
    pub(crate) fn when_closing(&self, then: OnClosing) {
        let mut on_closing = self.on_closing.lock();
        // `begin` sets the latch before it takes this callback.
        if !self.is_closing() {
            *on_closing = Some(then);
            return;
        }
        drop(on_closing);
        then();
    }

    /// Removes the callback of [`when_closing`](Self::when_closing), if it was not called yet.
    #[cfg(feature = "http-server")]
    pub(crate) fn take_on_closing(&self) -> Option<OnClosing> {
        self.on_closing.lock().take()
    }

    /// Records that nothing can be sent or received anymore. Only the first outcome counts.
    pub(crate) fn cut(&self, outcome: Outcome) {
        let _ = self.outcome.set(outcome);
    }

    pub(crate) fn is_cut(&self) -> bool {
        self.outcome.get().is_some()
    }

    /// Records that the transport is closed, too.
    pub(crate) fn end(&self) {
        self.ended.set();
    }

    pub(crate) fn is_ended(&self) -> bool {
        self.ended.is_set()
    }

    /// Waits until the connection has ended. Cancel safe.
    pub(crate) async fn ended(&self) -> Outcome {
        self.ended.wait().await;
        self.outcome.get().cloned().unwrap_or(Outcome::Closed)
    }
}
