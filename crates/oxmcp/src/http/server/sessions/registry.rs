//! The sessions of an endpoint, by id.

use std::{
    borrow::Borrow,
    collections::HashSet,
    fmt,
    hash::{BuildHasher, BuildHasherDefault, Hash, Hasher},
    mem,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use crate::{
    Limits,
    http::server::{
        open::{Entered, Open},
        places::{Full, Place, Places},
        session::Session,
        unused::Unused,
    },
};

/// In so many parts the table is locked: requests of different sessions hardly ever wait for each other.
const PARTS: usize = 16;

type Part = Mutex<HashSet<ById, Spread>>;

/// The sessions of an endpoint, by id.
#[derive(Default)]
pub(super) struct Sessions {
    parts: [Part; PARTS],
    /// All that there are, those included that are being opened, or end.
    open: Arc<Open>,
    places: Places,
    unused: Arc<Unused>,
    /// Whether somebody looks for those that are idle.
    is_swept: Mutex<bool>,
}

/// A session, found by its id.
struct ById(Arc<Session>);

impl Borrow<str> for ById {
    fn borrow(&self) -> &str {
        self.0.id()
    }
}

impl Hash for ById {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.id().hash(state);
    }
}

impl PartialEq for ById {
    fn eq(&self, other: &Self) -> bool {
        self.0.id() == other.0.id()
    }
}

impl Eq for ById {}

type Spread = BuildHasherDefault<IdHasher>;

/// Spreads ids by their first half. Those in the table were all made here or by another node, and are random: nobody can choose
/// them to collide. What a client looks for is not put there.
#[derive(Default)]
struct IdHasher(u64);

impl Hasher for IdHasher {
    fn write(&mut self, bytes: &[u8]) {
        let Some((first, rest)) = bytes.split_first_chunk() else {
            // The end of a text, or the text of no id.
            return;
        };
        let second = rest.first_chunk().copied().unwrap_or_default();
        let digits = u64::from_le_bytes(*first) ^ u64::from_le_bytes(second).rotate_left(4);
        // The multiplier of the golden ratio. What it makes of digits is in the upper bits, and wanted in the lower ones, too.
        let spread = digits.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 = spread ^ (spread >> 32);
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

impl Sessions {
    /// There is one more, until the returned guard is dropped.
    pub(super) fn open(&self) -> Entered {
        self.open.enter()
    }

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
            // Those that gave way end in their own time, which a store may draw out: as many again, and no more.
            if self.open.count() >= limits.max_http_sessions.saturating_mul(2) {
                return Err(full);
            }
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
        let mut part = self.part(session.id());
        if let Some(ById(there)) = part.get(session.id()) {
            return Err(Arc::clone(there));
        }
        part.insert(ById(Arc::clone(session)));
        Ok(())
    }

    /// The session of this id. `None` for whoever it does not belong to, as if there were none.
    pub(super) fn find(&self, id: &str, principal: Option<&str>) -> Option<Arc<Session>> {
        let part = self.part(id);
        let ById(found) = part.get(id)?;
        found.belongs_to(principal).then(|| Arc::clone(found))
    }

    /// Takes a session out. Another of its id stays: a request that came before the end may have made it again of what was kept.
    pub(super) fn remove(&self, session: &Arc<Session>) {
        let mut part = self.part(session.id());
        if let Some(ById(there)) = part.get(session.id())
            && Arc::ptr_eq(there, session)
        {
            part.remove(session.id());
        }
    }

    /// Shows all of them.
    pub(super) fn for_each(&self, mut show: impl FnMut(&Arc<Session>)) {
        for part in &self.parts {
            let sessions = part.lock().unwrap_or_else(PoisonError::into_inner);
            sessions.iter().for_each(|ById(session)| show(session));
        }
    }

    /// Ends all of them, in the background.
    pub(super) fn close_all(&self) {
        self.for_each(|session| session.begin_close());
    }

    /// There is a session. Returns whether somebody must begin to look for those that are idle.
    pub(super) fn begin_sweeping(&self) -> bool {
        !mem::replace(&mut *self.lock_swept(), true)
    }

    /// Whoever looked for sessions that are idle is gone.
    pub(super) fn stop_sweeping(&self) {
        *self.lock_swept() = false;
    }

    /// Stops that where there are none: one that is opened meanwhile either is seen here or begins it anew.
    pub(super) fn end_sweeping(&self) -> bool {
        let mut is_swept = self.lock_swept();
        *is_swept = self.open.count() > 0;
        !*is_swept
    }

    fn lock_swept(&self) -> MutexGuard<'_, bool> {
        self.is_swept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until there is none any more, and nothing that belongs to one. Cancel safe.
    pub(super) async fn all_gone(&self) {
        self.open.none().await;
    }

    fn part(&self, id: &str) -> MutexGuard<'_, HashSet<ById, Spread>> {
        // Within a part, sessions are spread by other bits.
        let hash = Spread::default().hash_one(id) >> 16;
        let index = usize::try_from(hash % PARTS as u64).unwrap_or_default();
        let part = self.parts.get(index).unwrap_or(&self.parts[0]);
        part.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Sessions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sessions")
            .field("open", &self.open)
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        Server,
        http::server::{endpoint::StreamableHttp, session::new_id},
        session::Origin,
    };

    #[test]
    fn ids_are_spread() {
        let (ids, places) = (1024, 64);
        let mut low = vec![0; places];
        let mut high = vec![0; places];
        for _ in 0..ids {
            let hash = Spread::default().hash_one(new_id().unwrap());
            let place = |hash: u64| usize::try_from(hash % 64).unwrap();
            low[place(hash)] += 1;
            high[place(hash >> 58)] += 1;
        }
        // Far less would be all in one place in every eighth case.
        for places in [low, high] {
            assert!(
                places.iter().all(|count| (1..=64).contains(count)),
                "{places:?}"
            );
        }
    }

    #[tokio::test]
    async fn who_ends_takes_no_other_of_the_same_id_along() {
        let server = Server::new("s", "1");
        let endpoint = StreamableHttp::from(server.clone());
        let made = || {
            let origin = Origin::default();
            let made = Session::unbegun(&endpoint, server.clone(), "id".into(), &origin);
            made.unwrap_or_else(|_| panic!("there is room"))
        };
        let (first, second) = (made(), made());
        let sessions = &endpoint.state.sessions;
        assert!(sessions.insert(&first).is_ok());
        sessions.remove(&first);
        assert!(sessions.insert(&second).is_ok());
        sessions.remove(&first);
        assert!(sessions.find("id", None).is_some());
        sessions.remove(&second);
        assert!(sessions.find("id", None).is_none());
    }

    #[test]
    fn the_text_of_no_id_can_be_looked_for() {
        let sessions = Sessions::default();
        for text in ["", "x", "12345678", "0123456789", &"z".repeat(1000)] {
            assert!(sessions.find(text, None).is_none());
        }
    }
}
