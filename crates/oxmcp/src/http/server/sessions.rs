//! The sessions of an endpoint, by id.

use std::{
    collections::{HashMap, hash_map::Entry},
    fmt,
    hash::{BuildHasher, RandomState},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use crate::{
    Limits,
    http::server::{
        places::{Full, Place, Places},
        session::Session,
        unused::Unused,
    },
};

/// In so many parts the table is locked: requests of different sessions hardly ever wait for each other.
const PARTS: usize = 16;

type Part = Mutex<HashMap<Box<str>, Arc<Session>>>;

/// The sessions of an endpoint, by id.
#[derive(Default)]
pub(super) struct Sessions {
    parts: [Part; PARTS],
    hasher: RandomState,
    places: Places,
    unused: Arc<Unused>,
}

impl Sessions {
    /// Makes room for one more. Where there is none, the oldest that nobody has used gives way: of the same principal where
    /// that has too many, or else of all.
    ///
    /// # Errors
    /// Why there is no room, though nothing is unused.
    pub(super) fn enter(
        &self,
        principal: Option<&Arc<str>>,
        limits: &Limits,
    ) -> Result<Place, Full> {
        loop {
            let full = match self.places.enter(principal, limits) {
                Ok(place) => return Ok(place),
                Err(full) => full,
            };
            let of = principal.filter(|_| full == Full::Own);
            let Some(oldest) = self.unused.take_oldest(of) else {
                return Err(full);
            };
            if let Some(session) = oldest.upgrade() {
                session.give_way();
            }
        }
    }

    /// Until somebody uses the session, which was opened just now, it may give way to others.
    pub(super) fn is_unused(&self, session: &Arc<Session>) {
        let owner = session.principal().map(Arc::clone);
        session.is_unused(self.unused.enter(owner, Arc::downgrade(session)));
    }

    /// Puts a session where it is found.
    ///
    /// # Errors
    /// The one that is there already.
    pub(super) fn insert(&self, session: &Arc<Session>) -> Result<(), Arc<Session>> {
        match self.part(session.id()).entry(session.id().into()) {
            Entry::Occupied(there) => Err(Arc::clone(there.get())),
            Entry::Vacant(place) => {
                place.insert(Arc::clone(session));
                Ok(())
            }
        }
    }

    /// The session of this id. `None` for whoever it does not belong to, as if there were none.
    pub(super) fn find(&self, id: &str, principal: Option<&str>) -> Option<Arc<Session>> {
        let found = self.part(id).get(id).cloned()?;
        found.belongs_to(principal).then_some(found)
    }

    pub(super) fn remove(&self, id: &str) {
        self.part(id).remove(id);
    }

    /// Ends all of them, in the background.
    pub(super) fn close_all(&self) {
        for part in &self.parts {
            let sessions = part.lock().unwrap_or_else(PoisonError::into_inner);
            sessions.values().for_each(|session| session.begin_close());
        }
    }

    /// Waits until there is none any more, and nothing that belongs to one. Cancel safe.
    pub(super) async fn all_gone(&self) {
        self.places.none().await;
    }

    fn part(&self, id: &str) -> MutexGuard<'_, HashMap<Box<str>, Arc<Session>>> {
        let index = usize::try_from(self.hasher.hash_one(id) % PARTS as u64).unwrap_or_default();
        let part = self.parts.get(index).unwrap_or(&self.parts[0]);
        part.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Sessions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sessions")
            .field("open", &self.places)
            .finish()
    }
}
