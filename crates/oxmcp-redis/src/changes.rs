//! Subscription that wakes what waits for changes. A message is no more than a reason to look again: one that is lost costs a few
//! seconds.

use std::{
    array,
    hash::{BuildHasher, BuildHasherDefault, DefaultHasher},
    sync::Arc,
    time::Duration,
};

use futures_util::StreamExt;
use tokio::{sync::Notify, task::AbortHandle, time::sleep};

use crate::connection::Connection;

/// What waits is woken in so many groups. One that is woken for nothing asks Redis once.
const GROUPS: usize = 64;

/// How often what waits for a change looks by itself.
pub(crate) const RECHECK: Duration = Duration::from_secs(5);

/// How long it takes to subscribe again.
const PAUSE: Duration = Duration::from_millis(200);

/// The subscription to a channel, which ends with this.
#[derive(Debug)]
pub(crate) struct Changes {
    groups: Arc<Groups>,
    listening: AbortHandle,
}

impl Changes {
    /// Subscribes, and again whenever the connection is lost.
    pub(crate) fn of(connection: Arc<Connection>, channel: String) -> Self {
        let groups = Arc::new(Groups(array::from_fn(|_| Notify::new())));
        let listening = tokio::spawn(listen(connection, channel, Arc::clone(&groups)));
        Self {
            groups,
            listening: listening.abort_handle(),
        }
    }

    /// What wakes those that wait for a change of this name, and others.
    pub(crate) fn to(&self, name: &str) -> &Notify {
        self.groups.of(name.as_bytes())
    }
}

impl Drop for Changes {
    fn drop(&mut self) {
        self.listening.abort();
    }
}

#[derive(Debug)]
struct Groups([Notify; GROUPS]);

impl Groups {
    fn of(&self, name: &[u8]) -> &Notify {
        let hash = BuildHasherDefault::<DefaultHasher>::default().hash_one(name);
        let [first, ..] = &self.0;
        let group = usize::try_from(hash % GROUPS as u64).unwrap_or_default();
        self.0.get(group).unwrap_or(first)
    }

    fn wake_all(&self) {
        self.0.iter().for_each(Notify::notify_waiters);
    }
}

async fn listen(connection: Arc<Connection>, channel: String, groups: Arc<Groups>) {
    loop {
        match connection.subscribe(std::slice::from_ref(&channel)).await {
            Ok(mut messages) => {
                // What was said before nobody has heard.
                groups.wake_all();
                while let Some(message) = messages.next().await {
                    groups.of(message.get_payload_bytes()).notify_waiters();
                }
                tracing::debug!("the subscription to Redis has ended, and begins again");
            }
            Err(error) => tracing::debug!(%error, "cannot subscribe to changes in Redis"),
        }
        sleep(PAUSE).await;
    }
}
