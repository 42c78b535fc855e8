//! Identity of the client that sent a message: from the session that `initialize` opened, or from the `_meta` of a modern
//! request.
//!
//! A second `initialize` is refused here, by [`LegacySession::open`].

use std::{
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use oxmcp_protocol::{
    Revision, SubscriptionFilter,
    internal::{Era, RequestMeta},
};
use tokio::time::timeout;

use crate::{
    error::{Error, Result},
    server::{ask::RootsCache, dispatch::RecentCache, features::Negotiated, subscriptions::Topics},
    session::{connection::Peer, task::Latch},
};

/// The time for which a question waits for `notifications/initialized`, which the client sends right after `initialize`: many times the
/// latency of a slow network, and short enough for a caller whose client never sends it.
const MAX_WAIT: Duration = Duration::from_secs(2);

/// The session of a connection that `initialize` opens. A connection of a modern client has none.
#[derive(Debug, Default)]
pub(crate) struct LegacySession(OnceLock<Opened>);

#[derive(Debug)]
struct Opened {
    negotiated: Arc<Negotiated>,
    initialized: AtomicBool,
    /// Set when the client can be asked: it is initialized, or the wait for its notification has timed out.
    may_be_asked: Latch,
    roots: RootsCache,
}

impl LegacySession {
    /// The client, if it has opened the session.
    pub(crate) fn client(&self) -> Option<&Arc<Peer>> {
        self.0.get().map(|opened| &opened.negotiated.peer)
    }

    /// The size of the stored client metadata in bytes.
    #[cfg(feature = "http-server")]
    pub(crate) fn client_bytes(&self) -> usize {
        self.0
            .get()
            .map_or(0, |opened| opened.negotiated.client_bytes)
    }

    /// The client, if it has sent `notifications/initialized` as well.
    pub(crate) fn initialized_client(&self) -> Option<&Arc<Peer>> {
        self.initialized().map(|opened| &opened.negotiated.peer)
    }

    fn initialized(&self) -> Option<&Opened> {
        let opened = self.0.get();
        opened.filter(|opened| opened.initialized.load(Ordering::Relaxed))
    }

    /// The roots of the client.
    pub(crate) fn roots(&self) -> Option<&RootsCache> {
        self.0.get().map(|opened| &opened.roots)
    }

    /// The client of an initialized session, and the changed lists whose notifications were announced to it.
    pub(crate) fn announced(&self, changed: &Topics) -> Option<(&Arc<Peer>, Topics)> {
        let negotiated = &self.initialized()?.negotiated;
        Some((&negotiated.peer, negotiated.list_changes.and(changed)))
    }

    /// The lists whose notifications were announced to the client of an initialized session.
    pub(crate) fn announced_lists(&self) -> Option<&SubscriptionFilter> {
        Some(&self.initialized()?.negotiated.list_changes.lists)
    }

    /// Records that the client has sent `notifications/initialized`. Returns whether it was the first time.
    pub(crate) fn set_initialized(&self) -> bool {
        let opened = self.0.get();
        opened.is_some_and(|opened| {
            let is_first = !opened.initialized.swap(true, Ordering::Relaxed);
            opened.may_be_asked.set();
            is_first
        })
    }

    /// Waits until the client can be asked: servers should send only pings before `notifications/initialized`. After a timeout,
    /// a client that does not send it is asked anyway. Cancel safe.
    ///
    /// See [initialization](https://modelcontextprotocol.io/specification/2025-11-25/basic/lifecycle#initialization).
    pub(crate) async fn may_be_asked(&self) {
        let Some(opened) = self.0.get() else { return };
        let latch = &opened.may_be_asked;
        if latch.is_set() || timeout(MAX_WAIT, latch.wait()).await.is_ok() {
            return;
        }
        tracing::debug!("asking a client that has not sent notifications/initialized");
        latch.set();
    }

    /// Opens the session.
    ///
    /// # Errors
    /// If it is open already.
    pub(crate) fn open(&self, negotiated: Arc<Negotiated>) -> Result<()> {
        let opened = Opened {
            negotiated,
            initialized: AtomicBool::new(false),
            may_be_asked: Latch::default(),
            roots: RootsCache::default(),
        };
        self.0.set(opened).map_err(|_| {
            Error::invalid_request("session already open: `initialize` may be sent only once")
        })
    }

    /// The client that sent a request: from the `_meta` of a modern request, or else from this session. Its revision decides how
    /// the request is served.
    pub(crate) fn client_of_request(
        &self,
        clients: &ClientCache,
        revisions: &[Revision],
        method: &str,
        meta: &RequestMeta<'_>,
    ) -> Result<Arc<Peer>> {
        if let Era::Modern(revision) = meta.classify(revisions)? {
            return clients.client(revision, meta);
        }
        if let Some(client) = self.client() {
            return Ok(Arc::clone(client));
        }
        if matches!(method, "initialize" | "ping") {
            return Ok(Arc::new(Peer::unknown()));
        }
        Err(Error::invalid_params(format!(
            "no open session: send `initialize` first; {}",
            RequestMeta::UNREAD.what_is_missing()
        )))
    }

    /// The client that sent a notification. Without an identity in the notification, it is the client of the session, or an
    /// unknown modern client.
    pub(crate) fn client_of_notification(
        &self,
        clients: &ClientCache,
        revisions: &[Revision],
        meta: Option<&RequestMeta<'_>>,
    ) -> Arc<Peer> {
        let modern = meta.and_then(|meta| match meta.classify(revisions) {
            Ok(Era::Modern(revision)) => clients.client(revision, meta).ok(),
            _ => None,
        });
        modern
            .or_else(|| self.client().cloned())
            .unwrap_or_else(|| Arc::new(Peer::unknown_modern()))
    }
}

/// Cache of recent modern clients: each sends the same identity with every request, which need not be parsed each time.
#[derive(Debug, Default)]
pub(crate) struct ClientCache(RecentCache<ClientKey, Arc<Peer>>);

/// The identity of a modern client, as its requests carry it.
#[derive(Debug)]
struct ClientKey {
    revision: Revision,
    info: Box<str>,
    capabilities: Box<str>,
}

impl ClientCache {
    fn client(&self, revision: Revision, meta: &RequestMeta<'_>) -> Result<Arc<Peer>> {
        let (info, capabilities) = meta.identity();
        self.0.get_or_try_insert(
            |known| {
                *known.info == *info
                    && *known.capabilities == *capabilities
                    && known.revision == revision
            },
            info.len() + capabilities.len(),
            || {
                let (implementation, declared) = meta.client()?;
                let peer = Peer {
                    revision,
                    implementation,
                    capabilities: declared,
                };
                let key = ClientKey {
                    revision,
                    info: info.into(),
                    capabilities: capabilities.into(),
                };
                Ok((key, Arc::new(peer)))
            },
        )
    }
}
