//! The cache of a client, which all its sessions share.

use std::{
    collections::HashMap,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use oxmcp_json::Text;
use oxmcp_protocol::internal::{Freshness, peek_freshness};
use tokio::time::Instant;

use crate::{
    client::cache::{
        key::{CacheLookup, CacheRequest, Invalidation, Owner, Partition, ServerIdentity},
        options::CacheOptions,
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
        }
    }

    /// Invalidates stored responses, and the responses to requests in flight.
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

    /// Registers a request that is about to be sent.
    pub(crate) fn begin(&self, lookup: &Arc<CacheLookup>) -> CacheableRequest<'_> {
        CacheableRequest {
            cache: self,
            number: self.state.lock().begin(lookup),
        }
    }

    fn now(&self) -> Duration {
        let start = self.start.get_or_init(Instant::now);
        start.elapsed()
    }
}

/// A request in flight, whose response may be stored.
pub(crate) struct CacheableRequest<'a> {
    cache: &'a Cache,
    number: u64,
}

impl CacheableRequest<'_> {
    /// Stores the response, unless it was invalidated in the meantime.
    pub(crate) fn store(self, text: &str) {
        let freshness = peek_freshness(Text::checked(text));
        let now = self.cache.now();
        let mut state = self.cache.state.lock();
        state.complete(self.number, freshness, text, now);
    }
}

impl Drop for CacheableRequest<'_> {
    fn drop(&mut self) {
        self.cache.state.lock().give_up(self.number);
    }
}

/// A session's part of the cache.
#[derive(Debug)]
pub(crate) struct SessionCache {
    /// The partition. If the login can change, `login` replaces the login and the authorization in it.
    partition: Partition,
    login: Option<CurrentLogin>,
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
}

/// The state of the cache, and its decisions, which are made under its lock. All times count from the first use of the
/// cache.
#[derive(Debug, Default)]
pub(crate) struct CacheState {
    pub(crate) store: Store,
    /// The requests in flight whose responses may be stored, by their numbers.
    requests: HashMap<u64, Arc<CacheLookup>>,
    last: u64,
}

impl CacheState {
    /// Registers a request. The responses to equal requests that were sent earlier are not stored, since they may arrive later.
    pub(crate) fn begin(&mut self, lookup: &Arc<CacheLookup>) -> u64 {
        self.requests.retain(|_, earlier| earlier != lookup);
        self.last += 1;
        self.requests.insert(self.last, Arc::clone(lookup));
        self.last
    }

    /// Ends a request, and stores its response unless it was invalidated.
    pub(crate) fn complete(
        &mut self,
        number: u64,
        freshness: Freshness,
        text: &str,
        now: Duration,
    ) {
        if let Some(lookup) = self.requests.remove(&number) {
            self.store.put(&lookup, freshness, text, now);
        }
    }

    /// Ends a request without a response to store.
    pub(crate) fn give_up(&mut self, number: u64) {
        self.requests.remove(&number);
    }

    /// Invalidates the responses of a server that has reported a change in one of its sessions.
    pub(crate) fn invalidate(&mut self, server: &ServerIdentity, change: &Invalidation) {
        self.requests.retain(|_, lookup| {
            lookup.partition.server != *server || !change.affects(&lookup.request)
        });
        self.store
            .remove_where(|key| key.server == *server && change.affects(&key.request));
    }

    /// Removes all pages of a list, after the server has refused a cursor of it.
    pub(crate) fn remove_pages(&mut self, lookup: &CacheLookup) {
        let kind = lookup.request.kind;
        self.requests.retain(|_, other| {
            other.partition.server != lookup.partition.server || other.request.kind != kind
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
        self.requests.clear();
        self.store.remove_where(|_| true);
    }

    #[cfg(test)]
    pub(crate) fn totals(&self) -> (usize, usize) {
        self.store.totals()
    }

    #[cfg(test)]
    pub(crate) fn is_idle(&self) -> bool {
        self.requests.is_empty()
    }
}
