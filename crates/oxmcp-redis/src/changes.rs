//! Subscription that wakes waiters when data in Redis changes. A message only makes a waiter check again, so a lost one costs a
//! few seconds.

use std::{
    collections::HashMap,
    str,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use futures_util::StreamExt;
use tokio::{
    sync::{Notify, futures::Notified},
    task::AbortHandle,
    time::sleep,
};

use crate::connection::Connection;

/// The interval at which a waiter checks without a message. Each open stream of a client has one.
pub(crate) const RECHECK: Duration = Duration::from_secs(10);

/// The pause before a new attempt to subscribe.
const PAUSE: Duration = Duration::from_millis(200);

/// The subscription to a channel, which ends when this is dropped.
#[derive(Debug)]
pub(crate) struct Changes {
    waiters: Arc<Waiters>,
    listening: AbortHandle,
}

impl Changes {
    /// Subscribes to a channel, and again whenever the connection is lost.
    pub(crate) fn of(connection: Arc<Connection>, channel: String) -> Self {
        let waiters = Arc::<Waiters>::default();
        let listening = tokio::spawn(listen(connection, channel, Arc::clone(&waiters)));
        Self {
            waiters,
            listening: listening.abort_handle(),
        }
    }

    /// Begins to wait for changes of this name.
    pub(crate) fn to(&self, name: &str) -> Waiter {
        let mut waiters = self.waiters.lock();
        let notify = Arc::clone(waiters.entry(name.to_owned()).or_default());
        drop(waiters);
        Waiter {
            name: name.to_owned(),
            notify,
            waiters: Arc::clone(&self.waiters),
        }
    }
}

impl Drop for Changes {
    fn drop(&mut self) {
        self.listening.abort();
    }
}

/// A waiter for changes of a name, which is registered until it is dropped.
pub(crate) struct Waiter {
    name: String,
    notify: Arc<Notify>,
    waiters: Arc<Waiters>,
}

impl Waiter {
    /// Waits for the next change after the future was enabled.
    pub(crate) fn changed(&self) -> Notified<'_> {
        self.notify.notified()
    }
}

impl Drop for Waiter {
    fn drop(&mut self) {
        let mut waiters = self.waiters.lock();
        // This waiter holds one reference, and the map the other.
        if Arc::strong_count(&self.notify) == 2 {
            waiters.remove(&self.name);
        }
    }
}

/// The handles that wake waiters, by the names that they wait for.
#[derive(Debug, Default)]
struct Waiters(Mutex<HashMap<String, Arc<Notify>>>);

impl Waiters {
    fn lock(&self) -> MutexGuard<'_, HashMap<String, Arc<Notify>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wake(&self, name: &[u8]) {
        let name = str::from_utf8(name).unwrap_or_default();
        if let Some(notify) = self.lock().get(name) {
            notify.notify_waiters();
        }
    }

    fn wake_all(&self) {
        self.lock().values().for_each(|it| it.notify_waiters());
    }
}

async fn listen(connection: Arc<Connection>, channel: String, waiters: Arc<Waiters>) {
    loop {
        match connection.subscribe(std::slice::from_ref(&channel)).await {
            Ok(mut messages) => {
                // Messages before the subscription were missed.
                waiters.wake_all();
                while let Some(message) = messages.next().await {
                    waiters.wake(message.get_payload_bytes());
                }
                tracing::debug!("Redis subscription ended; subscribing again");
            }
            Err(error) => {
                tracing::debug!(%error, "could not subscribe to changes in Redis; retrying");
            }
        }
        sleep(PAUSE).await;
    }
}
