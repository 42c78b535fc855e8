//! Forwarding of what belongs to no request: where the session's client does not listen here, it goes into the store, for the node
//! where it does, or will.

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

use super::super::stream_writer::Place;
use crate::{
    error::{Error, Result},
    http::server::event_encoding::messages,
    session::{connection::Connection, driver::undriven::Reply, task::spawn_on},
    store::{EventBatch, StreamWrite},
};

/// How long what the store has not taken waits to be offered again, unless the client comes here for it.
const RETRY: Duration = Duration::from_secs(5);

/// Takes what belongs to no request from a session's outbox, where no stream does. It is the waker of the outbox, and no task
/// while nothing happens: there may be thousands of sessions.
pub(in super::super) struct Forwarder {
    connection: Weak<Connection>,
    /// The standing stream.
    place: Place,
    /// What was taken and is not stored yet. Locked by whoever takes from the outbox.
    waiting: Arc<Mutex<Vec<u8>>>,
    runtime: Handle,
}

impl Wake for Forwarder {
    fn wake(self: Arc<Self>) {
        self.begin();
    }
}

impl Forwarder {
    pub(super) fn new(connection: &Arc<Connection>, place: Place) -> Arc<Self> {
        Arc::new(Self {
            connection: Arc::downgrade(connection),
            place,
            waiting: Arc::default(),
            runtime: connection.runtime.clone(),
        })
    }

    /// Takes what is there, and what comes, in a task that ends where there is nothing.
    pub(in super::super) fn begin(self: &Arc<Self>) {
        let forwarder = Arc::clone(self);
        spawn_on(&self.runtime, async move { forwarder.run().await });
    }

    /// Waits until nobody else takes from the outbox. Nobody does while the returned guard, of what was taken, is there.
    pub(super) async fn lock(&self) -> OwnedMutexGuard<Vec<u8>> {
        Arc::clone(&self.waiting).lock_owned().await
    }

    async fn run(self: Arc<Self>) {
        loop {
            let mut waiting = self.lock().await;
            match self.forward(&mut waiting).await {
                Ok(()) => return,
                // It may be there already: a notification that comes twice is better than none.
                Err(error) => tracing::warn!(%error, "messages for a client wait for the store"),
            }
            drop(waiting);
            sleep(RETRY).await;
        }
    }

    /// Forwards all that is there. From then on this is woken by what comes.
    ///
    /// # Errors
    /// Where the store may take it another time.
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
        // Not all of them need be refused.
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
    tracing::warn!(%error, "a message for a client is dropped: the store does not keep it");
}
