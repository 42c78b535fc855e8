//! Whose requests arrive on a connection: those of the session that `initialize` opened, and those of modern clients, which
//! say with each who they are.

use std::{
    fmt,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, Ordering},
    },
};

use arc_swap::ArcSwap;

use crate::{
    Error, Result, Revision,
    protocol::{Era, RequestMeta},
    server::{ask::RootsCache, features::Features, opening::Opening, subscription::Topics},
    session::Peer,
};

/// All that is known of who is at the other end.
#[derive(Default)]
pub(crate) struct Callers {
    /// Set by `initialize`.
    legacy: OnceLock<Legacy>,
}

/// A session that `initialize` opened.
#[derive(Debug)]
struct Legacy {
    opening: Arc<Opening>,
    initialized: AtomicBool,
    roots: RootsCache,
}

/// The modern clients that made requests of late: each says the same of itself with every request, which need not be read
/// each time.
#[derive(Default)]
pub(crate) struct KnownCallers(ArcSwap<Vec<Arc<Modern>>>);

/// More clients than that are read anew each time: to find one among many costs as much.
const MAX_KNOWN: usize = 16;
/// One that says more of itself than that is not kept.
const MAX_SAID: usize = 4 << 10;

/// A modern client, and the text in which it said what it is.
struct Modern {
    info: Box<str>,
    capabilities: Box<str>,
    peer: Arc<Peer>,
}

impl Callers {
    /// The client, where it has opened a session.
    pub(crate) fn legacy(&self) -> Option<&Arc<Peer>> {
        self.legacy.get().map(|legacy| &legacy.opening.peer)
    }

    /// The same where it has said that it is ready, too.
    pub(crate) fn ready(&self) -> Option<&Arc<Peer>> {
        let legacy = self.legacy.get()?;
        let ready = legacy.initialized.load(Ordering::Relaxed);
        ready.then_some(&legacy.opening.peer)
    }

    /// The roots of the client that opened a session.
    pub(crate) fn roots(&self) -> Option<&RootsCache> {
        self.legacy.get().map(|legacy| &legacy.roots)
    }

    /// What of these the client of a session that is ready hears of, since it was told that it would.
    pub(super) fn awaits(&self, changed: &Topics) -> Option<(&Arc<Peer>, Topics)> {
        let legacy = self.legacy.get()?;
        let ready = legacy.initialized.load(Ordering::Relaxed);
        ready.then(|| (&legacy.opening.peer, legacy.opening.awaited.and(changed)))
    }

    /// The client says that it is ready. Returns whether that is news.
    pub(super) fn initialized(&self) -> bool {
        let legacy = self.legacy.get();
        legacy.is_some_and(|legacy| !legacy.initialized.swap(true, Ordering::Relaxed))
    }

    /// Opens the session.
    pub(super) fn open(&self, opening: Arc<Opening>) -> Result<()> {
        let legacy = Legacy {
            opening,
            initialized: AtomicBool::new(false),
            roots: RootsCache::default(),
        };
        self.legacy.set(legacy).map_err(|_| {
            Error::invalid_request("the session is open already; initialize is sent once")
        })
    }

    /// Who sent a request, and so by which revision's rules it is served.
    pub(super) fn identify(
        &self,
        known: &KnownCallers,
        features: &Features,
        method: &str,
        meta: &RequestMeta<'_>,
    ) -> Result<Arc<Peer>> {
        match meta.classify(&features.revisions)? {
            Era::Modern(revision) => known.peer(revision, meta),
            Era::Legacy => self.identify_legacy(method),
        }
    }

    fn identify_legacy(&self, method: &str) -> Result<Arc<Peer>> {
        if let Some(peer) = self.legacy() {
            return Ok(Arc::clone(peer));
        }
        if matches!(method, "initialize" | "ping") {
            return Ok(Arc::new(Peer::stranger()));
        }
        Err(Error::invalid_params(format!(
            "no session is open: send initialize first, or make a modern request, for which {}",
            RequestMeta::UNREAD.what_is_missing()
        )))
    }

    /// Who sent a notification. It need not say so: then it is of the session, or where there is none of a modern client.
    pub(super) fn identify_sender(
        &self,
        known: &KnownCallers,
        features: &Features,
        meta: Option<&RequestMeta<'_>>,
    ) -> Arc<Peer> {
        let modern = meta.and_then(|meta| match meta.classify(&features.revisions) {
            Ok(Era::Modern(revision)) => known.peer(revision, meta).ok(),
            _ => None,
        });
        modern
            .or_else(|| self.legacy().cloned())
            .unwrap_or_else(|| Arc::new(Peer::modern_stranger()))
    }
}

impl KnownCallers {
    fn peer(&self, revision: Revision, meta: &RequestMeta<'_>) -> Result<Arc<Peer>> {
        let known = self.0.load();
        let (info, capabilities) = meta.identity();
        let is_it = |it: &&Arc<Modern>| {
            *it.info == *info && *it.capabilities == *capabilities && it.peer.revision == revision
        };
        if let Some(found) = known.iter().find(is_it) {
            return Ok(Arc::clone(&found.peer));
        }
        let (implementation, declared) = meta.client()?;
        let peer = Arc::new(Peer {
            revision,
            implementation,
            capabilities: declared,
        });
        if info.len() + capabilities.len() > MAX_SAID {
            return Ok(peer);
        }
        let mut newer = Vec::with_capacity(MAX_KNOWN);
        newer.push(Arc::new(Modern {
            info: info.into(),
            capabilities: capabilities.into(),
            peer: Arc::clone(&peer),
        }));
        newer.extend(known.iter().take(MAX_KNOWN - 1).cloned());
        // One that another thread adds just now may be lost: it is read once more then.
        self.0.store(Arc::new(newer));
        Ok(peer)
    }
}

impl fmt::Debug for Callers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Callers")
            .field("legacy", &self.legacy.get())
            .finish_non_exhaustive()
    }
}
