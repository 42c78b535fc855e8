//! What is kept and what is being asked, together: the decisions of the cache, told the time by whoever uses it.

use std::{sync::Arc, time::Duration};

use super::{
    CacheOptions,
    flights::{Flights, Ticket},
    question::{Ask, Change, Owner, Place, Server},
    store::Store,
};
use crate::protocol::Freshness;

/// The state of a cache. Times are those since it was made.
#[derive(Debug)]
pub(super) struct Core<F> {
    store: Store,
    flights: Flights<F>,
}

impl<F> Default for Core<F> {
    fn default() -> Self {
        Self {
            store: Store::default(),
            flights: Flights::default(),
        }
    }
}

impl<F: Clone + Default> Core<F> {
    pub(super) fn configure(&mut self, options: CacheOptions) {
        self.store.configure(options);
    }

    pub(super) fn fresh(&mut self, ask: &Ask, now: Duration) -> Option<Arc<str>> {
        self.store.fresh(ask, now)
    }

    pub(super) fn stale(&mut self, ask: &Ask, now: Duration) -> Option<Arc<str>> {
        self.store.stale(ask, now)
    }

    pub(super) fn enter(&mut self, ask: &Arc<Ask>, joins: bool) -> (Ticket, F) {
        self.flights.enter(ask, joins)
    }

    pub(super) fn leave(&mut self, ticket: Ticket) {
        self.flights.leave(ticket);
    }

    /// There will be no answer.
    pub(super) fn fail(&mut self, ticket: Ticket) {
        self.flights.settle(ticket);
    }

    /// Takes the answer of a flight, and keeps it if nothing speaks against it. Returns it where it stays fresh for a
    /// while, for those who wait for it, too.
    pub(super) fn answer(
        &mut self,
        ticket: Ticket,
        freshness: Freshness,
        text: &str,
        now: Duration,
    ) -> Option<Arc<str>> {
        match self.flights.settle(ticket) {
            Some(ask) => self.store.put(&ask, freshness, text, now),
            None => self.store.lasts(freshness).then(|| text.into()),
        }
    }

    /// A server says, in one of its sessions, that something has changed. Whoever asked the server has to ask again.
    pub(super) fn change(&mut self, server: &Server, change: &Change) {
        self.flights
            .outdate_where(|ask| ask.place.server == *server && change.concerns(&ask.question));
        self.store
            .remove_where(|key| key.server == *server && change.concerns(&key.question));
    }

    /// A server no longer knows where a page begins: the pages that say so are of an old list.
    pub(super) fn forget_pages(&mut self, ask: &Ask) {
        let kind = ask.question.kind;
        self.flights.outdate_where(|other| {
            other.place.server == ask.place.server && other.question.kind == kind
        });
        self.store
            .remove_where(|key| key.server == ask.place.server && key.question.kind == kind);
    }

    /// Forgets what nobody can ask for any more: what is for a session alone that is over.
    pub(super) fn forget(&mut self, place: &Place) {
        self.store.remove_where(|key| {
            key.owner == Owner::Session(place.session)
                || key.server == Server::OfSession(place.session)
        });
    }

    /// Forgets everything.
    pub(super) fn clear(&mut self) {
        self.flights.outdate_where(|_| true);
        self.store.remove_where(|_| true);
    }

    #[cfg(test)]
    pub(super) fn totals(&self) -> (usize, usize) {
        self.store.totals()
    }

    #[cfg(test)]
    pub(super) fn is_idle(&self) -> bool {
        self.flights.is_empty()
    }
}
