//! The cache of a client, which all its sessions share.

use std::{
    fmt,
    sync::{
        Arc, Mutex, MutexGuard, OnceLock, PoisonError,
        atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering},
    },
    time::Duration,
};

use tokio::{sync::OnceCell, time::Instant};

use crate::{
    client::cache::{
        core::Core,
        key::{Ask, Change, Kind, Place, Question, Server},
        options::CacheOptions,
        single_flight::Ticket,
    },
    json::Text,
    protocol::peek_freshness,
};

/// What those share who ask the same at once: the answer, if it stays fresh for a while. Where the one who asks gives up,
/// the next takes over.
pub(crate) type Shared = Arc<OnceCell<Option<Arc<str>>>>;

/// The cache of a client.
#[derive(Default)]
pub(crate) struct Cache {
    core: Mutex<Core<Shared>>,
    off: AtomicBool,
    /// When it was first used: all times count from then.
    start: OnceLock<Instant>,
    sessions: AtomicU64,
}

impl Cache {
    pub(crate) fn configure(&self, options: CacheOptions) {
        self.lock().configure(options);
        self.off.store(false, Ordering::Relaxed);
    }

    pub(crate) fn switch_off(&self) {
        self.off.store(true, Ordering::Relaxed);
        self.lock().clear();
    }

    pub(crate) fn is_off(&self) -> bool {
        self.off.load(Ordering::Relaxed)
    }

    /// A seat for a new session.
    pub(crate) fn seat(&self, server: Option<String>, authorization: Option<String>) -> Seat {
        let session = self.sessions.fetch_add(1, Ordering::Relaxed);
        let server = server.map(|server| Server::Known(server.into()));
        Seat {
            place: Place {
                server: server.unwrap_or(Server::OfSession(session)),
                session,
                authorization: authorization.map(Into::into),
            },
            unkept: AtomicU8::new(0),
        }
    }

    /// What a server says has changed is not used again, and neither is what is on its way already.
    pub(crate) fn change(&self, seat: &Seat, change: &Change) {
        self.lock().change(&seat.place.server, change);
    }

    /// Forgets what is for a session alone that is over.
    pub(crate) fn forget(&self, seat: &Seat) {
        self.lock().forget(&seat.place);
    }

    pub(crate) fn fresh(&self, ask: &Ask) -> Option<Arc<str>> {
        let now = self.now();
        self.lock().fresh(ask, now)
    }

    pub(crate) fn stale(&self, ask: &Ask) -> Option<Arc<str>> {
        let now = self.now();
        self.lock().stale(ask, now)
    }

    pub(crate) fn forget_pages(&self, ask: &Ask) {
        self.lock().forget_pages(ask);
    }

    /// Enters a caller.
    pub(crate) fn enter<'a>(&'a self, ask: &'a Arc<Ask>, joins: bool) -> Waiting<'a> {
        let (ticket, shared) = self.lock().enter(ask, joins);
        Waiting {
            cache: self,
            ask,
            ticket,
            shared,
        }
    }

    fn now(&self) -> Duration {
        let start = self.start.get_or_init(Instant::now);
        start.elapsed()
    }

    fn lock(&self) -> MutexGuard<'_, Core<Shared>> {
        self.core.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Cache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cache").finish_non_exhaustive()
    }
}

/// A caller that waits for an answer. Dropped, it waits no longer.
pub(crate) struct Waiting<'a> {
    cache: &'a Cache,
    ask: &'a Arc<Ask>,
    ticket: Ticket,
    pub(crate) shared: Shared,
}

impl Waiting<'_> {
    /// Hands in the answer. Returns it where it stays fresh for a while.
    pub(crate) fn answer(&self, text: &str) -> Option<Arc<str>> {
        let freshness = peek_freshness(Text::checked(text));
        let now = self.cache.now();
        self.cache.lock().answer(self.ticket, freshness, text, now)
    }

    /// Asks once more, alone.
    pub(crate) fn again(&self) -> Self {
        self.cache.enter(self.ask, false)
    }

    /// Says that there will be no answer.
    pub(crate) fn fail(&self) {
        self.cache.lock().fail(self.ticket);
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.cache.lock().leave(self.ticket);
    }
}

/// What the cache knows of a session.
#[derive(Debug)]
pub(crate) struct Seat {
    place: Place,
    /// The kinds of questions of which the last answer did not stay fresh, a bit each.
    unkept: AtomicU8,
}

impl Seat {
    pub(crate) fn ask(&self, question: Question) -> Arc<Ask> {
        Arc::new(Ask {
            place: self.place.clone(),
            question: Arc::new(question),
        })
    }

    /// Whether it is worth waiting for who asks the same. An answer that does not stay fresh is for nobody else, and who
    /// had waited for it would only have lost time.
    pub(crate) fn joins(&self, kind: Kind) -> bool {
        self.unkept.load(Ordering::Relaxed) & bit(kind) == 0
    }

    /// Notes whether an answer stays fresh.
    pub(crate) fn note(&self, kind: Kind, lasts: bool) {
        if lasts {
            self.unkept.fetch_and(!bit(kind), Ordering::Relaxed);
        } else {
            self.unkept.fetch_or(bit(kind), Ordering::Relaxed);
        }
    }
}

fn bit(kind: Kind) -> u8 {
    1 << kind as u8
}
