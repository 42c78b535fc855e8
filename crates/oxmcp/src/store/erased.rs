//! Object-safe forms of the store traits. Each call except for waits has a timeout: a store whose database has become
//! unreachable often never responds, and requests and the ends of sessions wait for it.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use futures_core::{future::BoxFuture, stream::BoxStream};

use super::{
    breaker::{Breaker, StoreHealth},
    bus::{Bus, Delivery},
    events::{ClaimMode, EventStore, Replay, StreamWrite},
    sessions::{CreateOutcome, SessionChange, SessionRecord, SessionStore, StoredSession},
};
use crate::error::Result;

/// The object-safe form of [`EventStore`].
pub(crate) trait AnyEventStore: Send + Sync {
    fn append<'a>(
        &'a self,
        session: &'a str,
        stream: &'a str,
        write: StreamWrite,
    ) -> BoxFuture<'a, Result<Option<Vec<u64>>>>;

    fn after<'a>(
        &'a self,
        session: &'a str,
        stream: &'a str,
        index: u64,
        max: usize,
    ) -> BoxFuture<'a, Result<Replay>>;

    fn watch<'a>(
        &'a self,
        session: &'a str,
        stream: &'a str,
        index: u64,
    ) -> BoxFuture<'a, Result<()>>;

    fn claim<'a>(
        &'a self,
        session: &'a str,
        stream: &'a str,
        claim: ClaimMode,
        lasts: Duration,
    ) -> BoxFuture<'a, Result<Option<u64>>>;

    fn renew<'a>(
        &'a self,
        session: &'a str,
        stream: &'a str,
        epoch: u64,
        lasts: Duration,
    ) -> BoxFuture<'a, Result<bool>>;

    fn forget<'a>(&'a self, session: &'a str) -> BoxFuture<'a, Result<()>>;

    fn health(&self) -> StoreHealth;
}

/// The object-safe form of [`SessionStore`].
pub(crate) trait AnySessionStore: Send + Sync {
    fn create<'a>(
        &'a self,
        id: &'a str,
        record: SessionRecord,
        lasts: Duration,
        max_per_owner: usize,
    ) -> BoxFuture<'a, Result<CreateOutcome>>;

    fn load<'a>(&'a self, id: &'a str) -> BoxFuture<'a, Result<Option<StoredSession>>>;

    fn set<'a>(&'a self, id: &'a str, change: SessionChange) -> BoxFuture<'a, Result<Option<u64>>>;

    fn touch<'a>(&'a self, id: &'a str, lasts: Duration) -> BoxFuture<'a, Result<Option<u64>>>;

    fn remove<'a>(&'a self, id: &'a str) -> BoxFuture<'a, Result<()>>;

    fn health(&self) -> StoreHealth;
}

/// The object-safe form of [`Bus`].
pub(crate) trait AnyBus: Send + Sync {
    fn publish<'a>(&'a self, topic: &'a str, message: Bytes) -> BoxFuture<'a, Result<()>>;

    fn subscribe<'a>(
        &'a self,
        topics: &'a [&'a str],
    ) -> BoxFuture<'a, Result<BoxStream<'static, Delivery>>>;

    fn health(&self) -> StoreHealth;
}

/// A store or a bus, with its breaker.
struct Patient<S> {
    store: S,
    breaker: Breaker,
}

impl<S> Patient<S> {
    fn new(store: S, name: &'static str) -> Arc<Self> {
        Arc::new(Self {
            store,
            breaker: Breaker::new(name),
        })
    }
}

/// Converts an event store to its object-safe form.
pub(crate) fn any_event_store(store: impl EventStore) -> Arc<dyn AnyEventStore> {
    Patient::new(store, "events")
}

/// Converts a session store to its object-safe form.
pub(crate) fn any_session_store(store: impl SessionStore) -> Arc<dyn AnySessionStore> {
    Patient::new(store, "sessions")
}

/// Converts a bus to its object-safe form.
pub(crate) fn any_bus(bus: impl Bus) -> Arc<dyn AnyBus> {
    Patient::new(bus, "bus")
}

impl<S: EventStore> AnyEventStore for Patient<S> {
    fn append<'a>(
        &'a self,
        session: &'a str,
        stream: &'a str,
        write: StreamWrite,
    ) -> BoxFuture<'a, Result<Option<Vec<u64>>>> {
        Box::pin(self.breaker.call(self.store.append(session, stream, write)))
    }

    fn after<'a>(
        &'a self,
        session: &'a str,
        stream: &'a str,
        index: u64,
        max: usize,
    ) -> BoxFuture<'a, Result<Replay>> {
        Box::pin(
            self.breaker
                .call(self.store.after(session, stream, index, max)),
        )
    }

    fn watch<'a>(
        &'a self,
        session: &'a str,
        stream: &'a str,
        index: u64,
    ) -> BoxFuture<'a, Result<()>> {
        Box::pin(self.store.watch(session, stream, index))
    }

    fn claim<'a>(
        &'a self,
        session: &'a str,
        stream: &'a str,
        claim: ClaimMode,
        lasts: Duration,
    ) -> BoxFuture<'a, Result<Option<u64>>> {
        Box::pin(
            self.breaker
                .call(self.store.claim(session, stream, claim, lasts)),
        )
    }

    fn renew<'a>(
        &'a self,
        session: &'a str,
        stream: &'a str,
        epoch: u64,
        lasts: Duration,
    ) -> BoxFuture<'a, Result<bool>> {
        Box::pin(
            self.breaker
                .call(self.store.renew(session, stream, epoch, lasts)),
        )
    }

    fn forget<'a>(&'a self, session: &'a str) -> BoxFuture<'a, Result<()>> {
        Box::pin(self.breaker.call(self.store.forget(session)))
    }

    fn health(&self) -> StoreHealth {
        self.breaker.health()
    }
}

impl<S: SessionStore> AnySessionStore for Patient<S> {
    fn create<'a>(
        &'a self,
        id: &'a str,
        record: SessionRecord,
        lasts: Duration,
        max_per_owner: usize,
    ) -> BoxFuture<'a, Result<CreateOutcome>> {
        Box::pin(
            self.breaker
                .call(self.store.create(id, record, lasts, max_per_owner)),
        )
    }

    fn load<'a>(&'a self, id: &'a str) -> BoxFuture<'a, Result<Option<StoredSession>>> {
        Box::pin(self.breaker.call(self.store.load(id)))
    }

    fn set<'a>(&'a self, id: &'a str, change: SessionChange) -> BoxFuture<'a, Result<Option<u64>>> {
        Box::pin(self.breaker.call(self.store.set(id, change)))
    }

    fn touch<'a>(&'a self, id: &'a str, lasts: Duration) -> BoxFuture<'a, Result<Option<u64>>> {
        Box::pin(self.breaker.call(self.store.touch(id, lasts)))
    }

    fn remove<'a>(&'a self, id: &'a str) -> BoxFuture<'a, Result<()>> {
        Box::pin(self.breaker.call(self.store.remove(id)))
    }

    fn health(&self) -> StoreHealth {
        self.breaker.health()
    }
}

impl<B: Bus> AnyBus for Patient<B> {
    fn publish<'a>(&'a self, topic: &'a str, message: Bytes) -> BoxFuture<'a, Result<()>> {
        Box::pin(self.breaker.call(self.store.publish(topic, message)))
    }

    fn subscribe<'a>(
        &'a self,
        topics: &'a [&'a str],
    ) -> BoxFuture<'a, Result<BoxStream<'static, Delivery>>> {
        Box::pin(self.breaker.call(self.store.subscribe(topics)))
    }

    fn health(&self) -> StoreHealth {
        self.breaker.health()
    }
}
