//! The state of a subscription, which the reader fills, the task of its request ends, and its handle looks at.

use std::{
    collections::{HashMap, VecDeque},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll, Waker},
};

use tokio::{select, sync::Notify};
use tokio_util::sync::CancellationToken;

use crate::{
    Error, Result,
    client::{
        features::LONGEST_WAIT,
        subscription::{SubscriptionEnd, SubscriptionEvent},
    },
    json::Text,
    jsonrpc::RequestId,
    protocol::{
        AcknowledgedParams, ListenParams, Method, Notification, NotificationParams,
        SubscriptionFilter,
        method::{Listen, SubscriptionsAcknowledged},
    },
    session::{CallOptions, Connection, own_id},
};

/// The subscriptions of a connection that are open, by the ids of their requests.
#[derive(Debug, Default)]
pub(super) struct Listeners(Mutex<HashMap<i64, Arc<Listener>>>);

impl Listeners {
    /// Takes a modern server's notification. Returns whether it is for the client's handlers, as one that names no
    /// subscription is. One for a subscription that is read by hand goes there at once, whatever middleware does with
    /// it: it must not come later than the end.
    pub(super) fn take(&self, method: &str, params: Option<Text<'_>>) -> bool {
        let Some(id) = subscription_id(params) else {
            return true;
        };
        let Some(listener) = self.get(&id) else {
            tracing::debug!(%id, method, "a notification of no open subscription was ignored");
            return false;
        };
        listener.take(method, params);
        listener.for_handlers
    }

    /// Whether a modern server's notification is for the client's handlers.
    pub(super) fn is_for_handlers(&self, params: Option<Text<'_>>) -> bool {
        let listener = subscription_id(params).map(|id| self.get(&id));
        listener.is_none_or(|listener| listener.is_some_and(|it| it.for_handlers))
    }

    /// The server ends a subscription. Returns whether there is one with this id.
    pub(super) fn end(&self, connection: &Connection, id: &RequestId) -> bool {
        let listener = self.get(id);
        let waiter = listener
            .and_then(|_| own_id(id))
            .and_then(|id| connection.calls.leave(id));
        waiter.is_some_and(|waiter| {
            let error = Error::cancelled("the server ended the subscription");
            // Whoever dropped its receiver does not want to know.
            let _ = waiter.answer.send(Err(error));
            true
        })
    }

    fn get(&self, id: &RequestId) -> Option<Arc<Listener>> {
        self.lock().get(&own_id(id)?).cloned()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<i64, Arc<Listener>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn subscription_id(params: Option<Text<'_>>) -> Option<RequestId> {
    let params: NotificationParams = params?.parse().ok()?;
    params.meta.subscription_id()
}

/// One subscription.
#[derive(Debug)]
pub(super) struct Listener {
    /// Whether what it brings goes to the client's handlers, and not to a handle.
    for_handlers: bool,
    /// How many events may wait to be taken.
    limit: usize,
    state: Mutex<State>,
    /// It was acknowledged, or has ended.
    changed: Notify,
}

#[derive(Debug, Default)]
struct State {
    acknowledged: Option<SubscriptionFilter>,
    events: VecDeque<SubscriptionEvent>,
    /// Who waits for an event.
    reader: Option<Waker>,
    end: Option<SubscriptionEnd>,
    /// Why it ended, where it was not acknowledged.
    error: Option<Error>,
}

impl Listener {
    pub(super) fn new(for_handlers: bool, limit: usize) -> Arc<Self> {
        Arc::new(Self {
            for_handlers,
            limit,
            state: Mutex::default(),
            changed: Notify::new(),
        })
    }

    fn take(&self, method: &str, params: Option<Text<'_>>) {
        if method == SubscriptionsAcknowledged::NAME {
            self.acknowledge(params);
        } else if !self.for_handlers {
            self.push(SubscriptionEvent::read(method, params));
        }
    }

    fn acknowledge(&self, params: Option<Text<'_>>) {
        let params = params.and_then(|params| params.parse::<AcknowledgedParams>().ok());
        let filter = params.map(|params| params.notifications);
        if filter.is_none() {
            tracing::warn!("the server acknowledged a subscription without saying to what");
        }
        // Who reads by hand can look at it; handlers are simply not called for what is missing.
        tracing::debug!(?filter, "the server acknowledged a subscription");
        let mut state = self.lock();
        state
            .acknowledged
            .get_or_insert_with(|| filter.unwrap_or_default());
        drop(state);
        self.changed.notify_waiters();
    }

    /// Keeps an event. What is waiting to be taken already says the same.
    fn push(&self, event: SubscriptionEvent) {
        let mut state = self.lock();
        if state.events.contains(&event) {
            return;
        }
        if state.events.len() >= self.limit {
            state.events.pop_front();
            let limit = self.limit;
            tracing::warn!(
                limit,
                "a subscription is not read; its oldest event is dropped"
            );
        }
        state.events.push_back(event);
        wake(state);
    }

    fn finish(&self, end: SubscriptionEnd, error: Option<Error>) {
        let mut state = self.lock();
        if state.end.is_none() {
            state.end = Some(end);
            state.error = error;
        }
        wake(state);
        self.changed.notify_waiters();
    }

    /// Waits for what the server has agreed to, or the error that it has refused with.
    pub(super) async fn acknowledged(&self) -> Result<SubscriptionFilter> {
        loop {
            // It hears of all that happens from here on, so what is checked next cannot change unheard.
            let changed = self.changed.notified();
            if let Some(outcome) = self.outcome() {
                return outcome;
            }
            changed.await;
        }
    }

    fn outcome(&self) -> Option<Result<SubscriptionFilter>> {
        let mut state = self.lock();
        if let Some(filter) = &state.acknowledged {
            return Some(Ok(filter.clone()));
        }
        state.end?;
        let error = state.error.take();
        Some(Err(error.unwrap_or_else(|| {
            Error::decode("the subscription ended before the server acknowledged it")
        })))
    }

    pub(super) fn end(&self) -> Option<SubscriptionEnd> {
        self.lock().end
    }

    pub(super) async fn ended(&self) -> SubscriptionEnd {
        loop {
            let changed = self.changed.notified();
            if let Some(end) = self.end() {
                return end;
            }
            changed.await;
        }
    }

    pub(super) fn poll_event(&self, cx: &Context<'_>) -> Poll<Option<SubscriptionEvent>> {
        let mut state = self.lock();
        let event = state.events.pop_front();
        if event.is_some() || state.end.is_some() {
            return Poll::Ready(event);
        }
        state.reader = Some(cx.waker().clone());
        Poll::Pending
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Wakes who waits for an event, without the lock.
fn wake(mut state: MutexGuard<'_, State>) {
    let reader = state.reader.take();
    drop(state);
    if let Some(reader) = reader {
        reader.wake();
    }
}

/// A subscription whose request is being made. However that ends, and be it by a panic, nobody waits for ever.
struct Open {
    listeners: Arc<Listeners>,
    listener: Arc<Listener>,
}

impl Drop for Open {
    fn drop(&mut self) {
        self.listeners
            .lock()
            .retain(|_, listener| !Arc::ptr_eq(listener, &self.listener));
        self.listener.finish(SubscriptionEnd::Local, None);
    }
}

/// Makes the request of a subscription, and waits until it ends: by its answer, by `stop`, or with the session. Dropped,
/// it cancels the request on the wire.
pub(super) async fn listen(
    connection: Arc<Connection>,
    listeners: Arc<Listeners>,
    listener: Arc<Listener>,
    filter: SubscriptionFilter,
    stop: CancellationToken,
) {
    let begun = (Arc::clone(&listeners), Arc::clone(&listener));
    let open = Open {
        listeners,
        listener,
    };
    let options = CallOptions {
        timeout: LONGEST_WAIT,
        max_total: LONGEST_WAIT,
        on_begin: Some(Box::new(move |id| {
            let (listeners, listener) = begun;
            listeners.lock().insert(id, listener);
        })),
        ..CallOptions::default()
    };
    let answer = select! {
        biased;
        answer = connection.call(Listen::NAME, ListenParams::new(filter), options) => Some(answer),
        () = stop.cancelled() => None,
        () = connection.closing() => None,
    };
    let (end, error) = match answer {
        Some(Ok(_)) => (SubscriptionEnd::Graceful, None),
        Some(Err(error)) if !connection.is_closing() => (SubscriptionEnd::Remote, Some(error)),
        Some(Err(error)) => (SubscriptionEnd::Local, Some(error)),
        None => {
            let error = Error::cancelled("the subscription was ended by this side");
            (SubscriptionEnd::Local, Some(error))
        }
    };
    if let (true, SubscriptionEnd::Remote, Some(error)) = (open.listener.for_handlers, end, &error)
    {
        tracing::warn!(%error, "the server does not say what changes; handlers of changes are not called");
    }
    open.listener.finish(end, error);
}
