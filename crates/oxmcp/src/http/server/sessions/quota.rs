//! Places for sessions: so many for each principal, and so many for all.

use std::{
    collections::{HashMap, hash_map::Entry},
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use http::StatusCode;

use crate::Limits;

/// The places of all sessions.
#[derive(Clone, Default)]
pub(super) struct Places(Arc<Mutex<Taken>>);

/// How many are taken.
#[derive(Default)]
struct Taken {
    all: usize,
    /// By each principal, of those that have any.
    own: HashMap<Arc<str>, usize>,
}

/// The place of a session, until it is dropped.
pub(super) struct Place {
    places: Places,
    principal: Option<Arc<str>>,
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
        let mut taken = self.lock();
        let own = |principal| taken.own.get(principal).copied().unwrap_or_default();
        if principal.is_some_and(|it| own(it) >= limits.max_http_sessions_each) {
            return Err(Full::Own);
        }
        if taken.all >= limits.max_http_sessions {
            return Err(Full::All);
        }
        taken.all += 1;
        if let Some(principal) = principal {
            *taken.own.entry(Arc::clone(principal)).or_default() += 1;
        }
        Ok(Place {
            places: self.clone(),
            principal: principal.cloned(),
        })
    }

    fn lock(&self) -> MutexGuard<'_, Taken> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut taken = self.places.lock();
        taken.all -= 1;
        if let Some(principal) = self.principal.take()
            && let Entry::Occupied(mut own) = taken.own.entry(principal)
        {
            *own.get_mut() -= 1;
            if *own.get() == 0 {
                own.remove();
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
        fmt::Debug::fmt(&self.lock().all, f)
    }
}

/// Names of people do not belong in logs.
impl fmt::Debug for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Place(..)")
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
        assert!(places.lock().own.is_empty());
        assert!(enter(Some(&ann)).is_ok());
    }
}
