//! The messages that nodes exchange about shared sessions, and the client messages that wait for other nodes.

use std::{
    collections::HashMap,
    sync::{
        Arc, Weak,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use tokio_util::task::AbortOnDropHandle;

use crate::{
    error::Result,
    http::server::sessions::{SharedSession, renew},
    session::task::{Latch, spawn},
    store::{AnyBus, Delivery, hashed, listen},
    sync::Mutex,
};

/// The topic of messages about sessions.
const TOPIC: &str = "sessions";

/// A message to the other nodes about a session, identified by the hash of its ID.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
enum SessionMessage {
    Over {
        session: String,
    },
    Changed {
        session: String,
        version: u64,
    },
    /// A client message that concerns a request or a question of another node.
    Posted {
        session: String,
        message: Box<RawValue>,
    },
    /// The answer to the question with this ID has reached the node that asked.
    Answered {
        session: String,
        id: i64,
    },
}

/// A session that messages of other nodes may concern.
pub(crate) trait BusListener: SharedSession {
    /// Other nodes have ended the session.
    fn on_over(&self);

    /// Another node has stored this version of the session's record.
    fn on_changed(&self, version: u64);

    /// A client has posted a message to another node, which may concern this one.
    fn on_posted(&self, text: &str);

    /// The node that asked has the answer to this question, which this node passed on.
    fn on_answered(&self, question: i64);

    /// Messages of other nodes may have been lost.
    fn on_gap(&self);
}

/// The sessions that messages of other nodes may concern. One for each endpoint.
pub(crate) struct SessionBus {
    /// The sessions by the hashes of their IDs.
    by_hash: Mutex<HashMap<String, Weak<dyn BusListener>>>,
    /// The task that listens to other nodes.
    listener: Mutex<Option<AbortOnDropHandle<()>>>,
    /// Client messages that other nodes are waiting for.
    pub(crate) undelivered: Undelivered,
}

impl Default for SessionBus {
    fn default() -> Self {
        Self {
            by_hash: Mutex::default(),
            listener: Mutex::default(),
            undelivered: Undelivered::of_endpoint(),
        }
    }
}

impl SessionBus {
    /// Listens for messages about a session, as long as it exists.
    pub(crate) fn subscribe(
        self: &Arc<Self>,
        id: &str,
        session: Weak<dyn BusListener>,
        bus: &Arc<dyn AnyBus>,
    ) {
        self.by_hash.lock().insert(hashed(id), session);
        let mut listener = self.listener.lock();
        if listener.as_ref().is_none_or(AbortOnDropHandle::is_finished) {
            let weak = Arc::downgrade(self);
            let listening = listen(
                Arc::clone(bus),
                TOPIC,
                move || weak.upgrade(),
                |it: &Arc<Self>, delivery| it.take_delivery(delivery),
            );
            *listener = Some(AbortOnDropHandle::new(spawn(listening)));
        }
    }

    /// Stops listening for messages about a session.
    pub(crate) fn unsubscribe(&self, id: &str) {
        let mut by_hash = self.by_hash.lock();
        if !by_hash.is_empty() {
            by_hash.remove(&hashed(id));
        }
    }

    fn find(&self, hash: &str) -> Option<Arc<dyn BusListener>> {
        self.by_hash.lock().get(hash).and_then(Weak::upgrade)
    }

    fn take_delivery(&self, delivery: &Delivery) {
        let Delivery::Message { message, .. } = delivery else {
            return self.doubt_all();
        };
        match serde_json::from_slice(message) {
            Ok(SessionMessage::Over { session }) => {
                if let Some(session) = self.find(&session) {
                    session.on_over();
                }
            }
            Ok(SessionMessage::Changed { session, version }) => {
                if let Some(session) = self.find(&session) {
                    session.on_changed(version);
                }
            }
            Ok(SessionMessage::Posted { session, message }) => {
                if let Some(session) = self.find(&session) {
                    session.on_posted(message.get());
                }
            }
            Ok(SessionMessage::Answered { session, id }) => {
                if let Some(session) = self.find(&session) {
                    session.on_answered(id);
                }
            }
            Err(_) => tracing::warn!("ignoring an unreadable message from another node"),
        }
    }

    /// Handles a possible loss of messages: checks all sessions now, and each again before its next request.
    fn doubt_all(&self) {
        let by_hash = self.by_hash.lock();
        let sessions: Vec<_> = by_hash.values().filter_map(Weak::upgrade).collect();
        drop(by_hash);
        let mut renewals = Vec::new();
        for session in sessions {
            session.on_gap();
            renewals.extend(session.renewal(Duration::ZERO));
        }
        renew(renewals);
    }
}

/// Tells other nodes that a session is over. Returns whether that succeeded.
pub(crate) async fn tell_over(bus: Option<&Arc<dyn AnyBus>>, id: &str) -> bool {
    let session = hashed(id);
    tell(bus, &SessionMessage::Over { session }).await
}

/// Tells other nodes of a new version of a session's record.
pub(crate) async fn tell_changed(bus: Option<&Arc<dyn AnyBus>>, id: &str, version: u64) {
    let session = hashed(id);
    tell(bus, &SessionMessage::Changed { session, version }).await;
}

/// Tells other nodes that the answer to a question has reached this node, which asked.
pub(crate) async fn tell_answered(bus: Option<&Arc<dyn AnyBus>>, id: &str, question: i64) {
    let (session, id) = (hashed(id), question);
    tell(bus, &SessionMessage::Answered { session, id }).await;
}

/// Publishes a message to other nodes. Returns whether that succeeded.
async fn tell(bus: Option<&Arc<dyn AnyBus>>, news: &SessionMessage) -> bool {
    let (Some(bus), Ok(news)) = (bus, serde_json::to_vec(news)) else {
        return false;
    };
    let published = bus.publish(TOPIC, news.into()).await;
    published
        .inspect_err(|error| tracing::warn!(%error, "bus failed; other nodes are not notified"))
        .is_ok()
}

/// Sends other nodes a message that may concern one of their requests or questions.
///
/// # Errors
/// If it is unknown whether they receive it.
pub(crate) async fn tell_message(
    bus: Option<&Arc<dyn AnyBus>>,
    id: &str,
    text: &str,
) -> Result<()> {
    let message = RawValue::from_string(text.to_owned());
    let (Some(bus), Ok(message)) = (bus, message) else {
        return Ok(());
    };
    let session = hashed(id);
    match serde_json::to_vec(&SessionMessage::Posted { session, message }) {
        Ok(news) => bus.publish(TOPIC, news.into()).await,
        Err(_) => Ok(()),
    }
}

/// The messages of a session, or of an endpoint, that wait for the store or the bus. The count goes down when a message is dropped.
#[derive(Debug)]
pub(crate) struct Undelivered {
    waiting: AtomicUsize,
    max: usize,
}

impl Undelivered {
    /// The messages of one session. A call asks only a few questions at once, but a host may make many calls.
    pub(crate) const fn of_session() -> Self {
        Self::at_most(256)
    }

    /// The messages of all sessions.
    pub(crate) const fn of_endpoint() -> Self {
        Self::at_most(4096)
    }

    const fn at_most(max: usize) -> Self {
        Self {
            waiting: AtomicUsize::new(0),
            max,
        }
    }

    pub(crate) fn enter(&self) -> bool {
        let more = |waiting| (waiting < self.max).then_some(waiting + 1);
        let (set, fetch) = (Ordering::Relaxed, Ordering::Relaxed);
        self.waiting.fetch_update(set, fetch, more).is_ok()
    }

    pub(crate) fn leave(&self) {
        self.waiting.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Answers that this node passes on. Over the bus they may reach nobody, so they are repeated until the node that asked confirms
/// that it has them.
#[derive(Debug, Default)]
pub(crate) struct Confirmations(Arc<Mutex<HashMap<i64, Arc<Latch>>>>);

impl Confirmations {
    /// Expects a confirmation of the answer to the question with this ID, as long as the returned guard exists.
    pub(crate) fn expect(&self, id: i64) -> Confirmation {
        let arrived = Arc::<Latch>::default();
        self.0.lock().insert(id, Arc::clone(&arrived));
        Confirmation {
            expected: Self(Arc::clone(&self.0)),
            id,
            arrived,
        }
    }

    /// Records that the answer to the question with this ID has arrived.
    pub(crate) fn confirm(&self, id: i64) {
        if let Some(arrived) = self.0.lock().get(&id) {
            arrived.set();
        }
    }
}

/// The confirmation that an answer has arrived.
#[derive(Debug)]
pub(crate) struct Confirmation {
    expected: Confirmations,
    id: i64,
    arrived: Arc<Latch>,
}

impl Confirmation {
    pub(crate) fn has_arrived(&self) -> bool {
        self.arrived.is_set()
    }

    /// Waits until the answer has arrived. Cancel safe.
    pub(crate) async fn arrival(&self) {
        self.arrived.wait().await;
    }
}

impl Drop for Confirmation {
    fn drop(&mut self) {
        let mut expected = self.expected.0.lock();
        // The client may have answered twice.
        if expected
            .get(&self.id)
            .is_some_and(|it| Arc::ptr_eq(it, &self.arrived))
        {
            expected.remove(&self.id);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_expected_answers_are_confirmed() {
        let confirmations = Confirmations::default();
        confirmations.confirm(1);
        let (first, other) = (confirmations.expect(1), confirmations.expect(2));
        assert!(!first.has_arrived());
        confirmations.confirm(1);
        assert!(first.has_arrived() && !other.has_arrived());
        let again = confirmations.expect(1);
        drop(first);
        confirmations.confirm(1);
        assert!(again.has_arrived(), "the guard of another answer is kept");
        drop((again, other));
        assert!(confirmations.0.lock().is_empty());
    }
}
