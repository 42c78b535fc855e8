//! The sessions with upstreams, one for each session of a client.
//!
//! An upstream keeps state in its session, so that the sessions of two clients are never one. A request of a client without a
//! session gets a session of its own, unless the upstream keeps none (2026-07-28 and later): then all share one.

use std::{
    collections::{HashMap, HashSet},
    future::ready,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use oxmcp::{
    Client, ClientSession, Error, RequestContext, Result, ServerSession, protocol::LoggingLevel,
};
use tokio::{
    sync::{OnceCell, OwnedSemaphorePermit, Semaphore},
    time::timeout,
};

use super::{
    events::{OpenCalls, Receiver, client_for},
    offers::Offers,
    upstream::Upstream,
};

/// The number of sessions that are opened for a request, if they end at once.
const ATTEMPTS: usize = 2;

/// A server behind the gateway.
pub(super) struct Mount {
    pub(super) label: String,
    pub(super) upstream: Upstream,
}

/// A session with an upstream.
pub(super) struct Link {
    pub(super) session: ClientSession,
    pub(super) calls: Arc<OpenCalls>,
    level: Mutex<Option<LoggingLevel>>,
    /// The place of a session that is not among the shared ones.
    _place: Option<OwnedSemaphorePermit>,
}

/// The client and the upstream of a session.
#[derive(Clone, PartialEq, Eq, Hash)]
struct LinkKey {
    front: Option<ServerSession>,
    offers: Offers,
    server: usize,
}

type Cell = Arc<OnceCell<Arc<Link>>>;

pub(super) struct Links {
    client: Client,
    mounts: Vec<Mount>,
    connect_timeout: Duration,
    max_links: usize,
    open: Mutex<HashMap<LinkKey, Cell>>,
    /// The sessions of clients whose end is awaited.
    followed: Mutex<HashSet<ServerSession>>,
    /// The places of sessions that serve one request or watch.
    places: Arc<Semaphore>,
    /// Whether the user learns which upstream asks.
    names_questions: bool,
}

impl Links {
    pub(super) fn new(
        client: Client,
        mounts: Vec<Mount>,
        connect_timeout: Duration,
        max_links: usize,
        names_questions: bool,
    ) -> Arc<Self> {
        Arc::new(Self {
            client,
            mounts,
            connect_timeout,
            max_links,
            open: Mutex::default(),
            followed: Mutex::default(),
            places: Arc::new(Semaphore::new(max_links.min(Semaphore::MAX_PERMITS))),
            names_questions,
        })
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<LinkKey, Cell>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The session for a request of a client. `keeps_state` is whether the upstream has sessions.
    ///
    /// # Errors
    /// If the upstream cannot be reached, or there are too many sessions.
    pub(super) async fn get(
        self: &Arc<Self>,
        cx: &RequestContext,
        server: usize,
        keeps_state: bool,
    ) -> Result<Arc<Link>> {
        let mount = self.mounts.get(server);
        let mount = mount.ok_or_else(|| Error::internal("unknown server"))?;
        let offers = Offers::of(cx);
        let front = match cx.revision().is_modern() {
            true => None,
            false => cx.server_session().filter(|it| it.revision().is_some()),
        };
        let opening = || self.open(mount, &offers, (cx, front.clone()), None);
        let is_shared = !keeps_state && !mount.upstream.is_for_one_client();
        if front.is_none() && !(is_shared && offers.is_shareable()) {
            return self.open_unshared(mount, &offers, cx).await;
        }
        let key = LinkKey {
            front: front.clone(),
            offers: offers.clone(),
            server,
        };
        for _ in 0..ATTEMPTS {
            let cell = self.cell(&key)?;
            let link = match cell.get_or_try_init(opening).await {
                Ok(link) => Arc::clone(link),
                Err(error) => {
                    self.forget(&key, &cell);
                    return Err(error);
                }
            };
            // The upstream may have another revision than before.
            let is_fit = front.is_some() || link.session.revision().is_modern();
            if is_fit && link.is_open().await {
                return Ok(link);
            }
            self.forget(&key, &cell);
            if !is_fit {
                return self.open_unshared(mount, &offers, cx).await;
            }
        }
        Err(Error::closed(format!(
            "the server `{}` ends its sessions at once; try again later",
            mount.label
        )))
    }

    /// Opens a session for one request or watch.
    async fn open_unshared(
        &self,
        mount: &Mount,
        offers: &Offers,
        cx: &RequestContext,
    ) -> Result<Arc<Link>> {
        let place = Arc::clone(&self.places).try_acquire_owned();
        let place = place.map_err(|_| self.too_many())?;
        self.open(mount, offers, (cx, None), Some(place)).await
    }

    /// Whether an upstream has a session for each client.
    pub(super) fn is_for_one_client(&self, server: usize) -> bool {
        let mount = self.mounts.get(server);
        mount.is_some_and(|it| it.upstream.is_for_one_client())
    }

    /// The sessions with upstreams that belong to a session of a client.
    pub(super) fn of(&self, front: &ServerSession) -> Vec<Arc<Link>> {
        let open = self.lock();
        let own = open
            .iter()
            .filter(|(key, _)| key.front.as_ref() == Some(front));
        own.filter_map(|(_, cell)| cell.get().cloned()).collect()
    }

    fn cell(self: &Arc<Self>, key: &LinkKey) -> Result<Cell> {
        // Dropped after the lock.
        let mut _idle = None;
        let mut open = self.lock();
        if let Some(cell) = open.get(key) {
            return Ok(Arc::clone(cell));
        }
        if open.len() >= self.max_links {
            _idle = take_idle(&mut open);
        }
        if open.len() >= self.max_links {
            return Err(self.too_many());
        }
        let mut followed = self.followed.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(front) = key.front.clone()
            && followed.insert(front.clone())
        {
            let links = Arc::downgrade(self);
            tokio::spawn(async move {
                // The reason is of no interest.
                let _ = front.wait().await;
                if let Some(links) = links.upgrade() {
                    let ended = |it: &LinkKey| it.front.as_ref() == Some(&front);
                    links.lock().retain(|it, _| !ended(it));
                    let mut followed = links
                        .followed
                        .lock()
                        .unwrap_or_else(PoisonError::into_inner);
                    followed.remove(&front);
                }
            });
        }
        let cell = Cell::default();
        open.insert(key.clone(), Arc::clone(&cell));
        Ok(cell)
    }

    fn too_many(&self) -> Error {
        Error::limit(format!(
            "the gateway already has {} sessions with its servers; try again later",
            self.max_links
        ))
    }

    fn forget(&self, key: &LinkKey, cell: &Cell) {
        let mut open = self.lock();
        if open.get(key).is_some_and(|it| Arc::ptr_eq(it, cell)) {
            open.remove(key);
        }
    }

    async fn open(
        &self,
        mount: &Mount,
        offers: &Offers,
        (cx, front): (&RequestContext, Option<ServerSession>),
        place: Option<OwnedSemaphorePermit>,
    ) -> Result<Arc<Link>> {
        let calls = Arc::default();
        let receiver = Receiver {
            calls: Arc::clone(&calls),
            front,
            name: self.names_questions.then(|| mount.label.clone()),
        };
        let client = client_for(&self.client, &mount.label, offers, &receiver);
        let limit = self.connect_timeout;
        let connecting = client.connect(mount.upstream.open(Some(cx)));
        // The future is large, and waits most of the time.
        let session = timeout(limit, Box::pin(connecting)).await.map_err(|_| {
            Error::timeout(format!(
                "the server `{}` did not connect within {limit:?}",
                mount.label
            ))
        })??;
        Ok(Arc::new(Link {
            session,
            calls,
            level: Mutex::default(),
            _place: place,
        }))
    }
}

/// Takes a session out that belongs to no client's session, and that no call uses: what clients declare must not use up all of
/// them.
fn take_idle(open: &mut MutexGuard<'_, HashMap<LinkKey, Cell>>) -> Option<Cell> {
    let is_idle = |cell: &Cell| {
        let link = cell.get();
        Arc::strong_count(cell) == 1 && link.is_some_and(|it| Arc::strong_count(it) == 1)
    };
    let idle = open
        .iter()
        .find(|(key, cell)| key.front.is_none() && is_idle(cell));
    let key = idle.map(|(key, _)| key.clone())?;
    open.remove(&key)
}

impl Link {
    async fn is_open(&self) -> bool {
        tokio::select! {
            biased;
            _ = self.session.wait() => false,
            () = ready(()) => true,
        }
    }

    /// Requests the log messages of a level from an upstream that has sessions, if they have another level.
    pub(super) async fn set_level(&self, level: LoggingLevel) {
        let is_same = {
            let mut current = self.level.lock().unwrap_or_else(PoisonError::into_inner);
            current.replace(level) == Some(level)
        };
        let has_logging = self.session.server_capabilities().logging.is_some();
        if !is_same && has_logging && !self.session.revision().is_modern() {
            // The call does not depend on it.
            if let Err(error) = self.session.set_log_level(level).await {
                tracing::debug!(%error, "could not set the log level of a server behind the gateway");
            }
        }
    }
}
