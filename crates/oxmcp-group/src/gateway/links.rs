//! The sessions with upstreams, one for each session of a client.
//!
//! An upstream keeps state in its session, so that the sessions of two clients are never one. A connection that is not over HTTP
//! counts as a session in every revision: an upstream may be a process, and a new one for each request would be slow. Without a
//! session, each request over HTTP opens its own with such an upstream. All of them share one with an upstream that keeps no state
//! (2026-07-28 and later).

use std::{
    collections::{HashMap, HashSet},
    future::ready,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use oxmcp::{
    Client, ClientSession, Error, RequestContext, Result, ServerSession, protocol::LoggingLevel,
};
use tokio::{sync::OnceCell, time::timeout};

use super::{
    events::{OpenCalls, Receiver, client_for},
    offers::Offers,
    upstream::Upstream,
};

/// The number of sessions that are opened for a request, if they end at once.
const ATTEMPTS: usize = 2;

/// The client that sessions and waiting calls count for: a principal, or the session of a client without one.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(super) enum Holder {
    Principal(String),
    Session(Option<ServerSession>),
}

impl Holder {
    pub(super) fn of(cx: &RequestContext) -> Self {
        match cx.principal() {
            Some(principal) => Self::Principal(principal.as_str().to_owned()),
            None => Self::Session(cx.server_session()),
        }
    }
}

/// The session of the client that makes a request, if later requests can come in it.
pub(super) fn lasting_session(cx: &RequestContext) -> Option<ServerSession> {
    cx.server_session().filter(|it| !it.is_for_one_request())
}

/// The part of a limit that one client can use up: a quarter, and at least one.
pub(super) fn share_of(limit: usize) -> usize {
    (limit / 4).max(1)
}

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
    _place: Option<Place>,
}

/// The places of sessions that serve one request or watch, by the clients that hold them.
type Places = Arc<Mutex<HashMap<Holder, usize>>>;

/// A place, which is free again when this is dropped.
struct Place {
    places: Places,
    holder: Holder,
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut places = self.places.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(held) = places.get_mut(&self.holder) {
            *held -= 1;
            if *held == 0 {
                places.remove(&self.holder);
            }
        }
    }
}

/// The client and the upstream of a session.
#[derive(Clone, PartialEq, Eq, Hash)]
struct LinkKey {
    /// The session of a client, and the client that it counts for. `None` for sessions that clients share.
    front: Option<(ServerSession, Holder)>,
    offers: Offers,
    server: usize,
}

impl LinkKey {
    fn is_of(&self, session: &ServerSession) -> bool {
        self.front
            .as_ref()
            .is_some_and(|(front, _)| front == session)
    }

    fn holder(&self) -> Option<&Holder> {
        self.front.as_ref().map(|(_, holder)| holder)
    }
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
    places: Places,
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
            places: Arc::default(),
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
        let has_one_for_all = !keeps_state && !mount.upstream.is_for_one_client();
        let may_share = has_one_for_all && offers.is_shareable();
        let front = lasting_session(cx).filter(|_| !(may_share && cx.revision().is_modern()));
        if front.is_none() && !may_share {
            return self.open_unshared(mount, &offers, cx).await;
        }
        let opening = || self.open(mount, &offers, (cx, front.clone()), None);
        let key = LinkKey {
            front: front.clone().map(|front| (front, Holder::of(cx))),
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
        let place = self.place(Holder::of(cx))?;
        self.open(mount, offers, (cx, None), Some(place)).await
    }

    fn place(&self, holder: Holder) -> Result<Place> {
        let mut places = self.places.lock().unwrap_or_else(PoisonError::into_inner);
        if places.values().sum::<usize>() >= self.max_links {
            return Err(self.too_many());
        }
        if places
            .get(&holder)
            .is_some_and(|held| *held >= self.share())
        {
            return Err(self.too_many_of_client());
        }
        *places.entry(holder.clone()).or_default() += 1;
        Ok(Place {
            places: Arc::clone(&self.places),
            holder,
        })
    }

    /// The number of sessions that one client can hold: its share of the limit, but one for each server in any case.
    fn share(&self) -> usize {
        share_of(self.max_links).max(self.mounts.len())
    }

    /// Whether an upstream has a session for each client.
    pub(super) fn is_for_one_client(&self, server: usize) -> bool {
        let mount = self.mounts.get(server);
        mount.is_some_and(|it| it.upstream.is_for_one_client())
    }

    /// The sessions with upstreams that belong to a session of a client.
    pub(super) fn of(&self, front: &ServerSession) -> Vec<Arc<Link>> {
        let open = self.lock();
        let own = open.iter().filter(|(key, _)| key.is_of(front));
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
        let is_own = |it: &&LinkKey| key.holder().is_some() && it.holder() == key.holder();
        if open.keys().filter(is_own).count() >= self.share() {
            return Err(self.too_many_of_client());
        }
        let mut followed = self.followed.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((front, _)) = key.front.clone()
            && followed.insert(front.clone())
        {
            let links = Arc::downgrade(self);
            tokio::spawn(async move {
                // The reason is of no interest.
                let _ = front.wait().await;
                if let Some(links) = links.upgrade() {
                    links.lock().retain(|it, _| !it.is_of(&front));
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

    fn too_many_of_client(&self) -> Error {
        Error::limit(format!(
            "the client already has {} of the {} sessions of `Gateway::max_sessions`; try again later",
            self.share(),
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
        place: Option<Place>,
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
