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
    /// The quota, which counts those that are just being opened, too.
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
    /// The principal that opened it, and alone may post to it.
    pub(super) principal: Option<Principal>,
    /// When the stream ends: with the newest token that the principal has posted with.
    #[cfg(feature = "auth")]
    pub(super) deadline: Option<StreamDeadline>,
    pub(super) _permit: QuotaPermit,
}

impl Sessions {
    /// A permit for one more.
    ///
    /// # Errors
    /// Where there is none. All have their stream open, so that none is evicted.
    pub(super) fn acquire(
        &self,
        principal: Option<&Principal>,
        limits: &Limits,
    ) -> Result<QuotaPermit, QuotaExceeded> {
        let principal = principal.map(Principal::shared);
        self.quota.acquire(principal.as_ref(), limits)
    }

    /// How many there are.
    pub(super) fn quota(&self) -> &SessionQuota {
        &self.quota
    }

    /// Keeps a session until it ends. Returns false where all are being closed.
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

    /// Where to hand what is posted to a session, and the session. `None` for a principal that it does not belong to, as if there were none.
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

    /// Lets the stream of a session last as long as a newer token.
    #[cfg(feature = "auth")]
    pub(super) fn extend(&self, id: &str, newer: &StreamDeadline) {
        let table = self.table.read();
        let deadline = table.open.get(id).and_then(|open| open.deadline.as_ref());
        if let Some(deadline) = deadline {
            deadline.extend(newer);
        }
    }

    /// How many are open.
    pub(in crate::http::server) fn open(&self) -> usize {
        self.table.read().open.len()
    }

    pub(super) fn is_closing(&self) -> bool {
        self.table.read().closing
    }

    /// Takes no more sessions, and returns those that are open.
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
