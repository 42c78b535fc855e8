//! Places for sessions: so many for each principal, and so many for all.

use std::{
    collections::{HashMap, hash_map::Entry},
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use http::StatusCode;

use crate::{
    Limits,
    http::server::open::{Entered, Open},
};

/// The places of all sessions.
#[derive(Default)]
pub(super) struct Places {
    all: Arc<Open>,
    own: Arc<Shares>,
}

/// How many each principal has, of those that have any.
#[derive(Default)]
struct Shares(Mutex<HashMap<Arc<str>, usize>>);

/// The place of a session, until it is dropped.
#[derive(Debug)]
pub(super) struct Place {
    _all: Entered,
    _own: Option<Share>,
}

struct Share {
    shares: Arc<Shares>,
    principal: Arc<str>,
}

/// Why there is no place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Full {
    /// The principal has as many as it may have.
    Own,
    All,
}

impl Places {
    /// A place for a session of this principal, where it is known.
    ///
    /// # Errors
    /// Why there is none.
    pub(super) fn enter(
        &self,
        principal: Option<&Arc<str>>,
        limits: &Limits,
    ) -> Result<Place, Full> {
        let share = |principal| self.own.enter(principal, limits.max_http_sessions_each);
        let own = principal.map(share).transpose()?;
        let all = self.all.enter_below(limits.max_http_sessions);
        Ok(Place {
            _all: all.ok_or(Full::All)?,
            _own: own,
        })
    }

    /// Waits until none is taken. Cancel safe.
    pub(super) async fn none(&self) {
        self.all.none().await;
    }
}

impl Shares {
    fn enter(self: &Arc<Self>, principal: &Arc<str>, limit: usize) -> Result<Share, Full> {
        let mut shares = self.lock();
        let taken = shares.get(principal).copied().unwrap_or_default();
        if taken >= limit {
            return Err(Full::Own);
        }
        shares.insert(Arc::clone(principal), taken + 1);
        Ok(Share {
            shares: Arc::clone(self),
            principal: Arc::clone(principal),
        })
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Arc<str>, usize>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        let mut shares = self.shares.lock();
        if let Entry::Occupied(mut taken) = shares.entry(Arc::clone(&self.principal)) {
            *taken.get_mut() -= 1;
            if *taken.get() == 0 {
                taken.remove();
            }
        }
    }
}

impl Full {
    /// What a client is told.
    pub(super) fn why(self, limits: &Limits) -> (StatusCode, String) {
        match self {
            Self::Own => {
                let limit = limits.max_http_sessions_each;
                let why = format!("you have {limit} sessions, which is the limit; end one first");
                (StatusCode::TOO_MANY_REQUESTS, why)
            }
            Self::All => {
                let limit = limits.max_http_sessions;
                let why =
                    format!("there are {limit} sessions, which is the limit; try another time");
                (StatusCode::SERVICE_UNAVAILABLE, why)
            }
        }
    }
}

impl fmt::Debug for Places {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.all, f)
    }
}

/// Names of people do not belong in logs.
impl fmt::Debug for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Share(..)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_given_up_is_free_again_and_nobody_is_remembered() {
        let places = Places::default();
        let limits = Limits {
            max_http_sessions: 3,
            max_http_sessions_each: 1,
            ..Limits::default()
        };
        let (ann, bob) = (Arc::from("ann"), Arc::from("bob"));
        let enter = |principal| places.enter(principal, &limits);
        let (of_ann, _of_nobody) = (enter(Some(&ann)).unwrap(), enter(None).unwrap());
        assert_eq!(enter(Some(&ann)).unwrap_err(), Full::Own);
        let of_nobody = enter(None).unwrap();
        assert_eq!(enter(Some(&bob)).unwrap_err(), Full::All);
        drop(of_nobody);
        let of_bob = enter(Some(&bob)).unwrap();
        drop((of_ann, of_bob));
        assert!(places.own.lock().is_empty());
        assert!(enter(Some(&ann)).is_ok());
    }
}
