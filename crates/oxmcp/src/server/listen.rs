//! Serving `subscriptions/listen`: a request that stays open, and brings notifications until one side ends it.
//! See [subscriptions](https://modelcontextprotocol.io/specification/2026-07-28/basic/patterns/subscriptions).

use std::{
    collections::VecDeque,
    convert::Infallible,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use serde_json::Value;
use tokio::{select, sync::Notify};

use crate::{
    Error, Result, Revision,
    extension::{Publisher, say},
    jsonrpc::RequestId,
    protocol::{
        AcknowledgedParams, JsonObject, ListenResult, Meta, Notification, SubscriptionFilter,
        encode_result, into_text, method::SubscriptionsAcknowledged,
    },
    server::{
        changes::{log, notify},
        subscription::{Subscribing, Topics, Watches, retain_seen},
    },
    session::{Body, Connection, IdleWait, RequestContext},
};

/// The subscriptions that are open on one connection, or where each has a connection of its own, on all of these. Each has
/// a task of its own, which serves its request.
#[derive(Debug, Default)]
pub(crate) struct Listens(Mutex<Vec<Arc<Listen>>>);

#[derive(Debug)]
struct Listen {
    revision: Revision,
    wanted: Topics,
    /// What is to be told. Mostly that is nothing.
    due: Mutex<Option<Box<Waiting>>>,
    is_due: Notify,
}

#[derive(Debug, Default)]
struct Waiting {
    /// It cannot grow beyond what is wanted, however slowly the client reads.
    changed: Topics,
    /// What extensions have published, no more than the limit.
    events: VecDeque<Event>,
    /// Whether there was more than that.
    overflown: bool,
}

/// A notification of an extension.
#[derive(Clone, Debug)]
pub(super) struct Event {
    name: &'static str,
    params: Arc<JsonObject>,
}

impl Event {
    pub(super) fn new(name: &'static str, params: JsonObject) -> Self {
        let params = Arc::new(params);
        Self { name, params }
    }

    /// Sends it, with this in its `_meta`.
    pub(super) async fn send(&self, connection: &Arc<Connection>, meta: JsonObject) {
        log(say(connection, self.name, JsonObject::clone(&self.params), meta).await);
    }
}

impl Listens {
    /// Something has changed: who wants to know is told soon.
    pub(super) fn tell(&self, changed: &Topics) {
        for listen in &*self.lock() {
            let due = listen.wanted.and(changed);
            if !due.is_empty() {
                listen.lock_due().get_or_insert_default().changed.merge(due);
                listen.is_due.notify_one();
            }
        }
    }

    /// Whether any of them wants to hear of a resource.
    pub(super) fn watch(&self, uri: &str) -> bool {
        let listens = self.lock();
        listens
            .iter()
            .any(|listen| listen.wanted.uris.contains(uri))
    }

    /// An extension publishes something: who wants to hear of `value` under its `key` is told soon.
    pub(super) fn publish(
        &self,
        limit: usize,
        (key, value): (&str, &Value),
        event: &Event,
        publisher: &Publisher<'_>,
    ) {
        for listen in &*self.lock() {
            if !listen.wanted.lists.has_other(key, value)
                || !publisher.has(event.name, listen.revision)
            {
                continue;
            }
            let mut waiting = listen.lock_due();
            let due = waiting.get_or_insert_default();
            if due.events.len() < limit {
                due.events.push_back(event.clone());
            } else {
                due.overflown = true;
            }
            drop(waiting);
            listen.is_due.notify_one();
        }
    }

    /// From now on, no change is missed.
    fn register<'a>(
        self: &Arc<Self>,
        connection: &'a Connection,
        revision: Revision,
        wanted: Topics,
        limit: usize,
    ) -> Result<Registration<'a>> {
        let mut listens = self.lock();
        if listens.len() >= limit {
            return Err(Error::internal(format!(
                "too many subscriptions: the limit is {limit}; cancel one that is open, or ask for more in one of them"
            )));
        }
        let listen = Arc::new(Listen {
            revision,
            wanted,
            due: Mutex::default(),
            is_due: Notify::new(),
        });
        listens.push(Arc::clone(&listen));
        Ok(Registration {
            listens: Arc::clone(self),
            listen,
            _idle: connection.in_flight().wait_idly(),
        })
    }

    /// Whether there is none.
    pub(super) fn is_empty(&self) -> bool {
        self.lock().is_empty()
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Arc<Listen>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Listen {
    /// Waits until something is due, and takes it.
    async fn next(&self) -> Box<Waiting> {
        self.is_due.notified().await;
        self.lock_due().take().unwrap_or_default()
    }

    fn lock_due(&self) -> MutexGuard<'_, Option<Box<Waiting>>> {
        self.due.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// An open subscription; it ends when this is dropped.
struct Registration<'a> {
    listens: Arc<Listens>,
    listen: Arc<Listen>,
    _idle: IdleWait<'a>,
}

impl Drop for Registration<'_> {
    fn drop(&mut self) {
        self.listens
            .lock()
            .retain(|listen| !Arc::ptr_eq(listen, &self.listen));
    }
}

/// What a request wants to hear of, and who has to agree to it.
pub(super) struct Asked {
    pub(super) wanted: SubscriptionFilter,
    pub(super) subscribing: Option<Subscribing>,
}

/// Serves a request for what is wanted, and what the server's author agrees to, until the client cancels it, which nothing answers, or the session ends, which
/// the result says.
///
/// There may be thousands of which nothing is due: what only the beginning needs, or what is told, is in boxes.
pub(super) async fn serve(cx: RequestContext, asked: Box<Asked>) -> Result<Body> {
    let connection = &cx.parts().connection;
    let open = Box::pin(Open::begin(&cx, asked)).await?;
    let listen = &open.registration.listen;
    select! {
        biased;
        () = cx.cancelled() => return Err(Error::cancelled("the client cancelled the subscription")),
        Err(error) = stream(&cx, listen, open.wanted, open.id) => return Err(error),
        () = connection.in_flight().drained() => {}
    }
    let mut out = Vec::new();
    let meta = Meta::of_subscription(open.id);
    let stamp = connection.role().stamp();
    let mut result = ListenResult::default();
    result.meta = meta;
    encode_result(&mut out, &mut result, cx.revision(), stamp)?;
    into_text(out).map(Body::Json)
}

/// A subscription that has begun.
struct Open<'a> {
    id: &'a RequestId,
    wanted: Box<SubscriptionFilter>,
    registration: Registration<'a>,
    _watches: Watches,
}

impl<'a> Open<'a> {
    async fn begin(cx: &'a RequestContext, asked: Box<Asked>) -> Result<Self> {
        let Asked {
            mut wanted,
            subscribing,
        } = *asked;
        let context = cx.parts();
        let connection = &context.connection;
        let Some(id) = cx.request_id().filter(|_| context.batch.is_none()) else {
            return Err(Error::invalid_request(
                "a batch is answered as a whole, for which it would wait as long as the subscription lasts; send \
                 subscriptions/listen by itself",
            ));
        };
        let session = cx
            .server_session()
            .ok_or_else(|| Error::internal("the request came over no session"))?;
        let limit = session.peer().max_subscriptions(&connection.limits);
        let listens = Arc::clone(session.peer().listens());
        session.server().will_tell();
        let watches = Watches::begin(cx, session, subscribing, &mut wanted).await?;
        let topics = wanted.clone().into();
        let registration = listens.register(connection, cx.revision(), topics, limit)?;
        Ok(Self {
            id,
            wanted: Box::new(wanted),
            registration,
            _watches: watches,
        })
    }
}

/// Acknowledges what is told, then tells it. What names the subscription is made when it is needed: while nothing happens,
/// which is most of the time, it would only take room.
async fn stream(
    cx: &RequestContext,
    listen: &Listen,
    wanted: Box<SubscriptionFilter>,
    id: &RequestId,
) -> Result<Infallible> {
    Box::pin(acknowledge(&cx.parts().connection, wanted, id)).await?;
    loop {
        let due = listen.next().await;
        Box::pin(tell(cx, due, id)).await?;
    }
}

async fn acknowledge(
    connection: &Arc<Connection>,
    wanted: Box<SubscriptionFilter>,
    id: &RequestId,
) -> Result<()> {
    let mut acknowledged = AcknowledgedParams::new(*wanted);
    acknowledged.meta = Meta::of_subscription(id);
    connection
        .notify(SubscriptionsAcknowledged::NAME, acknowledged)
        .await
}

async fn tell(cx: &RequestContext, mut due: Box<Waiting>, id: &RequestId) -> Result<()> {
    let connection = &cx.parts().connection;
    if let Some(session) = cx.server_session() {
        let features = session.server().features();
        retain_seen(&features, &mut due.changed.uris, || Some(cx.clone()));
    }
    let meta = Meta::of_subscription(id);
    notify(connection, &due.changed, &meta).await;
    for event in due.events {
        let members = meta.as_object().cloned().unwrap_or_default();
        event.send(connection, members).await;
    }
    if due.overflown {
        return Err(Error::internal(format!(
            "the subscription is read too slowly: more than {} notifications waited; subscribe again, and look at \
             what has changed",
            connection.limits.max_queued_events
        )));
    }
    Ok(())
}
