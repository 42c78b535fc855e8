//! Object-safe forms of the store traits. Each call has a time-out: a store whose database has gone away often never answers, and
//! requests and the ends of sessions wait for it.

use std::{future::Future, time::Duration};

use bytes::Bytes;
use futures_core::future::BoxFuture;
use tokio::{select, time::sleep};

use super::{
    events::{EventBatch, EventStore, Replay},
    sessions::{SessionRecord, SessionStore},
};
use crate::error::{Error, Result};

/// How long a store may take to answer.
const TIMEOUT: Duration = Duration::from_secs(30);

/// The object-safe form of [`EventStore`].
pub(crate) trait AnyEventStore: Send + Sync {
    fn append<'a>(
        &'a self,
        session: &'a str,
        stream: &'a str,
        data: Bytes,
    ) -> BoxFuture<'a, Result<u64>>;

    fn append_all<'a>(
        &'a self,
        session: &'a str,
        stream: &'a str,
        events: EventBatch,
    ) -> BoxFuture<'a, Result<Vec<u64>>>;

    fn after<'a>(
        &'a self,
        session: &'a str,
        stream: &'a str,
        index: u64,
        max: usize,
    ) -> BoxFuture<'a, Result<Replay>>;

    fn end<'a>(&'a self, session: &'a str, stream: &'a str) -> BoxFuture<'a, Result<()>>;

    fn forget<'a>(&'a self, session: &'a str) -> BoxFuture<'a, Result<()>>;
}

impl<S: EventStore> AnyEventStore for S {
    fn append<'a>(
        &'a self,
        session: &'a str,
        stream: &'a str,
        data: Bytes,
    ) -> BoxFuture<'a, Result<u64>> {
        within_timeout(EventStore::append(self, session, stream, data))
    }

    fn append_all<'a>(
        &'a self,
        session: &'a str,
        stream: &'a str,
        events: EventBatch,
    ) -> BoxFuture<'a, Result<Vec<u64>>> {
        within_timeout(EventStore::append_all(self, session, stream, events))
    }

    fn after<'a>(
        &'a self,
        session: &'a str,
        stream: &'a str,
        index: u64,
        max: usize,
    ) -> BoxFuture<'a, Result<Replay>> {
        within_timeout(EventStore::after(self, session, stream, index, max))
    }

    fn end<'a>(&'a self, session: &'a str, stream: &'a str) -> BoxFuture<'a, Result<()>> {
        within_timeout(EventStore::end(self, session, stream))
    }

    fn forget<'a>(&'a self, session: &'a str) -> BoxFuture<'a, Result<()>> {
        within_timeout(EventStore::forget(self, session))
    }
}

/// The object-safe form of [`SessionStore`].
pub(crate) trait AnySessionStore: Send + Sync {
    fn save<'a>(&'a self, id: &'a str, record: SessionRecord) -> BoxFuture<'a, Result<()>>;

    fn load<'a>(&'a self, id: &'a str) -> BoxFuture<'a, Result<Option<SessionRecord>>>;

    fn remove<'a>(&'a self, id: &'a str) -> BoxFuture<'a, Result<()>>;
}

impl<S: SessionStore> AnySessionStore for S {
    fn save<'a>(&'a self, id: &'a str, record: SessionRecord) -> BoxFuture<'a, Result<()>> {
        within_timeout(SessionStore::save(self, id, record))
    }

    fn load<'a>(&'a self, id: &'a str) -> BoxFuture<'a, Result<Option<SessionRecord>>> {
        within_timeout(SessionStore::load(self, id))
    }

    fn remove<'a>(&'a self, id: &'a str) -> BoxFuture<'a, Result<()>> {
        within_timeout(SessionStore::remove(self, id))
    }
}

fn within_timeout<'a, T>(
    answer: impl Future<Output = Result<T>> + Send + 'a,
) -> BoxFuture<'a, Result<T>> {
    Box::pin(async move {
        select! {
            biased;
            answer = answer => answer,
            // Made when it is polled first: a store in memory answers at once, and needs no timer.
            () = async { sleep(TIMEOUT).await } => Err(Error::timeout(format!(
                "the store has not answered within {TIMEOUT:?}"
            ))),
        }
    })
}
