//! Sessions whose client has said nothing but `initialize`: they give way where there is no place for a new one.
//!
//! Whoever opens sessions without end pushes out those alone that nobody uses, most of them his own. A session that is used is
//! never given up for another: else the same would end the sessions of others.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
};

use crate::http::server::session::Session;

/// The sessions that nobody has used yet.
#[derive(Default)]
pub(super) struct Unused(Mutex<Table>);

#[derive(Default)]
struct Table {
    last: u64,
    /// In the order of their age, with whose they are.
    by_age: BTreeMap<u64, (Owner, Weak<Session>)>,
    by_owner: BTreeSet<(Owner, u64)>,
}

type Owner = Option<Arc<str>>;

/// Says that a session is not used, until it is dropped.
pub(super) struct IsUnused {
    unused: Arc<Unused>,
    number: u64,
}

impl Unused {
    /// Notes a session that was opened just now.
    pub(super) fn enter(self: &Arc<Self>, owner: Owner, session: Weak<Session>) -> IsUnused {
        let mut table = self.lock();
        table.last += 1;
        let number = table.last;
        table.by_owner.insert((owner.clone(), number));
        table.by_age.insert(number, (owner, session));
        drop(table);
        IsUnused {
            unused: Arc::clone(self),
            number,
        }
    }

    /// Takes out the oldest of all, or of a principal.
    pub(super) fn take_oldest(&self, of: Option<&Arc<str>>) -> Option<Weak<Session>> {
        let mut table = self.lock();
        let number = match of.cloned() {
            None => *table.by_age.first_key_value()?.0,
            owner => {
                let last = (owner.clone(), u64::MAX);
                table.by_owner.range((owner, 0)..=last).next()?.1
            }
        };
        table.remove(number)
    }

    fn lock(&self) -> MutexGuard<'_, Table> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Table {
    fn remove(&mut self, number: u64) -> Option<Weak<Session>> {
        let (owner, session) = self.by_age.remove(&number)?;
        self.by_owner.remove(&(owner, number));
        Some(session)
    }
}

impl Drop for IsUnused {
    fn drop(&mut self) {
        self.unused.lock().remove(self.number);
    }
}
