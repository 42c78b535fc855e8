//! Registry of the sessions of a service, by id.

use std::{collections::HashMap, sync::Arc};

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

/// The sessions of a service, by id.
#[derive(Default)]
pub(in crate::http::server) struct Sessions {
    table: RwLock<Table>,
    /// The quota, which also counts sessions that are being opened.
    quota: SessionQuota,
}

#[derive(Default)]
struct Table {
    open: HashMap<Box<str>, OpenSession>,
    closing: bool,
}

/// A session that is open.
pub(super) struct OpenSession {
    pub(super) inbox: SseInbox,
    pub(super) session: ServerSession,
    /// The principal that opened the session, and the only one that may post to it.
    pub(super) principal: Option<Principal>,
    /// The deadline of the stream: the expiry of the newest token that the principal has posted with.
    #[cfg(feature = "auth")]
    pub(super) deadline: Option<StreamDeadline>,
    pub(super) _permit: QuotaPermit,
}

impl Sessions {
    /// Acquires a permit for one more session.
    ///
    /// # Errors
    /// If the quota is exceeded. All sessions have their stream open, so none is evicted.
    pub(super) fn acquire(
        &self,
        principal: Option<&Principal>,
        limits: &Limits,
    ) -> Result<QuotaPermit, QuotaExceeded> {
        let principal = principal.map(Principal::shared);
        self.quota.acquire(principal.as_ref(), limits)
    }

    /// The quota, which counts the sessions.
    pub(super) fn quota(&self) -> &SessionQuota {
        &self.quota
    }

    /// Keeps a session until it ends. Returns false if the service is closing.
    pub(super) fn keep(self: &Arc<Self>, id: &str, opened: OpenSession) -> bool {
        let session = opened.session.clone();
        let mut table = self.table.write();
        if table.closing {
            return false;
        }
        table.open.insert(id.into(), opened);
        drop(table);
        let (sessions, id) = (Arc::clone(self), id.to_owned());
        spawn(async move {
            if let Err(error) = session.wait().await {
                tracing::debug!(%error, "a session over SSE broke");
            }
            sessions.table.write().open.remove(&*id);
        });
        true
    }

    /// The inbox for messages of a session, and the session. `None` for a principal to which it does not belong, as if it did not
    /// exist.
    pub(super) fn find(
        &self,
        id: &str,
        principal: Option<&Principal>,
    ) -> Option<(SseInbox, ServerSession)> {
        let table = self.table.read();
        let open = table.open.get(id)?;
        let found = || (open.inbox.clone(), open.session.clone());
        (open.principal.as_ref() == principal).then(found)
    }

    /// Extends the stream of a session to the deadline of a newer token.
    #[cfg(feature = "auth")]
    pub(super) fn extend(&self, id: &str, newer: &StreamDeadline) {
        let table = self.table.read();
        let deadline = table.open.get(id).and_then(|open| open.deadline.as_ref());
        if let Some(deadline) = deadline {
            deadline.extend(newer);
        }
    }

    /// The number of open sessions.
    pub(in crate::http::server) fn open(&self) -> usize {
        self.table.read().open.len()
    }

    pub(super) fn is_closing(&self) -> bool {
        self.table.read().closing
    }

    /// Refuses new sessions, and returns those that are open.
    pub(super) fn close(&self) -> Vec<ServerSession> {
        let mut table = self.table.write();
        table.closing = true;
        table
            .open
            .values()
            .map(|open| open.session.clone())
            .collect()
    }
}

opaque_debug!(Sessions, |it| { open: it.quota });
