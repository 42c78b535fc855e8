//! The session quota, and the eviction of unused sessions when it is exceeded.

use std::{
    collections::{BTreeMap, HashMap, hash_map::Entry},
    fmt,
    sync::{Arc, Weak},
};

use http::StatusCode;

use crate::{limits::Limits, sync::Mutex};

/// The session quota of an endpoint: one limit per principal, and one for all sessions.
#[derive(Clone, Default)]
pub(crate) struct SessionQuota(Arc<Mutex<Used>>);

/// The numbers of sessions.
#[derive(Default)]
struct Used {
    all: usize,
    /// The numbers per principal, of principals with sessions.
    own: HashMap<Arc<str>, usize>,
}

/// The permit of a session, which counts against the quota until it is dropped.
pub(crate) struct QuotaPermit {
    quota: SessionQuota,
    principal: Option<Arc<str>>,
}

/// The limit that was exceeded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum QuotaExceeded {
    /// The limit of the principal.
    Principal,
    All,
    /// The limit of all nodes together.
    Nodes,
}

impl SessionQuota {
    /// Acquires a permit for a session of this principal, if the principal is known.
    ///
    /// # Errors
    /// If a limit is exceeded.
    pub(crate) fn acquire(
        &self,
        principal: Option<&Arc<str>>,
        limits: &Limits,
    ) -> Result<QuotaPermit, QuotaExceeded> {
        let mut used = self.0.lock();
        let own = |principal| used.own.get(principal).copied().unwrap_or_default();
        if principal.is_some_and(|it| own(it) >= limits.http.max_sessions_each) {
            return Err(QuotaExceeded::Principal);
        }
        if used.all >= limits.http.max_sessions {
            return Err(QuotaExceeded::All);
        }
        used.all += 1;
        if let Some(principal) = principal {
            *used.own.entry(Arc::clone(principal)).or_default() += 1;
        }
        Ok(QuotaPermit {
            quota: self.clone(),
            principal: principal.cloned(),
        })
    }
}

impl Drop for QuotaPermit {
    fn drop(&mut self) {
        let mut used = self.quota.0.lock();
        used.all -= 1;
        if let Some(principal) = self.principal.take()
            && let Entry::Occupied(mut own) = used.own.entry(principal)
        {
            *own.get_mut() -= 1;
            if *own.get() == 0 {
                own.remove();
            }
        }
    }
}

impl QuotaExceeded {
    /// The status of the response to a client, and the reason.
    pub(crate) fn why(self, limits: &Limits) -> (StatusCode, String) {
        match self {
            Self::Principal => {
                let limit = limits.http.max_sessions_each;
                let why =
                    format!("session limit reached: you have {limit} sessions; end one first");
                (StatusCode::TOO_MANY_REQUESTS, why)
            }
            Self::All => {
                let limit = limits.http.max_sessions;
                let why = format!(
                    "session limit reached: this server has {limit} sessions; try again later"
                );
                (StatusCode::SERVICE_UNAVAILABLE, why)
            }
            Self::Nodes => {
                let why = "session limit of all nodes reached; try again later";
                (StatusCode::SERVICE_UNAVAILABLE, why.to_owned())
            }
        }
    }
}

impl fmt::Debug for SessionQuota {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0.lock().all, f)
    }
}

/// Omits the principal, because names of people do not belong in logs.
impl fmt::Debug for QuotaPermit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("QuotaPermit(..)")
    }
}

/// An evictable session.
pub(crate) trait Evictable: Send + Sync {
    /// Ends the session in favor of another, which gets its permit immediately. Returns false if the session has been used.
    fn evict(&self) -> bool;
}

/// Sessions whose client has sent only `initialize`. The oldest is evicted when the quota is exceeded.
///
/// A client that keeps opening sessions evicts only unused sessions, mostly its own. Used sessions are never evicted: otherwise
/// such a client could end the sessions of others.
pub(crate) struct EvictionQueue<S>(Mutex<Queue<S>>);

struct Queue<S> {
    last: u64,
    /// The sessions in the order of their age.
    sessions: BTreeMap<u64, Candidate<S>>,
}

/// A session in the queue.
struct Candidate<S> {
    principal: Option<Arc<str>>,
    session: Weak<S>,
}

/// The place of a session in the queue, until this is dropped.
pub(crate) struct EvictionEntry<S> {
    queue: Arc<EvictionQueue<S>>,
    number: u64,
}

impl<S> Default for EvictionQueue<S> {
    fn default() -> Self {
        Self(Mutex::new(Queue {
            last: 0,
            sessions: BTreeMap::new(),
        }))
    }
}

impl<S: Evictable> EvictionQueue<S> {
    /// Adds a session that was just opened.
    pub(crate) fn add(
        self: &Arc<Self>,
        principal: Option<Arc<str>>,
        session: Weak<S>,
    ) -> EvictionEntry<S> {
        let mut queue = self.0.lock();
        queue.last += 1;
        let number = queue.last;
        queue
            .sessions
            .insert(number, Candidate { principal, session });
        drop(queue);
        EvictionEntry {
            queue: Arc::clone(self),
            number,
        }
    }

    /// Evicts the oldest session of all, or of a principal. `None` if the queue has none.
    pub(crate) fn evict_oldest(&self, of: Option<&Arc<str>>) -> Option<Arc<S>> {
        loop {
            let mut queue = self.0.lock();
            let mut sessions = queue.sessions.iter();
            let oldest = sessions.find(|(_, it)| of.is_none() || it.principal.as_ref() == of);
            let number = oldest.map(|(number, _)| *number)?;
            let session = queue.sessions.remove(&number);
            drop(queue);
            if let Some(session) = session.and_then(|it| it.session.upgrade())
                && session.evict()
            {
                return Some(session);
            }
        }
    }
}

impl<S> Drop for EvictionEntry<S> {
    fn drop(&mut self) {
        let session = self.queue.0.lock().sessions.remove(&self.number);
        // The memory of the entry is freed without holding the lock.
        drop(session);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dropped_permit_is_freed_and_principal_forgotten() {
        let quota = SessionQuota::default();
        let limits = Limits::default().http(|http| http.max_sessions(3).max_sessions_each(1));
        let (ann, bob) = (Arc::from("ann"), Arc::from("bob"));
        let enter = |principal| quota.acquire(principal, &limits);
        let (of_ann, _of_nobody) = (enter(Some(&ann)).unwrap(), enter(None).unwrap());
        assert_eq!(enter(Some(&ann)).unwrap_err(), QuotaExceeded::Principal);
        let of_nobody = enter(None).unwrap();
        assert_eq!(enter(Some(&bob)).unwrap_err(), QuotaExceeded::All);
        drop(of_nobody);
        let of_bob = enter(Some(&bob)).unwrap();
        drop((of_ann, of_bob));
        assert!(quota.0.lock().own.is_empty());
        assert!(enter(Some(&ann)).is_ok());
    }
}
