//! The state of a subscription: filled by the connection, ended by the task of its request, read by its handle.

use std::{
    collections::HashMap,
    mem,
    sync::{Arc, MutexGuard},
    task::{Context, Poll, Waker},
};

use oxmcp_json::Text;
use oxmcp_protocol::{
    AcknowledgedParams, Notification, NotificationParams, RequestId, SubscriptionFilter,
    method::SubscriptionsAcknowledged,
};
use tokio::sync::Notify;

use crate::{
    client::subscriptions::events::{EventQueue, SubscriptionEnd, SubscriptionEvent},
    error::{Error, Result},
    limits::Limits,
    logged::Logged,
    session::connection::Connection,
    sync::Mutex,
};

/// The subscriptions of a connection that are open, by the ids of their requests.
#[derive(Debug, Default)]
pub(crate) struct Listeners(Mutex<HashMap<i64, Arc<Listener>>>);

impl Listeners {
    /// Delivers a modern server's notification to its subscription. Returns whether it is for the client's handlers, too.
    /// An event for a [`Subscription`](crate::Subscription) is delivered before any middleware runs: it must not come later
    /// than the end. `resumed` is called first if the notification ends a gap.
    pub(crate) fn deliver(
        &self,
        connection: &Connection,
        id: &RequestId,
        (method, params): (&str, Option<Text<'_>>),
        resumed: impl FnOnce(&SubscriptionFilter),
    ) -> bool {
        let Some(listener) = self.get(id) else {
            tracing::debug!(id = %Logged(id), method, "ignoring a notification of an unknown subscription");
            return false;
        };
        listener.deliver(connection, (method, params), resumed);
        listener.for_handlers
    }

    /// Whether a notification to the subscription with this id is for the client's handlers, too.
    pub(crate) fn is_for_handlers(&self, id: &RequestId) -> bool {
        self.get(id).is_some_and(|it| it.for_handlers)
    }

    /// Ends a subscription, as the server has requested. Returns whether there is one with this id.
    pub(crate) fn end(&self, connection: &Connection, id: &RequestId) -> bool {
        let listener = self.get(id);
        listener.and_then(|_| id.own_number()).is_some_and(|id| {
            let error = Error::cancelled("the server ended the subscription");
            connection.calls().answer(id, Err(error)).is_ok()
        })
    }

    pub(crate) fn insert(&self, id: i64, listener: Arc<Listener>) {
        self.0.lock().insert(id, listener);
    }

    pub(crate) fn remove(&self, listener: &Arc<Listener>) {
        self.0
            .lock()
            .retain(|_, other| !Arc::ptr_eq(other, listener));
    }

    fn get(&self, id: &RequestId) -> Option<Arc<Listener>> {
        self.0.lock().get(&id.own_number()?).cloned()
    }
}

/// The subscription to which a modern server's notification belongs.
pub(crate) fn subscription_id(
    connection: &Connection,
    params: Option<Text<'_>>,
) -> Option<RequestId> {
    let params: NotificationParams = connection.read("", params?.get()).ok()?;
    params.meta.subscription_id()
}

/// The state of one subscription.
#[derive(Debug)]
pub(crate) struct Listener {
    /// Whether events go to the client's handlers, and not to a `Subscription`.
    for_handlers: bool,
    state: Mutex<State>,
    /// Notified when the subscription is acknowledged, and when it ends.
    changed: Notify,
}

#[derive(Debug)]
struct State {
    /// The filter that the server has agreed to last.
    acknowledged: Option<SubscriptionFilter>,
    /// Whether the last request was acknowledged.
    open: bool,
    /// Whether notifications may have been missed before the next acknowledgment.
    gap: bool,
    events: EventQueue,
    /// The task that waits for an event.
    reader: Option<Waker>,
    end: Option<SubscriptionEnd>,
    /// The error that ended it, if it was not acknowledged.
    error: Option<Error>,
}

impl Listener {
    pub(crate) fn new(for_handlers: bool, limits: &Limits) -> Arc<Self> {
        let state = State {
            acknowledged: None,
            open: false,
            gap: false,
            events: EventQueue::new(limits),
            reader: None,
            end: None,
            error: None,
        };
        Arc::new(Self {
            for_handlers,
            state: Mutex::new(state),
            changed: Notify::new(),
        })
    }

    fn deliver(
        &self,
        connection: &Connection,
        (method, params): (&str, Option<Text<'_>>),
        resumed: impl FnOnce(&SubscriptionFilter),
    ) {
        if method == SubscriptionsAcknowledged::NAME {
            self.deliver_acknowledgement(connection, params, resumed);
        } else if !self.for_handlers {
            self.push(SubscriptionEvent::read(connection, method, params));
        }
    }

    fn deliver_acknowledgement(
        &self,
        connection: &Connection,
        params: Option<Text<'_>>,
        resumed: impl FnOnce(&SubscriptionFilter),
    ) {
        let read =
            |params: Text<'_>| connection.read(SubscriptionsAcknowledged::NAME, params.get());
        let params = params.and_then(|params| read(params).ok());
        let filter = params.map(|params: AcknowledgedParams| params.notifications);
        if filter.is_none() {
            tracing::warn!("the server acknowledged a subscription without a filter");
        }
        tracing::debug!("subscription acknowledged");
        let filter = filter.unwrap_or_default();
        let gap = self.state.lock().gap;
        if gap {
            resumed(&filter);
        }
        self.acknowledge(filter);
    }

    /// Takes the filter that the server agrees to. Only the first acknowledgment of a request counts.
    pub(crate) fn acknowledge(&self, filter: SubscriptionFilter) {
        let mut state = self.state.lock();
        if state.open {
            return;
        }
        state.open = true;
        let gap = mem::take(&mut state.gap);
        state.acknowledged = Some(filter.clone());
        drop(state);
        if gap {
            self.push(SubscriptionEvent::Resumed(filter));
        }
        self.changed.notify_waiters();
    }

    /// Records that the request has ended, and another will follow. Returns the filter that the server had agreed to.
    pub(crate) fn interrupt(&self) -> Option<SubscriptionFilter> {
        let mut state = self.state.lock();
        state.gap |= state.open;
        let was_open = mem::take(&mut state.open);
        state.acknowledged.clone().filter(|_| was_open)
    }

    /// Whether the server has ever agreed to a filter.
    pub(crate) fn was_acknowledged(&self) -> bool {
        self.state.lock().acknowledged.is_some()
    }

    /// Queues an event, unless an equal one is queued already.
    pub(crate) fn push(&self, event: SubscriptionEvent) {
        let mut state = self.state.lock();
        if !state.events.push(event) {
            return;
        }
        wake(state);
    }

    pub(crate) fn finish(&self, end: SubscriptionEnd, error: Option<Error>) {
        let mut state = self.state.lock();
        if state.end.is_none() {
            state.end = Some(end);
            state.error = error;
        }
        wake(state);
        self.changed.notify_waiters();
    }

    /// Waits until the last request is acknowledged.
    pub(crate) async fn opened(&self) {
        self.wait_for(|state| state.open.then_some(())).await;
    }

    /// Waits for the filter that the server acknowledges, or for its error.
    pub(crate) async fn acknowledged(&self) -> Result<SubscriptionFilter> {
        self.wait_for(State::outcome).await
    }

    pub(crate) fn end(&self) -> Option<SubscriptionEnd> {
        self.state.lock().end
    }

    pub(crate) async fn ended(&self) -> SubscriptionEnd {
        self.wait_for(|state| state.end).await
    }

    async fn wait_for<T>(&self, check: impl Fn(&mut State) -> Option<T>) -> T {
        loop {
            // Registered before the check, so that no change is missed.
            let changed = self.changed.notified();
            if let Some(value) = check(&mut self.state.lock()) {
                return value;
            }
            changed.await;
        }
    }

    pub(crate) fn poll_event(&self, cx: &Context<'_>) -> Poll<Option<SubscriptionEvent>> {
        let mut state = self.state.lock();
        let event = state.events.pop();
        if event.is_some() || state.end.is_some() {
            return Poll::Ready(event);
        }
        state.reader = Some(cx.waker().clone());
        Poll::Pending
    }
}

impl State {
    fn outcome(&mut self) -> Option<Result<SubscriptionFilter>> {
        if let Some(filter) = &self.acknowledged {
            return Some(Ok(filter.clone()));
        }
        self.end?;
        Some(Err(self.error.take().unwrap_or_else(|| {
            Error::decode("the subscription ended before the server acknowledged it")
        })))
    }
}

/// Wakes the reader, after the lock is released.
fn wake(mut state: MutexGuard<'_, State>) {
    let reader = state.reader.take();
    drop(state);
    if let Some(reader) = reader {
        reader.wake();
    }
}
