//! The cache of a client, which all its sessions share.

use std::{
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering},
    },
    time::Duration,
};

use oxmcp_json::Text;
use oxmcp_protocol::internal::{Freshness, peek_freshness};
use tokio::time::Instant;

use crate::{
    client::cache::{
        key::{
            CacheLookup, CacheRequest, Invalidation, Owner, Partition, ResponseKind, ServerIdentity,
        },
        options::CacheOptions,
        single_flight::{SharedAnswer, SingleFlight, Ticket},
        store::Store,
    },
    sync::Mutex,
    transport::traits::CurrentLogin,
};

/// The cache of a client.
#[derive(Default)]
pub(crate) struct Cache {
    state: Mutex<CacheState>,
    off: AtomicBool,
    /// The time of the first use, from which all times count.
    start: OnceLock<Instant>,
    sessions: AtomicU64,
}

impl Cache {
    pub(crate) fn configure(&self, options: CacheOptions) {
        self.state.lock().store.configure(options);
        self.off.store(false, Ordering::Relaxed);
    }

    pub(crate) fn switch_off(&self) {
        self.off.store(true, Ordering::Relaxed);
        self.state.lock().clear();
    }

    /// Creates an empty cache with the same options.
    pub(crate) fn with_same_options(&self) -> Self {
        let cache = Self::default();
        cache.configure(self.state.lock().store.options().clone());
        cache.off.store(self.is_off(), Ordering::Relaxed);
        cache
    }

    pub(crate) fn is_off(&self) -> bool {
        self.off.load(Ordering::Relaxed)
    }

    /// Creates the part of a new session.
    pub(crate) fn for_session(
        &self,
        server: Option<String>,
        authorization: Option<String>,
        login: Option<CurrentLogin>,
    ) -> SessionCache {
        let session = self.sessions.fetch_add(1, Ordering::Relaxed);
        let server = server.map(|server| ServerIdentity::Known(server.into()));
        SessionCache {
            partition: Partition {
                server: server.unwrap_or(ServerIdentity::OfSession(session)),
                session,
                login: 0,
                authorization: authorization.map(Into::into),
            },
            login,
            short_lived: AtomicU8::new(0),
        }
    }

    /// Invalidates stored responses, and those of requests in flight.
    pub(crate) fn invalidate(&self, session: &SessionCache, change: &Invalidation) {
        let mut state = self.state.lock();
        state.invalidate(&session.partition.server, change);
    }

    /// Removes the responses that are only for an ended session.
    pub(crate) fn remove_session(&self, session: &SessionCache) {
        self.state.lock().remove_session(&session.partition);
    }

    pub(crate) fn fresh(&self, lookup: &CacheLookup) -> Option<Arc<str>> {
        let now = self.now();
        self.state.lock().store.fresh(lookup, now)
    }

    pub(crate) fn stale(&self, lookup: &CacheLookup) -> Option<Arc<str>> {
        let now = self.now();
        self.state.lock().store.stale(lookup, now)
    }

    pub(crate) fn remove_pages(&self, lookup: &CacheLookup) {
        self.state.lock().remove_pages(lookup);
    }

    /// Adds a caller that waits for a response.
    pub(crate) fn enter<'a>(&'a self, lookup: &'a Arc<CacheLookup>, joins: bool) -> Waiter<'a> {
        let (ticket, shared) = self.state.lock().flights.enter(lookup, joins);
        Waiter {
            cache: self,
            lookup,
            ticket,
            shared,
        }
    }

    fn now(&self) -> Duration {
        let start = self.start.get_or_init(Instant::now);
        start.elapsed()
    }
}

/// A call that waits for a response. When it is dropped, the call waits no longer.
pub(crate) struct Waiter<'a> {
    cache: &'a Cache,
    pub(crate) lookup: &'a Arc<CacheLookup>,
    ticket: Ticket,
    pub(crate) shared: SharedAnswer,
}

impl Waiter<'_> {
    /// Completes the flight with its response. Returns the response if it stays fresh for a while.
    pub(crate) fn answer(&self, text: &str) -> Option<Arc<str>> {
        let freshness = peek_freshness(Text::checked(text));
        let now = self.cache.now();
        self.cache
            .state
            .lock()
            .complete(self.ticket, freshness, text, now)
    }

    /// Begins a flight that is not shared.
    pub(crate) fn unshared(&self) -> Self {
        self.cache.enter(self.lookup, false)
    }

    /// Ends the flight without a response.
    pub(crate) fn fail(&self) {
        self.cache.state.lock().flights.settle(self.ticket);
    }
}

impl Drop for Waiter<'_> {
    fn drop(&mut self) {
        self.cache.state.lock().flights.leave(self.ticket);
    }
}

/// A session's part of the cache.
#[derive(Debug)]
pub(crate) struct SessionCache {
    /// The partition. If the login can change, `login` replaces the login and the authorization in it.
    partition: Partition,
    login: Option<CurrentLogin>,
    /// The kinds of requests whose last response did not stay fresh, one bit for each.
    short_lived: AtomicU8,
}

impl SessionCache {
    pub(crate) fn lookup(&self, request: CacheRequest) -> Arc<CacheLookup> {
        Arc::new(CacheLookup {
            partition: self.partition_now(),
            request: Arc::new(request),
        })
    }

    fn partition_now(&self) -> Partition {
        let mut partition = self.partition.clone();
        if let Some(login) = &self.login {
            let login = login.get();
            partition.login = login.number;
            partition.authorization = login.name;
        }
        partition
    }

    /// Whether the login is still the same as when a request was looked up: a response is for the login to which it was
    /// sent.
    pub(crate) fn is_current(&self, lookup: &CacheLookup) -> bool {
        let login = self.login.as_ref().map(CurrentLogin::get);
        login.is_none_or(|it| it.number == lookup.partition.login)
    }

    /// Whether a call should wait for an equal one. A response that does not stay fresh cannot be shared, and waiting for
    /// it would only lose time.
    pub(crate) fn may_join(&self, kind: ResponseKind) -> bool {
        self.short_lived.load(Ordering::Relaxed) & bit(kind) == 0
    }

    /// Records whether a response stays fresh.
    pub(crate) fn record(&self, kind: ResponseKind, lasts: bool) {
        if lasts {
            self.short_lived.fetch_and(!bit(kind), Ordering::Relaxed);
        } else {
            self.short_lived.fetch_or(bit(kind), Ordering::Relaxed);
        }
    }
}

fn bit(kind: ResponseKind) -> u8 {
    1 << kind as u8
}

/// The state of the cache, and its decisions, which are made under its lock. All times count from the first use of the
/// cache.
#[derive(Debug, Default)]
pub(crate) struct CacheState {
    pub(crate) store: Store,
    pub(crate) flights: SingleFlight,
}

impl CacheState {
    /// Completes a flight, and stores its response unless it was invalidated. Returns the response if it stays fresh for a
    /// while.
    pub(crate) fn complete(
        &mut self,
        ticket: Ticket,
        freshness: Freshness,
        text: &str,
        now: Duration,
    ) -> Option<Arc<str>> {
        match self.flights.settle(ticket) {
            Some(lookup) => self.store.put(&lookup, freshness, text, now),
            None => self.store.lasts(freshness).then(|| text.into()),
        }
    }

    /// Invalidates the responses of a server that has reported a change in one of its sessions.
    pub(crate) fn invalidate(&mut self, server: &ServerIdentity, change: &Invalidation) {
        self.flights.invalidate_where(|lookup| {
            lookup.partition.server == *server && change.affects(&lookup.request)
        });
        self.store
            .remove_where(|key| key.server == *server && change.affects(&key.request));
    }

    /// Removes all pages of a list, after the server has refused a cursor of it.
    pub(crate) fn remove_pages(&mut self, lookup: &CacheLookup) {
        let kind = lookup.request.kind;
        self.flights.invalidate_where(|other| {
            other.partition.server == lookup.partition.server && other.request.kind == kind
        });
        self.store
            .remove_where(|key| key.server == lookup.partition.server && key.request.kind == kind);
    }

    /// Removes the responses that are only for an ended session.
    pub(crate) fn remove_session(&mut self, partition: &Partition) {
        self.store.remove_where(|key| {
            matches!(key.owner, Owner::Session { session, .. } if session == partition.session)
                || key.server == ServerIdentity::OfSession(partition.session)
        });
    }

    /// Removes everything.
    pub(crate) fn clear(&mut self) {
        self.flights.invalidate_where(|_| true);
        self.store.remove_where(|_| true);
    }

    #[cfg(test)]
    pub(crate) fn totals(&self) -> (usize, usize) {
        self.store.totals()
    }

    #[cfg(test)]
    pub(crate) fn is_idle(&self) -> bool {
        self.flights.is_empty()
    }
}
