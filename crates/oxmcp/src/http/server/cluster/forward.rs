//! Forwards messages outside requests: if the client does not listen on this node, they are stored for the node where it does, or
//! will.

use std::{
    sync::{Arc, Weak},
    task::{Context, Poll, Wake, Waker},
    time::Duration,
};

use tokio::{
    runtime::Handle,
    sync::{Mutex, OwnedMutexGuard},
    time::sleep,
};

use crate::{
    error::{Error, Result},
    http::server::{event_encoding::messages, sessions::StreamKey},
    session::{connection::Connection, driver::stream_output::Reply, task::spawn_on},
    store::{EventBatch, StreamWrite},
};

/// The interval for retrying messages that the store has not accepted, unless the client opens the stream on this node.
const RETRY: Duration = Duration::from_secs(5);

/// Takes messages outside requests from a session's outbox, if no stream does. It is the waker of the outbox, and has no task while
/// there are no messages, because there may be thousands of sessions.
pub(crate) struct Forwarder {
    connection: Weak<Connection>,
    /// The location of the GET stream.
    place: StreamKey,
    /// Messages that were taken and are not stored yet. The task that takes from the outbox holds the lock.
    waiting: Arc<Mutex<Vec<u8>>>,
    runtime: Handle,
}

impl Wake for Forwarder {
    fn wake(self: Arc<Self>) {
        self.begin();
    }
}

impl Forwarder {
    pub(crate) fn new(connection: &Arc<Connection>, place: StreamKey) -> Arc<Self> {
        Arc::new(Self {
            connection: Arc::downgrade(connection),
            place,
            waiting: Arc::default(),
            runtime: connection.runtime.clone(),
        })
    }

    /// Forwards pending messages and those that follow, in a task that ends when there are none.
    pub(crate) fn begin(self: &Arc<Self>) {
        let forwarder = Arc::clone(self);
        spawn_on(&self.runtime, async move { forwarder.run().await });
    }

    /// Waits until no other task takes from the outbox, and locks the taken messages. No other task takes while the guard is held.
    pub(crate) async fn lock(&self) -> OwnedMutexGuard<Vec<u8>> {
        Arc::clone(&self.waiting).lock_owned().await
    }

    async fn run(self: Arc<Self>) {
        loop {
            let mut waiting = self.lock().await;
            match self.forward(&mut waiting).await {
                Ok(()) => return,
                // The messages may already be stored, but a duplicate notification is better than a lost one.
                Err(error) => {
                    tracing::warn!(%error, "could not store messages for a client; retrying");
                }
            }
            drop(waiting);
            sleep(RETRY).await;
        }
    }

    /// Forwards all pending messages. Afterwards the next message wakes this forwarder.
    ///
    /// # Errors
    /// If the store may accept the messages later.
    async fn forward(self: &Arc<Self>, waiting: &mut Vec<u8>) -> Result<()> {
        let waker = Waker::from(Arc::clone(self));
        loop {
            let Some(connection) = self.connection.upgrade() else {
                return Ok(());
            };
            if waiting.is_empty() {
                let cx = Context::from_waker(&waker);
                match connection.outbox.poll_reply(&cx, waiting) {
                    Poll::Ready(Reply::More | Reply::Part(_)) => {}
                    Poll::Ready(Reply::Last(_)) | Poll::Pending => return Ok(()),
                }
            }
            drop(connection);
            self.store(waiting).await?;
            waiting.clear();
        }
    }

    async fn store(&self, lines: &[u8]) -> Result<()> {
        let batch = EventBatch::of_lines(lines);
        let count = batch.len();
        let kept = match self.place.append(StreamWrite::new(batch)).await {
            Ok(indexes) => indexes.map_or(0, |it| it.len()),
            Err(error) if error.is_refusal() => 0,
            Err(error) => return Err(error),
        };
        if kept == count {
            return Ok(());
        }
        // Messages that were refused as a batch are retried one by one, because the store may accept some of them.
        for message in messages(lines).skip(kept) {
            let write = StreamWrite::new(EventBatch::from_iter([message]));
            match self.place.append(write).await {
                Ok(_) => {}
                Err(error) if error.is_refusal() => log_dropped(&error),
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

fn log_dropped(error: &Error) {
    tracing::warn!(%error, "dropping a message for a client: the store refused it");
}
