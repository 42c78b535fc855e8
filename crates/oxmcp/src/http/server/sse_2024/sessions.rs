//! The registry of a service's sessions, by ID.

use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use super::transport::SseInbox;
#[cfg(feature = "auth")]
use crate::http::protection::StreamDeadline;
use crate::{
    debug::opaque_debug,
    http::server::sessions::{QuotaExceeded, QuotaPermit, SessionQuota},
    limits::Limits,
    server::ServerSession,
    session::task::spawn,
    sync::RwLock,
    transport::principal::Principal,
};

/// The sessions of a service, by ID.
#[derive(Default)]
pub(crate) struct Sessions {
    open: RwLock<HashMap<Box<str>, OpenSession>>,
    /// The quota, which also counts sessions that are being opened.
    quota: SessionQuota,
    closing: AtomicBool,
}

/// A session that is open.
pub(crate) struct OpenSession {
    pub(crate) inbox: SseInbox,
    pub(crate) session: ServerSession,
    /// The principal that opened the session, and the only one that may post to it.
    pub(crate) principal: Option<Principal>,
    /// The deadline of the stream: the expiry of the newest token that the principal has posted with.
    #[cfg(feature = "auth")]
    pub(crate) deadline: Option<StreamDeadline>,
    pub(crate) _permit: QuotaPermit,
}

impl Sessions {
    /// Acquires a permit for one more session.
    ///
    /// # Errors
    /// If the quota is exceeded. All sessions have an open stream, so none is evicted.
    pub(crate) fn acquire(
        &self,
        principal: Option<&Principal>,
        limits: &Limits,
    ) -> Result<QuotaPermit, QuotaExceeded> {
        let principal = principal.map(Principal::shared);
        self.quota.acquire(principal.as_ref(), limits)
    }

    /// The quota, which counts the sessions.
    pub(crate) fn quota(&self) -> &SessionQuota {
        &self.quota
    }

    /// Keeps a session until it ends.
    pub(crate) fn keep(self: &Arc<Self>, id: &str, opened: OpenSession) {
        let session = opened.session.clone();
        self.open.write().insert(id.into(), opened);
        let (sessions, id) = (Arc::clone(self), id.to_owned());
        spawn(async move {
            if let Err(error) = session.wait().await {
                tracing::debug!(%error, "SSE session failed");
            }
            sessions.open.write().remove(&*id);
        });
    }

    /// The inbox for messages of a session, and the session. `None` if it does not exist or belongs to another principal.
    pub(crate) fn find(
        &self,
        id: &str,
        principal: Option<&Principal>,
    ) -> Option<(SseInbox, ServerSession)> {
        let table = self.open.read();
        let open = table.get(id)?;
        let found = || (open.inbox.clone(), open.session.clone());
        (open.principal.as_ref() == principal).then(found)
    }

    /// Extends the stream of a session to the deadline of a newer token.
    #[cfg(feature = "auth")]
    pub(crate) fn extend(&self, id: &str, newer: &StreamDeadline) {
        let table = self.open.read();
        let deadline = table.get(id).and_then(|open| open.deadline.as_ref());
        if let Some(deadline) = deadline {
            deadline.extend(newer);
        }
    }

    /// The number of open sessions.
    pub(crate) fn count(&self) -> usize {
        self.open.read().len()
    }

    pub(crate) fn is_closing(&self) -> bool {
        self.closing.load(Ordering::Acquire)
    }

    /// Records that the service is closing, and returns the open sessions.
    pub(crate) fn close(&self) -> Vec<ServerSession> {
        self.closing.store(true, Ordering::Release);
        let open = self.open.read();
        open.values().map(|open| open.session.clone()).collect()
    }
}

opaque_debug!(Sessions, |it| { open: it.quota });
