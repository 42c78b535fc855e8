//! Registry of open subscriptions (`subscriptions/listen`), and the notifications due for each.

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
        connection::{Connection, RequestContext},
        inbound::in_flight::IdleWait,
    },
    sync::Mutex,
};

/// The open subscriptions of one connection, or of all connections if each subscription has its own. Each has its own task.
#[derive(Debug, Default)]
pub(crate) struct OpenSubscriptions(Mutex<Vec<Arc<OpenSubscription>>>);

#[derive(Debug)]
pub(crate) struct OpenSubscription {
    /// The context of the subscription's request.
    cx: RequestContext,
    topics: Topics,
    state: Mutex<State>,
    is_due: Notify,
}

#[derive(Debug, Default)]
struct State {
    /// Whether the subscription was acknowledged and has not ended.
    is_open: bool,
    /// The notifications to send; usually none.
    due: Option<Box<Due>>,
}

#[derive(Debug, Default)]
pub(crate) struct Due {
    /// The changed topics. The set never exceeds the subscribed topics, however slowly the client reads.
    pub(crate) changed: Topics,
    /// The notifications that extensions have published, up to the limit.
    pub(crate) events: VecDeque<Event>,
    /// Whether there were more events than the limit.
    pub(crate) overflown: bool,
}

/// A notification of an extension.
#[derive(Clone, Debug)]
pub(crate) struct Event {
    name: &'static str,
    params: Arc<OrderedMap<RawJson>>,
}

impl Event {
    pub(crate) fn new(name: &'static str, params: OrderedMap<RawJson>) -> Self {
        let params = Arc::new(params);
        Self { name, params }
    }

    /// Sends the notification, with the given `_meta`.
    pub(crate) async fn send(&self, connection: &Arc<Connection>, meta: JsonObject) {
        log_unsent(
            send_notification(connection, self.name, OrderedMap::clone(&self.params), meta).await,
        );
    }
}

impl OpenSubscriptions {
    /// Notifies the subscriptions of these changes: immediately if possible and if all callers see the changed resources, and
    /// otherwise from their tasks.
    pub(crate) async fn add(&self, changes: &WrittenChanges<'_>, is_visible: bool) {
        // With thousands of subscriptions, the loop takes a while; the lock stays free.
        let open_subscriptions = self.0.lock().clone();
        for listen in open_subscriptions {
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

    /// Notifies all subscriptions of all their topics, from their tasks. Returns their keys and values of extensions.
    #[cfg(feature = "http-server")]
    pub(crate) async fn add_all(&self) -> Vec<Published> {
        let open_subscriptions = self.0.lock().clone();
        let mut published = Vec::new();
        for listen in open_subscriptions {
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

    /// Whether any client has subscribed to `value` under the `key` of an extension.
    #[cfg(feature = "http-server")]
    pub(crate) fn listen_to(&self, key: &str, value: &Value) -> bool {
        let open_subscriptions = self.0.lock();
        open_subscriptions
            .iter()
            .any(|listen| listen.topics.lists.has_other(key, value))
    }

    /// Whether a subscription watches a resource.
    pub(crate) fn watch(&self, uri: &str) -> bool {
        let open_subscriptions = self.0.lock();
        open_subscriptions
            .iter()
            .any(|listen| listen.topics.uris.contains(uri))
    }

    /// Adds a notification of an extension to the subscriptions to `value` under its `key`.
    pub(crate) fn publish(
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

    /// Registers a subscription, which misses no change from now on.
    ///
    /// # Errors
    /// If the limit is reached.
    pub(crate) fn register<'a>(
        self: &Arc<Self>,
        cx: &'a RequestContext,
        topics: Topics,
        limit: usize,
    ) -> Result<Registration<'a>> {
        let mut open_subscriptions = self.0.lock();
        if open_subscriptions.len() >= limit {
            return Err(Error::internal(format!(
                "too many subscriptions: the limit is {limit}; cancel one, or combine several into one"
            )));
        }
        let listen = Arc::new(OpenSubscription {
            cx: cx.clone(),
            topics,
            state: Mutex::default(),
            is_due: Notify::new(),
        });
        open_subscriptions.push(Arc::clone(&listen));
        Ok(Registration {
            open_subscriptions: Arc::clone(self),
            listen,
            _idle: cx.parts().connection.in_flight().wait_idly(),
        })
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.lock().is_empty()
    }
}

impl OpenSubscription {
    /// Records that the subscription was acknowledged: from now on, the client can be notified immediately.
    pub(crate) fn note_acknowledged(&self) {
        self.state.lock().is_open = true;
    }

    /// Notifies the client immediately. Returns whether that was possible.
    fn send(&self, messages: &[&Message]) -> bool {
        let connection = &self.cx.parts().connection;
        // Hold the lock, so that nothing is sent after the subscription has ended.
        let state = self.state.lock();
        state.is_open && !self.cx.is_cancelled() && send(messages, connection, self.cx.request_id())
    }

    /// Waits until notifications are due, and takes them.
    pub(crate) async fn next(&self) -> Box<Due> {
        self.is_due.notified().await;
        self.state.lock().due.take().unwrap_or_default()
    }
}

/// An open subscription; it ends when this is dropped.
pub(crate) struct Registration<'a> {
    open_subscriptions: Arc<OpenSubscriptions>,
    pub(crate) listen: Arc<OpenSubscription>,
    _idle: IdleWait<'a>,
}

impl Drop for Registration<'_> {
    fn drop(&mut self) {
        self.listen.state.lock().is_open = false;
        self.open_subscriptions
            .0
            .lock()
            .retain(|listen| !Arc::ptr_eq(listen, &self.listen));
    }
}

/// Logs that a notification could not be sent, because the session is ending. The change itself succeeds.
pub(crate) fn log_unsent(sent: Result<()>) {
    if let Err(error) = sent {
        tracing::debug!(error = %Logged(&error), "could not notify a client of a change");
    }
}
