//! Registry of open subscriptions (`subscriptions/listen`), and what is due for each.

#[cfg(feature = "http-server")]
use std::slice;
use std::{collections::VecDeque, sync::Arc};

use oxmcp_protocol::{JsonObject, OrderedMap, RawJson};
use serde_json::Value;
use tokio::{sync::Notify, task::consume_budget};

#[cfg(feature = "http-server")]
use super::change_bus::Published;
use super::{
    Topics,
    written_changes::{Message, WrittenChanges, send},
};
use crate::{
    error::{Error, Result},
    extension::registry::{Extensions, send_notification},
    logged::Logged,
    session::{
        connection::{Connection, ContextParts, RequestContext},
        inbound::in_flight::IdleWait,
    },
    sync::Mutex,
};

/// The subscriptions that are open on one connection, or where each has a connection of its own, on all of these. Each is
/// served by a task of its own.
#[derive(Debug, Default)]
pub(crate) struct Listens(Mutex<Vec<Arc<Listen>>>);

#[derive(Debug)]
pub(super) struct Listen {
    /// The context of its request.
    cx: RequestContext,
    topics: Topics,
    state: Mutex<State>,
    is_due: Notify,
}

#[derive(Debug, Default)]
struct State {
    /// Whether the client knows that it is open, and it has not ended.
    is_open: bool,
    /// What is to be sent. Mostly that is nothing.
    due: Option<Box<Due>>,
}

#[derive(Debug, Default)]
pub(super) struct Due {
    /// It cannot grow beyond the topics, however slowly the client reads.
    pub(super) changed: Topics,
    /// What extensions have published, no more than the limit.
    pub(super) events: VecDeque<Event>,
    /// Whether there was more than that.
    pub(super) overflown: bool,
}

/// A notification of an extension.
#[derive(Clone, Debug)]
pub(super) struct Event {
    name: &'static str,
    params: Arc<OrderedMap<RawJson>>,
}

impl Event {
    pub(super) fn new(name: &'static str, params: OrderedMap<RawJson>) -> Self {
        let params = Arc::new(params);
        Self { name, params }
    }

    /// Sends it, with this in its `_meta`.
    pub(super) async fn send(&self, connection: &Arc<Connection>, meta: JsonObject) {
        log_unsent(
            send_notification(connection, self.name, OrderedMap::clone(&self.params), meta).await,
        );
    }
}

impl Listens {
    /// Notifies the subscriptions to these changes: at once where that can be done, and all callers see what has changed, else
    /// from their tasks.
    pub(super) async fn add(&self, changes: &WrittenChanges<'_>, is_visible: bool) {
        // Where there are thousands it takes a while, in which others can have the lock.
        let listens = self.0.lock().clone();
        for listen in listens {
            consume_budget().await;
            let messages = changes.of(&listen.topics);
            if messages.is_empty() || is_visible && listen.send(&messages) {
                continue;
            }
            let due = listen.topics.and(changes.changed());
            let mut state = listen.state.lock();
            state.due.get_or_insert_default().changed.merge(due);
            drop(state);
            listen.is_due.notify_one();
        }
    }

    /// Notifies all of all that they have subscribed to, from their tasks. Returns what they have subscribed to of extensions.
    #[cfg(feature = "http-server")]
    pub(super) async fn add_all(&self) -> Vec<Published> {
        let listens = self.0.lock().clone();
        let mut published = Vec::new();
        for listen in listens {
            consume_budget().await;
            for (key, asked) in &listen.topics.lists.other {
                let values = asked
                    .as_array()
                    .map_or_else(|| slice::from_ref(asked), Vec::as_slice);
                published.extend(values.iter().map(|it| (key.clone(), it.to_string())));
            }
            let due = listen.topics.clone();
            let mut state = listen.state.lock();
            state.due.get_or_insert_default().changed.merge(due);
            drop(state);
            listen.is_due.notify_one();
        }
        published
    }

    /// Whether a subscription is to `value` under the `key` of an extension.
    #[cfg(feature = "http-server")]
    pub(super) fn listen_to(&self, key: &str, value: &Value) -> bool {
        let listens = self.0.lock();
        listens
            .iter()
            .any(|listen| listen.topics.lists.has_other(key, value))
    }

    /// Whether a subscription watches a resource.
    pub(crate) fn watch(&self, uri: &str) -> bool {
        let listens = self.0.lock();
        listens
            .iter()
            .any(|listen| listen.topics.uris.contains(uri))
    }

    /// Adds a notification of an extension to the subscriptions to `value` under its `key`.
    pub(super) fn publish(
        &self,
        limit: usize,
        (key, value): (&str, &Value),
        event: &Event,
        extensions: &Extensions,
    ) {
        for listen in &*self.0.lock() {
            if !listen.topics.lists.has_other(key, value)
                || !extensions.has_notification(event.name, listen.cx.revision())
            {
                continue;
            }
            let mut state = listen.state.lock();
            let due = state.due.get_or_insert_default();
            if due.events.len() < limit {
                due.events.push_back(event.clone());
            } else {
                due.overflown = true;
            }
            drop(state);
            listen.is_due.notify_one();
        }
    }

    /// Registers a subscription; from now on it misses no change.
    ///
    /// # Errors
    /// Where there are too many.
    pub(super) fn register<'a>(
        self: &Arc<Self>,
        cx: &'a RequestContext,
        topics: Topics,
        limit: usize,
    ) -> Result<Registration<'a>> {
        let mut listens = self.0.lock();
        if listens.len() >= limit {
            return Err(Error::internal(format!(
                "too many subscriptions: the limit is {limit}; cancel one that is open, or ask for more in one of them"
            )));
        }
        let listen = Arc::new(Listen {
            cx: cx.clone(),
            topics,
            state: Mutex::default(),
            is_due: Notify::new(),
        });
        listens.push(Arc::clone(&listen));
        Ok(Registration {
            listens: Arc::clone(self),
            listen,
            _idle: cx.parts().connection.in_flight().wait_idly(),
        })
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.lock().is_empty()
    }
}

impl Listen {
    /// The client knows that the subscription is open: from here on it can be notified at once.
    pub(super) fn note_acknowledged(&self) {
        self.state.lock().is_open = true;
    }

    /// Notifies the client at once. Returns whether that was done.
    fn send(&self, messages: &[&Message]) -> bool {
        let connection = &self.cx.parts().connection;
        // It is held meanwhile, so that nothing is sent once the subscription has ended.
        let state = self.state.lock();
        state.is_open && !self.cx.is_cancelled() && send(messages, connection, self.cx.request_id())
    }

    /// Waits until something is due, and takes it.
    pub(super) async fn next(&self) -> Box<Due> {
        self.is_due.notified().await;
        self.state.lock().due.take().unwrap_or_default()
    }
}

/// An open subscription; it ends when this is dropped.
pub(super) struct Registration<'a> {
    listens: Arc<Listens>,
    pub(super) listen: Arc<Listen>,
    _idle: IdleWait<'a, ContextParts>,
}

impl Drop for Registration<'_> {
    fn drop(&mut self) {
        self.listen.state.lock().is_open = false;
        self.listens
            .0
            .lock()
            .retain(|listen| !Arc::ptr_eq(listen, &self.listen));
    }
}

/// A notification that cannot be sent is no fault of the change: the session ends.
pub(super) fn log_unsent(sent: Result<()>) {
    if let Err(error) = sent {
        tracing::debug!(error = %Logged(&error), "a client was not notified of a change");
    }
}
