//! What must be done before anything else is sent.

use tokio::sync::watch;

/// A gate that messages pass, unless somebody keeps it closed.
#[derive(Debug)]
pub(crate) struct Gate(watch::Sender<usize>);

/// Keeps a gate closed; dropped, it lets go.
#[derive(Debug)]
pub(crate) struct Closed(watch::Sender<usize>);

impl Gate {
    pub(crate) fn new() -> Self {
        Self(watch::Sender::new(0))
    }

    pub(crate) fn close(&self) -> Closed {
        self.0.send_modify(|closed| *closed += 1);
        Closed(self.0.clone())
    }

    /// Waits until nobody keeps it closed. Cancel safe.
    pub(crate) async fn pass(&self) {
        if *self.0.borrow() > 0 {
            // The sender is here, so it cannot be gone.
            let _ = self.0.subscribe().wait_for(|closed| *closed == 0).await;
        }
    }
}

impl Drop for Closed {
    fn drop(&mut self) {
        self.0.send_modify(|closed| *closed -= 1);
    }
}
