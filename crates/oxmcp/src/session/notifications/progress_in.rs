//! Incoming progress: the queue from the connection to the caller's callback.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use oxmcp_protocol::ProgressParams;
use tokio::sync::mpsc::{self, Receiver, Sender};

use crate::limits::Limits;

/// The connection's end of the queue.
#[derive(Debug)]
pub(crate) struct ProgressSender {
    updates: Sender<(ProgressParams, usize)>,
    /// The number of bytes that are queued.
    bytes: Arc<AtomicUsize>,
    max_bytes: usize,
}

/// The caller's end of the queue.
#[derive(Debug)]
pub(crate) struct ProgressReceiver {
    updates: Receiver<(ProgressParams, usize)>,
    bytes: Arc<AtomicUsize>,
}

/// A queue whose updates are bounded in number, and in their total size in bytes.
pub(crate) fn new(limits: &Limits) -> (ProgressSender, ProgressReceiver) {
    let (sender, receiver) = mpsc::channel(limits.max_queued_progress.max(1));
    let bytes = Arc::new(AtomicUsize::new(0));
    let sender = ProgressSender {
        updates: sender,
        bytes: Arc::clone(&bytes),
        max_bytes: limits.max_message_bytes,
    };
    let receiver = ProgressReceiver {
        updates: receiver,
        bytes,
    };
    (sender, receiver)
}

impl ProgressSender {
    /// Queues an update. Returns `false` if the queue is full.
    pub(crate) fn send(&self, update: ProgressParams) -> bool {
        let size = size(&update);
        // A single update is always queued, because it was already read. Only this side adds, and under the lock of all calls.
        let waiting = self.bytes.load(Ordering::Acquire);
        if waiting > 0 && waiting.saturating_add(size) > self.max_bytes {
            return false;
        }
        self.bytes.fetch_add(size, Ordering::AcqRel);
        let is_kept = self.updates.try_send((update, size)).is_ok();
        if !is_kept {
            self.bytes.fetch_sub(size, Ordering::AcqRel);
        }
        is_kept
    }
}

impl ProgressReceiver {
    /// The next update. `None` when no more can come. Cancel safe.
    pub(crate) async fn next(&mut self) -> Option<ProgressParams> {
        let taken = self.updates.recv().await;
        self.took(taken)
    }

    /// The next update, if it has already arrived.
    pub(crate) fn next_now(&mut self) -> Option<ProgressParams> {
        let taken = self.updates.try_recv().ok();
        self.took(taken)
    }

    fn took(&self, taken: Option<(ProgressParams, usize)>) -> Option<ProgressParams> {
        let (update, size) = taken?;
        self.bytes.fetch_sub(size, Ordering::AcqRel);
        Some(update)
    }
}

/// The number of bytes of text in an update.
fn size(update: &ProgressParams) -> usize {
    let message = update.message.as_ref().map_or(0, String::len);
    if update.meta.is_absent() {
        return message;
    }
    message + serde_json::to_vec(&update.meta).map_or(0, |meta| meta.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn update(letters: usize) -> ProgressParams {
        let mut update = ProgressParams::new(7, 1.0);
        update.message = Some("m".repeat(letters));
        update
    }

    #[test]
    fn progress_queue_is_bounded_in_number_and_bytes() {
        let (sender, mut receiver) = new(&Limits::default()
            .max_queued_progress(3)
            .max_message_bytes(1000));
        let sent = [400, 500, 200, 0, 0].map(|letters| sender.send(update(letters)));
        assert_eq!(sent, [true, true, false, true, false]);
        assert!(receiver.next_now().is_some());
        assert!(sender.send(update(500)) && !sender.send(update(1)));
        while receiver.next_now().is_some() {}
        // An update that is longer than the limit is queued by itself.
        assert!(sender.send(update(2000)) && !sender.send(update(1)));
        let mut update = update(0);
        update.meta.insert("k", "v".repeat(1000));
        assert_eq!(
            receiver
                .next_now()
                .and_then(|it| it.message)
                .map(|it| it.len()),
            Some(2000)
        );
        assert!(sender.send(update.clone()) && !sender.send(update));
    }
}
